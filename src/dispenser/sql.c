/*
 * sql.c - hands the calls of sql.h to the driver.
 *
 * It checks what every driver may rely on: the handle is open and used by the process that opened it, the statement
 * exists, there are not too many values, and no text contains a NUL. It knows nothing about any particular database.
 */
#include "dispenser/sql.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <unistd.h>

static void check_handle(const struct wb_sql *sql)
{
    WB_CHECK(sql->magic == WB_SQL_MAGIC);
    /* After fork, the file locks and the connection belong to the parent. */
    WB_CHECK(sql->process == getpid());
}

void wb_sql_init(struct wb_sql *sql, const struct wb_sql_driver *driver, const char *const *texts, unsigned count)
{
    *sql = (struct wb_sql){.magic = WB_SQL_MAGIC, .driver = driver, .process = getpid(), .texts = texts,
                           .count = count};
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

int wb_sql_has_table(struct wb_sql *sql, const char *name)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    return sql->driver->has_table(sql, name);
}

int wb_sql_exec(struct wb_sql *sql, const char *text)
{
    check_handle(sql);
    return sql->driver->exec(sql, text);
}

int wb_sql_begin(struct wb_sql *sql, bool write)
{
    check_handle(sql);
    WB_CHECK(!sql->in_transaction);
    int err = sql->driver->begin(sql, write);
    sql->in_transaction = err == 0;
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

int wb_sql_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    check_handle(sql);
    WB_CHECK(sql->in_transaction);
    WB_CHECK(statement < sql->count);
    WB_CHECK(count <= WB_SQL_VALUES_MAX);
    for (unsigned i = 0; i < count; i++) {
        /* SQLite would accept it, PostgreSQL would not. */
        if (values[i].is_text && values[i].text.len && memchr(values[i].text.ptr, 0, values[i].text.len))
            return wb_fail(WB_E_INVALID, "%s cannot store a text that contains a NUL", sql->where);
    }
    return sql->driver->run(sql, statement, values, count);
}

int wb_sql_next(struct wb_sql *sql, unsigned statement)
{
    WB_CHECK(statement < sql->count);
    return sql->driver->next(sql, statement);
}

int64_t wb_sql_number(const struct wb_sql *sql, unsigned statement, unsigned column)
{
    WB_CHECK(statement < sql->count);
    return sql->driver->number(sql, statement, column);
}

struct wb_slice wb_sql_text(const struct wb_sql *sql, unsigned statement, unsigned column)
{
    WB_CHECK(statement < sql->count);
    return sql->driver->text(sql, statement, column);
}

void wb_sql_end(struct wb_sql *sql, unsigned statement)
{
    WB_CHECK(statement < sql->count);
    sql->driver->end(sql, statement);
}
