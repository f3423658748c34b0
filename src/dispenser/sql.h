/*
 * sql.h - the little of SQL that the dispenser needs, over SQLite or PostgreSQL.
 *
 * A handle is opened with a table of statements, each prepared once and named by its number. Parameters are written
 * ?1, ?2 and are always bound, never pasted into the text. A statement is run with all its values and then gives its
 * rows one by one; what it gives is valid until the next call on that statement.
 *
 *   begin -> run, next ... -> commit | rollback
 *
 * A writing transaction has the database to itself: BEGIN IMMEDIATE in SQLite, an advisory lock in
 * PostgreSQL. Any call may return WB_SQL_AGAIN (locked, deadlock, connection lost): then the transaction is over
 * once rolled back, and may be begun again. A handle must not be used across fork.
 */
#ifndef WB_DISPENSER_SQL_H
#define WB_DISPENSER_SQL_H

#include "base/slice.h"

#define WB_SQL_AGAIN (-100) /* beside the codes of error.h; its message is set as theirs */

struct wb_sql;

struct wb_sql_value {
    bool is_text;
    int64_t number;
    struct wb_slice text;
};

static inline struct wb_sql_value wb_sql_int(int64_t number)
{
    return (struct wb_sql_value){false, number, WB_SLICE_EMPTY};
}

static inline struct wb_sql_value wb_sql_str(struct wb_slice text)
{
    return (struct wb_sql_value){true, 0, text};
}

#define WB_SQL_VALUES_MAX 32

/* texts is kept; where: a path, or a URL (whose password appears in no message). */
int wb_sql_open_sqlite(const char *path, const char *const *texts, unsigned count, struct wb_sql **sql_out);
int wb_sql_open_postgres(const char *url, const char *const *texts, unsigned count, struct wb_sql **sql_out);
void wb_sql_close(struct wb_sql *sql);

/*
 * Reads and checks a whole SQLite file: checksums, and whether its tables and indexes agree. Tells of damage (problem) and of what is no
 * damage; 0 even where there is some. Changes nothing.
 */
typedef void (*wb_sql_found)(void *context, bool problem, uint64_t offset, const char *message);
int wb_sql_check_sqlite(const char *path, wb_sql_found found, void *context);

/* How often a connection that broke is tried anew, ever more slowly; tests set fewer. */
extern unsigned wb_sql_reopen_tries;

/* What messages call it: the file, or "the PostgreSQL server at HOST". */
const char *wb_sql_where(const struct wb_sql *sql);

/*
 * The database's clock in milliseconds, so that everybody who uses it agrees on the time. Of PostgreSQL since 1970; of SQLite, whose users are
 * on one machine, since that was started, because nobody can set that clock. Inside a transaction.
 */
int wb_sql_clock(struct wb_sql *sql, int64_t *now_ms_out);

/* A number that changes when that clock begins again: of SQLite when the machine is started. 0 where it never does. */
int wb_sql_clock_epoch(const struct wb_sql *sql, int64_t *epoch_out);

/* How a column is declared that numbers the rows by itself, and one of 64 bits. */
const char *wb_sql_id_type(const struct wb_sql *sql);

/* 1 where there is such a table, 0 where not. Inside a transaction. */
int wb_sql_has_table(struct wb_sql *sql, const char *name);

/* Statements without parameters or rows, separated by ';'. */
int wb_sql_exec(struct wb_sql *sql, const char *text);

int wb_sql_begin(struct wb_sql *sql, bool write);
int wb_sql_commit(struct wb_sql *sql);
void wb_sql_rollback(struct wb_sql *sql); /* no harm where there is none; ends all statements */

/* Runs a statement: 1 at its first row, 0 where it has none, or an error. Text must not hold NUL bytes (WB_E_INVALID). */
int wb_sql_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count);
#define WB_SQL_RUN(sql, statement, ...)                                                 \
    wb_sql_run(sql, statement, (const struct wb_sql_value[]){__VA_ARGS__},              \
               (unsigned)(sizeof(struct wb_sql_value[]){__VA_ARGS__} / sizeof(struct wb_sql_value)))

/* The next row: 1, 0 at the end, or an error. */
int wb_sql_next(struct wb_sql *sql, unsigned statement);
int64_t wb_sql_number(const struct wb_sql *sql, unsigned statement, unsigned column);
struct wb_slice wb_sql_text(const struct wb_sql *sql, unsigned statement, unsigned column);

/* Gives up the rest of the rows. */
void wb_sql_end(struct wb_sql *sql, unsigned statement);

/* ---- for the two that implement it ------------------------------------------------------------ */

struct wb_sql_driver {
    const char *id_type;
    void (*close)(struct wb_sql *sql);
    int (*has_table)(struct wb_sql *sql, const char *name);
    int (*clock)(struct wb_sql *sql, int64_t *now_ms_out);
    int (*clock_epoch)(int64_t *epoch_out); /* NULL: it never does */
    int (*exec)(struct wb_sql *sql, const char *text);
    int (*begin)(struct wb_sql *sql, bool write);
    int (*commit)(struct wb_sql *sql);
    void (*rollback)(struct wb_sql *sql);
    int (*run)(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count);
    int (*next)(struct wb_sql *sql, unsigned statement);
    int64_t (*number)(const struct wb_sql *sql, unsigned statement, unsigned column);
    struct wb_slice (*text)(const struct wb_sql *sql, unsigned statement, unsigned column);
    void (*end)(struct wb_sql *sql, unsigned statement);
};

/* The first member of theirs. */
struct wb_sql {
    const struct wb_sql_driver *driver;
    int process; /* that opened it */
    char *where;
    const char *const *texts;
    unsigned count;
};

#endif
