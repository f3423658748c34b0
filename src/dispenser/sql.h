/*
 * sql.h - the little of SQL that the dispenser needs, as an interface that each kind of database implements. Used
 * inside this room only.
 *
 * A handle is opened with a table of statements. Each statement is named by its number and prepared once. Parameters
 * are written ?1, ?2 in the text and are always bound, never pasted into it. A statement is run with all its values;
 * then it returns its rows one by one. What it returns is valid until the next call for that statement.
 *
 *   wb_sql_begin() -> wb_sql_run(), wb_sql_next() ... -> wb_sql_commit() or wb_sql_rollback()
 *
 * What every database promises:
 *
 *   - Writing transactions run one at a time: what one reads, no other changes before it ends. Claims depend on this.
 *     (SQLite: BEGIN IMMEDIATE. PostgreSQL: an advisory lock.)
 *   - A reading transaction sees one state of the database from its start to its end, and waits for nobody.
 *   - After wb_sql_commit() has returned 0, the changes survive the death of the process, and that of a server that its
 *     clients outlive: otherwise a claim could be undone, and a site would have two owners. A failure that ends all
 *     processes, such as a power failure with SQLite, may undo the last transactions, but never a part of one.
 *   - Any call may return WB_SQL_AGAIN: the database was locked, a deadlock was resolved, a connection broke. The
 *     caller then rolls back and may run the whole transaction again. If a commit returns WB_SQL_AGAIN, nobody knows
 *     whether it succeeded.
 *   - wb_sql_clock() is the same clock for all processes that use the database.
 *   - Numbers have 64 bits, texts are UTF-8. Texts are compared for equality byte by byte; their order may be another.
 *
 * A handle must not be used after fork; closing it there does nothing.
 *
 * To add a database, say MySQL: write sql_mysql.c with a struct that starts with struct wb_sql, a struct
 * wb_sql_driver (below) with every slot filled in, and wb_sql_open_mysql(). The table of statements (dispenser_sql.h)
 * and the schema (dispenser_schema.c) are shared. They use partial indexes, ON CONFLICT, RETURNING and row
 * comparison; a database without one of these needs texts of its own, which the open function can substitute as
 * sql_postgres.c does with parameters. Then make wb_dispenser_open() (dispenser.c) and wb_dispenser_is_url()
 * (dispenser_url.c) recognise its URLs, and run the tests of the dispenser with it: tests/unit/dispenser runs every
 * test with every database (dispenser_support.h).
 */
#ifndef WB_DISPENSER_SQL_H
#define WB_DISPENSER_SQL_H

#include "base/slice.h"

#define WB_SQL_AGAIN (-100) /* an error code in addition to those of error.h; it comes with a message, too */

struct wb_sql;

/* A value for a parameter: a number or a text. */
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

#define WB_SQL_VALUES_MAX 32 /* the most parameters that a statement has */

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* Opens a SQLite file, or creates it. texts is the table of statements; it must outlive the handle. */
int wb_sql_open_sqlite(const char *path, const char *const *texts, unsigned count, struct wb_sql **sql_out);

/* Connects to a PostgreSQL server. No message ever shows the URL, because it may contain a password. */
int wb_sql_open_postgres(const char *url, const char *const *texts, unsigned count, struct wb_sql **sql_out);
void wb_sql_close(struct wb_sql *sql);

/*
 * Reads and checks a whole SQLite file without changing it: the checksums of its pages, and whether its tables and
 * indexes agree. Calls found for damage (problem is true) and for what is only worth a note. Damage is not an error.
 */
typedef void (*wb_sql_found)(void *context, bool problem, uint64_t offset, const char *message);
int wb_sql_check_sqlite(const char *path, wb_sql_found found, void *context);

/* How often a broken connection is reopened before giving up, with growing pauses. Tests set a smaller number. */
extern unsigned wb_sql_reopen_tries;

/* What messages call the database: the path of the file, or "the PostgreSQL server at HOST". */
const char *wb_sql_where(const struct wb_sql *sql);

/* ---- clock and schema ------------------------------------------------------------------------------------------ */

/*
 * Inside a transaction: the database's clock, in milliseconds. PostgreSQL's counts from 1970. That of SQLite, whose
 * users are all on one machine, counts from the start of the machine, because nobody can set that clock.
 */
int wb_sql_clock(struct wb_sql *sql, int64_t *now_ms_out);

/*
 * A number that changes whenever that clock starts again from zero: with SQLite, when the machine starts. 0: it never
 * does.
 */
int wb_sql_clock_epoch(const struct wb_sql *sql, int64_t *epoch_out);

/* How to declare a 64-bit column that is the primary key and numbers its rows itself, in ascending order. */
const char *wb_sql_id_type(const struct wb_sql *sql);

/* Inside a transaction: returns 1 if there is a table of this name, 0 if not. */
int wb_sql_has_table(struct wb_sql *sql, const char *name);

/* Runs statements that have no parameters and return no rows, separated by ';'. */
int wb_sql_exec(struct wb_sql *sql, const char *text);

/* ---- transactions and statements ------------------------------------------------------------------------------- */

int wb_sql_begin(struct wb_sql *sql, bool write);
int wb_sql_commit(struct wb_sql *sql);

/* Ends all statements and undoes the transaction. Does nothing if there is none. */
void wb_sql_rollback(struct wb_sql *sql);

/*
 * Runs a statement. Returns 1 with its first row, 0 if it has none, or an error. WB_E_INVALID if a text contains a
 * NUL.
 */
int wb_sql_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count);
#define WB_SQL_RUN(sql, statement, ...)                                                 \
    wb_sql_run(sql, statement, (const struct wb_sql_value[]){__VA_ARGS__},              \
               (unsigned)(sizeof(struct wb_sql_value[]){__VA_ARGS__} / sizeof(struct wb_sql_value)))

/* Goes to the next row. Returns 1, 0 at the end, or an error. */
int wb_sql_next(struct wb_sql *sql, unsigned statement);

/* A column of the current row, from 0. A text is valid until the next call for this statement. */
int64_t wb_sql_number(const struct wb_sql *sql, unsigned statement, unsigned column);
struct wb_slice wb_sql_text(const struct wb_sql *sql, unsigned statement, unsigned column);

/* Ends a statement before its last row. Does nothing if it has ended. */
void wb_sql_end(struct wb_sql *sql, unsigned statement);

/* ---- for those who implement it -------------------------------------------------------------------------------- */

/*
 * One kind of database. Each slot does what the function of the same name above promises; sql.c checks the arguments
 * first.
 */
struct wb_sql_driver {
    const char *id_type;
    void (*close)(struct wb_sql *sql); /* releases all but struct wb_sql and the handle itself; never in a child */
    int (*has_table)(struct wb_sql *sql, const char *name);
    int (*clock)(struct wb_sql *sql, int64_t *now_ms_out);
    int (*clock_epoch)(int64_t *epoch_out); /* optional; NULL: the clock never starts again */
    int (*exec)(struct wb_sql *sql, const char *text);
    int (*begin)(struct wb_sql *sql, bool write); /* opens a broken connection again */
    int (*commit)(struct wb_sql *sql);
    void (*rollback)(struct wb_sql *sql);
    int (*run)(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count);
    int (*next)(struct wb_sql *sql, unsigned statement);
    int64_t (*number)(const struct wb_sql *sql, unsigned statement, unsigned column);
    struct wb_slice (*text)(const struct wb_sql *sql, unsigned statement, unsigned column);
    void (*end)(struct wb_sql *sql, unsigned statement);
};

#define WB_SQL_MAGIC 0x57425351

/* The first member of a driver's own struct, which is one block of wb_alloc_zero(). wb_sql_close() frees it. */
struct wb_sql {
    uint32_t magic;
    const struct wb_sql_driver *driver;
    int process;              /* the id of the process that opened it */
    bool in_transaction;      /* between wb_sql_begin() and wb_sql_commit() or wb_sql_rollback() */
    char *where;              /* for messages */
    const char *const *texts; /* the statements */
    unsigned count;
};

/* Fills in what every handle has; `where` is the driver's to set. */
void wb_sql_init(struct wb_sql *sql, const struct wb_sql_driver *driver, const char *const *texts, unsigned count);

#endif
