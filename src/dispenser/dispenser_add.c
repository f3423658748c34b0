/*
 * dispenser_add.c - sites, seeds and runs come into the dispenser.
 *
 * What is added comes from seed lists and from links of pages, so it may be anything: names that nobody can have are
 * refused or left out here, and a URL is taken once for a site however often it is found.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"
#include "base/hash.h"

#include <limits.h>

/* ---- runs ------------------------------------------------------------------------------------------- */

int wb_dispenser_next_run(struct wb_dispenser *d, void *context)
{
    int err = wb_sql_run(d->sql, S_NEXT_RUN, NULL, 0);

    if (err == 0)
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: the number of the last run is gone", wb_sql_where(d->sql));
    if (err < 0)
        return err;
    *(int64_t *)context = wb_sql_number(d->sql, S_NEXT_RUN, 0);
    wb_sql_end(d->sql, S_NEXT_RUN);
    return 0;
}

int wb_dispenser_begin_run(struct wb_dispenser *d, int64_t *run_out)
{
    int err = wb_dispenser_transact(d, true, wb_dispenser_next_run, run_out);

    if (err < 0)
        *run_out = 0;
    return err;
}

/* ---- sites and seeds ----------------------------------------------------------------------------------- */

static int check_plan(const struct wb_site_plan *plan)
{
    if (!wb_dispenser_plain(plan->name))
        return wb_fail(WB_E_INVALID, "\"%.*s\" is no name of a site", plan->name.len > 80 ? 80 : (int)plan->name.len, plan->name.ptr);
    if (!wb_dispenser_plain(plan->scheme))
        return wb_fail(WB_E_INVALID, "the site %.*s has no scheme", plan->name.len > 80 ? 80 : (int)plan->name.len, plan->name.ptr);
    for (size_t i = 0; i < plan->seed_count; i++) {
        struct wb_slice url = plan->seeds[i].url;
        if (url.len > WB_URL_MAX_BYTES || !wb_dispenser_plain(url))
            return wb_fail(WB_E_INVALID, "a seed of the site %.*s is no URL", plan->name.len > 80 ? 80 : (int)plan->name.len,
                           plan->name.ptr);
    }
    return wb_dispenser_check_text("name of a class", plan->class_name);
}

int wb_dispenser_add_seeds(struct wb_dispenser *d, int64_t site, const struct wb_seed *seeds, size_t count, int64_t *last)
{
    for (size_t i = 0; i < count; i++) {
        struct wb_slice url = seeds[i].url;
        int64_t hash = (int64_t)wb_hash64(url.ptr, url.len);
        int err = WB_SQL_RUN(d->sql, S_SEED_FIND, wb_sql_int(site), wb_sql_int(hash), wb_sql_str(url));
        if (err < 0)
            return err;
        wb_sql_end(d->sql, S_SEED_FIND);
        if (err == 1)
            continue;
        err = WB_SQL_RUN(d->sql, S_SEED_ADD, wb_sql_int(site), wb_sql_int(hash), wb_sql_str(url), wb_sql_int(seeds[i].depth));
        if (err < 0)
            return err;
        *last = wb_sql_number(d->sql, S_SEED_ADD, 0);
        wb_sql_end(d->sql, S_SEED_ADD);
    }
    return 0;
}

void wb_record_plan(const struct wb_site_plan *plan, struct wb_record *record)
{
    struct wb_site_row *row = &record->row;

    if (plan->class_name.len)
        row->class_name = plan->class_name;
    if (plan->priority != INT_MIN)
        row->priority = plan->priority;
    if (plan->delay_ms != -2)
        row->delay_ms = plan->delay_ms;
    if (plan->budget != -2)
        row->budget = plan->budget;
}

void wb_record_listed(struct wb_record *record)
{
    struct wb_site_row *row = &record->row;
    uint32_t last = row->visit + 1 > row->listed ? row->visit + 1 : row->listed;

    row->listed = last + 1;
    row->attempts = 0;
    row->pages = 0;
}

void wb_record_plain(struct wb_record *record)
{
    struct wb_site_row *row = &record->row;

    if (row->listed)
        row->visit = (row->listed > row->visit ? row->listed : row->visit) + 1;
    row->listed = 0;
}

static void begin_anew(struct wb_record *record)
{
    struct wb_site_row *row = &record->row;

    if (row->state == WB_SITE_CLAIMED) {
        /* Borrowed after its visit was over: when it comes back. */
        record->anew = record->anew || wb_site_over(row->before);
        return;
    }
    if (!wb_site_over(row->state) && !row->listed)
        return;
    wb_record_plain(record);
    row->pages = 0;
    row->seeds_taken = 0;
    if (!wb_site_over(row->state))
        return;
    row->state = WB_SITE_UNRESOLVED;
    row->attempts = 0;
    row->reason = row->alias_of = row->probe = WB_SLICE_EMPTY; /* the root is to be compared anew */
}

/* A link of a listed visit led to a site whose visit is over: only what was found is asked for. */
static void begin_listed(struct wb_record *record)
{
    struct wb_site_row *row = &record->row;

    if (!wb_site_over(row->state))
        return;
    wb_record_listed(record);
    row->state = WB_SITE_UNRESOLVED;
    row->seeds_taken = record->seed_last;
    row->reason = row->alias_of = WB_SLICE_EMPTY;
}

/* It was finished in the run that is gone on with. A refused one is tried again: that costs nobody a request. */
static bool finished_before(const struct wb_site_plan *plan, const struct wb_site_row *row)
{
    enum wb_site_state state = row->state == WB_SITE_CLAIMED ? row->before : row->state;

    return plan->goes_on && row->run == plan->goes_on && (state == WB_SITE_DONE || state == WB_SITE_ALIAS);
}

static bool record_same(const struct wb_record *a, const struct wb_record *b)
{
    return a->anew == b->anew && a->seed_last == b->seed_last && a->row.state == b->row.state && a->row.run == b->row.run &&
           a->row.listed == b->row.listed && a->row.priority == b->row.priority && a->row.delay_ms == b->row.delay_ms && a->row.budget == b->row.budget &&
           wb_slice_equal(a->row.class_name, b->row.class_name);
}

static int add_to_site(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan, const struct wb_record *was)
{
    struct wb_record now = *was;

    if (run > now.row.run || wb_site_over(now.row.state))
        now.row.run = run;
    wb_record_plan(plan, &now);
    if (plan->found && plan->listed && run > was->row.run)
        begin_listed(&now);
    else if ((plan->anew || (plan->found && run > was->row.run)) && !finished_before(plan, &was->row))
        begin_anew(&now);
    int err = wb_dispenser_add_seeds(d, now.row.id, plan->seeds, plan->seed_count, &now.seed_last);
    /* Most links to other sites tell nothing new. */
    return err < 0 || record_same(was, &now) ? err : wb_record_save(d, was, &now);
}

static int add_new_site(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan)
{
    struct wb_record now = WB_RECORD_INIT;

    now.row = (struct wb_site_row){.name = plan->name, .scheme = plan->scheme, .state = WB_SITE_UNRESOLVED, .before = WB_SITE_UNRESOLVED,
                                   .run = run, .delay_ms = -1, .budget = -1};
    wb_record_plan(plan, &now);
    if (plan->found && plan->listed)
        wb_record_listed(&now);
    int err = wb_record_insert(d, &now);
    if (err == 0)
        err = wb_dispenser_add_seeds(d, now.row.id, plan->seeds, plan->seed_count, &now.seed_last);
    if (err == 0 && now.seed_last)
        err = WB_SQL_RUN(d->sql, S_SEED_LAST, wb_sql_int(now.row.id), wb_sql_int(now.seed_last));
    return err;
}

int wb_dispenser_add_plans(struct wb_dispenser *d, void *context)
{
    struct wb_addition *a = context;
    int err = 0;

    a->added = 0;
    for (size_t i = 0; i < a->count && err == 0; i++) {
        const struct wb_site_plan *plan = &a->plans[i];
        struct wb_record was = WB_RECORD_INIT;
        if (plan->name.len > WB_SITE_NAME_MAX)
            continue;
        err = wb_record_by_name(d, plan->name, &was);
        if (err == 0) {
            err = add_new_site(d, a->run, plan);
            a->added++;
        } else if (err > 0) {
            err = add_to_site(d, a->run, plan, &was);
        }
        wb_record_release(&was);
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

int wb_dispenser_add(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plans, size_t count, uint64_t *added_out)
{
    struct wb_addition a = {.run = run, .plans = plans, .count = count};
    int err = wb_dispenser_check_plans(plans, count);

    *added_out = 0;
    if (err == 0 && count)
        err = wb_dispenser_transact(d, true, wb_dispenser_add_plans, &a);
    if (err == 0)
        *added_out = a.added;
    return err;
}

/* ---- from run to run --------------------------------------------------------------------------------------- */

/* A part of a change of many sites: one transaction, so that others get their turn between two. */
struct migration {
    int64_t run, after;
    bool all;
    struct wb_slice domain;
    size_t count; /* in this part */
};

static int join_some(struct wb_dispenser *d, void *context)
{
    struct migration *m = context;
    enum wb_dispenser_statement statement = m->all ? S_UNFINISHED : S_OF_DOMAIN;
    struct wb_record_list list = WB_RECORD_LIST_INIT;
    int err;

    if (m->all)
        err = WB_SQL_RUN(d->sql, S_UNFINISHED, wb_sql_int(m->after), wb_sql_int(m->run), wb_sql_int(WB_DISPENSER_SLICE));
    else
        err = WB_SQL_RUN(d->sql, S_OF_DOMAIN, wb_sql_str(m->domain), wb_sql_int(m->after), wb_sql_int(m->run),
                         wb_sql_int(WB_DISPENSER_SLICE));
    err = wb_record_list_read(d, statement, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_record now = list.records[i];
        now.row.run = m->run;
        err = wb_record_save(d, &list.records[i], &now);
    }
    m->count = list.count;
    if (list.count)
        m->after = list.records[list.count - 1].row.id;
    wb_record_list_release(&list);
    return err;
}

int wb_dispenser_join(struct wb_dispenser *d, int64_t run, bool all, struct wb_slice domain)
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
    struct wb_record_list list = WB_RECORD_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_UNTAKEN, wb_sql_int(m->run), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_record_list_read(d, S_UNTAKEN, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_record now = list.records[i];
        now.row.state = now.row.address.len ? WB_SITE_READY : WB_SITE_UNRESOLVED;
        now.row.reason = WB_SLICE_EMPTY;
        err = wb_record_save(d, &list.records[i], &now);
    }
    m->count = list.count;
    wb_record_list_release(&list);
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
