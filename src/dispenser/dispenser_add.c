/*
 * dispenser_add.c - adds sites and their seeds to runs.
 *
 * They come from seed files and from the links of pages, so they may be anything: impossible names are refused or
 * left out here, and a URL is stored once for a site however often it is found. Nothing here resolves or claims a
 * site.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

#include <limits.h>

enum { ALIASES_MAX = 8 }; /* names that are followed from alias to alias */

/* ---- runs ------------------------------------------------------------------------------------------- */

int wb_dispenser_next_run(struct wb_dispenser *d, int64_t *run_out)
{
    int err = wb_sql_run(d->sql, S_NEXT_RUN, NULL, 0);

    *run_out = 0;
    if (err == 0)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: the number of the last run is missing", wb_sql_where(d->sql));
    if (err < 0)
        return err;
    *run_out = wb_sql_number(d->sql, S_NEXT_RUN, 0);
    wb_sql_end(d->sql, S_NEXT_RUN);
    return 0;
}

/* ---- sites and seeds ----------------------------------------------------------------------------------- */

static int check_plan(const struct wb_site_plan *plan)
{
    int shown = plan->name.len > 80 ? 80 : (int)plan->name.len;

    if (!wb_dispenser_is_plain(plan->name))
        return wb_fail(WB_E_INVALID, "\"%.*s\" is not the name of a site", shown, plan->name.ptr);
    if (!wb_dispenser_is_plain(plan->scheme))
        return wb_fail(WB_E_INVALID, "the site %.*s has no scheme", shown, plan->name.ptr);
    for (size_t i = 0; i < plan->seed_count; i++) {
        struct wb_slice url = plan->seeds[i].url;
        if (url.len > WB_URL_MAX_BYTES || !wb_dispenser_is_plain(url))
            return wb_fail(WB_E_INVALID, "a seed of the site %.*s is not a URL", shown, plan->name.ptr);
    }
    return wb_dispenser_check_text("name of a class", plan->class_name);
}

int wb_dispenser_add_seeds(struct wb_dispenser *d, int64_t site, const struct wb_seed *seeds, size_t count,
                           int64_t again, int64_t *last)
{
    for (size_t i = 0; i < count; i++) {
        struct wb_slice url = seeds[i].url;
        int64_t hash = (int64_t)wb_hash64(url.ptr, url.len);
        int err = WB_SQL_RUN(d->sql, S_SEED_FIND, wb_sql_int(site), wb_sql_int(hash), wb_sql_str(url));
        if (err < 0)
            return err;
        int64_t id = err == 1 ? wb_sql_number(d->sql, S_SEED_FIND, 0) : 0;
        wb_sql_end(d->sql, S_SEED_FIND);
        if (id > again)
            continue;
        err = WB_SQL_RUN(d->sql, S_SEED_ADD, wb_sql_int(site), wb_sql_int(hash), wb_sql_str(url),
                         wb_sql_int(wb_depth_code(seeds[i].depth)));
        if (err < 0)
            return err;
        *last = wb_sql_number(d->sql, S_SEED_ADD, 0);
        wb_sql_end(d->sql, S_SEED_ADD);
        /* Afterwards, because SQLite would give the highest id to the next seed once more. */
        err = id ? WB_SQL_RUN(d->sql, S_SEED_DROP, wb_sql_int(id)) : 0;
        if (err < 0)
            return err;
    }
    return 0;
}

/* Starts another visit, now or when the owner that has borrowed the site gives it back. */
static void start_again(struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    if (row->state == WB_SITE_CLAIMED) {
        /* It was borrowed after its visit was over: the next one starts when it comes back. */
        record->anew = record->anew || wb_site_is_over(row->before);
        return;
    }
    if (!wb_site_is_over(row->state) && !row->listed)
        return;
    wb_dispenser_row_make_plain(record);
    row->pages = 0;
    row->seeds_taken = 0;
    if (!wb_site_is_over(row->state))
        return;
    row->state = WB_SITE_UNRESOLVED;
    row->attempts = 0;
    row->reason = row->alias_of = row->probe = WB_SLICE_EMPTY; /* its root page must be compared again */
}

/*
 * Pages of another site need files of this one, whose visit in an earlier run is over: a visit starts that takes the
 * seeds added from now on, and nothing else.
 */
static void begin_needed(struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    if (!wb_site_is_over(row->state))
        return;
    row->visit = (row->listed > row->visit ? row->listed : row->visit) + 1;
    row->listed = 0;
    row->needed = row->needed == WB_NEEDED_ONLY ? WB_NEEDED_ONLY : WB_NEEDED_HERE;
    row->state = WB_SITE_UNRESOLVED;
    row->pages = 0;
    row->attempts = 0;
    row->reason = row->alias_of = WB_SLICE_EMPTY;
}

/* A link found in a listed visit led to a site whose visit is over: fetch only what the link names. */
static void begin_listed(struct wb_dispenser_row *record)
{
    struct wb_site_row *row = &record->row;

    if (!wb_site_is_over(row->state))
        return;
    wb_dispenser_row_make_listed(record);
    row->state = WB_SITE_UNRESOLVED;
    row->seeds_taken = record->seed_last;
    row->reason = row->alias_of = WB_SLICE_EMPTY;
}

/*
 * True if it was finished in the run that this one continues. A refused site is tried again: that costs nobody a
 * request.
 */
static bool finished_before(const struct wb_site_plan *plan, const struct wb_site_row *row)
{
    enum wb_site_state state = row->state == WB_SITE_CLAIMED ? row->before : row->state;

    return plan->continues && row->run == plan->continues && (state == WB_SITE_DONE || state == WB_SITE_ALIAS);
}

/* True if nothing that a plan can change has changed. */
static bool record_same(const struct wb_dispenser_row *a, const struct wb_dispenser_row *b)
{
    const struct wb_site_row *x = &a->row, *y = &b->row;

    return a->anew == b->anew && a->seed_last == b->seed_last && x->state == y->state && x->run == y->run &&
           x->listed == y->listed && x->priority == y->priority && x->delay_ms == y->delay_ms &&
           x->budget == y->budget && x->needed == y->needed && wb_slice_equal(x->class_name, y->class_name);
}

/*
 * What leads to an alias leads to the site that is crawled instead: *row becomes the row of that one. Its crawler finds
 * the page under its own name (the seeds keep the URL that was found). It stays an alias if the other row is gone.
 */
static int follow_alias(struct wb_dispenser *d, struct wb_dispenser_row *row)
{
    for (unsigned i = 0; i < ALIASES_MAX && row->row.state == WB_SITE_ALIAS && row->row.alias_of.len; i++) {
        struct wb_dispenser_row other = WB_DISPENSER_ROW_INIT;
        int err = wb_dispenser_row_by_name(d, row->row.alias_of, &other);
        if (err <= 0)
            return err;
        wb_dispenser_row_release(row);
        *row = other;
    }
    return 0;
}

int wb_dispenser_pass_seeds(struct wb_dispenser *d, const struct wb_dispenser_row *alias)
{
    struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT;

    WB_CHECK(alias->row.state == WB_SITE_ALIAS);
    int err = wb_dispenser_row_by_id(d, alias->row.id, &was);
    if (err > 0)
        err = follow_alias(d, &was);
    if (err < 0 || was.row.id == alias->row.id || was.row.state == WB_SITE_ALIAS)
        goto done;
    struct wb_dispenser_row now = was;
    err = WB_SQL_RUN(d->sql, S_SEEDS_PASS, wb_sql_int(alias->row.id), wb_sql_int(was.row.id));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_SEED_NEWEST, wb_sql_int(was.row.id));
    if (err > 0) {
        now.seed_last = wb_sql_number(d->sql, S_SEED_NEWEST, 0);
        wb_sql_end(d->sql, S_SEED_NEWEST);
        err = 0;
    }
    if (err < 0 || now.seed_last == was.seed_last)
        goto done;
    if (alias->row.run > now.row.run)
        now.row.run = alias->row.run;
    err = wb_dispenser_row_save(d, &was, &now);
done:
    wb_dispenser_row_release(&was);
    return err < 0 ? err : 0;
}

static int add_to_site(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan,
                       const struct wb_dispenser_row *was)
{
    struct wb_dispenser_row now = *was;
    bool over = wb_site_is_over(was->row.state);
    /* An unfinished crawl of the site is not taken into this run for the sake of a file. It fetches the file itself. */
    bool apart = plan->needed && !was->row.needed && !over;

    if ((run > now.row.run && !apart) || over)
        now.row.run = run;
    wb_dispenser_row_apply_plan(plan, &now);
    if (plan->by_link && plan->listed && run > was->row.run)
        begin_listed(&now);
    else if (plan->needed && run > was->row.run)
        begin_needed(&now);
    else if ((plan->revisit || (plan->by_link && run > was->row.run)) && !finished_before(plan, &was->row))
        start_again(&now);
    int64_t again = plan->needed && now.row.needed && !plan->listed ? now.row.seeds_taken : 0;
    int err = wb_dispenser_add_seeds(d, now.row.id, plan->seeds, plan->seed_count, again, &now.seed_last);
    /* Most links to other sites bring nothing new: spare the write. */
    return err < 0 || record_same(was, &now) ? err : wb_dispenser_row_save(d, was, &now);
}

int wb_dispenser_add_site(struct wb_dispenser *d, struct wb_dispenser_row *now, const struct wb_seed *seeds,
                          size_t count)
{
    int err = wb_dispenser_row_insert(d, now);

    if (err == 0)
        err = wb_dispenser_add_seeds(d, now->row.id, seeds, count, 0, &now->seed_last);
    if (err == 0 && now->seed_last)
        err = WB_SQL_RUN(d->sql, S_SEED_LAST, wb_sql_int(now->row.id), wb_sql_int(now->seed_last));
    return err;
}

/* Whether the plan makes this site start another visit, in which an alias is compared with the other names again. */
static bool compares_again(int64_t run, const struct wb_site_plan *plan, const struct wb_site_row *row)
{
    bool visits = plan->revisit || (plan->by_link && run > row->run);

    return visits && !plan->listed && !plan->needed && !finished_before(plan, row);
}

static int add_to_known(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan,
                        struct wb_dispenser_row *was)
{
    struct wb_site_plan passed = *plan;
    bool alias = was->row.state == WB_SITE_ALIAS && !compares_again(run, plan, &was->row);
    int err = alias ? follow_alias(d, was) : 0;

    if (err == 0 && alias && was->row.state != WB_SITE_ALIAS) {
        passed.by_link = true;
        passed.revisit = false;
        passed.class_name = WB_SLICE_EMPTY; /* what was said about the alias says nothing about this site */
        passed.priority = INT_MIN;
        passed.delay_ms = passed.budget = -2;
    }
    return err < 0 ? err : add_to_site(d, run, &passed, was);
}

static int add_new_site(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan)
{
    struct wb_dispenser_row now = wb_dispenser_row_new(plan->name, plan->scheme, run);

    wb_dispenser_row_apply_plan(plan, &now);
    now.row.needed = plan->needed ? WB_NEEDED_ONLY : WB_NEEDED_NOT;
    if (plan->by_link && plan->listed)
        wb_dispenser_row_make_listed(&now);
    return wb_dispenser_add_site(d, &now, plan->seeds, plan->seed_count);
}

int wb_dispenser_add_plans(struct wb_dispenser *d, void *context)
{
    struct wb_dispenser_addition *a = context;
    int err = 0;

    a->added = 0;
    for (size_t i = 0; i < a->count && err == 0; i++) {
        const struct wb_site_plan *plan = &a->plans[i];
        struct wb_dispenser_row was = WB_DISPENSER_ROW_INIT;
        if (plan->name.len > WB_SITE_NAME_MAX)
            continue;
        err = wb_dispenser_row_by_name(d, plan->name, &was);
        if (err == 0) {
            err = add_new_site(d, a->run, plan);
            a->added++;
        } else if (err > 0) {
            err = add_to_known(d, a->run, plan, &was);
        }
        wb_dispenser_row_release(&was);
    }
    return err;
}

int wb_dispenser_check_plans(const struct wb_site_plan *plans, size_t count)
{
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = check_plan(&plans[i]);
    return err;
}

int wb_dispenser_add(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plans, size_t count,
                     uint64_t *added_out)
{
    struct wb_dispenser_addition a = {.run = run, .plans = plans, .count = count};
    int err = wb_dispenser_check_plans(plans, count);

    *added_out = 0;
    if (err == 0 && count)
        err = wb_dispenser_transact(d, true, wb_dispenser_add_plans, &a);
    if (err == 0)
        *added_out = a.added;
    return err;
}

/* ---- from run to run --------------------------------------------------------------------------------------- */

/* A change of many sites. Each part is a transaction, so that other processes get a turn in between. */
struct migration {
    int64_t run, after;
    bool all;
    struct wb_slice domain;
    size_t count; /* sites in the last part */
};

static int join_some(struct wb_dispenser *d, void *context)
{
    struct migration *m = context;
    enum wb_dispenser_statement statement = m->all ? S_UNFINISHED : S_OF_DOMAIN;
    struct wb_dispenser_row_list list = WB_DISPENSER_ROW_LIST_INIT;
    int err;

    if (m->all)
        err = WB_SQL_RUN(d->sql, S_UNFINISHED, wb_sql_int(m->after), wb_sql_int(m->run),
                         wb_sql_int(WB_DISPENSER_SLICE));
    else
        err = WB_SQL_RUN(d->sql, S_OF_DOMAIN, wb_sql_str(m->domain), wb_sql_int(m->after), wb_sql_int(m->run),
                         wb_sql_int(WB_DISPENSER_SLICE));
    err = wb_dispenser_row_list_read(d, statement, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_dispenser_row now = list.items[i];
        now.row.run = m->run;
        err = wb_dispenser_row_save(d, &list.items[i], &now);
    }
    m->count = list.count;
    if (list.count)
        m->after = list.items[list.count - 1].row.id;
    wb_dispenser_row_list_release(&list);
    return err;
}

int wb_dispenser_join_run(struct wb_dispenser *d, int64_t run, bool all, struct wb_slice domain)
{
    struct migration m = {.run = run, .all = all, .domain = domain};
    int err;

    do {
        err = wb_dispenser_transact(d, true, join_some, &m);
    } while (err == 0 && m.count == WB_DISPENSER_SLICE);
    return err;
}

static int reopen_some(struct wb_dispenser *d, void *context)
{
    struct migration *m = context;
    struct wb_dispenser_row_list list = WB_DISPENSER_ROW_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_UNTAKEN, wb_sql_int(m->run), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_dispenser_row_list_read(d, S_UNTAKEN, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_dispenser_row now = list.items[i];
        now.row.state = now.row.address.len ? WB_SITE_READY : WB_SITE_UNRESOLVED;
        now.row.reason = WB_SLICE_EMPTY;
        err = wb_dispenser_row_save(d, &list.items[i], &now);
    }
    m->count = list.count;
    wb_dispenser_row_list_release(&list);
    return err;
}

int wb_dispenser_reopen(struct wb_dispenser *d, int64_t run, uint64_t *count_out)
{
    struct migration m = {.run = run};
    int err;

    *count_out = 0;
    do {
        err = wb_dispenser_transact(d, true, reopen_some, &m);
        *count_out += err == 0 ? m.count : 0;
    } while (err == 0 && m.count == WB_DISPENSER_SLICE);
    return err;
}
