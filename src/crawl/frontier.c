/*
 * frontier.c - the heap, the addresses and their lines.
 */
#include "crawl/frontier.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

enum { PLACES_FIRST = 64 };

void wb_frontier_init(struct wb_frontier *frontier, unsigned per_address)
{
    *frontier = (struct wb_frontier){.per_address = per_address};
}

void wb_frontier_release(struct wb_frontier *frontier)
{
    for (size_t i = 0; i < frontier->place_cap; i++)
        for (struct wb_place *place = frontier->places[i], *next; place; place = next) {
            next = place->hash_next;
            wb_free(place);
        }
    wb_free(frontier->places);
    wb_free(frontier->heap);
    *frontier = (struct wb_frontier){0};
}

/* ---- the heap --------------------------------------------------------------------------------- */

static void set_slot(struct wb_frontier *f, size_t at, struct wb_site *site)
{
    f->heap[at] = site;
    site->heap_at = at;
}

static void sift_up(struct wb_frontier *f, size_t at, struct wb_site *site)
{
    while (at > 1 && f->heap[at / 2]->next_ms > site->next_ms) {
        set_slot(f, at, f->heap[at / 2]);
        at /= 2;
    }
    set_slot(f, at, site);
}

static void sift_down(struct wb_frontier *f, size_t at, struct wb_site *site)
{
    for (size_t child; (child = at * 2) <= f->heap_count; at = child) {
        if (child < f->heap_count && f->heap[child + 1]->next_ms < f->heap[child]->next_ms)
            child++;
        if (f->heap[child]->next_ms >= site->next_ms)
            break;
        set_slot(f, at, f->heap[child]);
    }
    set_slot(f, at, site);
}

int wb_frontier_put(struct wb_frontier *frontier, struct wb_site *site)
{
    WB_CHECK(site->heap_at == 0);
    if (frontier->heap_count + 1 >= frontier->heap_cap) {
        size_t cap = frontier->heap_cap ? frontier->heap_cap * 2 : 64;
        struct wb_site **heap = wb_realloc(frontier->heap, cap * sizeof *heap);
        if (!heap)
            return WB_E_NOMEM;
        frontier->heap = heap;
        frontier->heap_cap = cap;
    }
    sift_up(frontier, ++frontier->heap_count, site);
    return 0;
}

static void heap_remove(struct wb_frontier *f, struct wb_site *site)
{
    size_t at = site->heap_at;
    struct wb_site *last = f->heap[f->heap_count--];

    site->heap_at = 0;
    if (last == site)
        return;
    if (at > 1 && f->heap[at / 2]->next_ms > last->next_ms)
        sift_up(f, at, last);
    else
        sift_down(f, at, last);
}

/* ---- addresses -------------------------------------------------------------------------------- */

static size_t place_slot(const struct wb_frontier *f, const struct wb_address *address)
{
    return (size_t)wb_hash64(address, sizeof *address) & (f->place_cap - 1);
}

static int grow_places(struct wb_frontier *f)
{
    struct wb_frontier old = *f;
    size_t cap = old.place_cap ? old.place_cap * 2 : PLACES_FIRST;
    struct wb_place **places = wb_alloc_zero(cap, sizeof *places);

    if (!places)
        return WB_E_NOMEM;
    f->places = places;
    f->place_cap = cap;
    for (size_t i = 0; i < old.place_cap; i++)
        for (struct wb_place *place = old.places[i], *next; place; place = next) {
            next = place->hash_next;
            size_t slot = place_slot(f, &place->address);
            place->hash_next = places[slot];
            places[slot] = place;
        }
    wb_free(old.places);
    return 0;
}

static int find_place(struct wb_frontier *f, const struct wb_address *address, struct wb_place **place_out)
{
    struct wb_place *place = NULL;

    *place_out = NULL;
    if (f->place_count >= f->place_cap && grow_places(f) < 0)
        return WB_E_NOMEM;
    size_t slot = place_slot(f, address);
    for (place = f->places[slot]; place; place = place->hash_next)
        if (wb_address_equal(&place->address, address)) {
            *place_out = place;
            return 0;
        }
    place = wb_alloc_zero(1, sizeof *place);
    if (!place)
        return WB_E_NOMEM;
    place->address = *address;
    place->hash_next = f->places[slot];
    f->places[slot] = place;
    f->place_count++;
    *place_out = place;
    return 0;
}

static void drop_place(struct wb_frontier *f, struct wb_place *place)
{
    struct wb_place **link = &f->places[place_slot(f, &place->address)];

    if (place->sites || place->in_flight)
        return;
    while (*link != place)
        link = &(*link)->hash_next;
    *link = place->hash_next;
    f->place_count--;
    wb_free(place);
}

static void leave_line(struct wb_frontier *f, struct wb_place *place, struct wb_site *site)
{
    struct wb_site *before = NULL;

    for (struct wb_site *s = place->first_waiting; s; before = s, s = s->next_waiting) {
        if (s != site)
            continue;
        if (before)
            before->next_waiting = s->next_waiting;
        else
            place->first_waiting = s->next_waiting;
        if (place->last_waiting == s)
            place->last_waiting = before;
        s->next_waiting = NULL;
        f->lined_up--;
        return;
    }
}

static void join_line(struct wb_frontier *f, struct wb_place *place, struct wb_site *site)
{
    site->next_waiting = NULL;
    if (place->last_waiting)
        place->last_waiting->next_waiting = site;
    else
        place->first_waiting = site;
    place->last_waiting = site;
    f->lined_up++;
}

/* The first of the line may go, where there is room. */
static void call_next(struct wb_frontier *f, struct wb_place *place)
{
    struct wb_site *site = place->first_waiting;

    if (!site || place->in_flight >= f->per_address)
        return;
    leave_line(f, place, site);
    if (wb_frontier_put(f, site) < 0)
        join_line(f, place, site); /* no memory: with the next end */
}

int wb_frontier_move(struct wb_frontier *frontier, struct wb_site *site, const struct wb_address *address)
{
    struct wb_place *old = site->place;

    WB_CHECK(site->heap_at == 0 && site->in_flight == 0);
    if (old && wb_address_equal(&old->address, address))
        return 0;
    int err = find_place(frontier, address, &site->place);
    if (err < 0) {
        site->place = old;
        return err;
    }
    site->place->sites++;
    site->address = *address;
    if (old) {
        old->sites--;
        drop_place(frontier, old);
    }
    return 0;
}

void wb_frontier_remove(struct wb_frontier *frontier, struct wb_site *site)
{
    struct wb_place *place = site->place;

    if (site->heap_at)
        heap_remove(frontier, site);
    if (!place)
        return;
    leave_line(frontier, place, site);
    site->place = NULL;
    place->sites--;
    drop_place(frontier, place);
}

struct wb_site *wb_frontier_pop(struct wb_frontier *frontier, int64_t now_ms)
{
    while (frontier->heap_count && frontier->heap[1]->next_ms <= now_ms) {
        struct wb_site *site = frontier->heap[1];
        heap_remove(frontier, site);
        if (!site->place || site->place->in_flight < frontier->per_address)
            return site;
        join_line(frontier, site->place, site);
    }
    return NULL;
}

int64_t wb_frontier_next_ms(const struct wb_frontier *frontier)
{
    return frontier->heap_count ? frontier->heap[1]->next_ms : INT64_MAX;
}

void wb_frontier_begin(struct wb_frontier *frontier, struct wb_site *site)
{
    (void)frontier;
    site->in_flight++;
    if (site->place)
        site->place->in_flight++;
}

void wb_frontier_end(struct wb_frontier *frontier, struct wb_site *site)
{
    WB_CHECK(site->in_flight > 0);
    site->in_flight--;
    if (site->place) {
        WB_CHECK(site->place->in_flight > 0);
        site->place->in_flight--;
        call_next(frontier, site->place);
    }
}
