/*
 * dispenser_rows.h - what the files of the dispenser share: transactions, rows read and rows changed.
 *
 *   dispenser.c         open, close, the calls that only read
 *   dispenser_schema.c  the tables and their version
 *   dispenser_rows.c    transactions; a row between database and memory; heads and counts kept true
 *   dispenser_add.c     sites, seeds and runs come in
 *   dispenser_runs.c    which run a crawl is
 *   dispenser_list.c    fetch lists, classes, all sites
 *   dispenser_claim.c   leases: claim, borrow, renew, lost, release
 *   dispenser_report.c  what resolvers and crawlers tell of a site
 */
#ifndef WB_DISPENSER_DISPENSER_ROWS_H
#define WB_DISPENSER_DISPENSER_ROWS_H

#include "dispenser/dispenser.h"
#include "dispenser/dispenser_sql.h"
#include "dispenser/sql.h"

enum {
    WB_DISPENSER_SLICE = 4096,  /* rows that one transaction changes at most, besides those that it was asked to */
    WB_DISPENSER_DELTAS = 16,
    WB_DISPENSER_REASON_MAX = 500,
};

struct wb_dispenser {
    struct wb_sql *sql;
    /* Changes of webbase_count that this transaction has made and not yet written. */
    struct wb_dispenser_delta {
        int64_t run, sites;
        enum wb_site_state state;
    } deltas[WB_DISPENSER_DELTAS];
    unsigned delta_count;
};

/* A row with what the door does not show. */
struct wb_record {
    struct wb_site_row row;
    bool anew;          /* when the lease ends in a state that is over, another visit begins */
    int64_t seed_last;  /* its newest seed */
    char *text;         /* what the row borrows from; NULL: somebody else's */
};

struct wb_record_list {
    struct wb_record *records;
    size_t count, cap;
};

#define WB_RECORD_INIT ((struct wb_record){.text = NULL})
#define WB_RECORD_LIST_INIT ((struct wb_record_list){NULL, 0, 0})

/* Makes the tables where there are none; WB_E_NEWER. */
int wb_dispenser_schema(struct wb_dispenser *d);

/*
 * Runs work as one transaction, again where the database says so: work starts from nothing each time. It must not call
 * back to users.
 */
typedef int (*wb_dispenser_work)(struct wb_dispenser *d, void *context);
int wb_dispenser_transact(struct wb_dispenser *d, bool write, wb_dispenser_work work, void *context);

/* Inside a transaction: the clock that leases are judged by. */
int wb_dispenser_lease_now(struct wb_dispenser *d, int64_t *now_ms_out);

/* ---- parts of transactions (dispenser_add.c) ------------------------------------------------------ */

struct wb_addition {
    int64_t run;
    const struct wb_site_plan *plans;
    size_t count;
    uint64_t added;
};

/* context: the int64_t that becomes the number. */
int wb_dispenser_next_run(struct wb_dispenser *d, void *context);

/* context: a struct wb_addition. */
int wb_dispenser_add_plans(struct wb_dispenser *d, void *context);
int wb_dispenser_check_plans(const struct wb_site_plan *plans, size_t count);

/* Adds those that are new; *last becomes the id of the newest. */
int wb_dispenser_add_seeds(struct wb_dispenser *d, int64_t site, const struct wb_seed *seeds, size_t count, int64_t *last);

/* What the plan says of the site itself. */
void wb_record_plan(const struct wb_site_plan *plan, struct wb_record *record);

/*
 * The next visit is a listed one. Its number is above that of every visit that may have begun, told of or not: a process that
 * died may have begun one more than the row knows, or the one that was listed before.
 */
void wb_record_listed(struct wb_record *record);

/* The next visit is a plain one, if one was listed: its number, which no visit has yet, says that one is to begin. */
void wb_record_plain(struct wb_record *record);

/* ---- reading ----------------------------------------------------------------------------------- */

/* The row that a statement stands at, which still borrows from it. WB_E_CORRUPT. */
int wb_record_read(const struct wb_dispenser *d, enum wb_dispenser_statement statement, struct wb_record *record_out);

/* Its text becomes its own. */
int wb_record_keep(struct wb_record *record);
void wb_record_release(struct wb_record *record);

/* Copies its row, with the text in mem. */
int wb_record_give(const struct wb_record *record, struct wb_buf *mem, struct wb_site_row *row_out);

/* 1 with a record of its own, 0 where there is none. */
int wb_record_by_id(struct wb_dispenser *d, int64_t id, struct wb_record *record_out);
int wb_record_by_name(struct wb_dispenser *d, struct wb_slice name, struct wb_record *record_out);

/* The first of those whose name is in [from, to). */
int wb_record_by_host(struct wb_dispenser *d, struct wb_slice from, struct wb_slice to, struct wb_record *record_out);

/* All rows of a statement that was run (ran: what that returned), added to list. */
int wb_record_list_read(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran, struct wb_record_list *list);
int wb_record_list_add(struct wb_record_list *list, struct wb_record *taken);
void wb_record_list_release(struct wb_record_list *list);

/* Calls each until one returns non-zero, and returns that. */
int wb_record_list_tell(const struct wb_record_list *list, wb_site_each each, void *context);

/* ---- changing ----------------------------------------------------------------------------------- */

/* Makes the row what `now` says (id and name stay), and keeps heads and counts. */
int wb_record_save(struct wb_dispenser *d, const struct wb_record *was, const struct wb_record *now);

/* A new row; sets now->row.id. */
int wb_record_insert(struct wb_dispenser *d, struct wb_record *now);

/* One site more (or fewer) in this run and state. */
int wb_dispenser_count(struct wb_dispenser *d, int64_t run, enum wb_site_state state, int64_t sites);

/* The first of blank-separated addresses. */
struct wb_slice wb_address_first(struct wb_slice addresses);

static inline bool wb_site_over(enum wb_site_state state)
{
    return state == WB_SITE_DONE || state == WB_SITE_ALIAS || state == WB_SITE_REFUSED;
}

/* Printable ASCII without blanks, not empty: names, schemes, URLs. */
bool wb_dispenser_plain(struct wb_slice text);

/* A reason may quote a peer: what is not text becomes '?', and it is cut. Better than to lose a report. */
struct wb_slice wb_dispenser_reason(struct wb_slice reason, char mem[WB_DISPENSER_REASON_MAX]);

/* WB_E_INVALID naming what, unless text is UTF-8 without NUL. */
int wb_dispenser_check_text(const char *what, struct wb_slice text);

#endif
