/*
 * frontier.h - decides which site is contacted next.
 *
 * The frontier holds a heap of sites, ordered by the moment at which each may be contacted again. It also knows, for
 * each IP address, how many requests may be under way there at once: the address's slots. A site that is due joins a
 * line of its address and is called when a slot is free:
 *
 *   wb_frontier_put -> [heap by next_ms] -- due --> [line of its address] -- slot free --> wb_frontier_pop -> (request)
 *
 * An address has two lines, so that one slow site does not hold up the others of its server.
 *   - In each line the site that has used the least slot time so far is called first, so all get the same share.
 *   - A site whose requests take much longer than is usual at the address is *slow* and waits in the second line. As
 *     long as the address has other sites, its slow sites together hold at most a quarter of the slots.
 *   - A request that takes too long while others wait is stopped (wb_frontier_gives_way). Otherwise nobody would
 *     find out that its site is slow.
 *
 * Invariant, checked whenever the event loop goes to sleep (wb_frontier_exhausted): no address has both a free slot and
 * a site in line that may use it. A site that was called and sends nothing leaves its slot to the next one.
 *
 * The frontier never fetches, resolves or parses. The only clock it reads is the one passed in.
 */
#ifndef WB_CRAWL_FRONTIER_H
#define WB_CRAWL_FRONTIER_H

#include "crawl/crawlsite.h"

#define WB_FRONTIER_ADDRESS_MAGIC 0x57424641u

/* An IP address and the lines of its sites. Lives as long as a site names it. */
struct wb_frontier_address {
    uint32_t magic;                     /* WB_FRONTIER_ADDRESS_MAGIC until the last site has left */
    struct wb_list_node ready_node;     /* in the frontier's list of addresses that can serve a site now */
    bool ready;                         /* it is in that list: a slot is free, and a site in line may use it */
    struct wb_address address;
    unsigned sites, slow_sites;         /* sites of this address; of these, slow ones */
    unsigned in_flight, slow_in_flight; /* requests under way; of these, requests of slow sites */
    struct wb_heap quick, slow;         /* the two lines, by slot time used */
    int64_t floor_ms;                   /* slot time used by the site called last: newcomers start from here */
    int64_t typical_ms;                 /* how long a response usually takes here; -1: none has come yet */
    int64_t stopped_ms;                 /* when a request was last stopped here */
    unsigned leaving;                   /* requests that were told to stop and have not ended yet */
};

/* An entry of the table of addresses. */
struct wb_frontier_slot {
    uint64_t hash;
    struct wb_frontier_address *address;
};

#define WB_FRONTIER_MAGIC 0x57424652u

struct wb_frontier {
    uint32_t magic;                     /* WB_FRONTIER_MAGIC from init to release */
    struct wb_heap waiting;             /* all sites that wait for a moment, by next_ms */
    WB_MAP(struct wb_frontier_slot) addresses;
    struct wb_list ready;               /* addresses that can serve a site now; each gets its turn */
    unsigned per_address;               /* slots of an address */
    unsigned in_flight, in_flight_max;  /* requests under way at all addresses together */
    size_t lined_up;                    /* sites that wait in lines */
};

void wb_frontier_init(struct wb_frontier *frontier, unsigned per_address, unsigned in_flight_max);
void wb_frontier_release(struct wb_frontier *frontier);

/* Tells the address of a site that is in no heap and has no request under way. Sites without one have no limit. */
int wb_frontier_move(struct wb_frontier *frontier, struct wb_site *site, const struct wb_address *address);

/* Puts a site that is in no heap into the heap, at its next_ms. */
int wb_frontier_put(struct wb_frontier *frontier, struct wb_site *site);

/* Takes a site out of heap, line and address. Forgets its requests under way. */
void wb_frontier_remove(struct wb_frontier *frontier, struct wb_site *site);

/* Takes out a site that is due and has a slot; NULL: there is none now. */
struct wb_site *wb_frontier_pop(struct wb_frontier *frontier, int64_t now_ms);

/*
 * When to call wb_frontier_pop() again. INT64_MIN: now. INT64_MAX: no site waits for a moment, or all requests that
 * are allowed at a time are under way.
 */
int64_t wb_frontier_next_ms(const struct wb_frontier *frontier);

/* A request of the site begins. */
void wb_frontier_begin(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms);

/* A request of the site has ended. answered: a response came, whatever it says. */
void wb_frontier_end(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms, bool answered);

/* Whether the site's requests must be stopped now, because they take too long and other sites wait for the slots. */
bool wb_frontier_gives_way(struct wb_frontier *frontier, struct wb_site *site, int64_t now_ms);

/* The clock was set: moves all moments by the same amount. */
void wb_frontier_shift(struct wb_frontier *frontier, int64_t by_ms);

/* Whether no site can be popped before time passes or a request ends. */
bool wb_frontier_exhausted(const struct wb_frontier *frontier);

#endif
