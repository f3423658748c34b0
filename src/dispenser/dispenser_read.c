/*
 * dispenser_read.c - the calls that only read: rows by name, address or run, seeds, and counts.
 *
 * Each of them reads inside a transaction and keeps copies; callbacks get these copies afterwards. So a callback may
 * take its time, and may call the dispenser itself. Nothing here changes a row.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"

enum { SEEDS_AT_ONCE = 512 };

/* ---- many rows ------------------------------------------------------------------------------------ */

/* A question that is answered by a list of rows. */
struct site_query {
    enum wb_dispenser_statement statement;
    int64_t run, now_ms;
    struct wb_slice address, probe;
    unsigned max;
    struct wb_dispenser_row_list list;
};

static int list_unresolved(struct wb_dispenser *d, void *context)
{
    struct site_query *q = context;
    int err;

    wb_dispenser_row_list_release(&q->list);
    err = WB_SQL_RUN(d->sql, S_UNRESOLVED, wb_sql_int(q->run), wb_sql_int(q->max));
    err = wb_dispenser_row_list_read(d, S_UNRESOLVED, err, &q->list);
    if (err < 0 || q->list.count >= q->max)
        return err;
    err = WB_SQL_RUN(d->sql, S_STALE, wb_sql_int(q->run), wb_sql_int(q->now_ms),
                     wb_sql_int((int64_t)(q->max - q->list.count)));
    return wb_dispenser_row_list_read(d, S_STALE, err, &q->list);
}

static int list_neighbours(struct wb_dispenser *d, void *context)
{
    struct site_query *q = context;
    int err;

    wb_dispenser_row_list_release(&q->list);
    if (q->statement == S_TWINS)
        err = WB_SQL_RUN(d->sql, S_TWINS, wb_sql_str(q->address), wb_sql_str(q->probe), wb_sql_int(q->max));
    else
        err = WB_SQL_RUN(d->sql, S_NEIGHBOURS, wb_sql_str(q->address), wb_sql_int(q->max));
    return wb_dispenser_row_list_read(d, q->statement, err, &q->list);
}

static int ask(struct wb_dispenser *d, wb_dispenser_work work, struct site_query *q, wb_site_each each, void *context)
{
    int err = wb_dispenser_transact(d, false, work, q);

    if (err == 0)
        err = wb_dispenser_row_list_each(&q->list, each, context);
    wb_dispenser_row_list_release(&q->list);
    return err;
}

int wb_dispenser_unresolved(struct wb_dispenser *d, int64_t run, int64_t now_ms, unsigned max, wb_site_each each,
                            void *context)
{
    struct site_query q = {.run = run, .now_ms = now_ms, .max = max};

    return max ? ask(d, list_unresolved, &q, each, context) : 0;
}

int wb_dispenser_neighbours(struct wb_dispenser *d, struct wb_slice address, wb_site_each each, void *context)
{
    struct site_query q = {.statement = S_NEIGHBOURS, .address = address, .max = WB_SITE_NEIGHBOURS_MAX};

    return ask(d, list_neighbours, &q, each, context);
}

int wb_dispenser_twins(struct wb_dispenser *d, struct wb_slice address, struct wb_slice probe, wb_site_each each,
                       void *context)
{
    struct site_query q = {.statement = S_TWINS, .address = address, .probe = probe, .max = WB_SITE_NEIGHBOURS_MAX};

    return ask(d, list_neighbours, &q, each, context);
}

/* ---- all sites ---------------------------------------------------------------------------------------- */

struct dispenser_walk {
    int64_t run, after;
    struct wb_dispenser_row_list list;
};

static int walk_some(struct wb_dispenser *d, void *context)
{
    struct dispenser_walk *w = context;
    enum wb_dispenser_statement statement = w->run ? S_OF_RUN : S_ALL;
    int err;

    wb_dispenser_row_list_release(&w->list);
    if (w->run)
        err = WB_SQL_RUN(d->sql, S_OF_RUN, wb_sql_int(w->after), wb_sql_int(w->run), wb_sql_int(WB_DISPENSER_SLICE));
    else
        err = WB_SQL_RUN(d->sql, S_ALL, wb_sql_int(w->after), wb_sql_int(WB_DISPENSER_SLICE));
    return wb_dispenser_row_list_read(d, statement, err, &w->list);
}

int wb_dispenser_each(struct wb_dispenser *d, int64_t run, wb_site_each each, void *context)
{
    struct dispenser_walk w = {.run = run, .list = WB_DISPENSER_ROW_LIST_INIT};
    bool more = true;
    int err = 0;

    while (err == 0 && more) {
        err = wb_dispenser_transact(d, false, walk_some, &w);
        if (err == 0)
            err = wb_dispenser_row_list_each(&w.list, each, context);
        more = w.list.count == WB_DISPENSER_SLICE;
        if (w.list.count)
            w.after = w.list.items[w.list.count - 1].row.id;
    }
    wb_dispenser_row_list_release(&w.list);
    return err;
}

/* ---- what people look for ------------------------------------------------------------------------------ */

struct site_finding {
    const struct wb_site_search *search;
    struct wb_buf pattern;
    uint64_t total;
    struct wb_dispenser_row_list list;
};

/* A text with any text before and after it. */
static int make_pattern(struct wb_slice text, struct wb_buf *pattern)
{
    int err = wb_buf_append_char(pattern, '%');

    for (size_t i = 0; i < text.len && err == 0; i++) {
        char c = text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? (char)(text.ptr[i] + 32) : text.ptr[i];
        if (c == '%' || c == '_' || c == '!')
            err = wb_buf_append_char(pattern, '!');
        if (err == 0)
            err = wb_buf_append_char(pattern, c);
    }
    return err < 0 ? err : wb_buf_append_char(pattern, '%');
}

static int find_sites(struct wb_dispenser *d, void *context)
{
    struct site_finding *f = context;
    const struct wb_site_search *s = f->search;
    bool back = s->order == WB_SITE_BY_NAME && s->descending;
    struct wb_slice pattern = wb_buf_slice(&f->pattern);
    int64_t offset = s->offset < INT64_MAX ? (int64_t)s->offset : INT64_MAX;

    wb_dispenser_row_list_release(&f->list);
    int err = WB_SQL_RUN(d->sql, S_FIND_COUNT, wb_sql_str(pattern), wb_sql_int(s->state));
    if (err <= 0)
        return err;
    f->total = (uint64_t)wb_sql_number(d->sql, S_FIND_COUNT, 0);
    wb_sql_end(d->sql, S_FIND_COUNT);
    if (back)
        err = WB_SQL_RUN(d->sql, S_FIND_BACK, wb_sql_str(pattern), wb_sql_int(s->state), wb_sql_int(s->max),
                         wb_sql_int(offset));
    else
        err = WB_SQL_RUN(d->sql, S_FIND, wb_sql_str(pattern), wb_sql_int(s->state), wb_sql_int(s->order),
                         wb_sql_int(s->descending ? -1 : 1), wb_sql_int(s->max), wb_sql_int(offset));
    return wb_dispenser_row_list_read(d, back ? S_FIND_BACK : S_FIND, err, &f->list);
}

int wb_dispenser_search(struct wb_dispenser *d, const struct wb_site_search *search, wb_site_each each, void *context,
                        uint64_t *total_out)
{
    struct site_finding f = {.search = search, .list = WB_DISPENSER_ROW_LIST_INIT};
    int err = make_pattern(search->text, &f.pattern);

    if (err == 0)
        err = wb_dispenser_transact(d, false, find_sites, &f);
    *total_out = err == 0 ? f.total : 0;
    if (err == 0)
        err = wb_dispenser_row_list_each(&f.list, each, context);
    wb_dispenser_row_list_release(&f.list);
    wb_buf_release(&f.pattern);
    return err;
}

/* ---- one row ------------------------------------------------------------------------------------------ */

struct row_lookup {
    struct wb_slice name;
    struct wb_slice end;  /* if not empty: any name from `name` on and before `end` will do */
    struct wb_dispenser_row record;
};

static int look_up(struct wb_dispenser *d, void *context)
{
    struct row_lookup *l = context;
    int err;

    wb_dispenser_row_release(&l->record);
    err = l->end.len ? wb_dispenser_row_by_host(d, l->name, l->end, &l->record) : wb_dispenser_row_by_name(d, l->name,
                                                                                                           &l->record);
    if (err == 0)
        return wb_fail(WB_E_NOTFOUND, "%.*s is not in the dispenser", WB_SLICE_ARG(l->name));
    return err < 0 ? err : 0;
}

static int get_row(struct wb_dispenser *d, struct wb_slice name, struct wb_slice end, struct wb_buf *mem,
                   struct wb_site_row *row_out)
{
    struct row_lookup l = {.name = name, .end = end, .record = WB_DISPENSER_ROW_INIT};
    int err;

    *row_out = (struct wb_site_row){0};
    wb_buf_clear(mem);
    err = wb_dispenser_transact(d, false, look_up, &l);
    if (err == 0)
        err = wb_dispenser_row_copy(&l.record, mem, row_out);
    wb_dispenser_row_release(&l.record);
    return err;
}

int wb_dispenser_get(struct wb_dispenser *d, struct wb_slice name, struct wb_buf *mem, struct wb_site_row *row_out)
{
    return get_row(d, name, WB_SLICE_EMPTY, mem, row_out);
}

int wb_dispenser_get_host(struct wb_dispenser *d, struct wb_slice host, struct wb_buf *mem, struct wb_site_row *row_out)
{
    struct wb_buf names = WB_BUF_INIT;
    int err = wb_buf_printf(&names, "%.*s:%.*s;", WB_SLICE_ARG(host), WB_SLICE_ARG(host));

    /* ';' follows ':' in ASCII. The database may order texts in another way, so the result is checked below. */
    if (err == 0)
        err = get_row(d, wb_slice(names.ptr, host.len + 1), wb_slice(names.ptr + host.len + 1, host.len + 1), mem,
                      row_out);
    if (err == 0 && !wb_slice_starts(row_out->name, wb_slice(names.ptr, host.len + 1)))
        err = wb_fail(WB_E_NOTFOUND, "%.*s is not in the dispenser", WB_SLICE_ARG(host));
    wb_buf_release(&names);
    return err;
}

/* ---- seeds ----------------------------------------------------------------------------------------------- */

/* Some seeds of a site, read in one transaction. */
struct seed_page {
    int64_t site, after;
    struct wb_seed seeds[SEEDS_AT_ONCE];
    size_t count;
    struct wb_buf text; /* their URLs, one after another */
};

static int list_seeds(struct wb_dispenser *d, void *context)
{
    struct seed_page *p = context;
    int err;

    p->count = 0;
    wb_buf_clear(&p->text);
    err = WB_SQL_RUN(d->sql, S_SEEDS, wb_sql_int(p->site), wb_sql_int(p->after), wb_sql_int(SEEDS_AT_ONCE));
    while (err > 0) {
        WB_CHECK(p->count < SEEDS_AT_ONCE);
        struct wb_slice url = wb_sql_text(d->sql, S_SEEDS, 1);
        p->seeds[p->count++] = (struct wb_seed){.id = wb_sql_number(d->sql, S_SEEDS, 0), .url = {NULL, url.len},
                                                .depth = wb_depth_of_code((uint64_t)wb_sql_number(d->sql, S_SEEDS, 2))};
        err = wb_buf_append_slice(&p->text, url);
        if (err == 0)
            err = wb_sql_next(d->sql, S_SEEDS);
    }
    return err;
}

static int tell_seeds(struct seed_page *p, wb_seed_each each, void *context)
{
    const char *url = p->text.ptr;
    int err = 0;

    for (size_t i = 0; i < p->count && err == 0; i++) {
        p->seeds[i].url.ptr = url;
        url += p->seeds[i].url.len;
        p->after = p->seeds[i].id;
        err = each(context, &p->seeds[i]);
    }
    return err;
}

int wb_dispenser_seeds(struct wb_dispenser *d, int64_t site, int64_t after, wb_seed_each each, void *context)
{
    struct seed_page *p = wb_alloc_zero(1, sizeof *p);
    int err;

    if (!p)
        return WB_E_NOMEM;
    p->site = site;
    p->after = after;
    /* One page per transaction. Ids only grow, so no seed is reported twice or left out. */
    do {
        err = wb_dispenser_transact(d, false, list_seeds, p);
        if (err == 0)
            err = tell_seeds(p, each, context);
    } while (err == 0 && p->count == SEEDS_AT_ONCE);
    wb_buf_release(&p->text);
    wb_free(p);
    return err;
}

/* ---- counts ------------------------------------------------------------------------------------------------ */

struct census {
    int64_t run;
    struct wb_dispenser_stat *stat;
    WB_VEC(int64_t) runs; /* those that have waiting sites */
};

static void add_count(struct wb_dispenser_stat *stat, int64_t state, uint64_t sites)
{
    uint64_t *const fields[] = {
        [WB_SITE_UNRESOLVED] = &stat->unresolved, [WB_SITE_READY] = &stat->ready, [WB_SITE_CLAIMED] = &stat->claimed,
        [WB_SITE_WAITING] = &stat->waiting,       [WB_SITE_DONE] = &stat->done,   [WB_SITE_ALIAS] = &stat->alias,
        [WB_SITE_REFUSED] = &stat->refused,
    };

    if (state >= WB_SITE_UNRESOLVED && state <= WB_SITE_REFUSED)
        *fields[state] += sites;
}

static int first_due(struct wb_dispenser *d, int64_t run, int64_t *next_ms)
{
    int err = WB_SQL_RUN(d->sql, S_FIRST_DUE, wb_sql_int(run));

    if (err <= 0)
        return err;
    int64_t ms = wb_sql_number(d->sql, S_FIRST_DUE, 0);
    wb_sql_end(d->sql, S_FIRST_DUE);
    /* 0 would mean that no site waits. */
    ms = ms > 0 ? ms : 1;
    if (*next_ms == 0 || ms < *next_ms)
        *next_ms = ms;
    return 0;
}

static int take_census(struct wb_dispenser *d, void *context)
{
    struct census *c = context;
    enum wb_dispenser_statement statement = c->run ? S_COUNTS : S_COUNTS_ALL;
    int err;

    *c->stat = (struct wb_dispenser_stat){0};
    wb_vec_clear(&c->runs);
    err = c->run ? WB_SQL_RUN(d->sql, S_COUNTS, wb_sql_int(c->run)) : wb_sql_run(d->sql, S_COUNTS_ALL, NULL, 0);
    while (err > 0) {
        int64_t run = wb_sql_number(d->sql, statement, 0), state = wb_sql_number(d->sql, statement, 1);
        int64_t sites = wb_sql_number(d->sql, statement, 2);
        if (sites > 0)
            add_count(c->stat, state, (uint64_t)sites);
        err = sites > 0 && state == WB_SITE_WAITING ? wb_vec_push(&c->runs, run) : 0;
        if (err == 0)
            err = wb_sql_next(d->sql, statement);
    }
    for (size_t i = 0; i < c->runs.count && err == 0; i++)
        err = first_due(d, c->runs.items[i], &c->stat->next_ms);
    return err;
}

int wb_dispenser_stat(struct wb_dispenser *d, int64_t run, struct wb_dispenser_stat *stat_out)
{
    struct census c = {.run = run, .stat = stat_out};
    int err = wb_dispenser_transact(d, false, take_census, &c);

    wb_vec_release(&c.runs);
    if (err < 0)
        *stat_out = (struct wb_dispenser_stat){0};
    return err;
}
