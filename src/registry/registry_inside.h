/*
 * registry_inside.h - what the files of the registry share. Used inside this room only.
 *
 *   registry.c         opening, closing, transactions
 *   registry_schema.c  the tables: made, and their format checked
 *   registry_lease.c   joining, renewing, leaving; what this machine may believe
 *   registry_shards.c  taking, giving, publishing
 *   registry_view.c    rows read; everything at one moment, and what is wrong with it
 *   registry_place.c   who should hold what; computes only
 *   registry_orders.c  what operators ask for
 *   registry_tasks.c   tasks and bars
 *   registry_slots.c   slots of addresses
 *   registry_check.c   rows that break the rules
 */
#ifndef WB_REGISTRY_REGISTRY_INSIDE_H
#define WB_REGISTRY_REGISTRY_INSIDE_H

#include <pthread.h>

#include "registry/registry.h"
#include "registry/registry_sql.h"
#include "sql/sql.h"

#define WB_REGISTRY_MAGIC 0x57425247
#define WB_REGISTRY_FORMAT 1

/* A shard of this machine. */
struct wb_registry_own {
    struct wb_registry_shard row;
    int64_t from_ns; /* it may be believed from then on, by this machine's clock */
};

/*
 * How far the database's clock is ahead of this machine's, as the answers in a window of one lease have shown: each
 * answer came between its question and its arrival, so it gives a lower and an upper bound.
 */
struct wb_registry_offsets {
    int64_t start_ns; /* 0: nothing is known */
    int64_t low_ms, high_ms;
};

struct wb_registry {
    uint32_t magic;
    struct wb_sql *sql;
    struct wb_registry_cluster cluster;
    int64_t clock; /* the epoch of the database's clock */

    char name[WB_REGISTRY_NAME_MAX]; /* of this machine; "": it has not joined */
    char session[WB_REGISTRY_ID_MAX];
    bool search_only;

    int64_t sent_ns;                       /* when the last renewal was sent, by this machine's clock */
    int64_t since_ns;                      /* renewals have been unbroken since */
    struct wb_registry_offsets offsets[2]; /* of the present window and the one before */
    int64_t server;                        /* which one answered */
    bool joining;                          /* it has not renewed its lease yet */
    bool reread; /* the next renewal reads the shards, because a call left open what is true */

    pthread_mutex_t lock; /* for what follows */
    int64_t lease_end_ns; /* 0: there is no lease */
    int64_t epoch;        /* of the list: the machine's row had this number when it was read */
    WB_VEC(struct wb_registry_own) own;
};

/* This machine's clock. */
int64_t wb_registry_now_ns(const struct wb_registry *r);

/*
 * Runs work as a transaction. WB_E_DOWN if the database cannot be reached, or does not let it through; the codes of
 * work stay what they are.
 */
typedef int (*wb_registry_work)(struct wb_registry *r, void *context);
int wb_registry_transact(struct wb_registry *r, enum wb_sql_kind kind, wb_registry_work work, void *context);

/* Runs a statement that returns at most one row of which nothing matters. Returns 1 if there was one. */
#define WB_REGISTRY_DO(r, statement, ...)                                                                              \
    wb_registry_end_row((r), (statement), WB_SQL_RUN((r)->sql, (statement), __VA_ARGS__))
int wb_registry_end_row(struct wb_registry *r, enum wb_registry_statement statement, int ran);

/* The same; *number_out is the first column of that row, 0 if there is none. */
#define WB_REGISTRY_ASK(r, number_out, statement, ...)                                                                 \
    wb_registry_take_number((r), (number_out), (statement), WB_SQL_RUN((r)->sql, (statement), __VA_ARGS__))
int wb_registry_take_number(struct wb_registry *r, int64_t *number_out, enum wb_registry_statement statement, int ran);

static inline struct wb_sql_value wb_registry_text(const char *text)
{
    return wb_sql_str(wb_slice_str(text));
}

/* 32 random hexadecimal digits. */
void wb_registry_random_id(char id_out[WB_REGISTRY_ID_MAX]);

/* WB_E_DENIED if this handle is not a machine of the cluster. */
int wb_registry_need_machine(const struct wb_registry *r);

/* ---- the tables (registry_schema.c) -------------------------------------------------------------------------------
 */

/* Inside a transaction. Reads the row of the cluster: 1, or 0 if there is none or no table. WB_E_NEWER. */
int wb_registry_read_cluster(struct wb_registry *r, struct wb_registry_cluster *cluster_out, int64_t *clock_out,
                             int64_t *now_out);

/* Begins to use the handle's database; its answers are bounded so that a renewal fits into a lease. */
int wb_registry_open_sql(const char *url, unsigned lease_ms, bool existing, struct wb_sql **sql_out);

/* ---- rows (registry_view.c) -----------------------------------------------------------------------------------------
 */

/* Copies a column of the current row. WB_E_CORRUPT if it is too long. */
int wb_registry_column(const struct wb_registry *r, enum wb_registry_statement statement, unsigned column,
                       char *text_out, size_t size);

/* Reads the current row, whose columns are WB_REGISTRY_SHARD_COLUMNS. WB_E_CORRUPT. */
int wb_registry_shard_row(const struct wb_registry *r, enum wb_registry_statement statement,
                          struct wb_registry_shard *shard_out);

/* ---- what this machine believes (registry_lease.c) ------------------------------------------------------------------
 */

/* The index of a shard in `own`; -1: it is not there. With the lock held, or by the thread that uses the handle. */
int wb_registry_own_find(const struct wb_registry *r, unsigned shard);

/* From now on this machine does not hold the shard. Returns its term, -1 if it was not its own. */
int64_t wb_registry_own_drop(struct wb_registry *r, unsigned shard);

/*
 * True if the database's clock, which said db_ms between these two moments of ours, has gone as ours does, as far as
 * the last one or two leases show.
 */
bool wb_registry_clocks_agree(const struct wb_registry *r, int64_t sent_ns, int64_t got_ns, int64_t db_ms);

#endif
