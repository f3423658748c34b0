/*
 * sql.c - hands the calls of sql.h to the driver.
 *
 * It checks what every driver may rely on: the handle is open and used by the process that opened it, the statement
 * exists, there are not too many values, and no text contains a NUL. It repeats transactions, and knows nothing about
 * any particular database.
 */
#include "sql/sql.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/random.h"
#include "sql/sql_driver.h"

#include <time.h>
#include <unistd.h>

enum {
    TRIES = 12,       /* of a transaction */
    PAUSE_MS_MIN = 4, /* the longest pause after the first of them; it doubles */
    PAUSE_DOUBLES = 6,
};

int64_t (*wb_sql_test_clock)(void);

static void check_handle(const struct wb_sql *sql)
{
    WB_CHECK(sql->magic == WB_SQL_MAGIC);
    /* After fork, the file locks and the connection belong to the parent. */
    WB_CHECK(sql->process == getpid());
}

void wb_sql_init(struct wb_sql *sql, const struct wb_sql_driver *driver, const struct wb_sql_options *options)
{
    *sql = (struct wb_sql){.magic = WB_SQL_MAGIC,
                           .driver = driver,
                           .process = getpid(),
                           .options = *options,
                           .test_clock = wb_sql_test_clock};
    if (sql->options.answer_ms == 0)
        sql->options.answer_ms = WB_SQL_ANSWER_MS;
    if (sql->options.patience_ms == 0)
        sql->options.patience_ms = WB_SQL_PATIENCE_MS;
}

int wb_sql_open(const char *url, const struct wb_sql_options *options, struct wb_sql **sql_out)
{
    *sql_out = NULL;
    switch (wb_sql_url_kind(wb_slice_str(url))) {
    case WB_SQL_URL_SQLITE:
        return wb_sql_open_sqlite(url + sizeof "sqlite://" - 1, options, sql_out);
    case WB_SQL_URL_POSTGRES:
        return wb_sql_open_postgres(url, options, sql_out);
    case WB_SQL_URL_NONE:
        break;
    }
    return wb_fail(WB_E_INVALID, "a database's URL is postgres://USER@HOST:PORT/NAME or sqlite:///FILE");
}

void wb_sql_close(struct wb_sql *sql)
{
    /* Closing in a child would end the parent's locks or connection. Leave it to the end of the process. */
    if (!sql || sql->process != getpid())
        return;
    WB_CHECK(sql->magic == WB_SQL_MAGIC);
    sql->driver->close(sql);
    sql->magic = 0;
    wb_free(sql->where);
    wb_free(sql);
}

const char *wb_sql_where(const struct wb_sql *sql)
{
    return sql->where;
}

const char *wb_sql_id_type(const struct wb_sql *sql)
{
    return sql->driver->id_type;
}

int wb_sql_clock(struct wb_sql *sql, int64_t *now_ms_out)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    *now_ms_out = 0;
    return sql->driver->clock(sql, now_ms_out);
}

int wb_sql_clock_epoch(const struct wb_sql *sql, int64_t *epoch_out)
{
    *epoch_out = 0;
    return sql->driver->clock_epoch ? sql->driver->clock_epoch(epoch_out) : 0;
}

int wb_sql_lossy(struct wb_sql *sql)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    return sql->driver->lossy ? sql->driver->lossy(sql) : 0;
}

int wb_sql_has_table(struct wb_sql *sql, const char *name)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    return sql->driver->has_table(sql, name);
}

int wb_sql_exec(struct wb_sql *sql, const char *text)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction && sql->kind != WB_SQL_ONE);
    return sql->driver->exec(sql, text);
}

int wb_sql_begin(struct wb_sql *sql, enum wb_sql_kind kind)
{
    check_handle(sql);
    WB_CHECK(!sql->in_transaction);
    int err = sql->driver->begin(sql, kind);
    sql->in_transaction = err == 0;
    sql->kind = kind;
    sql->statements_run = 0;
    return err;
}

int wb_sql_commit(struct wb_sql *sql)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    int err = sql->driver->commit(sql);
    sql->in_transaction = err < 0; /* then the caller rolls back */
    return err;
}

void wb_sql_rollback(struct wb_sql *sql)
{
    check_handle(sql);
    sql->driver->rollback(sql);
    sql->in_transaction = false;
}

/* ---- transactions that are repeated ------------------------------------------------------------------------------ */

void wb_sql_pause(unsigned ms_max)
{
    uint32_t chance;

    wb_random_bytes(&chance, sizeof chance);
    unsigned ms = 1 + (ms_max ? chance % ms_max : 0);
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000L}, NULL);
}

/* Whether a failure at this point leaves open what the server has done. */
static bool may_be_done(const struct wb_sql *sql, bool committing)
{
    return (committing && sql->kind != WB_SQL_READ) || (sql->kind == WB_SQL_ONE && sql->statements_run > 0);
}

static int try_transaction(struct wb_sql *sql, enum wb_sql_kind kind, wb_sql_work work, void *context)
{
    bool committing = false;
    int err = wb_sql_begin(sql, kind);

    if (err < 0)
        return err;
    err = work(sql, context);
    if (err >= 0) {
        committing = true;
        err = wb_sql_commit(sql);
    }
    if (err < 0) {
        struct wb_error_copy why;
        if (err == WB_SQL_AGAIN && may_be_done(sql, committing))
            sql->uncertain = true;
        wb_error_save(err, &why);
        wb_sql_rollback(sql);
        err = wb_error_restore(&why);
    }
    return err;
}

int wb_sql_transact(struct wb_sql *sql, enum wb_sql_kind kind, wb_sql_work work, void *context)
{
    int64_t until_ns = wb_clock_mono_ns() + sql->options.patience_ms * (int64_t)1000000;
    int err = WB_SQL_AGAIN;

    check_handle(sql);
    WB_CHECK(!sql->in_transaction);
    sql->uncertain = false;
    for (unsigned tries = 0; err == WB_SQL_AGAIN && tries < TRIES; tries++) {
        if (tries && wb_clock_mono_ns() > until_ns)
            break;
        if (tries)
            wb_sql_pause((unsigned)PAUSE_MS_MIN << (tries < PAUSE_DOUBLES ? tries : PAUSE_DOUBLES));
        err = try_transaction(sql, kind, work, context);
    }
    if (err == 0)
        sql->uncertain = false;
    return err == WB_SQL_AGAIN ? WB_E_BUSY : err;
}

bool wb_sql_uncertain(const struct wb_sql *sql)
{
    return sql->uncertain;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

int wb_sql_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    WB_CHECK(statement < sql->options.count);
    WB_CHECK(count <= WB_SQL_VALUES_MAX);
    WB_CHECK(sql->kind != WB_SQL_ONE || sql->statements_run == 0);
    for (unsigned i = 0; i < count; i++) {
        /* SQLite would accept it, PostgreSQL would not. */
        if (values[i].is_text && values[i].text.len && memchr(values[i].text.ptr, 0, values[i].text.len))
            return wb_fail(WB_E_INVALID, "%s cannot store a text that contains a NUL", sql->where);
    }
    sql->statements_run++;
    return sql->driver->run(sql, statement, values, count);
}

int wb_sql_next(struct wb_sql *sql, unsigned statement)
{
    WB_CHECK(statement < sql->options.count);
    return sql->driver->next(sql, statement);
}

int64_t wb_sql_number(const struct wb_sql *sql, unsigned statement, unsigned column)
{
    WB_CHECK(statement < sql->options.count);
    return sql->driver->number(sql, statement, column);
}

struct wb_slice wb_sql_text(const struct wb_sql *sql, unsigned statement, unsigned column)
{
    WB_CHECK(statement < sql->options.count);
    return sql->driver->text(sql, statement, column);
}

void wb_sql_end(struct wb_sql *sql, unsigned statement)
{
    WB_CHECK(statement < sql->options.count);
    sql->driver->end(sql, statement);
}
