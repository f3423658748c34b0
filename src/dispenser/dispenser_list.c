/*
 * dispenser_list.c - makes runs from fetch lists.
 *
 * In such a run each site has exactly the seeds of the list. Its column `listed` holds a number above that of its
 * last visit, which makes the next visit a listed one: the crawler fetches those seeds and nothing else (visit.c of
 * crawl). Nothing here touches a site that somebody holds, or resolves a name.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdlib.h>

/* ---- seeds of a list ---------------------------------------------------------------------------------- */

/*
 * How many rows one statement inserts: a list may have a million URLs, and the server may be at the other end of a
 * network.
 */
enum { TEN = 10 };

_Static_assert(1 + 3 * TEN <= WB_SQL_VALUES_MAX, "the values of ten seeds fit one statement");

struct hashed_seed {
    const struct wb_seed *seed;
    uint64_t hash;
};

/* Puts equal URLs next to each other, and those in the order of the list. */
static int compare_urls(const void *a, const void *b)
{
    const struct hashed_seed *x = a, *y = b;
    struct wb_slice s = x->seed->url, t = y->seed->url;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    int order = s.len != t.len ? (s.len < t.len ? -1 : 1) : memcmp(s.ptr, t.ptr, s.len);
    return order ? order : x->seed < y->seed ? -1 : x->seed > y->seed;
}

static int compare_list_order(const void *a, const void *b)
{
    const struct hashed_seed *x = a, *y = b;

    return x->seed < y->seed ? -1 : x->seed > y->seed;
}

/* Keeps each URL once, in the order of the list. Returns how many are left. */
static size_t drop_copies(struct hashed_seed *seeds, size_t count)
{
    size_t kept = 0;

    if (count == 0)
        return 0;
    qsort(seeds, count, sizeof *seeds, compare_urls);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || seeds[i].hash != seeds[i - 1].hash || !wb_slice_equal(seeds[i].seed->url, seeds[i - 1].seed->url))
            seeds[kept++] = seeds[i];
    qsort(seeds, kept, sizeof *seeds, compare_list_order);
    return kept;
}

static int insert_seeds(struct wb_dispenser *d, int64_t site, const struct hashed_seed *seeds, size_t count)
{
    struct wb_sql_value values[1 + 3 * TEN] = {wb_sql_int(site)};
    int err = 0;

    for (size_t i = 0; i < count && err >= 0;) {
        size_t rows = count - i >= TEN ? TEN : 1, at = 1;
        for (size_t k = 0; k < rows; k++, i++) {
            values[at++] = wb_sql_int((int64_t)seeds[i].hash);
            values[at++] = wb_sql_str(seeds[i].seed->url);
            values[at++] = wb_sql_int(wb_depth_code(seeds[i].seed->depth));
        }
        enum wb_dispenser_statement statement = rows == TEN ? S_SEED_ADD_TEN : S_SEED_ADD;
        err = wb_sql_run(d->sql, statement, values, (unsigned)at);
        if (err > 0)
            wb_sql_end(d->sql, statement);
    }
    return err < 0 ? err : 0;
}

/* Adds the seeds of a site that has none, which needs no search for copies. *last becomes the id of the newest. */
static int add_first_seeds(struct wb_dispenser *d, int64_t site, const struct wb_site_list *list, int64_t *last)
{
    struct hashed_seed *seeds = wb_alloc_zero(list->seed_count + 1, sizeof *seeds);

    *last = 0;
    if (!seeds)
        return WB_E_NOMEM;
    for (size_t i = 0; i < list->seed_count; i++)
        seeds[i] = (struct hashed_seed){&list->seeds[i], wb_hash64(list->seeds[i].url.ptr, list->seeds[i].url.len)};
    int err = insert_seeds(d, site, seeds, drop_copies(seeds, list->seed_count));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_SEED_NEWEST, wb_sql_int(site));
    if (err > 0) {
        *last = wb_sql_number(d->sql, S_SEED_NEWEST, 0);
        wb_sql_end(d->sql, S_SEED_NEWEST);
    }
    wb_free(seeds);
    return err < 0 ? err : 0;
}

/* ---- lists ------------------------------------------------------------------------------------------ */

/* One call of wb_dispenser_enter_lists(). */
struct list_entry {
    int64_t now_ms;   /* the caller's wall clock */
    int64_t judge_ms; /* now, by the clock of leases */
    int64_t run;      /* the new run */
    const struct wb_site_list *lists;
    size_t count;
    const struct wb_slice *known;
    size_t known_count;
    struct wb_dispenser_list_stat stat;
};

static int check_list(const struct wb_site_list *list)
{
    bool sound = wb_dispenser_is_plain(list->name) && list->name.len <= WB_SITE_NAME_MAX &&
                 wb_dispenser_is_plain(list->scheme);

    for (size_t i = 0; sound && i < list->seed_count; i++)
        sound = list->seeds[i].url.len <= WB_URL_MAX_BYTES && wb_dispenser_is_plain(list->seeds[i].url);
    if (sound)
        return 0;
    return wb_fail(WB_E_INVALID, "the list of the site %.*s contains an invalid URL",
                   list->name.len > 80 ? 80 : (int)list->name.len, list->name.ptr);
}

static int insert_listed(struct wb_dispenser *d, struct list_entry *l, const struct wb_site_list *list)
{
    struct wb_dispenser_row now = wb_dispenser_row_new(list->name, list->scheme, l->run);

    wb_dispenser_row_make_listed(&now);
    int err = wb_dispenser_row_insert(d, &now);
    if (err == 0)
        err = add_first_seeds(d, now.row.id, list, &now.seed_last);
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_SEED_LAST, wb_sql_int(now.row.id), wb_sql_int(now.seed_last));
    return err;
}

/* Moves a site into the run, with a new visit. An owner whose lease has expired learns that it lost the site. */
static int enlist(struct wb_dispenser *d, const struct list_entry *l, struct wb_dispenser_row *now)
{
    struct wb_site_row *row = &now->row;
    int err = 0;

    if (row->state == WB_SITE_CLAIMED) {
        err = WB_SQL_RUN(d->sql, S_LOST_ADD, wb_sql_str(row->owner), wb_sql_int(row->id));
        row->state = row->before == WB_SITE_WAITING ? WB_SITE_WAITING : WB_SITE_READY;
        row->owner = WB_SLICE_EMPTY;
        row->lease_ms = 0;
    }
    /* Lists come often: a name whose address has not expired is not resolved again. */
    if (row->state == WB_SITE_DONE && row->address_expires_ms > l->now_ms)
        row->state = WB_SITE_READY;
    if (wb_site_is_over(row->state) || (row->state == WB_SITE_READY && row->address.len == 0))
        row->state = WB_SITE_UNRESOLVED;
    now->anew = false;
    row->run = l->run;
    row->seeds_taken = 0;
    row->reason = row->alias_of = WB_SLICE_EMPTY;
    wb_dispenser_row_make_listed(now);
    if (now->row.needed == WB_NEEDED_HERE)
        now->row.needed = WB_NEEDED_NOT;
    return err;
}

static bool is_busy(const struct list_entry *l, const struct wb_site_row *row)
{
    return row->state == WB_SITE_CLAIMED && row->lease_ms > l->judge_ms;
}

static int list_known(struct wb_dispenser *d, struct list_entry *l, const struct wb_site_list *list,
                      const struct wb_dispenser_row *was)
{
    struct wb_dispenser_row now = *was;
    int err = 0;

    /* The same site may be in the list twice. */
    bool again = was->row.run == l->run;
    if (!again) {
        err = enlist(d, l, &now);
        if (err == 0)
            err = WB_SQL_RUN(d->sql, S_SEEDS_DROP, wb_sql_int(now.row.id));
        if (err == 0)
            err = add_first_seeds(d, now.row.id, list, &now.seed_last);
    } else {
        err = wb_dispenser_add_seeds(d, now.row.id, list->seeds, list->seed_count, 0, &now.seed_last);
    }
    l->stat.sites += !again;
    return err < 0 ? err : wb_dispenser_row_save(d, was, &now);
}

static int list_one(struct wb_dispenser *d, struct list_entry *l, const struct wb_site_list *list)
{
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT;
    int err = wb_dispenser_row_by_name(d, list->name, &was);

    if (err > 0 && is_busy(l, &was.row)) {
        l->stat.busy++;
        err = 0;
        goto done;
    }
    if (err == 0)
        l->stat.sites++;
    if (err >= 0)
        err = err ? list_known(d, l, list, &was) : insert_listed(d, l, list);
    l->stat.urls += list->seed_count;
done:
    wb_dispenser_row_release(&was);
    return err;
}

/* A site that was introduced but never visited, and that is not in the lists, takes part with the seeds that it has. */
static int join_unvisited(struct wb_dispenser *d, struct list_entry *l, struct wb_slice name)
{
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT;
    int err = wb_dispenser_row_by_name(d, name, &was);

    if (err > 0 && was.row.run != l->run && was.row.visit == 0 && was.row.trail.log == 0 && was.seed_last &&
        !wb_site_is_over(was.row.state) && !is_busy(l, &was.row)) {
        struct wb_dispenser_row now = was;
        err = enlist(d, l, &now);
        if (err == 0)
            err = wb_dispenser_row_save(d, &was, &now);
        l->stat.sites++;
    }
    wb_dispenser_row_release(&was);
    return err > 0 ? 0 : err;
}

static int make_list(struct wb_dispenser *d, void *context)
{
    struct list_entry *l = context;

    l->stat = (struct wb_dispenser_list_stat){0};
    int err = wb_dispenser_lease_now(d, &l->judge_ms);
    if (err == 0)
        err = wb_dispenser_next_run(d, &l->run);
    for (size_t i = 0; i < l->count && err == 0; i++)
        err = list_one(d, l, &l->lists[i]);
    for (size_t i = 0; i < l->known_count && err == 0; i++)
        err = join_unvisited(d, l, l->known[i]);
    return err;
}

int wb_dispenser_enter_lists(struct wb_dispenser *d, int64_t now_ms, const struct wb_site_list *lists, size_t count,
                             const struct wb_slice *known, size_t known_count, int64_t *run_out,
                             struct wb_dispenser_list_stat *stat_out)
{
    struct list_entry l = {.now_ms = now_ms, .lists = lists, .count = count, .known = known,
                           .known_count = known_count};
    int err = 0;

    *run_out = 0;
    *stat_out = (struct wb_dispenser_list_stat){0};
    for (size_t i = 0; i < count && err == 0; i++)
        err = check_list(&lists[i]);
    if (err == 0 && count + known_count)
        err = wb_dispenser_transact(d, true, make_list, &l);
    if (err < 0)
        return err;
    *stat_out = l.stat;
    *run_out = l.stat.sites ? l.run : 0;
    return 0;
}

static int find_newest(struct wb_dispenser *d, void *context)
{
    int64_t *run_out = context;
    int err = wb_sql_run(d->sql, S_LISTED_NEWEST, NULL, 0);

    *run_out = 0;
    if (err > 0) {
        *run_out = wb_sql_number(d->sql, S_LISTED_NEWEST, 0);
        wb_sql_end(d->sql, S_LISTED_NEWEST);
    }
    return err < 0 ? err : 0;
}

int wb_dispenser_newest_list(struct wb_dispenser *d, int64_t *run_out)
{
    *run_out = 0;
    return wb_dispenser_transact(d, false, find_newest, run_out);
}

/* ---- introducing sites ------------------------------------------------------------------------ */

static int introduce_new(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan)
{
    struct wb_dispenser_row now = wb_dispenser_row_new(plan->name, plan->scheme, run);

    wb_dispenser_row_apply_plan(plan, &now);
    return wb_dispenser_add_site(d, &now, plan->seeds, plan->seed_count);
}

/* Updates a site that exists. If its run is 0, it has only ever been borrowed. */
static int introduce_known(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan,
                           const struct wb_dispenser_row *was)
{
    struct wb_dispenser_row now = *was;
    int err = 0;

    wb_dispenser_row_apply_plan(plan, &now);
    if (now.row.run == 0)
        now.row.run = run;
    if (now.row.visit == 0 && now.row.state != WB_SITE_CLAIMED)
        err = wb_dispenser_add_seeds(d, now.row.id, plan->seeds, plan->seed_count, 0, &now.seed_last);
    return err < 0 ? err : wb_dispenser_row_save(d, was, &now);
}

static int introduce_plans(struct wb_dispenser *d, void *context)
{
    const struct wb_dispenser_addition *a = context;
    int64_t run = 0;
    int err = wb_dispenser_next_run(d, &run);

    for (size_t i = 0; i < a->count && err == 0; i++) {
        struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT;
        if (a->plans[i].name.len > WB_SITE_NAME_MAX)
            continue;
        err = wb_dispenser_row_by_name(d, a->plans[i].name, &was);
        if (err >= 0)
            err = err ? introduce_known(d, run, &a->plans[i], &was) : introduce_new(d, run, &a->plans[i]);
        wb_dispenser_row_release(&was);
    }
    return err;
}

int wb_dispenser_introduce(struct wb_dispenser *d, const struct wb_site_plan *plans, size_t count)
{
    struct wb_dispenser_addition a = {.plans = plans, .count = count};
    int err = wb_dispenser_check_plans(plans, count);

    return err < 0 || count == 0 ? err : wb_dispenser_transact(d, true, introduce_plans, &a);
}
