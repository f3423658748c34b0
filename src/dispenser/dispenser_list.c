/*
 * dispenser_list.c - fetch lists, the classes of sites, and the walk over all of them.
 *
 * A list is a run: each of its sites has the seeds of the list and no others, and a number above its last visit
 * in `listed`, which makes the next visit a listed one (visit.c). It never touches a site that somebody holds, and
 * resolves nothing.
 */
#include "dispenser/dispenser_rows.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdlib.h>

/* ---- seeds of a list ---------------------------------------------------------------------------------- */

enum { TEN = 10 }; /* rows that one statement inserts: a list may have a million, and a server may be a network away */

struct hashed_seed {
    const struct wb_seed *seed;
    uint64_t hash;
};

/* The same URLs next to each other, in the order of the list. */
static int compare_urls(const void *a, const void *b)
{
    const struct hashed_seed *x = a, *y = b;
    struct wb_slice s = x->seed->url, t = y->seed->url;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    int order = s.len != t.len ? (s.len < t.len ? -1 : 1) : memcmp(s.ptr, t.ptr, s.len);
    return order ? order : x->seed < y->seed ? -1 : x->seed > y->seed;
}

static int compare_places(const void *a, const void *b)
{
    const struct hashed_seed *x = a, *y = b;

    return x->seed < y->seed ? -1 : x->seed > y->seed;
}

/* Each URL once; how many are left. */
static size_t drop_copies(struct hashed_seed *seeds, size_t count)
{
    size_t kept = 0;

    if (count == 0)
        return 0;
    qsort(seeds, count, sizeof *seeds, compare_urls);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || seeds[i].hash != seeds[i - 1].hash || !wb_slice_equal(seeds[i].seed->url, seeds[i - 1].seed->url))
            seeds[kept++] = seeds[i];
    qsort(seeds, kept, sizeof *seeds, compare_places);
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
            values[at++] = wb_sql_int(seeds[i].seed->depth);
        }
        enum wb_dispenser_statement statement = rows == TEN ? S_SEED_ADD_TEN : S_SEED_ADD;
        err = wb_sql_run(d->sql, statement, values, (unsigned)at);
        if (err > 0)
            wb_sql_end(d->sql, statement);
    }
    return err < 0 ? err : 0;
}

/* The seeds of a site that has none; *last becomes the id of the newest. */
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

struct listing {
    int64_t now_ms, run;
    int64_t judge_ms; /* now, by the clock of leases */
    const struct wb_site_list *lists;
    size_t count;
    const struct wb_slice *known;
    size_t known_count;
    struct wb_dispenser_list_stat stat;
};

static int check_list(const struct wb_site_list *list)
{
    bool sound = wb_dispenser_plain(list->name) && list->name.len <= WB_SITE_NAME_MAX && wb_dispenser_plain(list->scheme);

    for (size_t i = 0; sound && i < list->seed_count; i++)
        sound = list->seeds[i].url.len <= WB_URL_MAX_BYTES && wb_dispenser_plain(list->seeds[i].url);
    if (sound)
        return 0;
    return wb_fail(WB_E_INVALID, "the list of the site %.*s holds what is no URL", list->name.len > 80 ? 80 : (int)list->name.len,
                   list->name.ptr);
}

static int insert_listed(struct wb_dispenser *d, struct listing *l, const struct wb_site_list *list)
{
    struct wb_record now = WB_RECORD_INIT;

    now.row = (struct wb_site_row){.name = list->name, .scheme = list->scheme, .state = WB_SITE_UNRESOLVED, .before = WB_SITE_UNRESOLVED,
                                   .run = l->run, .delay_ms = -1, .budget = -1};
    wb_record_listed(&now);
    int err = wb_record_insert(d, &now);
    if (err == 0)
        err = add_first_seeds(d, now.row.id, list, &now.seed_last);
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_SEED_LAST, wb_sql_int(now.row.id), wb_sql_int(now.seed_last));
    return err;
}

/* Into the run, with a visit of its own; whoever held it until its lease was over is told. */
static int enlist(struct wb_dispenser *d, const struct listing *l, struct wb_record *now)
{
    struct wb_site_row *row = &now->row;
    int err = 0;

    if (row->state == WB_SITE_CLAIMED) {
        err = WB_SQL_RUN(d->sql, S_LOST_ADD, wb_sql_str(row->owner), wb_sql_int(row->id));
        row->state = row->before == WB_SITE_WAITING ? WB_SITE_WAITING : WB_SITE_READY;
        row->owner = WB_SLICE_EMPTY;
        row->lease_ms = 0;
    }
    /* Lists come often: a name whose address still holds is not asked for anew. */
    if (row->state == WB_SITE_DONE && row->address_expires_ms > l->now_ms)
        row->state = WB_SITE_READY;
    if (wb_site_over(row->state) || (row->state == WB_SITE_READY && row->address.len == 0))
        row->state = WB_SITE_UNRESOLVED;
    now->anew = false;
    row->run = l->run;
    row->seeds_taken = 0;
    row->reason = row->alias_of = WB_SLICE_EMPTY;
    wb_record_listed(now);
    return err;
}

static bool is_busy(const struct listing *l, const struct wb_site_row *row)
{
    return row->state == WB_SITE_CLAIMED && row->lease_ms > l->judge_ms;
}

static int list_known(struct wb_dispenser *d, struct listing *l, const struct wb_site_list *list, const struct wb_record *was)
{
    struct wb_record now = *was;
    int err = 0;

    /* A site that comes twice in the list. */
    bool again = was->row.run == l->run;
    if (!again) {
        err = enlist(d, l, &now);
        if (err == 0)
            err = WB_SQL_RUN(d->sql, S_SEEDS_DROP, wb_sql_int(now.row.id));
        if (err == 0)
            err = add_first_seeds(d, now.row.id, list, &now.seed_last);
    } else {
        err = wb_dispenser_add_seeds(d, now.row.id, list->seeds, list->seed_count, &now.seed_last);
    }
    l->stat.sites += !again;
    return err < 0 ? err : wb_record_save(d, was, &now);
}

static int list_one(struct wb_dispenser *d, struct listing *l, const struct wb_site_list *list)
{
    struct wb_record was = WB_RECORD_INIT;
    int err = wb_record_by_name(d, list->name, &was);

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
    wb_record_release(&was);
    return err;
}

/* A site that was told of and never visited, and that the list says nothing of, begins with the seeds that it has. */
static int join_unvisited(struct wb_dispenser *d, struct listing *l, struct wb_slice name)
{
    struct wb_record was = WB_RECORD_INIT;
    int err = wb_record_by_name(d, name, &was);

    if (err > 0 && was.row.run != l->run && was.row.visit == 0 && was.row.trail.log == 0 && was.seed_last && !wb_site_over(was.row.state) &&
        !is_busy(l, &was.row)) {
        struct wb_record now = was;
        err = enlist(d, l, &now);
        if (err == 0)
            err = wb_record_save(d, &was, &now);
        l->stat.sites++;
    }
    wb_record_release(&was);
    return err > 0 ? 0 : err;
}

static int make_list(struct wb_dispenser *d, void *context)
{
    struct listing *l = context;

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

int wb_dispenser_list(struct wb_dispenser *d, int64_t now_ms, const struct wb_site_list *lists, size_t count, const struct wb_slice *known,
                      size_t known_count, int64_t *run_out, struct wb_dispenser_list_stat *stat_out)
{
    struct listing l = {.now_ms = now_ms, .lists = lists, .count = count, .known = known, .known_count = known_count};
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

/* ---- sites that are to be known ------------------------------------------------------------------------ */

static int know_new(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan)
{
    struct wb_record now = WB_RECORD_INIT;

    now.row = (struct wb_site_row){.name = plan->name, .scheme = plan->scheme, .state = WB_SITE_UNRESOLVED, .before = WB_SITE_UNRESOLVED,
                                   .run = run, .delay_ms = -1, .budget = -1};
    wb_record_plan(plan, &now);
    int err = wb_record_insert(d, &now);
    if (err == 0)
        err = wb_dispenser_add_seeds(d, now.row.id, plan->seeds, plan->seed_count, &now.seed_last);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_SEED_LAST, wb_sql_int(now.row.id), wb_sql_int(now.seed_last));
}

/* run 0 says that it was only ever borrowed. */
static int know_old(struct wb_dispenser *d, int64_t run, const struct wb_site_plan *plan, const struct wb_record *was)
{
    struct wb_record now = *was;
    int err = 0;

    wb_record_plan(plan, &now);
    if (now.row.run == 0)
        now.row.run = run;
    if (now.row.visit == 0 && now.row.state != WB_SITE_CLAIMED)
        err = wb_dispenser_add_seeds(d, now.row.id, plan->seeds, plan->seed_count, &now.seed_last);
    return err < 0 ? err : wb_record_save(d, was, &now);
}

static int know_plans(struct wb_dispenser *d, void *context)
{
    const struct wb_addition *a = context;
    int64_t run = 0;
    int err = wb_dispenser_next_run(d, &run);

    for (size_t i = 0; i < a->count && err == 0; i++) {
        struct wb_record was = WB_RECORD_INIT;
        if (a->plans[i].name.len > WB_SITE_NAME_MAX)
            continue;
        err = wb_record_by_name(d, a->plans[i].name, &was);
        if (err >= 0)
            err = err ? know_old(d, run, &a->plans[i], &was) : know_new(d, run, &a->plans[i]);
        wb_record_release(&was);
    }
    return err;
}

int wb_dispenser_know(struct wb_dispenser *d, const struct wb_site_plan *plans, size_t count)
{
    struct wb_addition a = {.plans = plans, .count = count};
    int err = wb_dispenser_check_plans(plans, count);

    return err < 0 || count == 0 ? err : wb_dispenser_transact(d, true, know_plans, &a);
}

/* ---- all of them ---------------------------------------------------------------------------------------- */

struct walk {
    int64_t run, after;
    struct wb_record_list list;
};

static int walk_some(struct wb_dispenser *d, void *context)
{
    struct walk *w = context;
    enum wb_dispenser_statement statement = w->run ? S_OF_RUN : S_ALL;
    int err;

    wb_record_list_release(&w->list);
    if (w->run)
        err = WB_SQL_RUN(d->sql, S_OF_RUN, wb_sql_int(w->after), wb_sql_int(w->run), wb_sql_int(WB_DISPENSER_SLICE));
    else
        err = WB_SQL_RUN(d->sql, S_ALL, wb_sql_int(w->after), wb_sql_int(WB_DISPENSER_SLICE));
    return wb_record_list_read(d, statement, err, &w->list);
}

int wb_dispenser_each(struct wb_dispenser *d, int64_t run, wb_site_each each, void *context)
{
    struct walk w = {.run = run, .list = WB_RECORD_LIST_INIT};
    bool more = true;
    int err = 0;

    while (err == 0 && more) {
        err = wb_dispenser_transact(d, false, walk_some, &w);
        if (err == 0)
            err = wb_record_list_tell(&w.list, each, context);
        more = w.list.count == WB_DISPENSER_SLICE;
        if (w.list.count)
            w.after = w.list.records[w.list.count - 1].row.id;
    }
    wb_record_list_release(&w.list);
    return err;
}

/* ---- classes -------------------------------------------------------------------------------------------- */

struct class_list {
    const struct wb_site_class *set;
    size_t count;
    struct wb_buf names, classes; /* what was read: names one after the other, and struct wb_site_class whose names lie there */
};

static int set_classes(struct wb_dispenser *d, void *context)
{
    const struct class_list *l = context;
    int err = 0;

    for (size_t i = 0; i < l->count && err == 0; i++) {
        const struct wb_site_class *c = &l->set[i];
        err = WB_SQL_RUN(d->sql, S_CLASS_SET, wb_sql_str(c->name), wb_sql_int(c->fetches), wb_sql_int(c->delay_ms), wb_sql_int(c->min_ms),
                         wb_sql_int(c->max_ms));
    }
    return err;
}

int wb_dispenser_set_classes(struct wb_dispenser *d, const struct wb_site_class *classes, size_t count)
{
    struct class_list l = {.set = classes, .count = count};
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_dispenser_check_text("name of a class", classes[i].name);
    return err < 0 || count == 0 ? err : wb_dispenser_transact(d, true, set_classes, &l);
}

static int read_classes(struct wb_dispenser *d, void *context)
{
    struct class_list *l = context;
    int err = wb_sql_run(d->sql, S_CLASSES, NULL, 0);

    wb_buf_clear(&l->names);
    wb_buf_clear(&l->classes);
    while (err > 0) {
        struct wb_slice name = wb_sql_text(d->sql, S_CLASSES, 0);
        struct wb_site_class c = {.name = {NULL, name.len}, .fetches = wb_sql_number(d->sql, S_CLASSES, 1),
                                  .delay_ms = wb_sql_number(d->sql, S_CLASSES, 2), .min_ms = wb_sql_number(d->sql, S_CLASSES, 3),
                                  .max_ms = wb_sql_number(d->sql, S_CLASSES, 4)};
        err = wb_buf_append_slice(&l->names, name);
        if (err == 0)
            err = wb_buf_append(&l->classes, &c, sizeof c);
        if (err == 0)
            err = wb_sql_next(d->sql, S_CLASSES);
    }
    return err;
}

int wb_dispenser_classes(struct wb_dispenser *d, wb_class_each each, void *context)
{
    struct class_list l = {.names = WB_BUF_INIT, .classes = WB_BUF_INIT};
    int err = wb_dispenser_transact(d, false, read_classes, &l);
    const char *name = l.names.ptr;

    for (size_t at = 0; err == 0 && at < l.classes.len; at += sizeof(struct wb_site_class)) {
        struct wb_site_class c;
        memcpy(&c, l.classes.ptr + at, sizeof c);
        c.name.ptr = name;
        name += c.name.len;
        err = each(context, &c);
    }
    wb_buf_release(&l.names);
    wb_buf_release(&l.classes);
    return err;
}
