/*
 * frontier.c - the heap, the addresses and their lines.
 */
#include "crawl/frontier.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
    PLACES_FIRST = 64,
    SLOW_SHARE = 4,            /* slow sites get one in so many slots while there are others */
    PATIENCE_FIRST_MS = 2000,  /* with a request while others wait, as long as no response shows what is usual */
    PATIENCE_MIN_MS = 1000,    /* and later, this or a multiple of what is usual */
    PATIENCE_MAX_MS = 20000,
    PATIENCE_TIMES = 8,
    STOP_SPACING_MS = 250,     /* between two stops as long as nothing shows what is usual: all sites may be as slow */
    TYPICAL_WEIGHT = 8,        /* of the past, against one response */
};

void wb_frontier_init(struct wb_frontier *frontier, unsigned per_address, unsigned in_flight_max)
{
    WB_CHECK(per_address > 0 && in_flight_max > 0);
    *frontier = (struct wb_frontier){.per_address = per_address, .in_flight_max = in_flight_max};
}

static void free_place(struct wb_place *place)
{
    wb_free(place->quick.sites);
    wb_free(place->slow.sites);
    wb_free(place);
}

void wb_frontier_release(struct wb_frontier *frontier)
{
    for (size_t i = 0; i < frontier->place_cap; i++)
        for (struct wb_place *place = frontier->places[i], *next; place; place = next) {
            next = place->hash_next;
            free_place(place);
        }
    wb_free(frontier->places);
    wb_free(frontier->heap.sites);
    *frontier = (struct wb_frontier){0};
}

/* ---- heaps ------------------------------------------------------------------------------------ */

static void set_slot(struct wb_site_heap *heap, size_t at, struct wb_site *site)
{
    heap->sites[at] = site;
    site->heap_at = at;
}

static void sift_up(struct wb_site_heap *heap, size_t at, struct wb_site *site)
{
    while (at > 1 && heap->sites[at / 2]->heap_key > site->heap_key) {
        set_slot(heap, at, heap->sites[at / 2]);
        at /= 2;
    }
    set_slot(heap, at, site);
}

static void sift_down(struct wb_site_heap *heap, size_t at, struct wb_site *site)
{
    for (size_t child; (child = at * 2) <= heap->count; at = child) {
        if (child < heap->count && heap->sites[child + 1]->heap_key < heap->sites[child]->heap_key)
            child++;
        if (heap->sites[child]->heap_key >= site->heap_key)
            break;
        set_slot(heap, at, heap->sites[child]);
    }
    set_slot(heap, at, site);
}

/* Room for count sites. */
static int heap_reserve(struct wb_site_heap *heap, size_t count)
{
    if (count < heap->cap)
        return 0;
    size_t cap = heap->cap * 2 > count ? heap->cap * 2 : count + 8;
    struct wb_site **sites = wb_realloc(heap->sites, cap * sizeof *sites);
    if (!sites)
        return WB_E_NOMEM;
    heap->sites = sites;
    heap->cap = cap;
    return 0;
}

static void heap_add(struct wb_site_heap *heap, struct wb_site *site, int64_t key)
{
    WB_CHECK(site->heap_at == 0 && heap->count + 1 < heap->cap);
    site->heap = heap;
    site->heap_key = key;
    sift_up(heap, ++heap->count, site);
}

static void heap_remove(struct wb_site *site)
{
    struct wb_site_heap *heap = site->heap;
    size_t at = site->heap_at;

    WB_CHECK(at > 0 && at <= heap->count && heap->sites[at] == site);
    struct wb_site *last = heap->sites[heap->count--];
    site->heap_at = 0;
    site->heap = NULL;
    if (last == site)
        return;
    if (at > 1 && heap->sites[at / 2]->heap_key > last->heap_key)
        sift_up(heap, at, last);
    else
        sift_down(heap, at, last);
}

int wb_frontier_put(struct wb_frontier *frontier, struct wb_site *site)
{
    /* With room for those in line too: some come back without having been called. */
    int err = heap_reserve(&frontier->heap, frontier->heap.count + frontier->lined_up + 1);

    if (err == 0)
        heap_add(&frontier->heap, site, site->next_ms);
    return err;
}

/* ---- slots -------------------------------------------------------------------------------------- */

/* Slots that slow sites may hold together. */
static unsigned slow_max(const struct wb_frontier *f, const struct wb_place *place)
{
    unsigned share = f->per_address / SLOW_SHARE;

    if (place->slow_sites == place->sites)
        return f->per_address;
    return share > 1 ? share : 1;
}

static bool slow_may(const struct wb_frontier *f, const struct wb_place *place)
{
    return place->slow.count && place->in_flight < f->per_address && place->slow_in_flight < slow_max(f, place);
}

static bool quick_may(const struct wb_frontier *f, const struct wb_place *place)
{
    return place->quick.count && place->in_flight < f->per_address;
}

static void leave_ready(struct wb_frontier *f, struct wb_place *place)
{
    if (!place->ready)
        return;
    *(place->ready_prev ? &place->ready_prev->ready_next : &f->ready_first) = place->ready_next;
    *(place->ready_next ? &place->ready_next->ready_prev : &f->ready_last) = place->ready_prev;
    place->ready = false;
}

static void join_ready(struct wb_frontier *f, struct wb_place *place)
{
    place->ready_prev = f->ready_last;
    place->ready_next = NULL;
    *(f->ready_last ? &f->ready_last->ready_next : &f->ready_first) = place;
    f->ready_last = place;
    place->ready = true;
}

/* After everything that changes its slots or lines. */
static void look_at(struct wb_frontier *f, struct wb_place *place)
{
    bool ready = quick_may(f, place) || slow_may(f, place);

    WB_CHECK(place->in_flight <= f->per_address && place->slow_in_flight <= place->in_flight && place->slow_sites <= place->sites);
    if (ready && !place->ready)
        join_ready(f, place);
    else if (!ready)
        leave_ready(f, place);
}

static void join_line(struct wb_frontier *f, struct wb_site *site)
{
    struct wb_place *place = site->place;

    /* Time that a site did not ask for is not saved up. */
    if (site->served_ms < place->floor_ms)
        site->served_ms = place->floor_ms;
    heap_add(site->slow ? &place->slow : &place->quick, site, site->served_ms);
    f->lined_up++;
    look_at(f, place);
}

static void leave_line(struct wb_frontier *f, struct wb_site *site)
{
    WB_CHECK(f->lined_up > 0);
    heap_remove(site);
    f->lined_up--;
}

/* The next of a place that is ready. One slot is for slow sites, so that they get on at all. */
static struct wb_site *call_next(struct wb_frontier *f, struct wb_place *place)
{
    bool slow = slow_may(f, place) && (!place->quick.count || (place->slow_in_flight == 0 && f->per_address >= SLOW_SHARE));
    struct wb_site *site = slow ? place->slow.sites[1] : place->quick.sites[1];

    leave_line(f, site);
    if (!slow && site->served_ms > place->floor_ms)
        place->floor_ms = site->served_ms;
    /* To the end of the list, so that every address gets its turn. */
    leave_ready(f, place);
    look_at(f, place);
    return site;
}

static void set_slow(struct wb_frontier *f, struct wb_site *site, bool slow)
{
    struct wb_place *place = site->place;

    if (site->slow == slow)
        return;
    bool lined_up = site->heap_at && site->heap != &f->heap;
    if (lined_up)
        leave_line(f, site);
    site->slow = slow;
    if (slow) {
        place->slow_sites++;
        place->slow_in_flight += site->in_flight;
    } else {
        place->slow_sites--;
        place->slow_in_flight -= site->in_flight;
    }
    if (lined_up)
        join_line(f, site);
    look_at(f, place);
}

/* How long a request may take while others wait. */
static int64_t patience(const struct wb_place *place)
{
    int64_t ms = PATIENCE_TIMES * place->typical_ms;

    if (place->typical_ms < 0)
        return PATIENCE_FIRST_MS;
    return ms < PATIENCE_MIN_MS ? PATIENCE_MIN_MS : ms > PATIENCE_MAX_MS ? PATIENCE_MAX_MS : ms;
}

/* A response that took this long shows what is usual; one alone does not change it much. */
static void learn(struct wb_place *place, int64_t took_ms)
{
    int64_t usual = place->typical_ms;

    if (usual < 0) {
        place->typical_ms = took_ms;
        return;
    }
    if (took_ms > TYPICAL_WEIGHT * (usual + 1))
        took_ms = TYPICAL_WEIGHT * (usual + 1);
    place->typical_ms = (usual * (TYPICAL_WEIGHT - 1) + took_ms) / TYPICAL_WEIGHT;
}

/* Counts the slot time since a request of the site last began or ended. */
static void count_time(struct wb_site *site, int64_t now_ms)
{
    if (site->in_flight && now_ms > site->flight_ms)
        site->served_ms += (now_ms - site->flight_ms) * site->in_flight;
    site->flight_ms = now_ms;
}

void wb_frontier_begin(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms)
{
    struct wb_place *place = site->place;

    count_time(site, now_ms);
    site->served_ms++; /* also where no time passes at all */
    site->in_flight++;
    frontier->in_flight++;
    if (!place)
        return;
    place->in_flight++;
    place->slow_in_flight += site->slow;
    look_at(frontier, place);
}

void wb_frontier_end(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms, bool answered)
{
    struct wb_place *place = site->place;
    int64_t took_ms = now_ms - site->flight_ms;

    WB_CHECK(site->in_flight > 0 && frontier->in_flight > 0);
    count_time(site, now_ms);
    site->in_flight--;
    frontier->in_flight--;
    if (!place)
        return;
    WB_CHECK(place->in_flight > 0);
    place->in_flight--;
    place->slow_in_flight -= site->slow;
    if (place->leaving)
        place->leaving--;
    bool was_slow = site->slow, first = place->typical_ms < 0;
    if (!(first && answered) && took_ms > patience(place))
        set_slow(frontier, site, true);
    else if (answered)
        set_slow(frontier, site, false);
    if (answered && !was_slow)
        learn(place, took_ms);
    look_at(frontier, place);
}

bool wb_frontier_gives_way(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms)
{
    struct wb_place *place = site->place;

    if (!place || !site->in_flight || place->leaving >= place->quick.count || place->in_flight < frontier->per_address)
        return false;
    if (site->slow && place->slow_in_flight <= slow_max(frontier, place))
        return false;
    if (now_ms - site->flight_ms <= patience(place))
        return false;
    if (place->typical_ms < 0 && now_ms - place->stopped_ms < STOP_SPACING_MS)
        return false;
    place->stopped_ms = now_ms;
    place->leaving += site->in_flight;
    return true;
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
    place->typical_ms = -1;
    place->hash_next = f->places[slot];
    f->places[slot] = place;
    f->place_count++;
    *place_out = place;
    return 0;
}

static void drop_place(struct wb_frontier *f, struct wb_place *place)
{
    struct wb_place **link = &f->places[place_slot(f, &place->address)];

    if (place->sites)
        return;
    WB_CHECK(!place->in_flight && !place->quick.count && !place->slow.count && !place->ready);
    while (*link != place)
        link = &(*link)->hash_next;
    *link = place->hash_next;
    f->place_count--;
    free_place(place);
}

/* Lines with room for every site, so that joining one cannot fail. */
static int add_to_place(struct wb_place *place)
{
    int err = heap_reserve(&place->quick, place->sites + 1);

    if (err == 0)
        err = heap_reserve(&place->slow, place->sites + 1);
    if (err == 0)
        place->sites++;
    return err;
}

static void leave_place(struct wb_frontier *f, struct wb_site *site)
{
    struct wb_place *place = site->place;

    set_slow(f, site, false);
    WB_CHECK(place->sites > 0 && place->in_flight >= site->in_flight);
    place->sites--;
    place->in_flight -= site->in_flight;
    site->place = NULL;
    look_at(f, place);
    drop_place(f, place);
}

int wb_frontier_move(struct wb_frontier *frontier, struct wb_site *site, const struct wb_address *address)
{
    struct wb_place *place = NULL;

    WB_CHECK(site->heap_at == 0 && site->in_flight == 0);
    if (site->place && wb_address_equal(&site->place->address, address))
        return 0;
    int err = find_place(frontier, address, &place);
    if (err == 0)
        err = add_to_place(place);
    if (err < 0) {
        if (place)
            drop_place(frontier, place);
        return err;
    }
    if (site->place)
        leave_place(frontier, site);
    site->place = place;
    site->address = *address;
    look_at(frontier, place);
    return 0;
}

void wb_frontier_remove(struct wb_frontier *frontier, struct wb_site *site)
{
    if (site->heap == &frontier->heap)
        heap_remove(site);
    else if (site->heap_at)
        leave_line(frontier, site);
    WB_CHECK(frontier->in_flight >= site->in_flight);
    frontier->in_flight -= site->in_flight;
    if (site->place)
        leave_place(frontier, site);
    site->in_flight = 0;
}

/* ---- which one ------------------------------------------------------------------------------------ */

struct wb_site *wb_frontier_pop(struct wb_frontier *frontier, int64_t now_ms)
{
    struct wb_site_heap *heap = &frontier->heap;

    if (frontier->in_flight >= frontier->in_flight_max)
        return NULL;
    while (heap->count && heap->sites[1]->heap_key <= now_ms) {
        struct wb_site *site = heap->sites[1];
        heap_remove(site);
        /* It may have been told to wait since it was put here. */
        if (site->next_ms > now_ms)
            heap_add(heap, site, site->next_ms);
        else if (site->place)
            join_line(frontier, site);
        else
            return site;
    }
    while (frontier->ready_first) {
        struct wb_site *site = call_next(frontier, frontier->ready_first);
        if (site->next_ms <= now_ms)
            return site;
        heap_add(heap, site, site->next_ms);
    }
    return NULL;
}

bool wb_frontier_settled(const struct wb_frontier *frontier)
{
    return !frontier->ready_first || frontier->in_flight >= frontier->in_flight_max;
}

int64_t wb_frontier_next_ms(const struct wb_frontier *frontier)
{
    if (frontier->in_flight >= frontier->in_flight_max)
        return INT64_MAX; /* the end of a request comes first */
    if (frontier->ready_first)
        return INT64_MIN;
    return frontier->heap.count ? frontier->heap.sites[1]->heap_key : INT64_MAX;
}

void wb_frontier_shift(struct wb_frontier *frontier, int64_t by_ms)
{
    for (size_t i = 1; i <= frontier->heap.count; i++)
        frontier->heap.sites[i]->heap_key += by_ms;
    for (size_t i = 0; i < frontier->place_cap; i++)
        for (struct wb_place *place = frontier->places[i]; place; place = place->hash_next)
            place->stopped_ms += by_ms;
}
