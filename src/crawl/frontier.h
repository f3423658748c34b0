/*
 * frontier.h - decides which site is contacted next.
 *
 * A heap of sites by the moment each may be contacted again, and for each address how many
 * requests are under way: a site that is due while its address is busy waits in the
 * address's line. It never fetches, resolves or parses; the only clock it reads is the one passed in.
 *
 *   added -> [heap by next_ms] -> popped when due -> (request) -> back by wb_frontier_put()
 *                    \-> [line of a busy address] -/
 */
#ifndef WB_CRAWL_FRONTIER_H
#define WB_CRAWL_FRONTIER_H

#include "crawl/crawlsite.h"

/* An address and its sites. */
struct wb_place {
    struct wb_address address;
    unsigned in_flight;
    unsigned sites;       /* that name it */
    struct wb_site *first_waiting, *last_waiting;
    struct wb_place *hash_next;
};

struct wb_frontier {
    struct wb_site **heap;     /* from index 1 */
    size_t heap_count, heap_cap;
    struct wb_place **places;  /* by hash */
    size_t place_count, place_cap;
    unsigned per_address;
    size_t lined_up;           /* sites that wait in lines */
};

void wb_frontier_init(struct wb_frontier *frontier, unsigned per_address);
void wb_frontier_release(struct wb_frontier *frontier);

/* Tells where a site is; a site without an address is not limited. */
int wb_frontier_move(struct wb_frontier *frontier, struct wb_site *site, const struct wb_address *address);

/* Puts a site into the heap, at its next_ms; it must not be there. */
int wb_frontier_put(struct wb_frontier *frontier, struct wb_site *site);

/* Takes it out of heap and line, wherever it is, and off its address. */
void wb_frontier_remove(struct wb_frontier *frontier, struct wb_site *site);

/* A site that is due and whose address has room, taken out of the heap; NULL: none now. */
struct wb_site *wb_frontier_pop(struct wb_frontier *frontier, int64_t now_ms);

/* The moment of the next pop that may succeed; INT64_MAX: none is waiting for a moment. */
int64_t wb_frontier_next_ms(const struct wb_frontier *frontier);

/* A request to the site's address begins; ends. An end may let a site of the line into the heap. */
void wb_frontier_begin(struct wb_frontier *frontier, struct wb_site *site);
void wb_frontier_end(struct wb_frontier *frontier, struct wb_site *site);

#endif
