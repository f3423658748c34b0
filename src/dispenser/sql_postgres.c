/*
 * sql_postgres.c - implements sql.h over a PostgreSQL server, for crawlers on several machines.
 *
 * A writing transaction starts with an advisory lock that all writers take. So what one reads and then changes (an
 * address that nobody holds, a head that is the best) no other changes in between, as in SQLite. SELECT ... FOR UPDATE
 * SKIP LOCKED would let two claims run at once and give two sites of one address to two processes. The server ends a
 * client that dies or hangs inside a transaction, and releases its lock.
 *
 * The next wb_sql_begin() reopens a connection that broke. The URL is never printed: it may contain a password.
 */
#include "dispenser/sql.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { NUMBER_TEXT_MAX = 24 };

unsigned wb_sql_reopen_tries = 7; /* about six seconds in total, in which a server can restart */

struct postgres {
    struct wb_sql base;
    PGconn *conn;
    char *url;
    char **texts;       /* the statements, with $1 instead of ?1 */
    bool *prepared;     /* which of them are prepared in this connection */
    PGresult **results; /* of those that were run */
    int *rows;          /* the current row of each result */
};

/*
 * The planner knows little about tables that have just been filled, so tell it what we know: every one of our
 * statements uses an index. lock_timeout and idle_in_transaction_session_timeout bound how long a process that hangs
 * keeps the others waiting.
 */
static const char session[] =
    "SET client_min_messages = error; SET standard_conforming_strings = on; SET jit = off;"
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;"
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET default_transaction_isolation = 'read committed';"
    "SET lock_timeout = 30000; SET idle_in_transaction_session_timeout = 30000; SET statement_timeout = 0";

/* The number is "webbase" as bytes. */
static const char begin_write[] = "BEGIN; SELECT pg_advisory_xact_lock(33606995460322149)";
static const char begin_read[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/* ---- errors ---------------------------------------------------------------------------------------- */

/* The error message of the connection, on one line; not if it contains the password. */
static void connection_words(const struct postgres *p, char *words, size_t size)
{
    const char *message = p->conn ? PQerrorMessage(p->conn) : "out of memory";
    const char *password = p->conn ? PQpass(p->conn) : NULL;

    if (password && *password && strstr(message, password))
        message = "refused";
    snprintf(words, size, "%s", message);
    for (char *c = words; *c; c++)
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    for (size_t len = strlen(words); len && words[len - 1] == ' '; len--)
        words[len - 1] = '\0';
}

static int fail_connection(const struct postgres *p, int code)
{
    char words[512];

    connection_words(p, words, sizeof words);
    return wb_fail(code, "cannot reach %s: %s", p->base.where, words);
}

static bool state_in(const char *state, const char *const *list)
{
    for (; *list; list++) {
        if (strncmp(state, *list, strlen(*list)) == 0)
            return true;
    }
    return false;
}

/* Turns an SQLSTATE into one of our codes. A short one in a list stands for its whole class. */
static int fail(const struct postgres *p, const PGresult *result)
{
    /*
     * Serialization failure and deadlock, lock not available, server shutting down, connection lost, two clients that
     * create the same table or row at the same time.
     */
    static const char *const again[] = {"40", "55P03", "57P0", "08", "25P03", "23505", "42P07", NULL};
    static const char *const corrupt[] = {"42P01", "42703", "42P10", "XX", "22", NULL};
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    if (PQstatus(p->conn) != CONNECTION_OK)
        return fail_connection(p, WB_SQL_AGAIN);
    if (!state || !words)
        return wb_fail(WB_E_IO, "%s gave an answer that makes no sense", p->base.where);
    if (state_in(state, again))
        return wb_fail(WB_SQL_AGAIN, "%s is busy: %s", p->base.where, words);
    if (state_in(state, corrupt))
        return wb_fail(WB_E_CORRUPT, "%s does not contain what it should: %s", p->base.where, words);
    return wb_fail(WB_E_IO, "%s: %s", p->base.where, words);
}

static bool succeeded(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static int exec_text(struct wb_sql *sql, const char *text)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result = PQexec(p->conn, text);
    int err = succeeded(result) ? 0 : fail(p, result);

    PQclear(result);
    return err;
}

static int has_table(struct wb_sql *sql, const char *name)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result = PQexecParams(p->conn, "SELECT to_regclass($1) IS NOT NULL", 1, NULL, &name, NULL, NULL, 0);
    int err = succeeded(result) ? PQgetvalue(result, 0, 0)[0] == 't' : fail(p, result);

    PQclear(result);
    return err;
}

/*
 * clock_timestamp() is the present time, not that of the start of the transaction, which may have waited for its
 * lock.
 */
static int read_clock(struct wb_sql *sql, int64_t *now_ms_out)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result = PQexec(p->conn, "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT");
    int err = succeeded(result) ? 0 : fail(p, result);

    if (err == 0)
        *now_ms_out = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return err;
}

/* ---- connecting -------------------------------------------------------------------------------------- */

static void drop_results(struct postgres *p)
{
    for (unsigned i = 0; i < p->base.count; i++) {
        PQclear(p->results[i]);
        p->results[i] = NULL;
    }
}

static void disconnect(struct postgres *p)
{
    drop_results(p);
    memset(p->prepared, 0, p->base.count * sizeof *p->prepared);
    PQfinish(p->conn);
    p->conn = NULL;
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

static int connect_once(struct postgres *p)
{
    /* What comes before the URL is a default that the URL may change. */
    const char *const names[] = {"connect_timeout",  "keepalives_idle",  "keepalives_interval",
                                 "keepalives_count", "tcp_user_timeout", "application_name",
                                 "dbname",           "client_encoding",  NULL};
    const char *const values[] = {"10", "15", "5", "3", "30000", "webbase", p->url, "UTF8", NULL};

    disconnect(p);
    p->conn = PQconnectdbParams(names, values, 1);
    if (!p->conn || PQstatus(p->conn) != CONNECTION_OK)
        return fail_connection(p, WB_E_IO);
    PQsetNoticeReceiver(p->conn, ignore_notice, NULL);
    return exec_text(&p->base, session);
}

static int reconnect(struct postgres *p)
{
    int err = WB_E_IO;

    for (unsigned i = 0; i < wb_sql_reopen_tries && err < 0; i++) {
        unsigned ms = i ? 50u << (i < 8 ? i : 8) : 0;
        nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000L}, NULL);
        err = connect_once(p);
    }
    /* WB_E_IO, so that the caller does not try again. The message is that of the last try. */
    return err < 0 ? WB_E_IO : 0;
}

/* ---- transactions ---------------------------------------------------------------------------------------- */

static int begin_transaction(struct wb_sql *sql, bool write)
{
    struct postgres *p = (struct postgres *)sql;

    if (!p->conn || PQstatus(p->conn) != CONNECTION_OK) {
        int err = reconnect(p);
        if (err < 0)
            return err;
    }
    return exec_text(sql, write ? begin_write : begin_read);
}

static int commit_transaction(struct wb_sql *sql)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result = PQexec(p->conn, "COMMIT");
    int err = succeeded(result) ? 0 : fail(p, result);

    /* If the transaction has failed, the server answers COMMIT with ROLLBACK and calls that a success. */
    if (err == 0 && strcmp(PQcmdStatus(result), "COMMIT") != 0)
        err = wb_fail(WB_SQL_AGAIN, "%s rolled a transaction back", p->base.where);
    PQclear(result);
    return err;
}

static void rollback_transaction(struct wb_sql *sql)
{
    struct postgres *p = (struct postgres *)sql;

    drop_results(p);
    if (p->conn && PQstatus(p->conn) == CONNECTION_OK && PQtransactionStatus(p->conn) != PQTRANS_IDLE)
        PQclear(PQexec(p->conn, "ROLLBACK"));
}

/* ---- statements --------------------------------------------------------------------------------------------- */

static int prepare_statement(struct postgres *p, unsigned n, const char *name)
{
    if (p->prepared[n])
        return 0;
    PGresult *result = PQprepare(p->conn, name, p->texts[n], 0, NULL);
    int err = succeeded(result) ? 0 : fail(p, result);
    p->prepared[n] = err == 0;
    PQclear(result);
    return err;
}

/* Writes every value to bytes as text, followed by a NUL. */
static int write_values(const struct wb_sql_value *values, unsigned count, struct wb_buf *bytes, const char **texts_out)
{
    size_t total = 0;

    for (unsigned i = 0; i < count; i++)
        total += values[i].is_text ? values[i].text.len + 1 : NUMBER_TEXT_MAX;
    /* Reserve everything at once, so that the bytes do not move. */
    int err = wb_buf_reserve(bytes, total + 1);
    for (unsigned i = 0; i < count && err == 0; i++) {
        texts_out[i] = bytes->ptr + bytes->len;
        if (values[i].is_text)
            err = wb_buf_append_slice(bytes, values[i].text);
        else
            err = wb_buf_printf(bytes, "%lld", (long long)values[i].number);
        if (err == 0)
            err = wb_buf_append_char(bytes, '\0');
    }
    return err;
}

static int run_statement(struct wb_sql *sql, unsigned n, const struct wb_sql_value *values, unsigned count)
{
    struct postgres *p = (struct postgres *)sql;
    struct wb_buf bytes = WB_BUF_INIT;
    const char *texts[WB_SQL_VALUES_MAX];
    char name[NUMBER_TEXT_MAX];
    int err;

    PQclear(p->results[n]);
    p->results[n] = NULL;
    snprintf(name, sizeof name, "webbase_%u", n);
    err = prepare_statement(p, n, name);
    if (err == 0)
        err = write_values(values, count, &bytes, texts);
    if (err < 0)
        goto done;
    p->results[n] = PQexecPrepared(p->conn, name, (int)count, texts, NULL, NULL, 0);
    p->rows[n] = 0;
    err = succeeded(p->results[n]) ? PQntuples(p->results[n]) > 0 : fail(p, p->results[n]);
done:
    wb_buf_release(&bytes);
    return err;
}

static int next_row(struct wb_sql *sql, unsigned n)
{
    struct postgres *p = (struct postgres *)sql;

    WB_CHECK(p->results[n]);
    return ++p->rows[n] < PQntuples(p->results[n]);
}

static struct wb_slice column_text(const struct wb_sql *sql, unsigned n, unsigned column)
{
    const struct postgres *p = (const struct postgres *)sql;

    WB_CHECK(p->results[n] && p->rows[n] < PQntuples(p->results[n]));
    return wb_slice(PQgetvalue(p->results[n], p->rows[n], (int)column), (size_t)PQgetlength(p->results[n], p->rows[n],
                                                                                            (int)column));
}

static int64_t column_number(const struct wb_sql *sql, unsigned n, unsigned column)
{
    return strtoll(column_text(sql, n, column).ptr, NULL, 10);
}

static void end_statement(struct wb_sql *sql, unsigned n)
{
    struct postgres *p = (struct postgres *)sql;

    PQclear(p->results[n]);
    p->results[n] = NULL;
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static void close_postgres(struct wb_sql *sql)
{
    struct postgres *p = (struct postgres *)sql;

    for (unsigned i = 0; p->results && i < p->base.count; i++)
        PQclear(p->results[i]);
    for (unsigned i = 0; p->texts && i < p->base.count; i++)
        wb_free(p->texts[i]);
    PQfinish(p->conn);
    wb_free(p->texts);
    wb_free(p->prepared);
    wb_free(p->results);
    wb_free(p->rows);
    wb_free(p->url);
}

static const struct wb_sql_driver driver = {
    .id_type = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    .close = close_postgres,
    .has_table = has_table,
    .clock = read_clock,
    .exec = exec_text,
    .begin = begin_transaction,
    .commit = commit_transaction,
    .rollback = rollback_transaction,
    .run = run_statement,
    .next = next_row,
    .number = column_number,
    .text = column_text,
    .end = end_statement,
};

/*
 * Makes "the PostgreSQL server at HOST:PORT, database NAME". libpq's own message about a URL that it cannot read would
 * quote the URL, password and all.
 */
static int name_server(const char *url, char **where_out)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    const char *host = "", *port = "", *database = "";
    struct wb_buf text = WB_BUF_INIT;
    int err = 0;

    if (!options)
        return wb_fail(WB_E_INVALID, "the dispenser's URL is not one that PostgreSQL's library can read");
    for (PQconninfoOption *o = options; o->keyword; o++) {
        if (!o->val)
            continue;
        host = strcmp(o->keyword, "host") == 0 ? o->val : host;
        port = strcmp(o->keyword, "port") == 0 ? o->val : port;
        database = strcmp(o->keyword, "dbname") == 0 ? o->val : database;
    }
    err = wb_buf_printf(&text, "the PostgreSQL server at %s%s%s%s%s", *host ? host : "this machine", *port ? ":" : "",
                        port, *database ? ", database " : "", database);
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        *where_out = wb_buf_take(&text).ptr;
    wb_buf_release(&text);
    PQconninfoFree(options);
    return err;
}

static int translate_texts(struct postgres *p)
{
    for (unsigned i = 0; i < p->base.count; i++) {
        p->texts[i] = wb_strdup(p->base.texts[i]);
        if (!p->texts[i])
            return WB_E_NOMEM;
        for (char *c = p->texts[i]; *c; c++)
            *c = *c == '?' ? '$' : *c;
    }
    return 0;
}

int wb_sql_open_postgres(const char *url, const char *const *texts, unsigned count, struct wb_sql **sql_out)
{
    struct postgres *p = NULL;
    int err = WB_E_NOMEM;

    *sql_out = NULL;
    p = wb_alloc_zero(1, sizeof *p);
    if (!p)
        return WB_E_NOMEM;
    wb_sql_init(&p->base, &driver, texts, count);
    p->url = wb_strdup(url);
    p->texts = wb_alloc_zero(count, sizeof *p->texts);
    p->prepared = wb_alloc_zero(count, sizeof *p->prepared);
    p->results = wb_alloc_zero(count, sizeof *p->results);
    p->rows = wb_alloc_zero(count, sizeof *p->rows);
    if (!p->url || !p->texts || !p->prepared || !p->results || !p->rows)
        goto done;
    err = name_server(url, &p->base.where);
    if (err == 0)
        err = translate_texts(p);
    if (err == 0)
        err = connect_once(p);
    if (err < 0)
        goto done;
    *sql_out = &p->base;
    p = NULL;
done:
    if (p) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_sql_close(&p->base);
        wb_error_restore(&why);
    }
    return err == WB_SQL_AGAIN ? WB_E_IO : err;
}
