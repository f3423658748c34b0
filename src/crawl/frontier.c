/*
 * frontier.c - the heap of sites that wait for their moment, the addresses, and the lines of sites at each address.
 *
 * Every function that changes the slots or lines of an address ends with update_ready(), which keeps the list of
 * addresses that can serve a site now. Heaps get their room when a site learns its address (add_to_address), so that
 * moving a site between heap and lines cannot fail.
 */
#include "crawl/frontier.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/random.h"

enum {
    SLOW_SHARE = 4,            /* slow sites get one in so many slots while the address has other sites */
    /* How long a request may take while others wait for its slot: */
    PATIENCE_FIRST_MS = 2000,  /* until the first response has shown what is usual at the address */
    PATIENCE_TIMES = 8,        /* then so many times what is usual, within these bounds: */
    PATIENCE_MIN_MS = 1000,
    PATIENCE_MAX_MS = 20000,
    STOP_SPACING_MS = 250,     /* between two stops before the first response: perhaps all sites are this slow */
    TYPICAL_WEIGHT = 8,        /* weight of the past, against one new response */
};

void wb_frontier_init(struct wb_frontier *frontier, unsigned per_address, unsigned in_flight_max)
{
    WB_CHECK(per_address > 0 && in_flight_max > 0);
    *frontier = (struct wb_frontier){.magic = WB_FRONTIER_MAGIC, .per_address = per_address,
                                     .in_flight_max = in_flight_max};
    /* The owners of sites choose their addresses. */
    wb_random_bytes(&frontier->addresses.map.seed, sizeof frontier->addresses.map.seed);
}

static void free_address(struct wb_frontier_address *address)
{
    wb_heap_release(&address->quick);
    wb_heap_release(&address->slow);
    address->magic = 0;
    wb_free(address);
}

void wb_frontier_release(struct wb_frontier *frontier)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC);
    /* Sites in it point to its heaps and addresses, so all of them have left. */
    WB_CHECK(frontier->waiting.count == 0 && frontier->lined_up == 0 && wb_map_count(&frontier->addresses) == 0);
    for (struct wb_frontier_slot *slot = NULL; (slot = wb_map_each(&frontier->addresses, slot));)
        free_address(slot->address);
    wb_map_release(&frontier->addresses);
    wb_heap_release(&frontier->waiting);
    *frontier = (struct wb_frontier){0};
}

/* ---- the heap of sites that wait --------------------------------------------------------------------------------- */

int wb_frontier_put(struct wb_frontier *frontier, struct wb_site *site)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC && site->magic == WB_SITE_MAGIC);
    /* Also with room for the sites in line, which may have to come back (wb_frontier_pop). */
    int err = wb_heap_reserve(&frontier->waiting, frontier->waiting.count + frontier->lined_up + 1);

    if (err == 0)
        wb_heap_add(&frontier->waiting, &site->turn, site->next_ms);
    return err;
}

/* ---- slots and lines --------------------------------------------------------------------------------------------- */

/* How many slots the slow sites of an address may hold together. */
static unsigned slow_max(const struct wb_frontier *f, const struct wb_frontier_address *address)
{
    unsigned share = f->per_address / SLOW_SHARE;

    if (address->slow_sites == address->sites)
        return f->per_address;
    return share > 1 ? share : 1;
}

static bool slow_may(const struct wb_frontier *f, const struct wb_frontier_address *address)
{
    return address->slow.count && address->in_flight < f->per_address && address->slow_in_flight < slow_max(f, address);
}

static bool quick_may(const struct wb_frontier *f, const struct wb_frontier_address *address)
{
    return address->quick.count && address->in_flight < f->per_address;
}

static void leave_ready(struct wb_frontier *f, struct wb_frontier_address *address)
{
    if (address->ready)
        wb_list_remove(&f->ready, &address->ready_node);
    address->ready = false;
}

static void join_ready(struct wb_frontier *f, struct wb_frontier_address *address)
{
    WB_CHECK(address->magic == WB_FRONTIER_ADDRESS_MAGIC && !address->ready);
    wb_list_append(&f->ready, &address->ready_node);
    address->ready = true;
}

/* Called after every change to the slots or lines of an address. */
static void update_ready(struct wb_frontier *f, struct wb_frontier_address *address)
{
    bool ready = quick_may(f, address) || slow_may(f, address);

    WB_CHECK(address->in_flight <= f->per_address && address->slow_in_flight <= address->in_flight);
    WB_CHECK(address->slow_sites <= address->sites);
    if (ready && !address->ready)
        join_ready(f, address);
    else if (!ready)
        leave_ready(f, address);
}

static void join_line(struct wb_frontier *f, struct wb_site *site)
{
    WB_CHECK(site->frontier_address && site->frontier_address->magic == WB_FRONTIER_ADDRESS_MAGIC);
    struct wb_frontier_address *address = site->frontier_address;

    /* A site that was away for a while must not save up slot time, or it would push the others aside. */
    if (site->served_ms < address->floor_ms)
        site->served_ms = address->floor_ms;
    wb_heap_add(site->slow ? &address->slow : &address->quick, &site->turn, site->served_ms);
    f->lined_up++;
    update_ready(f, address);
}

static void leave_line(struct wb_frontier *f, struct wb_site *site)
{
    WB_CHECK(f->lined_up > 0);
    wb_heap_remove(&site->turn);
    f->lined_up--;
}

static struct wb_site *first_site(const struct wb_heap *heap)
{
    return WB_CONTAINER_OF(wb_heap_first(heap), struct wb_site, turn);
}

/* Calls the next site of an address that is ready. One slot is kept for slow sites, so that they make progress. */
static struct wb_site *call_next(struct wb_frontier *f, struct wb_frontier_address *address)
{
    WB_CHECK(address->magic == WB_FRONTIER_ADDRESS_MAGIC && address->ready);
    bool slow_turn = address->slow_in_flight == 0 && f->per_address >= SLOW_SHARE;
    bool slow = slow_may(f, address) && (!address->quick.count || slow_turn);
    struct wb_site *site = first_site(slow ? &address->slow : &address->quick);
    WB_CHECK(site->magic == WB_SITE_MAGIC && site->frontier_address == address);

    leave_line(f, site);
    if (!slow && site->served_ms > address->floor_ms)
        address->floor_ms = site->served_ms;
    /* It joins the list again at the end, so that every address gets its turn. */
    leave_ready(f, address);
    update_ready(f, address);
    return site;
}

static void set_slow(struct wb_frontier *f, struct wb_site *site, bool slow)
{
    struct wb_frontier_address *address = site->frontier_address;

    if (site->slow == slow)
        return;
    bool lined_up = site->turn.at && !wb_heap_contains(&f->waiting, &site->turn);
    if (lined_up)
        leave_line(f, site);
    site->slow = slow;
    if (slow) {
        address->slow_sites++;
        address->slow_in_flight += site->in_flight;
    } else {
        WB_CHECK(address->slow_sites > 0 && address->slow_in_flight >= site->in_flight);
        address->slow_sites--;
        address->slow_in_flight -= site->in_flight;
    }
    if (lined_up)
        join_line(f, site);
    update_ready(f, address);
}

/* How long a request may take while other sites wait for its slot. */
static int64_t patience(const struct wb_frontier_address *address)
{
    int64_t ms = PATIENCE_TIMES * address->typical_ms;

    if (address->typical_ms < 0)
        return PATIENCE_FIRST_MS;
    return ms < PATIENCE_MIN_MS ? PATIENCE_MIN_MS : ms > PATIENCE_MAX_MS ? PATIENCE_MAX_MS : ms;
}

/* Learns how long a response usually takes. One response alone does not change much. */
static void learn(struct wb_frontier_address *address, int64_t took_ms)
{
    int64_t usual = address->typical_ms;

    if (usual < 0) {
        address->typical_ms = took_ms;
        return;
    }
    if (took_ms > TYPICAL_WEIGHT * (usual + 1))
        took_ms = TYPICAL_WEIGHT * (usual + 1);
    address->typical_ms = (usual * (TYPICAL_WEIGHT - 1) + took_ms) / TYPICAL_WEIGHT;
}

/* Adds up the slot time that the site's requests have used since the last call. */
static void count_time(struct wb_site *site, int64_t now_ms)
{
    if (site->in_flight && now_ms > site->flight_ms)
        site->served_ms += (now_ms - site->flight_ms) * site->in_flight;
    site->flight_ms = now_ms;
}

void wb_frontier_begin(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC && site->magic == WB_SITE_MAGIC);
    struct wb_frontier_address *address = site->frontier_address;

    WB_CHECK(frontier->in_flight < frontier->in_flight_max || !address);
    count_time(site, now_ms);
    site->served_ms++; /* so that requests count even if they take no time at all */
    site->in_flight++;
    frontier->in_flight++;
    if (!address)
        return;
    address->in_flight++;
    address->slow_in_flight += site->slow;
    update_ready(frontier, address);
}

void wb_frontier_end(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms, bool answered)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC && site->magic == WB_SITE_MAGIC);
    struct wb_frontier_address *address = site->frontier_address;
    int64_t took_ms = now_ms - site->flight_ms;

    WB_CHECK(site->in_flight > 0 && frontier->in_flight > 0);
    count_time(site, now_ms);
    site->in_flight--;
    frontier->in_flight--;
    if (!address)
        return;
    WB_CHECK(address->magic == WB_FRONTIER_ADDRESS_MAGIC && address->in_flight > 0);
    address->in_flight--;
    WB_CHECK(!site->slow || address->slow_in_flight > 0);
    address->slow_in_flight -= site->slow;
    if (address->leaving)
        address->leaving--;
    bool was_slow = site->slow, first = address->typical_ms < 0;
    if (!(first && answered) && took_ms > patience(address))
        set_slow(frontier, site, true);
    else if (answered)
        set_slow(frontier, site, false);
    if (answered && !was_slow)
        learn(address, took_ms);
    update_ready(frontier, address);
}

bool wb_frontier_gives_way(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC && site->magic == WB_SITE_MAGIC);
    struct wb_frontier_address *address = site->frontier_address;

    if (!address || !site->in_flight || address->in_flight < frontier->per_address)
        return false;
    /* As many requests are ending already as there are sites in line. */
    if (address->leaving >= address->quick.count)
        return false;
    if (site->slow && address->slow_in_flight <= slow_max(frontier, address))
        return false;
    if (now_ms - site->flight_ms <= patience(address))
        return false;
    if (address->typical_ms < 0 && now_ms - address->stopped_ms < STOP_SPACING_MS)
        return false;
    address->stopped_ms = now_ms;
    address->leaving += site->in_flight;
    return true;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static uint64_t hash_address(const struct wb_address *address)
{
    return wb_hash64(address, sizeof *address);
}

static struct wb_frontier_slot *find_slot(const struct wb_frontier *f, const struct wb_address *address)
{
    uint64_t hash = hash_address(address);
    struct wb_frontier_slot *slot = NULL;

    while ((slot = wb_map_next(&f->addresses, hash, slot)))
        if (wb_address_equal(&slot->address->address, address))
            return slot;
    return NULL;
}

/* Finds an address, or adds it. */
static int find_address(struct wb_frontier *f, const struct wb_address *address,
                        struct wb_frontier_address **address_out)
{
    struct wb_frontier_slot *slot = find_slot(f, address);
    struct wb_frontier_address *added = NULL;

    *address_out = slot ? slot->address : NULL;
    if (slot)
        return 0;
    added = wb_alloc_zero(1, sizeof *added);
    slot = added ? wb_map_add(&f->addresses, hash_address(address)) : NULL;
    if (!slot) {
        wb_free(added);
        return WB_E_NOMEM;
    }
    added->magic = WB_FRONTIER_ADDRESS_MAGIC;
    added->address = *address;
    added->typical_ms = -1;
    slot->address = added;
    *address_out = added;
    return 0;
}

/* Frees an address that no site names any more. */
static void drop_address(struct wb_frontier *f, struct wb_frontier_address *address)
{
    if (address->sites)
        return;
    WB_CHECK(!address->in_flight && !address->quick.count && !address->slow.count && !address->ready);
    wb_map_remove(&f->addresses, find_slot(f, &address->address));
    free_address(address);
}

/* Reserves room in both lines for every site of the address, so that joining a line cannot fail. */
static int add_to_address(struct wb_frontier_address *address)
{
    int err = wb_heap_reserve(&address->quick, address->sites + 1);

    if (err == 0)
        err = wb_heap_reserve(&address->slow, address->sites + 1);
    if (err == 0)
        address->sites++;
    return err;
}

static void leave_address(struct wb_frontier *f, struct wb_site *site)
{
    WB_CHECK(site->frontier_address->magic == WB_FRONTIER_ADDRESS_MAGIC);
    struct wb_frontier_address *address = site->frontier_address;

    set_slow(f, site, false);
    WB_CHECK(address->sites > 0 && address->in_flight >= site->in_flight);
    address->sites--;
    address->in_flight -= site->in_flight;
    site->frontier_address = NULL;
    update_ready(f, address);
    drop_address(f, address);
}

int wb_frontier_move(struct wb_frontier *frontier, struct wb_site *site, const struct wb_address *address)
{
    struct wb_frontier_address *found = NULL;

    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC && site->magic == WB_SITE_MAGIC);
    WB_CHECK(site->turn.at == 0 && site->in_flight == 0);
    if (site->frontier_address && wb_address_equal(&site->frontier_address->address, address))
        return 0;
    int err = find_address(frontier, address, &found);
    if (err == 0)
        err = add_to_address(found);
    if (err < 0) {
        if (found)
            drop_address(frontier, found);
        return err;
    }
    if (site->frontier_address)
        leave_address(frontier, site);
    site->frontier_address = found;
    site->address = *address;
    update_ready(frontier, found);
    return 0;
}

void wb_frontier_remove(struct wb_frontier *frontier, struct wb_site *site)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC && site->magic == WB_SITE_MAGIC);
    if (wb_heap_contains(&frontier->waiting, &site->turn))
        wb_heap_remove(&site->turn);
    else if (site->turn.at)
        leave_line(frontier, site);
    WB_CHECK(frontier->in_flight >= site->in_flight);
    frontier->in_flight -= site->in_flight;
    if (site->frontier_address)
        leave_address(frontier, site);
    site->in_flight = 0;
}

/* ---- which site is next ------------------------------------------------------------------------------------------ */

struct wb_site *wb_frontier_pop(struct wb_frontier *frontier, int64_t now_ms)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC);
    struct wb_heap *waiting = &frontier->waiting;
    struct wb_heap_node *first;

    if (frontier->in_flight >= frontier->in_flight_max)
        return NULL;
    while ((first = wb_heap_first(waiting)) && first->key <= now_ms) {
        struct wb_site *site = WB_CONTAINER_OF(first, struct wb_site, turn);
        WB_CHECK(site->magic == WB_SITE_MAGIC);
        /* The site may have been told to wait longer since it was put here. */
        if (site->next_ms > now_ms) {
            wb_heap_move(first, site->next_ms);
            continue;
        }
        wb_heap_remove(first);
        if (site->frontier_address)
            join_line(frontier, site);
        else
            return site;
    }
    while (frontier->ready.first) {
        struct wb_site *site =
            call_next(frontier, WB_CONTAINER_OF(frontier->ready.first, struct wb_frontier_address, ready_node));
        if (site->next_ms <= now_ms)
            return site;
        wb_heap_add(waiting, &site->turn, site->next_ms);
    }
    return NULL;
}

bool wb_frontier_exhausted(const struct wb_frontier *frontier)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC);
    return !frontier->ready.first || frontier->in_flight >= frontier->in_flight_max;
}

int64_t wb_frontier_next_ms(const struct wb_frontier *frontier)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC);
    if (frontier->in_flight >= frontier->in_flight_max)
        return INT64_MAX; /* the end of a request calls us */
    if (frontier->ready.first)
        return INT64_MIN;
    return frontier->waiting.count ? wb_heap_first(&frontier->waiting)->key : INT64_MAX;
}

void wb_frontier_shift(struct wb_frontier *frontier, int64_t by_ms)
{
    WB_CHECK(frontier->magic == WB_FRONTIER_MAGIC);
    wb_heap_shift(&frontier->waiting, by_ms);
    for (struct wb_frontier_slot *slot = NULL; (slot = wb_map_each(&frontier->addresses, slot));)
        slot->address->stopped_ms += by_ms;
}
