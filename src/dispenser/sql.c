/*
 * sql.c - the calls of sql.h, handed to the driver.
 *
 * It guards what holds for both: a handle is used only by the process that opened it, with as many values as a
 * statement may have, and no text with a NUL in it. It knows neither of the two databases.
 */
#include "dispenser/sql.h"
#include "base/check.h"
#include "base/error.h"

#include <unistd.h>

static void check_handle(const struct wb_sql *sql)
{
    /* In a child the file locks and the connection are the parent's. */
    WB_CHECK(sql->process == getpid());
}

void wb_sql_close(struct wb_sql *sql)
{
    /* Closing in a child would end the parent's locks or connection: there it is left to the end of the process. */
    if (sql && sql->process == getpid())
        sql->driver->close(sql);
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
    return sql->driver->begin(sql, write);
}

int wb_sql_commit(struct wb_sql *sql)
{
    check_handle(sql);
    return sql->driver->commit(sql);
}

void wb_sql_rollback(struct wb_sql *sql)
{
    check_handle(sql);
    sql->driver->rollback(sql);
}

int wb_sql_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count)
{
    check_handle(sql);
    WB_CHECK(statement < sql->count && count <= WB_SQL_VALUES_MAX);
    for (unsigned i = 0; i < count; i++) {
        /* SQLite would take it and PostgreSQL would not. */
        if (values[i].is_text && values[i].text.len && memchr(values[i].text.ptr, 0, values[i].text.len))
            return wb_fail(WB_E_INVALID, "%s takes no text with a NUL in it", sql->where);
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
    return sql->driver->number(sql, statement, column);
}

struct wb_slice wb_sql_text(const struct wb_sql *sql, unsigned statement, unsigned column)
{
    return sql->driver->text(sql, statement, column);
}

void wb_sql_end(struct wb_sql *sql, unsigned statement)
{
    WB_CHECK(statement < sql->count);
    sql->driver->end(sql, statement);
}
