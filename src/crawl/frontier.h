/*
 * frontier.h - decides which site is contacted next.
 *
 * A heap of sites by the moment each may be contacted again, and for each address its slots: how many requests may be
 * under way there at once. A site that is due joins the line of its address, and is called when there is a slot for it.
 * It never fetches, resolves or parses; the only clock it reads is the one passed in.
 *
 *   wb_frontier_put -> [heap by next_ms] -- due --> [line of its address] -- slot free --> wb_frontier_pop -> (request)
 *
 * An address has two lines. Sites are called in the order of the slot time that they have used so far, the least
 * first, so that all get the same share. A site whose requests take much longer than is usual at this address is *slow* and waits in
 * the other line: as long as there are other sites, slow ones together hold a quarter of the slots at most. A request that takes
 * too long while others wait is stopped (wb_frontier_gives_way), because nothing else shows that a site is slow.
 *
 * The invariant, checked whenever the loop goes to sleep (wb_frontier_settled): no address has both a free slot and a
 * site in line that may use it. A site that is called and then has nothing to send leaves its slot to the next one.
 */
#ifndef WB_CRAWL_FRONTIER_H
#define WB_CRAWL_FRONTIER_H

#include "crawl/crawlsite.h"

/* A heap of sites; each site is in one heap at most, and knows which one and where. */
struct wb_site_heap {
    struct wb_site **sites;    /* from index 1, by heap_key */
    size_t count, cap;
};

/* An address and its sites. */
struct wb_place {
    struct wb_address address;
    unsigned in_flight, slow_in_flight;
    unsigned sites, slow_sites;         /* that name it */
    struct wb_site_heap quick, slow;    /* the two lines, by slot time used */
    int64_t floor_ms;                   /* slot time used by the site that was called last: newcomers start from here */
    int64_t typical_ms;                 /* how long a response takes here; -1: none has come yet */
    int64_t stopped_ms;                 /* when a request was last stopped here */
    unsigned leaving;                   /* requests that were told to stop and have not ended yet */
    bool ready;                         /* in the frontier's list: a slot is free, and a site in line may use it */
    struct wb_place *ready_prev, *ready_next;
    struct wb_place *hash_next;
};

struct wb_frontier {
    struct wb_site_heap heap;           /* of all sites that wait for a moment, by next_ms */
    struct wb_place **places;           /* by hash */
    size_t place_count, place_cap;
    struct wb_place *ready_first, *ready_last;
    unsigned per_address;
    unsigned in_flight, in_flight_max;  /* of all addresses together */
    size_t lined_up;                    /* sites that wait in lines */
};

void wb_frontier_init(struct wb_frontier *frontier, unsigned per_address, unsigned in_flight_max);
void wb_frontier_release(struct wb_frontier *frontier);

/* Tells where a site is; a site without an address is not limited. */
int wb_frontier_move(struct wb_frontier *frontier, struct wb_site *site, const struct wb_address *address);

/* Puts a site into the heap, at its next_ms; it must not be there. */
int wb_frontier_put(struct wb_frontier *frontier, struct wb_site *site);

/* Takes it out of heap and line, wherever it is, and off its address. Requests under way are forgotten. */
void wb_frontier_remove(struct wb_frontier *frontier, struct wb_site *site);

/* A site that is due and has a slot, taken out of the heap; NULL: none now. */
struct wb_site *wb_frontier_pop(struct wb_frontier *frontier, int64_t now_ms);

/* The moment of the next pop that may succeed; INT64_MAX: none is waiting for a moment. */
int64_t wb_frontier_next_ms(const struct wb_frontier *frontier);

/* A request to the site's address begins; ends. answered: with a response, whatever it says. */
void wb_frontier_begin(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms);
void wb_frontier_end(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms, bool answered);

/* Whether the requests of this site must be stopped now, because others wait for the slot and it has had it for long. */
bool wb_frontier_gives_way(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms);

/* All moments were moved, because the clock was. */
void wb_frontier_shift(struct wb_frontier *frontier, int64_t by_ms);

/* Whether nothing more can be popped before time passes or a request ends. */
bool wb_frontier_settled(const struct wb_frontier *frontier);

#endif
