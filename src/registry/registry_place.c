/*
 * registry_place.c - who should hold what. It computes with a view, and asks and changes nothing.
 *
 * A shard weighs its bytes, plus one, so that empty shards are spread by number. The load of a machine is what its
 * shards weigh, divided by its weight. Every machine computes the same from the same view: ties are broken by names and
 * numbers.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "registry/registry_inside.h"

#include <math.h>
#include <stdlib.h>

/* Loads that differ by less than this share are even enough: shards that grow a little must not wander for ever. */
static const double even_enough = 0.05;

struct place_machine {
    const struct wb_registry_machine *row;
    double size; /* of its shards, those on their way to it counted */
    bool able;   /* it may get shards */
    bool giving; /* one of its shards is on its way to another machine */
    bool getting;
};

struct placement {
    const struct wb_registry_view *view;
    struct wb_registry_steps *steps;
    WB_VEC(struct place_machine) machines; /* as in the view */
};

static double size_of(const struct wb_registry_shard *shard)
{
    return (double)shard->bytes + 1;
}

static struct place_machine *find(struct placement *p, const char *name)
{
    const struct wb_registry_machine *row = wb_registry_view_machine(p->view, name);

    return row ? &p->machines.items[row - p->view->machines.items] : NULL;
}

static double load_with(const struct place_machine *m, double size)
{
    return (m->size + size) / m->row->weight;
}

static bool has_lease(const struct place_machine *m)
{
    return m && m->row->lease_ms > 0;
}

/* The machine that would be the least loaded with another shard of this size; NULL: nobody may get it. */
static struct place_machine *emptiest(struct placement *p, double size, bool one_at_a_time)
{
    struct place_machine *best = NULL;

    for (size_t i = 0; i < p->machines.count; i++) {
        struct place_machine *m = &p->machines.items[i];
        if (m->able && !(one_at_a_time && m->getting) && (!best || load_with(m, size) < load_with(best, size)))
            best = m;
    }
    return best;
}

static int add_step(struct placement *p, const struct wb_registry_shard *shard, struct place_machine *from,
                    struct place_machine *to)
{
    if (from) {
        from->size -= size_of(shard);
        from->giving = true;
    }
    to->size += size_of(shard);
    to->getting = true;
    return wb_vec_push(p->steps, (struct wb_registry_step){
                                     .shard = shard->shard, .from = from ? from->row->name : "", .to = to->row->name});
}

/* ---- free shards ---------------------------------------------------------------------------------------------- */

/* The largest first, then by number. */
static int compare_sizes(const void *a, const void *b)
{
    const struct wb_registry_shard *x = *(const struct wb_registry_shard *const *)a;
    const struct wb_registry_shard *y = *(const struct wb_registry_shard *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->shard < y->shard ? -1 : x->shard > y->shard;
}

static int place_free(struct placement *p)
{
    WB_VEC(const struct wb_registry_shard *) list = WB_VEC_INIT;
    int err = 0;

    for (size_t i = 0; i < p->view->shards.count && err == 0; i++)
        if (!has_lease(find(p, p->view->shards.items[i].holder)))
            err = wb_vec_push(&list, &p->view->shards.items[i]);
    if (list.count)
        qsort(list.items, list.count, sizeof *list.items, compare_sizes);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct place_machine *to = find(p, list.items[i]->wanted);
        if (!to || !to->able)
            to = emptiest(p, size_of(list.items[i]), false);
        if (to)
            err = add_step(p, list.items[i], NULL, to);
    }
    wb_vec_release(&list);
    return err;
}

/* ---- moves ------------------------------------------------------------------------------------------------------ */

static int move_wanted(struct placement *p)
{
    int err = 0;

    for (size_t i = 0; i < p->view->shards.count && err == 0; i++) {
        const struct wb_registry_shard *s = &p->view->shards.items[i];
        struct place_machine *from = find(p, s->holder), *to = find(p, s->wanted);
        if (has_lease(from) && to && to->able && from != to && !from->giving && !to->getting)
            err = add_step(p, s, from, to);
    }
    return err;
}

static int move_drained(struct placement *p)
{
    int err = 0;

    for (size_t i = 0; i < p->view->shards.count && err == 0; i++) {
        const struct wb_registry_shard *s = &p->view->shards.items[i];
        struct place_machine *from = find(p, s->holder);
        if (!has_lease(from) || !(from->row->draining || from->row->search_only) || from->giving)
            continue;
        struct place_machine *to = emptiest(p, size_of(s), true);
        if (to)
            err = add_step(p, s, from, to);
    }
    return err;
}

/*
 * Of the shards of the fullest machine, the one with which the fuller of the two is the least full afterwards. The
 * machine that gets it is the emptiest one.
 */
static int move_to_even(struct placement *p)
{
    struct place_machine *full = NULL, *empty = emptiest(p, 0, true);
    const struct wb_registry_shard *best = NULL;
    double best_load = 0;

    for (size_t i = 0; i < p->machines.count; i++) {
        struct place_machine *m = &p->machines.items[i];
        if (m->able && !m->giving && (!full || load_with(m, 0) > load_with(full, 0)))
            full = m;
    }
    if (!full || !empty || full == empty)
        return 0;
    for (size_t i = 0; i < p->view->shards.count; i++) {
        const struct wb_registry_shard *s = &p->view->shards.items[i];
        if (find(p, s->holder) != full || s->wanted[0])
            continue;
        double load = fmax(load_with(full, -size_of(s)), load_with(empty, size_of(s)));
        if (!best || load < best_load) {
            best = s;
            best_load = load;
        }
    }
    if (!best || best_load >= load_with(full, 0) || load_with(empty, 0) >= load_with(full, 0) * (1 - even_enough))
        return 0;
    return add_step(p, best, full, empty);
}

int wb_registry_place(const struct wb_registry_view *view, struct wb_registry_steps *steps_out)
{
    struct placement p = {.view = view, .steps = steps_out};
    int err = 0;

    wb_vec_clear(steps_out);
    for (size_t i = 0; i < view->machines.count && err == 0; i++) {
        const struct wb_registry_machine *row = &view->machines.items[i];
        err =
            wb_vec_push(&p.machines,
                        (struct place_machine){.row = row, .able = row->steady && !row->draining && !row->search_only});
    }
    for (size_t i = 0; i < view->shards.count && err == 0; i++) {
        struct place_machine *m = find(&p, view->shards.items[i].holder);
        if (m)
            m->size += size_of(&view->shards.items[i]);
    }
    if (err == 0)
        err = place_free(&p);
    if (err == 0 && steps_out->count == 0)
        err = move_wanted(&p);
    if (err == 0 && steps_out->count == 0)
        err = move_drained(&p);
    if (err == 0 && steps_out->count == 0)
        err = move_to_even(&p);
    wb_vec_release(&p.machines);
    return err;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/*
 * Each machine draws a number for the shard, the same every time; the largest ones have it. When a machine comes or
 * goes, only the copies that it has, or gets, change. By -weight/log(chance) each has its share by weight.
 */
static double draw(const struct wb_registry_machine *m, unsigned shard)
{
    uint64_t hash = wb_hash64_seeded(m->name, strlen(m->name), shard);

    return -(double)m->weight / log(((double)(hash >> 11) + 0.5) / 9007199254740992.0);
}

unsigned wb_registry_place_copies(const struct wb_registry_view *view, unsigned shard,
                                  const char *machines_out[WB_REGISTRY_COPIES_MAX])
{
    double draws[WB_REGISTRY_COPIES_MAX] = {0};
    unsigned wanted = view->cluster.copies - 1, count = 0;

    WB_CHECK(shard < view->shards.count && wanted < WB_REGISTRY_COPIES_MAX);
    for (size_t i = 0; i < view->machines.count && wanted; i++) {
        const struct wb_registry_machine *m = &view->machines.items[i];
        if (m->lease_ms == 0 || m->draining || strcmp(m->name, view->shards.items[shard].holder) == 0)
            continue;
        double drawn = draw(m, shard);
        unsigned at = count;
        while (at > 0 && draws[at - 1] < drawn)
            at--;
        if (at == wanted)
            continue;
        count += count < wanted;
        for (unsigned k = count - 1; k > at; k--) {
            draws[k] = draws[k - 1];
            machines_out[k] = machines_out[k - 1];
        }
        draws[at] = drawn;
        machines_out[at] = m->name;
    }
    return count;
}
