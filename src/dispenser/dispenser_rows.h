/*
 * dispenser_rows.h - what the files of the dispenser share: transactions, and a site's row between database and
 * memory. Used inside this room only. The files, from the door down to the database:
 *
 *   dispenser.c         opening and closing; the clock of leases
 *   dispenser_url.c     which database a repository uses
 *   dispenser_add.c     sites and seeds are added to runs
 *   dispenser_runs.c    which run a crawl takes part in
 *   dispenser_list.c    fetch lists
 *   dispenser_claim.c   leases: claim, borrow, renew, release
 *   dispenser_homes.c   which repository a site stays with
 *   dispenser_news.c    what a crawler has learned of a site, for another repository that takes it over
 *   dispenser_report.c  what resolvers and crawlers report about a site
 *   dispenser_class.c   classes of sites
 *   dispenser_read.c    the calls that only read
 *   dispenser_rows.c    transactions; rows read and changed. Keeps heads and counts right
 *   dispenser_schema.c  the tables and their version
 *   dispenser_sql.h     all statements
 */
#ifndef WB_DISPENSER_DISPENSER_ROWS_H
#define WB_DISPENSER_DISPENSER_ROWS_H

#include "base/vec.h"
#include "dispenser/dispenser.h"
#include "dispenser/dispenser_sql.h"
#include "sql/sql.h"

enum {
    /*
     * The most rows that one transaction changes on its own initiative. Larger jobs take several, so that others get
     * a turn.
     */
    WB_DISPENSER_SLICE = 4096,
    WB_DISPENSER_DELTAS = 16,
    WB_DISPENSER_REASON_MAX = 500, /* in bytes; a longer reason is cut */
    WB_DISPENSER_HOME_MAX = 64,
};

#define WB_DISPENSER_MAGIC 0x57424453

struct wb_dispenser {
    uint32_t magic;
    struct wb_sql *sql;
    bool writing; /* inside a transaction that may write */
    bool shared;  /* other repositories can use it, too */
    char home[WB_DISPENSER_HOME_MAX]; /* the repository that its owners work for; empty: not said */
    int64_t home_run;                 /* and in which run */
    /* Changes of webbase_count that this transaction has made but not yet written. */
    struct wb_dispenser_delta {
        int64_t run, sites;
        enum wb_site_state state;
    } deltas[WB_DISPENSER_DELTAS];
    unsigned delta_count;
};

/* A row of webbase_site: what the door shows, and what only this room needs. */
struct wb_dispenser_row {
    struct wb_site_row row;
    bool anew;          /* another visit starts when the lease ends, if the site is over then */
    int64_t seed_last;  /* id of its newest seed */
    char *text;         /* what the slices of row point to; NULL: they borrow from somebody else */
};

struct wb_dispenser_row_list WB_VEC_OF(struct wb_dispenser_row);

#define WB_DISPENSER_ROW_INIT ((struct wb_dispenser_row){.text = NULL})
#define WB_DISPENSER_ROW_LIST_INIT ((struct wb_dispenser_row_list)WB_VEC_INIT)

/* Creates the tables if there are none. WB_E_NEWER if there are some of another format. */
int wb_dispenser_schema(struct wb_dispenser *d);

/* ---- transactions ---------------------------------------------------------------------------------------------- */

/*
 * Runs work as one transaction. If the database asks for it (a deadlock, a lost connection), the transaction is
 * rolled back and work runs again, so it must reset everything that it left in context. It must not call users back.
 * WB_E_BUSY if it never succeeds.
 */
typedef int (*wb_dispenser_work)(struct wb_dispenser *d, void *context);
int wb_dispenser_transact(struct wb_dispenser *d, bool write, wb_dispenser_work work, void *context);

/* Inside a transaction: the time by the clock of leases. */
int wb_dispenser_lease_now(struct wb_dispenser *d, int64_t *now_ms_out);

/* ---- parts of transactions (dispenser_add.c) ------------------------------------------------------------------- */

struct wb_dispenser_addition {
    int64_t run;
    const struct wb_site_plan *plans;
    size_t count;
    uint64_t added; /* sites that were new */
};

/* Takes the number of the next run. */
int wb_dispenser_next_run(struct wb_dispenser *d, int64_t *run_out);

/* context: a struct wb_dispenser_addition. */
int wb_dispenser_add_plans(struct wb_dispenser *d, void *context);

/* WB_E_INVALID if a plan has a name, scheme or URL that cannot be stored. */
int wb_dispenser_check_plans(const struct wb_site_plan *plans, size_t count);

/*
 * Adds the seeds that the site does not have yet; *last becomes the id of the newest. One that it has, with an id up to
 * `again`, gets a new id, so that it is taken once more.
 */
int wb_dispenser_add_seeds(struct wb_dispenser *d, int64_t site, const struct wb_seed *seeds, size_t count,
                           int64_t again, int64_t *last);

/*
 * A site was found to be an alias, and its row says so: the site that is crawled instead gets its seeds, and takes part
 * in its run.
 */
int wb_dispenser_pass_seeds(struct wb_dispenser *d, const struct wb_dispenser_row *alias);

/* Adds a site with its seeds. `now` is its row, without an id. */
int wb_dispenser_add_site(struct wb_dispenser *d, struct wb_dispenser_row *now, const struct wb_seed *seeds,
                          size_t count);

/* ---- one row in memory ----------------------------------------------------------------------------------------- */

/* The row of a site that is not in the database yet: UNRESOLVED, with the settings of the run. */
struct wb_dispenser_row wb_dispenser_row_new(struct wb_slice name, struct wb_slice scheme, int64_t run);

/* Sets class, priority, delay and budget, as far as the plan says something about them. */
void wb_dispenser_row_apply_plan(const struct wb_site_plan *plan, struct wb_dispenser_row *record);

/*
 * Makes the next visit a listed one. Its number is above that of every visit that may have started: a process that
 * died may have started one more than the row knows, or the one that was listed before.
 */
void wb_dispenser_row_make_listed(struct wb_dispenser_row *record);

/*
 * Makes the next visit a plain one, if it was listed. It gets a number that no visit has yet, so that it starts from
 * the beginning.
 */
void wb_dispenser_row_make_plain(struct wb_dispenser_row *record);

/* Ends the lease in the state that the row has now. If another visit was asked for meanwhile, that one starts. */
void wb_dispenser_row_end_lease(struct wb_dispenser_row *record);

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Reads the current row of a statement. It borrows from the statement. WB_E_CORRUPT. */
int wb_dispenser_row_read(const struct wb_dispenser *d, enum wb_dispenser_statement statement,
                          struct wb_dispenser_row *record_out);

/* Copies the texts, so that the row no longer borrows. */
int wb_dispenser_row_keep(struct wb_dispenser_row *record);
void wb_dispenser_row_release(struct wb_dispenser_row *record);

/* Copies the part that the door shows; its texts go to mem. */
int wb_dispenser_row_copy(const struct wb_dispenser_row *record, struct wb_buf *mem, struct wb_site_row *row_out);

/* Each returns 1 with a row that owns its texts, or 0 if there is none. */
int wb_dispenser_row_by_id(struct wb_dispenser *d, int64_t id, struct wb_dispenser_row *record_out);
int wb_dispenser_row_by_name(struct wb_dispenser *d, struct wb_slice name, struct wb_dispenser_row *record_out);

/* The first row whose name is in [from, to). */
int wb_dispenser_row_by_host(struct wb_dispenser *d, struct wb_slice from, struct wb_slice to,
                             struct wb_dispenser_row *record_out);

/* Appends all rows of a statement to list. `ran` is what running it returned. */
int wb_dispenser_row_list_read(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran,
                               struct wb_dispenser_row_list *list);
int wb_dispenser_row_list_add(struct wb_dispenser_row_list *list, struct wb_dispenser_row *taken);
void wb_dispenser_row_list_release(struct wb_dispenser_row_list *list);

/* Calls each for every row. If it returns non-zero, that is returned at once. */
int wb_dispenser_row_list_each(const struct wb_dispenser_row_list *list, wb_site_each each, void *context);

/* ---- changing -------------------------------------------------------------------------------------------------- */

/* Changes the row `was` to what `now` says (id and name stay), and updates heads and counts. */
int wb_dispenser_row_save(struct wb_dispenser *d, const struct wb_dispenser_row *was,
                          const struct wb_dispenser_row *now);

/* Inserts a row and sets now->row.id. */
int wb_dispenser_row_insert(struct wb_dispenser *d, struct wb_dispenser_row *now);

/* Counts so many sites more (or fewer) in this run and state. */
int wb_dispenser_count(struct wb_dispenser *d, int64_t run, enum wb_site_state state, int64_t sites);

/* ---- texts ----------------------------------------------------------------------------------------------------- */

/* The first of several addresses that are separated by blanks. */
struct wb_slice wb_dispenser_first_address(struct wb_slice addresses);

static inline bool wb_site_is_over(enum wb_site_state state)
{
    return state == WB_SITE_DONE || state == WB_SITE_ALIAS || state == WB_SITE_REFUSED;
}

/* True if this is not empty and is printable ASCII without blanks, as names, schemes and URLs are. */
bool wb_dispenser_is_plain(struct wb_slice text);

/*
 * Makes a reason storable. It may quote a peer: what is not text becomes '?', and a long one is cut. That is better
 * than losing the report that it came with.
 */
struct wb_slice wb_dispenser_reason(struct wb_slice reason, char mem[WB_DISPENSER_REASON_MAX]);

/* WB_E_INVALID, naming `what`, unless text is UTF-8 without NUL. */
int wb_dispenser_check_text(const char *what, struct wb_slice text);

#endif
