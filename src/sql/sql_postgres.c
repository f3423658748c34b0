/*
 * sql_postgres.c - implements sql.h over a PostgreSQL server, for crawlers on several machines.
 *
 * With take_turns, a writing transaction starts with an advisory lock that all writers take; it ends with the
 * transaction. So what one reads and then changes (an address that nobody holds, a head that is the best) no other
 * changes in between, as in SQLite. SELECT ... FOR UPDATE SKIP LOCKED would let two claims run at once and give two
 * sites of one address to two processes.
 *
 * Both sides bound how long they wait for each other:
 *
 *   the server ends a statement after answer_ms, a wait for a lock and a transaction in which nothing happens after
 * half of that; so a client that froze or was cut off holds its rows no longer than that this side gives up a
 * connection whose answer has not come a second after the server should have given up, however alive the connection
 * seems; keep-alive and the time-out of TCP end those to a machine that is gone
 *
 * The next wb_sql_begin() reopens a connection that broke, with pauses that grow and whose length is partly random, so
 * that a thousand clients do not come back at the same moment. The URL is never printed: it may contain a password.
 */
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "sql/sql_driver.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    NUMBER_TEXT_MAX = 24,
    MARGIN_MS = 1000, /* how much later than the server this side gives up */
    CONNECT_S_MAX = 10,
    CONNECT_S_MIN = 2, /* libpq's own lower limit */
    REOPEN_MS = 50,
    REOPEN_DOUBLES = 6,
};

unsigned wb_sql_reopen_tries = 7; /* about six seconds in total, in which a server can restart */

struct postgres {
    struct wb_sql base;
    PGconn *conn;
    char *url;
    char **texts;       /* the statements, with $1 instead of ?1 */
    bool *prepared;     /* which of them are prepared in this connection */
    PGresult **results; /* of those that were run */
    int *rows;          /* the current row of each result */
    bool silent;        /* the connection was given up because no answer came */
};

static const char session[] = "SET client_min_messages = error; SET standard_conforming_strings = on; SET jit = off;"
                              "SET default_transaction_isolation = 'read committed';"
    /* A claim that a crash of the server undoes would give a site two owners. */
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/* The planner knows little about tables that have just been filled, so tell it that every statement uses an index. */
static const char indexed[] =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;"
    "SET enable_hashjoin = off; SET enable_mergejoin = off";

/* The number is "webbase" as bytes. */
static const char begin_turn[] = "BEGIN; SELECT pg_advisory_xact_lock(33606995460322149)";
static const char begin_read[] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/*
 * clock_timestamp() is the present time, not that of the start of the transaction, which may have waited for its
 * lock.
 */
#define NOW_MS "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"
#define TEST_NOW_MS "current_setting('webbase.now_ms')::BIGINT"

/* A server that was started again, or that took the place of another, has another time of start. */
#define SERVER "(EXTRACT(EPOCH FROM pg_postmaster_start_time()) * 1000)::BIGINT"

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

    if (p->silent)
        return wb_fail(code, "%s has not answered for %u s", p->base.where,
                       (p->base.options.answer_ms + MARGIN_MS + 999) / 1000);
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
     * create the same table or row at the same time; an answer that took too long; a server that has become a standby.
     */
    static const char *const again[] = {"40", "55P03", "57014", "57P0", "08", "25P03", "25006", "23505", "42P07", NULL};
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

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static void disconnect(struct postgres *p);

/* Waits until the server can be read from, or written to. False if it is too late, or the connection broke. */
static bool wait_for_server(struct postgres *p, bool writing, int64_t until_ns)
{
    struct pollfd fd = {.fd = PQsocket(p->conn), .events = (short)(POLLIN | (writing ? POLLOUT : 0))};

    for (;;) {
        int64_t left_ns = until_ns - wb_clock_mono_ns();
        int ready = poll(&fd, 1, left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0);
        if (ready > 0)
            return true;
        if (ready == 0 && left_ns <= 0)
            p->silent = true;
        if (p->silent || (ready < 0 && errno != EINTR))
            return false;
    }
}

/* Reads what has come and writes what waits, until a whole result is there. False as above. */
static bool await_result(struct postgres *p, int64_t until_ns)
{
    for (;;) {
        int left = PQflush(p->conn);
        if (left < 0 || (left == 0 && !PQisBusy(p->conn)))
            return true; /* PQgetResult() says what is wrong */
        if (!wait_for_server(p, left > 0, until_ns))
            return false;
        if (!PQconsumeInput(p->conn))
            return true;
    }
}

/*
 * The answer to what was sent; if it was several statements, that to the last. A connection without an answer is given
 * up: NULL, and p->silent.
 */
static PGresult *answer(struct postgres *p, int sent)
{
    int64_t until_ns = wb_clock_mono_ns() + ((int64_t)p->base.options.answer_ms + MARGIN_MS) * 1000000;
    PGresult *last = NULL, *next;

    p->silent = false;
    if (!sent)
        return PQmakeEmptyPGresult(p->conn, PGRES_FATAL_ERROR);
    do {
        next = NULL;
        if (!await_result(p, until_ns)) {
            PQclear(last);
            disconnect(p);
            return NULL;
        }
        next = PQgetResult(p->conn);
        if (next) {
            PQclear(last);
            last = next;
        }
    } while (next && PQstatus(p->conn) == CONNECTION_OK);
    return last;
}

/* Whether an answer is a good one; otherwise its error. Without an answer the connection is gone. */
static int judge(const struct postgres *p, const PGresult *result)
{
    return result && succeeded(result) ? 0 : fail(p, result);
}

static int exec_text(struct wb_sql *sql, const char *text)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result = answer(p, PQsendQuery(p->conn, text));
    int err = judge(p, result);

    PQclear(result);
    return err;
}

static int has_table(struct wb_sql *sql, const char *name)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result =
        answer(p, PQsendQueryParams(p->conn, "SELECT to_regclass($1) IS NOT NULL", 1, NULL, &name, NULL, NULL, 0));
    int err = judge(p, result);

    if (err == 0)
        err = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return err;
}

static int read_clock(struct wb_sql *sql, int64_t *now_ms_out)
{
    struct postgres *p = (struct postgres *)sql;

    if (sql->test_clock) {
        *now_ms_out = sql->test_clock();
        return 0;
    }
    PGresult *result = answer(p, PQsendQuery(p->conn, "SELECT " NOW_MS));
    int err = judge(p, result);
    if (err == 0)
        *now_ms_out = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return err;
}

static int ask_lossy(struct wb_sql *sql)
{
    struct postgres *p = (struct postgres *)sql;
    PGresult *result =
        answer(p, PQsendQuery(p->conn, "SELECT reset_val = 'off' FROM pg_settings WHERE name = 'synchronous_commit'"));
    int err = judge(p, result);

    if (err == 0)
        err = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return err;
}

/* ---- connecting -------------------------------------------------------------------------------------- */

static void drop_results(struct postgres *p)
{
    for (unsigned i = 0; i < p->base.options.count; i++) {
        PQclear(p->results[i]);
        p->results[i] = NULL;
    }
}

static void disconnect(struct postgres *p)
{
    drop_results(p);
    memset(p->prepared, 0, p->base.options.count * sizeof *p->prepared);
    PQfinish(p->conn);
    p->conn = NULL;
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

/* What both sides bound is the same for all statements of the connection. */
static int set_up_session(struct postgres *p)
{
    struct wb_buf text = WB_BUF_INIT;
    unsigned answer_ms = p->base.options.answer_ms;
    int err = wb_buf_printf(&text,
                            "%s; SET statement_timeout = %u; SET lock_timeout = %u;"
                            "SET idle_in_transaction_session_timeout = %u%s%s",
                            session, answer_ms, (answer_ms + 1) / 2, (answer_ms + 1) / 2,
                            p->base.options.indexed ? ";" : "", p->base.options.indexed ? indexed : "");

    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        err = exec_text(&p->base, text.ptr);
    wb_buf_release(&text);
    return err;
}

static int connect_once(struct postgres *p)
{
    unsigned seconds = p->base.options.answer_ms / 1000;
    char connect_s[16], user_ms[16];
    /* What comes before the URL is a default that the URL may change. */
    const char *const names[] = {"connect_timeout",     "keepalives_idle",
                                 "keepalives_interval", "keepalives_count",
                                 "tcp_user_timeout",    "target_session_attrs",
                                 "application_name",    "dbname",
                                 "client_encoding",     NULL};
    const char *const values[] = {connect_s, "15", "5", "3", user_ms, "read-write", "webbase", p->url, "UTF8", NULL};

    seconds = seconds < CONNECT_S_MIN ? CONNECT_S_MIN : seconds > CONNECT_S_MAX ? CONNECT_S_MAX : seconds;
    snprintf(connect_s, sizeof connect_s, "%u", seconds);
    snprintf(user_ms, sizeof user_ms, "%u", p->base.options.answer_ms);
    disconnect(p);
    p->silent = false;
    p->conn = PQconnectdbParams(names, values, 1);
    if (!p->conn || PQstatus(p->conn) != CONNECTION_OK || PQsetnonblocking(p->conn, 1) != 0)
        return fail_connection(p, WB_E_IO);
    PQsetNoticeReceiver(p->conn, ignore_notice, NULL);
    return set_up_session(p);
}

static int reconnect(struct postgres *p)
{
    int64_t until_ns = wb_clock_mono_ns() + p->base.options.patience_ms * (int64_t)1000000;
    int err = WB_E_IO;

    for (unsigned i = 0; i < wb_sql_reopen_tries && err < 0; i++) {
        unsigned ms = i ? (unsigned)REOPEN_MS << (i < REOPEN_DOUBLES ? i : REOPEN_DOUBLES) : 0;
        if (i && wb_clock_mono_ns() + ms * (int64_t)1000000 > until_ns)
            break;
        if (i)
            wb_sql_pause(2 * ms);
        err = connect_once(p);
    }
    /* WB_E_IO, so that the caller does not try again. The message is that of the last try. */
    return err < 0 ? WB_E_IO : 0;
}

/* ---- transactions ---------------------------------------------------------------------------------------- */

static int begin_transaction(struct wb_sql *sql, enum wb_sql_kind kind)
{
    struct postgres *p = (struct postgres *)sql;

    if (!p->conn || PQstatus(p->conn) != CONNECTION_OK) {
        int err = reconnect(p);
        if (err < 0)
            return err;
    }
    if (kind == WB_SQL_READ)
        return exec_text(sql, begin_read);
    if (sql->options.take_turns)
        return exec_text(sql, begin_turn);
    /* A statement alone is a transaction. */
    return kind == WB_SQL_ONE ? 0 : exec_text(sql, "BEGIN");
}

static int commit_transaction(struct wb_sql *sql)
{
    struct postgres *p = (struct postgres *)sql;

    if (sql->kind == WB_SQL_ONE && !sql->options.take_turns)
        return 0;
    PGresult *result = answer(p, PQsendQuery(p->conn, "COMMIT"));
    int err = judge(p, result);

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
    if (!p->conn || PQstatus(p->conn) != CONNECTION_OK || PQtransactionStatus(p->conn) == PQTRANS_IDLE)
        return;
    /* The answer to an earlier statement may still be on its way if memory was short: then only a new connection helps.
     */
    if (PQtransactionStatus(p->conn) == PQTRANS_ACTIVE || exec_text(sql, "ROLLBACK") < 0)
        disconnect(p);
}

/* ---- statements --------------------------------------------------------------------------------------------- */

static int prepare_statement(struct postgres *p, unsigned n, const char *name)
{
    if (p->prepared[n])
        return 0;
    PGresult *result = answer(p, PQsendPrepare(p->conn, name, p->texts[n], 0, NULL));
    int err = judge(p, result);
    p->prepared[n] = err == 0;
    PQclear(result);
    return err;
}

/* The server knows what the test's clock says. */
static int tell_test_clock(struct postgres *p)
{
    char text[64];

    snprintf(text, sizeof text, "SET webbase.now_ms = '%lld'", (long long)p->base.test_clock());
    return exec_text(&p->base, text);
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
    if (err == 0 && sql->test_clock)
        err = tell_test_clock(p);
    if (err == 0)
        err = write_values(values, count, &bytes, texts);
    if (err < 0)
        goto done;
    p->results[n] = answer(p, PQsendQueryPrepared(p->conn, name, (int)count, texts, NULL, NULL, 0));
    p->rows[n] = 0;
    err = judge(p, p->results[n]);
    if (err == 0)
        err = PQntuples(p->results[n]) > 0;
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
    return wb_slice(PQgetvalue(p->results[n], p->rows[n], (int)column),
                    (size_t)PQgetlength(p->results[n], p->rows[n], (int)column));
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

    for (unsigned i = 0; p->results && i < p->base.options.count; i++)
        PQclear(p->results[i]);
    for (unsigned i = 0; p->texts && i < p->base.options.count; i++)
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
    .lossy = ask_lossy,
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

static int refuse_url(void)
{
    return wb_fail(WB_E_INVALID, "the URL of the database is not one that PostgreSQL's library can read");
}

/*
 * Makes "the PostgreSQL server at HOST:PORT, database NAME". libpq's own message about a URL that it cannot read would
 * quote the URL, password and all.
 */
static int name_server(const char *url, char **where_out)
{
    PQconninfoOption *options = PQconninfoParse(url, NULL);
    const char *host = "", *address = "", *port = "", *database = "";
    struct wb_buf text = WB_BUF_INIT;
    int err = 0;

    if (!options)
        return refuse_url();
    for (PQconninfoOption *o = options; o->keyword; o++) {
        if (!o->val)
            continue;
        host = strcmp(o->keyword, "host") == 0 ? o->val : host;
        address = strcmp(o->keyword, "hostaddr") == 0 ? o->val : address;
        port = strcmp(o->keyword, "port") == 0 ? o->val : port;
        database = strcmp(o->keyword, "dbname") == 0 ? o->val : database;
    }
    host = *host ? host : *address ? address : "this machine";
    /* A '/' in a password ends it: what is taken for a port, and would be shown, is then the beginning of the password.
     */
    if (port[strspn(port, "0123456789,")] != '\0')
        err = refuse_url();
    if (err == 0)
        err = wb_buf_printf(&text, "the PostgreSQL server at %s%s%s%s%s", host, *port ? ":" : "", port,
                            *database ? ", database " : "", database);
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        *where_out = wb_buf_take(&text).ptr;
    wb_buf_release(&text);
    PQconninfoFree(options);
    return err;
}

/* $1 for ?1, and expressions for the functions that SQLite gets from us. */
static int translate_text(const char *text, bool test, char **text_out)
{
    const struct {
        const char *name, *expression;
    } functions[] = {{"webbase_now_ms()", test ? TEST_NOW_MS : NOW_MS}, {"webbase_server()", SERVER}};
    enum { FUNCTIONS = sizeof functions / sizeof *functions };
    struct wb_buf out = WB_BUF_INIT;
    int err = wb_buf_reserve(&out, strlen(text) + 1);

    while (*text && err == 0) {
        size_t i = 0;
        while (i < FUNCTIONS && strncmp(text, functions[i].name, strlen(functions[i].name)) != 0)
            i++;
        if (i < FUNCTIONS) {
            err = wb_buf_append_str(&out, functions[i].expression);
            text += strlen(functions[i].name);
        } else {
            err = wb_buf_append_char(&out, *text == '?' ? '$' : *text);
            text++;
        }
    }
    if (err == 0)
        err = wb_buf_terminate(&out);
    if (err == 0)
        *text_out = wb_buf_take(&out).ptr;
    wb_buf_release(&out);
    return err;
}

static int translate_texts(struct postgres *p)
{
    int err = 0;

    for (unsigned i = 0; i < p->base.options.count && err == 0; i++)
        err = translate_text(p->base.options.texts[i], p->base.test_clock != NULL, &p->texts[i]);
    return err;
}

int wb_sql_open_postgres(const char *url, const struct wb_sql_options *options, struct wb_sql **sql_out)
{
    unsigned count = options->count;
    struct postgres *p = NULL;
    int err = WB_E_NOMEM;

    *sql_out = NULL;
    p = wb_alloc_zero(1, sizeof *p);
    if (!p)
        return WB_E_NOMEM;
    wb_sql_init(&p->base, &driver, options);
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
