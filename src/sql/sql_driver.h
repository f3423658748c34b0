/*
 * sql_driver.h - what one kind of database implements. Used inside this room only.
 */
#ifndef WB_SQL_SQL_DRIVER_H
#define WB_SQL_SQL_DRIVER_H

#include "sql/sql.h"

/*
 * One kind of database. Each slot does what the function of the same name in sql.h promises; sql.c checks the arguments
 * first.
 */
struct wb_sql_driver {
    const char *id_type;
    void (*close)(struct wb_sql *sql); /* releases all but struct wb_sql and the handle itself; never in a child */
    int (*has_table)(struct wb_sql *sql, const char *name);
    int (*clock)(struct wb_sql *sql, int64_t *now_ms_out);
    int (*clock_epoch)(int64_t *epoch_out); /* optional; NULL: the clock never starts again */
    int (*lossy)(struct wb_sql *sql);       /* optional; NULL: it is not */
    int (*exec)(struct wb_sql *sql, const char *text);
    int (*begin)(struct wb_sql *sql, enum wb_sql_kind kind); /* opens a broken connection again */
    int (*commit)(struct wb_sql *sql);
    void (*rollback)(struct wb_sql *sql);
    int (*run)(struct wb_sql *sql, unsigned statement, const struct wb_sql_value *values, unsigned count);
    int (*next)(struct wb_sql *sql, unsigned statement);
    int64_t (*number)(const struct wb_sql *sql, unsigned statement, unsigned column);
    struct wb_slice (*text)(const struct wb_sql *sql, unsigned statement, unsigned column);
    void (*end)(struct wb_sql *sql, unsigned statement);
};

#define WB_SQL_MAGIC 0x57425351

enum {
    WB_SQL_ANSWER_MS = 60000, /* if the options do not say */
    WB_SQL_PATIENCE_MS = 30000,
};

/* The first member of a driver's own struct, which is one block of wb_alloc_zero(). wb_sql_close() frees it. */
struct wb_sql {
    uint32_t magic;
    const struct wb_sql_driver *driver;
    int process;                   /* the id of the process that opened it */
    bool in_transaction;           /* between wb_sql_begin() and wb_sql_commit() or wb_sql_rollback() */
    enum wb_sql_kind kind;         /* of the transaction */
    unsigned statements_run;       /* in it */
    bool uncertain;                /* a transaction that was to be repeated may have been committed */
    char *where;                   /* for messages */
    struct wb_sql_options options; /* with the defaults filled in */
    int64_t (*test_clock)(void);
};

/* Fills in what every handle has; `where` is the driver's to set. */
void wb_sql_init(struct wb_sql *sql, const struct wb_sql_driver *driver, const struct wb_sql_options *options);

/* Waits for up to ms_max, but at least 1 ms: a random time, so that processes in each other's way come apart. */
void wb_sql_pause(unsigned ms_max);

#endif
