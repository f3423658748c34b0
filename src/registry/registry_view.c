/*
 * registry_view.c - rows read: everything at one moment, and what somebody should see to.
 */
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "registry/registry_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int wb_registry_column(const struct wb_registry *r, enum wb_registry_statement statement, unsigned column,
                       char *text_out, size_t size)
{
    struct wb_slice text = wb_sql_text(r->sql, statement, column);

    text_out[0] = '\0';
    if (text.len >= size)
        return wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: a text has %zu bytes", wb_sql_where(r->sql),
                       text.len);
    if (text.len)
        memcpy(text_out, text.ptr, text.len);
    text_out[text.len] = '\0';
    return 0;
}

int wb_registry_shard_row(const struct wb_registry *r, enum wb_registry_statement statement,
                          struct wb_registry_shard *shard_out)
{
    struct wb_registry_shard *s = shard_out;
    int64_t shard = wb_sql_number(r->sql, statement, 0), unsafe_ms = wb_sql_number(r->sql, statement, 8);
    int err = wb_registry_column(r, statement, 1, s->holder, sizeof s->holder);

    if (err == 0)
        err = wb_registry_column(r, statement, 2, s->wanted, sizeof s->wanted);
    if (err == 0)
        err = wb_registry_column(r, statement, 3, s->head, sizeof s->head);
    s->term = wb_sql_number(r->sql, statement, 4);
    int64_t pages = wb_sql_number(r->sql, statement, 5), bytes = wb_sql_number(r->sql, statement, 6);
    int64_t generation = wb_sql_number(r->sql, statement, 7), now_ms = wb_sql_number(r->sql, statement, 9);
    if (err == 0 &&
        (shard < 0 || shard >= r->cluster.shards || s->term < 0 || pages < 0 || bytes < 0 || generation < 0))
        err = wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: the row of shard %lld", wb_sql_where(r->sql),
                      (long long)shard);
    if (err < 0)
        return err;
    s->shard = (unsigned)shard;
    s->pages = (uint64_t)pages;
    s->bytes = (uint64_t)bytes;
    s->generation = (uint64_t)generation;
    s->unsafe_ms = unsafe_ms > 0 && now_ms > unsafe_ms ? now_ms - unsafe_ms : unsafe_ms > 0;
    return 0;
}

/* ---- everything ----------------------------------------------------------------------------------------------------
 */

static int machine_row(const struct wb_registry *r, struct wb_registry_machine *machine_out)
{
    struct wb_registry_machine m = {.shards = 0};
    int err = wb_registry_column(r, R_MACHINES, 0, m.name, sizeof m.name);

    if (err == 0)
        err = wb_registry_column(r, R_MACHINES, 1, m.address, sizeof m.address);
    if (err == 0)
        err = wb_registry_column(r, R_MACHINES, 2, m.directory, sizeof m.directory);
    int64_t weight = wb_sql_number(r->sql, R_MACHINES, 3);
    if (err == 0)
        err = wb_registry_column(r, R_MACHINES, 4, m.class_name, sizeof m.class_name);
    if (err == 0 && (weight < 1 || weight > 1000 || !m.name[0]))
        err = wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: the row of the machine %s", wb_sql_where(r->sql),
                      m.name);
    if (err < 0)
        return err;
    m.weight = (unsigned)weight;
    m.search_only = wb_sql_number(r->sql, R_MACHINES, 5) != 0;
    m.draining = wb_sql_number(r->sql, R_MACHINES, 6) != 0;
    int64_t until_ms = wb_sql_number(r->sql, R_MACHINES, 7), since_ms = wb_sql_number(r->sql, R_MACHINES, 8);
    int64_t now_ms = wb_sql_number(r->sql, R_MACHINES, 10);
    m.lease_ms = until_ms > now_ms ? until_ms - now_ms : 0;
    m.steady = m.lease_ms > 0 && since_ms <= now_ms - r->cluster.lease_ms;
    m.bars = (uint64_t)wb_sql_number(r->sql, R_MACHINES, 9);
    *machine_out = m;
    return 0;
}

static int read_machines(struct wb_registry *r, struct wb_registry_view *view)
{
    int err = wb_sql_run(r->sql, R_MACHINES, NULL, 0);

    while (err > 0) {
        struct wb_registry_machine machine;
        err = machine_row(r, &machine);
        if (err == 0)
            err = wb_vec_push(&view->machines, machine);
        if (err == 0)
            err = wb_sql_next(r->sql, R_MACHINES);
    }
    return err;
}

static int read_shards(struct wb_registry *r, struct wb_registry_view *view)
{
    int err = wb_sql_run(r->sql, R_SHARDS, NULL, 0);

    while (err > 0) {
        struct wb_registry_shard shard;
        err = wb_registry_shard_row(r, R_SHARDS, &shard);
        if (err == 0 && shard.shard != view->shards.count)
            err = wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: there is no row of shard %zu",
                          wb_sql_where(r->sql), view->shards.count);
        if (err == 0)
            err = wb_vec_push(&view->shards, shard);
        if (err == 0)
            err = wb_sql_next(r->sql, R_SHARDS);
    }
    return err;
}

static int read_copies(struct wb_registry *r, struct wb_registry_view *view)
{
    int err = wb_sql_run(r->sql, R_COPIES, NULL, 0);

    while (err > 0) {
        struct wb_registry_copy_row copy = {.shard = (unsigned)wb_sql_number(r->sql, R_COPIES, 0)};
        err = wb_registry_column(r, R_COPIES, 1, copy.machine, sizeof copy.machine);
        if (err == 0)
            err = wb_registry_column(r, R_COPIES, 2, copy.head, sizeof copy.head);
        if (err == 0)
            err = wb_vec_push(&view->copies, copy);
        if (err == 0)
            err = wb_sql_next(r->sql, R_COPIES);
    }
    return err;
}

static int read_all(struct wb_registry *r, void *context)
{
    struct wb_registry_view *view = context;
    int64_t clock;
    int err = wb_registry_read_cluster(r, &view->cluster, &clock, &view->now_ms);

    wb_vec_clear(&view->machines);
    wb_vec_clear(&view->shards);
    wb_vec_clear(&view->copies);
    if (err == 0)
        err = wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: the row of the cluster is missing",
                      wb_sql_where(r->sql));
    if (err > 0)
        err = read_machines(r, view);
    if (err == 0)
        err = read_shards(r, view);
    if (err == 0 && view->shards.count != view->cluster.shards)
        err = wb_fail(WB_E_CORRUPT, "the registry in %s is damaged: it has %zu of %u shards", wb_sql_where(r->sql),
                      view->shards.count, view->cluster.shards);
    if (err == 0)
        err = read_copies(r, view);
    if (err == 0)
        err = wb_sql_lossy(r->sql);
    view->lossy = err > 0;
    return err;
}

/* The order of texts is not the same in all databases. */
static int compare_machines(const void *a, const void *b)
{
    return strcmp(((const struct wb_registry_machine *)a)->name, ((const struct wb_registry_machine *)b)->name);
}

static int compare_copies(const void *a, const void *b)
{
    const struct wb_registry_copy_row *x = a, *y = b;

    return x->shard != y->shard ? (x->shard < y->shard ? -1 : 1) : strcmp(x->machine, y->machine);
}

static void sum_up(struct wb_registry_view *view)
{
    for (size_t i = 0; i < view->shards.count; i++) {
        const struct wb_registry_shard *s = &view->shards.items[i];
        struct wb_registry_machine *m =
            (struct wb_registry_machine *)(uintptr_t)wb_registry_view_machine(view, s->holder);
        if (!m)
            continue;
        m->shards++;
        m->pages += s->pages;
        m->bytes += s->bytes;
    }
}

int wb_registry_look(struct wb_registry *r, struct wb_registry_view *view_out)
{
    *view_out = WB_REGISTRY_VIEW_INIT;
    int err = wb_registry_transact(r, WB_SQL_READ, read_all, view_out);
    if (err < 0) {
        wb_registry_view_release(view_out);
        return err;
    }
    if (view_out->machines.count)
        qsort(view_out->machines.items, view_out->machines.count, sizeof *view_out->machines.items, compare_machines);
    if (view_out->copies.count)
        qsort(view_out->copies.items, view_out->copies.count, sizeof *view_out->copies.items, compare_copies);
    sum_up(view_out);
    return 0;
}

void wb_registry_view_release(struct wb_registry_view *view)
{
    wb_vec_release(&view->machines);
    wb_vec_release(&view->shards);
    wb_vec_release(&view->copies);
}

const struct wb_registry_machine *wb_registry_view_machine(const struct wb_registry_view *view, const char *name)
{
    size_t from = 0, to = view->machines.count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(view->machines.items[middle].name, name);
        if (order == 0)
            return &view->machines.items[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

enum wb_registry_state wb_registry_state(const struct wb_registry_machine *machine)
{
    if (machine->draining)
        return WB_REGISTRY_DRAINING;
    return machine->lease_ms > 0 ? WB_REGISTRY_UP : WB_REGISTRY_DOWN;
}

const char *wb_registry_state_word(enum wb_registry_state state)
{
    static const char *const words[] = {
        [WB_REGISTRY_UP] = "up", [WB_REGISTRY_DOWN] = "down", [WB_REGISTRY_DRAINING] = "draining"};

    return words[state];
}

/* ---- problems
 * ----------------------------------------------------------------------------------------------------------- */

struct telling_problems {
    int (*each)(void *context, const char *sentence);
    void *context;
};

static int tell(const struct telling_problems *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int tell(const struct telling_problems *t, const char *format, ...)
{
    char sentence[512];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return t->each(t->context, sentence);
}

static int tell_machines(const struct wb_registry_view *view, const struct telling_problems *t)
{
    int err = 0;

    for (size_t i = 0; i < view->machines.count && err == 0; i++) {
        const struct wb_registry_machine *m = &view->machines.items[i];
        if (m->lease_ms == 0 && m->shards)
            err = tell(t, "The machine %s is down and still has %u shard%s; nobody has taken %s yet.", m->name,
                       m->shards, m->shards == 1 ? "" : "s", m->shards == 1 ? "it" : "them");
        else if (m->lease_ms == 0 && !m->draining)
            err = tell(t, "The machine %s is down.", m->name);
    }
    return err;
}

static int tell_copies(const struct wb_registry_view *view, const struct telling_problems *t)
{
    size_t at = 0, fewer = 0;

    for (size_t i = 0; i < view->shards.count; i++) {
        unsigned copies = 1;
        for (; at < view->copies.count && view->copies.items[at].shard <= i; at++) {
            const struct wb_registry_machine *m = wb_registry_view_machine(view, view->copies.items[at].machine);
            copies += view->copies.items[at].shard == i && m && m->lease_ms > 0;
        }
        fewer += copies < view->cluster.copies;
    }
    return fewer ? tell(t, "%zu of %zu shards have fewer than %u copies.", fewer, view->shards.count,
                        view->cluster.copies)
                 : 0;
}

int wb_registry_problems(const struct wb_registry_view *view, int (*each)(void *context, const char *sentence),
                         void *context)
{
    struct telling_problems t = {each, context};
    unsigned able = 0, free_shards = 0;
    int err = 0;

    for (size_t i = 0; i < view->machines.count; i++)
        able += view->machines.items[i].lease_ms > 0 && !view->machines.items[i].search_only;
    for (size_t i = 0; i < view->shards.count; i++)
        free_shards += !wb_registry_view_machine(view, view->shards.items[i].holder);
    if (!able)
        err = tell(&t, "No machine is up that could hold shards.");
    if (err == 0 && able && free_shards)
        err = tell(&t, "%u of %zu shards have no holder.", free_shards, view->shards.count);
    if (err == 0)
        err = tell_machines(view, &t);
    if (err == 0 && able)
        err = tell_copies(view, &t);
    if (err == 0 && view->lossy)
        err = tell(&t, "The database may lose what it has confirmed: its setting synchronous_commit is off.");
    return err;
}

/* ---- free shards
 * ---------------------------------------------------------------------------------------------------------- */

struct looking {
    int64_t any, too_long;
};

static int look_for_free(struct wb_registry *r, void *context)
{
    struct looking *l = context;
    int err = WB_SQL_RUN(r->sql, R_ANY_FREE, wb_sql_int(r->cluster.lease_ms));

    *l = (struct looking){.any = err > 0 && wb_sql_number(r->sql, R_ANY_FREE, 0),
                          .too_long = err > 0 && wb_sql_number(r->sql, R_ANY_FREE, 1)};
    wb_sql_end(r->sql, R_ANY_FREE);
    return err;
}

static int clamp_leases(struct wb_registry *r, void *context)
{
    (void)context;
    return WB_SQL_RUN(r->sql, R_CLAMP, wb_sql_int(r->cluster.lease_ms));
}

int wb_registry_anything_free(struct wb_registry *r)
{
    struct looking l;
    int err = wb_registry_transact(r, WB_SQL_ONE, look_for_free, &l);

    if (err == 0 && l.too_long)
        err = wb_registry_transact(r, WB_SQL_ONE, clamp_leases, NULL);
    return err < 0 ? err : l.any != 0;
}
