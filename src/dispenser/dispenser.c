/*
 * dispenser.c - the seed dispenser: opening it, and the calls that only read. See dispenser_rows.h for the other files.
 *
 * It keeps rows and leases. It never resolves, fetches or waits for a site, and it reads no clock but the database's, for leases.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

enum { SEEDS_AT_ONCE = 512 };

static const char *const statements[] = {
#define STATEMENT_TEXT(name, text) [name] = text,
    WB_DISPENSER_STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
};

static int open_sqlite(const char *dir, struct wb_sql **sql_out)
{
    char *path = wb_path_join(dir, "dispenser.db");
    int err = path ? wb_sql_open_sqlite(path, statements, WB_DISPENSER_STATEMENT_COUNT, sql_out) : WB_E_NOMEM;

    wb_free(path);
    return err;
}

static int check_epoch(struct wb_dispenser *d);

static int open_url(const char *dir, const char *url, struct wb_dispenser **dispenser_out)
{
    struct wb_dispenser *d = wb_alloc_zero(1, sizeof *d);
    int err;

    if (!d)
        return WB_E_NOMEM;
    err = strcmp(url, WB_DISPENSER_OWN) == 0 ? open_sqlite(dir, &d->sql) : wb_sql_open_postgres(url, statements, WB_DISPENSER_STATEMENT_COUNT, &d->sql);
    if (err == 0)
        err = wb_dispenser_schema(d);
    if (err == 0)
        err = check_epoch(d);
    if (err == 0) {
        *dispenser_out = d;
    } else {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_dispenser_close(d);
        wb_error_restore(&why);
    }
    return err;
}

int wb_dispenser_open(const char *dir, const char *url, struct wb_dispenser **dispenser_out)
{
    struct wb_buf remembered = WB_BUF_INIT;
    int err = 0;

    *dispenser_out = NULL;
    if (!url)
        err = wb_dispenser_remembered(dir, &remembered);
    else if (strcmp(url, WB_DISPENSER_OWN) != 0 && !wb_dispenser_is_url(wb_slice_str(url)))
        err = wb_fail(WB_E_INVALID, "a dispenser's URL starts with postgres:// or postgresql://");
    if (err == 0)
        err = open_url(dir, url ? url : remembered.len ? remembered.ptr : WB_DISPENSER_OWN, dispenser_out);
    wb_buf_release(&remembered);
    return err;
}

void wb_dispenser_close(struct wb_dispenser *d)
{
    if (!d)
        return;
    wb_sql_close(d->sql);
    wb_free(d);
}

int wb_dispenser_verify(const char *dir, wb_dispenser_found found, void *context)
{
    char *path = wb_path_join(dir, "dispenser.db");
    int err = path ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(path) == WB_PATH_FILE)
        err = wb_sql_check_sqlite(path, found, context);
    wb_free(path);
    return err;
}

/* ---- the clock of leases ------------------------------------------------------------------------- */

int64_t (*wb_dispenser_test_clock)(void);

int wb_dispenser_lease_now(struct wb_dispenser *d, int64_t *now_ms_out)
{
    *now_ms_out = 0;
    if (!wb_dispenser_test_clock)
        return wb_sql_clock(d->sql, now_ms_out);
    *now_ms_out = wb_dispenser_test_clock();
    return 0;
}

static int read_clock(struct wb_dispenser *d, void *context)
{
    return wb_dispenser_lease_now(d, context);
}

int wb_dispenser_clock(struct wb_dispenser *d, int64_t *now_ms_out)
{
    return wb_dispenser_transact(d, false, read_clock, now_ms_out);
}

struct epoch {
    int64_t now;
    bool same; /* the clock is still the one that leases were given by */
};

static int same_epoch(struct wb_dispenser *d, void *context)
{
    struct epoch *epoch = context;
    int err = WB_SQL_RUN(d->sql, S_META, wb_sql_str(WB_SLICE_LIT("clock")));

    epoch->same = err == 1 && wb_sql_number(d->sql, S_META, 0) == epoch->now;
    wb_sql_end(d->sql, S_META);
    return err < 0 ? err : 0;
}

/* The machine was restarted, and with it its clock: every process that held a lease is gone. */
static int end_epoch(struct wb_dispenser *d, void *context)
{
    struct epoch *epoch = context;
    int err = same_epoch(d, epoch);

    if (err < 0 || epoch->same)
        return err;
    err = wb_sql_run(d->sql, S_LEASES_OVER, NULL, 0);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_META_SET, wb_sql_str(WB_SLICE_LIT("clock")), wb_sql_int(epoch->now));
}

static int check_epoch(struct wb_dispenser *d)
{
    struct epoch epoch;
    int err = wb_sql_clock_epoch(d->sql, &epoch.now);

    if (err < 0 || epoch.now == 0)
        return err;
    err = wb_dispenser_transact(d, false, same_epoch, &epoch);
    return err < 0 || epoch.same ? err : wb_dispenser_transact(d, true, end_epoch, &epoch);
}

/* ---- rows, many ------------------------------------------------------------------------------------ */

/* A question that is answered by a list. */
struct question {
    enum wb_dispenser_statement statement;
    int64_t run, now_ms;
    struct wb_slice address, probe;
    unsigned max;
    struct wb_record_list list;
};

static int list_unresolved(struct wb_dispenser *d, void *context)
{
    struct question *q = context;
    int err;

    wb_record_list_release(&q->list);
    err = WB_SQL_RUN(d->sql, S_UNRESOLVED, wb_sql_int(q->run), wb_sql_int(q->max));
    err = wb_record_list_read(d, S_UNRESOLVED, err, &q->list);
    if (err < 0 || q->list.count >= q->max)
        return err;
    err = WB_SQL_RUN(d->sql, S_STALE, wb_sql_int(q->run), wb_sql_int(q->now_ms), wb_sql_int((int64_t)(q->max - q->list.count)));
    return wb_record_list_read(d, S_STALE, err, &q->list);
}

static int list_neighbours(struct wb_dispenser *d, void *context)
{
    struct question *q = context;
    int err;

    wb_record_list_release(&q->list);
    if (q->statement == S_TWINS)
        err = WB_SQL_RUN(d->sql, S_TWINS, wb_sql_str(q->address), wb_sql_str(q->probe), wb_sql_int(q->max));
    else
        err = WB_SQL_RUN(d->sql, S_NEIGHBOURS, wb_sql_str(q->address), wb_sql_int(q->max));
    return wb_record_list_read(d, q->statement, err, &q->list);
}

static int ask(struct wb_dispenser *d, wb_dispenser_work work, struct question *q, wb_site_each each, void *context)
{
    int err = wb_dispenser_transact(d, false, work, q);

    if (err == 0)
        err = wb_record_list_tell(&q->list, each, context);
    wb_record_list_release(&q->list);
    return err;
}

int wb_dispenser_unresolved(struct wb_dispenser *d, int64_t run, int64_t now_ms, unsigned max, wb_site_each each, void *context)
{
    struct question q = {.run = run, .now_ms = now_ms, .max = max};

    return max ? ask(d, list_unresolved, &q, each, context) : 0;
}

int wb_dispenser_neighbours(struct wb_dispenser *d, struct wb_slice address, wb_site_each each, void *context)
{
    struct question q = {.statement = S_NEIGHBOURS, .address = address, .max = WB_SITE_NEIGHBOURS_MAX};

    return ask(d, list_neighbours, &q, each, context);
}

int wb_dispenser_twins(struct wb_dispenser *d, struct wb_slice address, struct wb_slice probe, wb_site_each each, void *context)
{
    struct question q = {.statement = S_TWINS, .address = address, .probe = probe, .max = WB_SITE_NEIGHBOURS_MAX};

    return ask(d, list_neighbours, &q, each, context);
}

/* ---- one row ------------------------------------------------------------------------------------------ */

struct lookup {
    struct wb_slice name;
    struct wb_slice end;  /* of a range of names that begins with name; empty: just name */
    struct wb_record record;
};

static int look_up(struct wb_dispenser *d, void *context)
{
    struct lookup *l = context;
    int err;

    wb_record_release(&l->record);
    err = l->end.len ? wb_record_by_host(d, l->name, l->end, &l->record) : wb_record_by_name(d, l->name, &l->record);
    if (err == 0)
        return wb_fail(WB_E_NOTFOUND, "%.*s is not in the dispenser", WB_SLICE_ARG(l->name));
    return err < 0 ? err : 0;
}

static int get_row(struct wb_dispenser *d, struct wb_slice name, struct wb_slice end, struct wb_buf *mem, struct wb_site_row *row_out)
{
    struct lookup l = {.name = name, .end = end, .record = WB_RECORD_INIT};
    int err;

    *row_out = (struct wb_site_row){0};
    wb_buf_clear(mem);
    err = wb_dispenser_transact(d, false, look_up, &l);
    if (err == 0)
        err = wb_record_give(&l.record, mem, row_out);
    wb_record_release(&l.record);
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

    /* ';' is the letter behind ':', but a database may have an order of its own. */
    if (err == 0)
        err = get_row(d, wb_slice(names.ptr, host.len + 1), wb_slice(names.ptr + host.len + 1, host.len + 1), mem, row_out);
    if (err == 0 && !wb_slice_starts(row_out->name, wb_slice(names.ptr, host.len + 1)))
        err = wb_fail(WB_E_NOTFOUND, "%.*s is not in the dispenser", WB_SLICE_ARG(host));
    wb_buf_release(&names);
    return err;
}

/* ---- seeds ----------------------------------------------------------------------------------------------- */

struct seed_page {
    int64_t site, after;
    struct wb_seed seeds[SEEDS_AT_ONCE];
    size_t count;
    struct wb_buf text; /* URLs, one after the other */
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
                                                .depth = (uint16_t)wb_sql_number(d->sql, S_SEEDS, 2)};
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
    /* A page of them a transaction: ids only grow, so nothing is told twice or left out. */
    do {
        err = wb_dispenser_transact(d, false, list_seeds, p);
        if (err == 0)
            err = tell_seeds(p, each, context);
    } while (err == 0 && p->count == SEEDS_AT_ONCE);
    wb_buf_release(&p->text);
    wb_free(p);
    return err;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

struct census {
    int64_t run;
    struct wb_dispenser_stat *stat;
    int64_t *runs; /* that have waiting sites */
    size_t run_count, run_cap;
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

static int note_run(struct census *c, int64_t run)
{
    if (c->run_count == c->run_cap) {
        size_t cap = c->run_cap ? c->run_cap * 2 : 8;
        int64_t *runs = wb_realloc(c->runs, cap * sizeof *runs);
        if (!runs)
            return WB_E_NOMEM;
        c->runs = runs;
        c->run_cap = cap;
    }
    c->runs[c->run_count++] = run;
    return 0;
}

static int first_due(struct wb_dispenser *d, int64_t run, int64_t *next_ms)
{
    int err = WB_SQL_RUN(d->sql, S_FIRST_DUE, wb_sql_int(run));

    if (err <= 0)
        return err;
    int64_t ms = wb_sql_number(d->sql, S_FIRST_DUE, 0);
    wb_sql_end(d->sql, S_FIRST_DUE);
    /* 0 says that there is none; a site that waits for the year 1970 may as well wait for its first millisecond. */
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
    c->run_count = 0;
    err = c->run ? WB_SQL_RUN(d->sql, S_COUNTS, wb_sql_int(c->run)) : wb_sql_run(d->sql, S_COUNTS_ALL, NULL, 0);
    while (err > 0) {
        int64_t run = wb_sql_number(d->sql, statement, 0), state = wb_sql_number(d->sql, statement, 1);
        int64_t sites = wb_sql_number(d->sql, statement, 2);
        if (sites > 0)
            add_count(c->stat, state, (uint64_t)sites);
        err = sites > 0 && state == WB_SITE_WAITING ? note_run(c, run) : 0;
        if (err == 0)
            err = wb_sql_next(d->sql, statement);
    }
    for (size_t i = 0; i < c->run_count && err == 0; i++)
        err = first_due(d, c->runs[i], &c->stat->next_ms);
    return err;
}

int wb_dispenser_stat(struct wb_dispenser *d, int64_t run, struct wb_dispenser_stat *stat_out)
{
    struct census c = {.run = run, .stat = stat_out};
    int err = wb_dispenser_transact(d, false, take_census, &c);

    wb_free(c.runs);
    if (err < 0)
        *stat_out = (struct wb_dispenser_stat){0};
    return err;
}
