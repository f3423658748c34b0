/*
 * sql.h - the door of sql: how are tables kept that several processes change?
 *
 * One interface to two databases: a SQLite file for processes of one machine, a PostgreSQL server for those of many.
 * What goes wrong on the way to a server is dealt with here and nowhere else: connections that break, servers that
 * are away, freeze or come back, answers that are lost.
 *
 * A handle is opened with a table of statements. Each statement is named by its number and prepared once. Parameters
 * are written ?1, ?2 in the text and are always bound, never pasted into it; webbase_now_ms() in the text is the
 * database's clock, as wb_sql_clock() gives it, and webbase_server() a number that is another one after a server was
 * started again or another server took its place. A statement is run with all its values; then it returns its rows one
 * by one. What it returns is valid until the next call for that statement. Statements run inside of transactions:
 *
 *   wb_sql_transact(sql, kind, work, context)      calls work, and repeats what failed for a passing reason
 *   wb_sql_begin() -> wb_sql_run(), wb_sql_next() ... -> wb_sql_commit() or wb_sql_rollback()      the same by hand
 *
 * What every database promises:
 *
 *   - A reading transaction sees one state of the database from its start to its end, and waits for nobody.
 *   - With take_turns, writing transactions run one at a time: what one reads, no other changes before it ends. SQLite
 *     always does this. Without it, PostgreSQL lets them run at once: each statement then sees what was committed
 *     before it began, a changed row is locked until the transaction ends, and a condition in the WHERE of an UPDATE
 *     is judged again if somebody else has changed the row meanwhile. So what must hold is written into that WHERE.
 *   - After wb_sql_commit() has returned 0, the changes survive the death of the process, and that of a server that its
 *     clients outlive: otherwise a claim could be undone, and a site would have two owners. A failure that ends all
 *     processes, such as a power failure with SQLite, may undo the last transactions (unless `durable` is set), but
 *     never a part of one. A server that is replaced by a standby may lose the last second: users of this room who
 *     cannot bear that must notice it themselves.
 *   - Any call may return WB_SQL_AGAIN: the database was locked, a deadlock was resolved, a connection broke, an answer
 *     took too long. The caller then rolls back and may run the whole transaction again. If wb_sql_commit(), or the
 *     statement of a transaction of the kind WB_SQL_ONE, returns WB_SQL_AGAIN, nobody knows whether it succeeded.
 *   - wb_sql_clock() is the same clock for all processes that use the database.
 *   - Numbers have 64 bits, texts are UTF-8. Texts are compared for equality byte by byte; their order may be another.
 *   - No message contains a password. Servers are named by host, port and database.
 *
 * What callers of wb_sql_transact() must do, because an answer can be lost and work can run again after it has been
 * committed:
 *
 *   - work sets everything in context from the start: it may run several times;
 *   - a change that was made already is harmless: it sets a value instead of adding to one, or it is bound to what was
 *     before (WHERE term = ?1), or it leaves a random number that was chosen before the first attempt (a ticket), and
 *     looks for that number first;
 *   - what an attempt that was lost has done is recognised and reported as this attempt's own success.
 *
 * A handle is used by one thread at a time. It must not be used after fork; closing it there does nothing.
 *
 * To add a database, say MySQL: write sql_mysql.c with a struct that starts with struct wb_sql, a struct
 * wb_sql_driver (sql_driver.h) with every slot filled in, and wb_sql_open_mysql(), and let sql_url.c recognise its
 * URLs. The statements are shared. They use partial indexes, ON CONFLICT, RETURNING and row comparison; a database
 * without one of these needs texts of its own, which the open function can substitute as sql_postgres.c does with
 * parameters. Then run the tests of dispenser and registry with it: they run every test with every database.
 */
#ifndef WB_SQL_SQL_H
#define WB_SQL_SQL_H

#include "base/buf.h"
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

/* ---- URLs ------------------------------------------------------------------------------------------------------ */

/*
 *   sqlite:///FILE                        FILE from the root of the file system: sqlite:///var/lib/web.db
 *   postgres://USER@HOST:PORT/NAME        as PostgreSQL's library reads it, with a password and ?parameters if need be
 *   postgresql://...                      the same
 */
enum wb_sql_url_kind {
    WB_SQL_URL_NONE,
    WB_SQL_URL_SQLITE,
    WB_SQL_URL_POSTGRES,
};

#define WB_SQL_URL_MAX (32 << 10)

/* Which kind of URL this is, by its scheme. */
enum wb_sql_url_kind wb_sql_url_kind(struct wb_slice url);

/* Appends the URL as it may be shown: without the password, and without parameters, which may contain one. */
int wb_sql_url_redact(struct wb_slice url, struct wb_buf *text_out);

/* ---- opening --------------------------------------------------------------------------------------------------- */

struct wb_sql_options {
    const char *const *texts; /* the table of statements; it must outlive the handle */
    unsigned count;
    bool take_turns;      /* PostgreSQL: writing transactions run one at a time, as in SQLite */
    bool indexed;         /* PostgreSQL: an index suits each statement, whatever the planner knows of the tables */
    bool durable;         /* SQLite: what was committed survives a power failure, too */
    bool existing;        /* SQLite: do not create the file; WB_E_NOTFOUND if there is none */
    unsigned answer_ms;   /* how long an answer may take before the connection is given up; 0: a minute */
    unsigned patience_ms; /* how long wb_sql_transact() repeats, and wb_sql_begin() connects again; 0: 30 s */
};

/*
 * Opens the database of a URL. WB_E_INVALID if it is none of the above. Waits for a server no longer than it takes to
 * connect once: WB_E_IO names it.
 */
int wb_sql_open(const char *url, const struct wb_sql_options *options, struct wb_sql **sql_out);

/* Opens a SQLite file by its path, or creates it. */
int wb_sql_open_sqlite(const char *path, const struct wb_sql_options *options, struct wb_sql **sql_out);

/* Connects to a PostgreSQL server. */
int wb_sql_open_postgres(const char *url, const struct wb_sql_options *options, struct wb_sql **sql_out);
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

/*
 * Inside a transaction: returns 1 if the server is set up so that a crash may undo what it has called committed
 * (synchronous_commit is off). Connections of this room ask for better, but the administrator should know.
 */
int wb_sql_lossy(struct wb_sql *sql);

/* A test seam: if it is set when a handle is opened, this is the database's clock. */
extern int64_t (*wb_sql_test_clock)(void);

/* Another one: what webbase_server() is in SQLite. */
extern int64_t wb_sql_test_server;

/* How to declare a 64-bit column that is the primary key and numbers its rows itself, in ascending order. */
const char *wb_sql_id_type(const struct wb_sql *sql);

/* Inside a transaction: returns 1 if there is a table of this name, 0 if not. */
int wb_sql_has_table(struct wb_sql *sql, const char *name);

/* Inside a transaction that is not of the kind WB_SQL_ONE: runs statements without parameters and rows, separated by
   ';'. */
int wb_sql_exec(struct wb_sql *sql, const char *text);

/* ---- transactions and statements ------------------------------------------------------------------------------- */

enum wb_sql_kind {
    WB_SQL_READ,  /* reads one state */
    WB_SQL_WRITE, /* may write */
    /*
     * Exactly one statement, which may write. It takes one round trip to a server instead of three, and cannot be
     * rolled back: what it has done is done, even if wb_sql_rollback() follows.
     */
    WB_SQL_ONE,
};

/*
 * Runs work as one transaction, and commits it unless work returns a negative code. As long as there is a passing
 * reason for a failure (WB_SQL_AGAIN), the transaction is rolled back and repeated, after pauses of random length; see
 * above what work must bear. WB_E_BUSY if it never succeeds, WB_E_IO if there is no connection.
 */
typedef int (*wb_sql_work)(struct wb_sql *sql, void *context);
int wb_sql_transact(struct wb_sql *sql, enum wb_sql_kind kind, wb_sql_work work, void *context);

/*
 * Inside work: whether an earlier attempt of this transaction may have been committed, its answer lost. After
 * wb_sql_transact() has failed: whether the transaction may have been committed all the same.
 */
bool wb_sql_uncertain(const struct wb_sql *sql);

/* Reopens a connection that broke. WB_E_IO if that fails too often. */
int wb_sql_begin(struct wb_sql *sql, enum wb_sql_kind kind);
int wb_sql_commit(struct wb_sql *sql);

/* Ends all statements and undoes the transaction. Does nothing if there is none. */
void wb_sql_rollback(struct wb_sql *sql);

/*
 * Runs a statement. Returns 1 with its first row, 0 if it has none, or an error. WB_E_INVALID if a text contains a
 * NUL.
 */
int wb_sql_run(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count);
#define WB_SQL_RUN(sql, statement, ...)                                                                                \
    wb_sql_run(sql, statement, (const struct wb_sql_value[]){__VA_ARGS__},                                             \
               (unsigned)(sizeof(struct wb_sql_value[]){__VA_ARGS__} / sizeof(struct wb_sql_value)))

/* Goes to the next row. Returns 1, 0 at the end, or an error. */
int wb_sql_next(struct wb_sql *sql, unsigned statement);

/* A column of the current row, from 0. A text is valid until the next call for this statement. */
int64_t wb_sql_number(const struct wb_sql *sql, unsigned statement, unsigned column);
struct wb_slice wb_sql_text(const struct wb_sql *sql, unsigned statement, unsigned column);

/* Ends a statement before its last row. Does nothing if it has ended. */
void wb_sql_end(struct wb_sql *sql, unsigned statement);

#endif
