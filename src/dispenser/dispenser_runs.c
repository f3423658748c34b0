/*
 * dispenser_runs.c - determines the run that a crawl takes part in.
 *
 * A crawl that was killed, stopped or limited is continued by the next crawl of the same seeds, and one that is still
 * under way is shared: in both cases the crawl gets the number of the existing run. A crawl that wants only a part of
 * an unfinished run, or more than that run has, gets a new run and takes over the sites that both have in common.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>

struct run_entry {
    const struct wb_run_plan *plan;
    int64_t run;        /* the run that the crawl gets */
    int64_t newest;     /* the newest unfinished run; 0: there is none */
    int64_t *open;      /* ids of the wanted sites that are open in that run */
    size_t open_count;
    int64_t last;       /* the newest run of a wanted site, finished or not */
    bool strange;       /* a site is wanted that is not in that run */
};

/* The crawl has work to do at a site in this state. WAITING does not count: such a wait may last for days. */
static bool is_open(int64_t state)
{
    return state == WB_SITE_UNRESOLVED || state == WB_SITE_READY || state == WB_SITE_CLAIMED;
}

static void note_run(struct run_entry *e, int64_t run)
{
    if (run > e->newest)
        e->newest = run;
}

/* The number that a statement with one row and one column returns. `ran` is what running it returned. */
static int take_number(struct wb_dispenser *d, enum wb_dispenser_statement statement, int ran, int64_t *number_out)
{
    *number_out = 0;
    if (ran <= 0)
        return ran;
    *number_out = wb_sql_number(d->sql, statement, 0);
    wb_sql_end(d->sql, statement);
    return 0;
}

/* ---- the newest unfinished run ---------------------------------------------------------------------- */

/* A crawl of seeds never continues a run that was made from fetch lists. */
static int note_plain_run(struct wb_dispenser *d, struct run_entry *e, int64_t run)
{
    int err = run > e->newest ? WB_SQL_RUN(d->sql, S_LISTED_ANY, wb_sql_int(run)) : 1;

    if (err == 0)
        note_run(e, run);
    else if (run > e->newest)
        wb_sql_end(d->sql, S_LISTED_ANY);
    return err < 0 ? err : 0;
}

static int search_counts(struct wb_dispenser *d, struct run_entry *e)
{
    int err = wb_sql_run(d->sql, S_COUNTS_ALL, NULL, 0);

    while (err > 0) {
        if (wb_sql_number(d->sql, S_COUNTS_ALL, 2) > 0 && is_open(wb_sql_number(d->sql, S_COUNTS_ALL, 1)))
            err = note_plain_run(d, e, wb_sql_number(d->sql, S_COUNTS_ALL, 0));
        err = err < 0 ? err : wb_sql_next(d->sql, S_COUNTS_ALL);
    }
    return err;
}

/* Calls found for each wanted site, with its row, or NULL if the dispenser does not have it. */
static int each_wanted(struct wb_dispenser *d, struct run_entry *e,
                       void (*found)(struct run_entry *, const struct wb_site_row *))
{
    int err = 0;

    for (size_t i = 0; i < e->plan->count && err == 0; i++) {
        struct wb_dispenser_row record = WB_DISPENSER_ROW_INIT;
        struct wb_slice name = e->plan->plans[i].name;
        err = name.len > WB_SITE_NAME_MAX ? 0 : wb_dispenser_row_by_name(d, name, &record);
        if (err >= 0)
            found(e, err ? &record.row : NULL);
        wb_dispenser_row_release(&record);
        err = err > 0 ? 0 : err;
    }
    return err;
}

static void look_for_open(struct run_entry *e, const struct wb_site_row *row)
{
    if (row && is_open(row->state) && !row->listed)
        note_run(e, row->run);
    if (row && !row->listed && row->run > e->last)
        e->last = row->run;
}

/* Open sites of the run that nobody asked for: pages of others need files of them. */
static int count_needed(struct wb_dispenser *d, int64_t run, int64_t *count_out)
{
    int err = WB_SQL_RUN(d->sql, S_NEEDED_OPEN, wb_sql_int(run));

    return take_number(d, S_NEEDED_OPEN, err, count_out);
}

static int search_runs(struct wb_dispenser *d, struct run_entry *e)
{
    int64_t run, needed = 0;

    if (e->plan->all)
        return search_counts(d, e);
    int err = each_wanted(d, e, look_for_open);
    for (size_t i = 0; i < e->plan->domain_count && err == 0; i++) {
        err = WB_SQL_RUN(d->sql, S_DOMAIN_RUN, wb_sql_str(wb_slice_str(e->plan->domains[i])));
        err = take_number(d, S_DOMAIN_RUN, err, &run);
        note_run(e, run);
    }
    /* A run in which only files that its pages need are left to fetch is unfinished, too. */
    if (err == 0 && e->last > e->newest)
        err = count_needed(d, e->last, &needed);
    if (err == 0 && needed)
        note_run(e, e->last);
    return err;
}

/* ---- is it the same run? ---------------------------------------------------------------------------- */

static void compare_site(struct run_entry *e, const struct wb_site_row *row)
{
    if (!row || row->run != e->newest)
        e->strange = true;
    else if (is_open(row->state) && !row->listed)
        e->open[e->open_count++] = row->id;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int count_open(struct wb_dispenser *d, int64_t run, int64_t *count_out)
{
    int64_t count = 0;
    int err = WB_SQL_RUN(d->sql, S_COUNTS, wb_sql_int(run));

    while (err > 0) {
        if (is_open(wb_sql_number(d->sql, S_COUNTS, 1)))
            count += wb_sql_number(d->sql, S_COUNTS, 2);
        err = wb_sql_next(d->sql, S_COUNTS);
    }
    *count_out = count;
    return err;
}

/*
 * Counts the open sites of the run that are wanted: the seeds, or, with domains, the sites of these, which include
 * the seeds.
 */
static int count_wanted(struct wb_dispenser *d, struct run_entry *e, int64_t *count_out)
{
    int64_t count = 0, some;
    int err = 0;

    if (e->open_count)
        qsort(e->open, e->open_count, sizeof *e->open, compare_ids);
    for (size_t i = 0; e->plan->domain_count == 0 && i < e->open_count; i++)
        count += i == 0 || e->open[i] != e->open[i - 1];
    for (size_t i = 0; i < e->plan->domain_count && err == 0; i++) {
        err = WB_SQL_RUN(d->sql, S_DOMAIN_OPEN, wb_sql_str(wb_slice_str(e->plan->domains[i])), wb_sql_int(e->newest));
        err = take_number(d, S_DOMAIN_OPEN, err, &some);
        count += some;
    }
    *count_out = count;
    return err;
}

static int compare_run(struct wb_dispenser *d, struct run_entry *e, bool *same_out)
{
    int64_t open = 0, wanted = 0, needed = 0;
    int err = 0;

    *same_out = false;
    e->open_count = 0;
    e->strange = false;
    if (!e->newest)
        return 0;
    err = each_wanted(d, e, compare_site);
    if (err < 0 || e->strange)
        return err;
    if (!e->plan->all) {
        err = count_open(d, e->newest, &open);
        if (err == 0)
            err = count_wanted(d, e, &wanted);
        if (err == 0)
            err = count_needed(d, e->newest, &needed);
    }
    *same_out = err == 0 && open == wanted + needed;
    return err;
}

/* ---- entering -------------------------------------------------------------------------------------------- */

static int enter_run(struct wb_dispenser *d, void *context)
{
    struct run_entry *e = context;
    struct wb_dispenser_addition addition = {.plans = e->plan->plans, .count = e->plan->count};
    bool same = false;

    e->run = e->newest = e->last = 0;
    int err = search_runs(d, e);
    if (err == 0)
        err = compare_run(d, e, &same);
    if (err == 0 && same)
        e->run = e->newest;
    else if (err == 0)
        err = wb_dispenser_next_run(d, &e->run);
    for (size_t i = 0; i < e->plan->count; i++)
        e->plan->plans[i].continues = e->newest;
    addition.run = e->run;
    return err < 0 ? err : wb_dispenser_add_plans(d, &addition);
}

int wb_dispenser_enter_run(struct wb_dispenser *d, const struct wb_run_plan *plan, int64_t *run_out,
                           int64_t *goes_on_out)
{
    struct run_entry e = {.plan = plan};
    int err = wb_dispenser_check_plans(plan->plans, plan->count);

    *run_out = *goes_on_out = 0;
    if (err < 0)
        return err;
    e.open = wb_alloc_zero(plan->count + 1, sizeof *e.open);
    err = e.open ? wb_dispenser_transact(d, true, enter_run, &e) : WB_E_NOMEM;
    if (err == 0) {
        *run_out = e.run;
        *goes_on_out = e.newest;
    }
    wb_free(e.open);
    return err;
}
