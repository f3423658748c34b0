/*
 * trap.h - guards against sites without end: paths that repeat themselves, calendars, and families of URLs whose pages
 * are all alike. A guard gives a word that says why a URL is not followed; the word goes to the log.
 *
 * Part of the door: crawl asks when it follows a link, and cycle when it chooses pages for a fetch list.
 */
#ifndef WB_CRAWL_TRAP_H
#define WB_CRAWL_TRAP_H

#include "url/url.h"

enum {
    WB_TRAP_URL_MAX = 2048,       /* bytes of path and query that are followed */
    WB_TRAP_DEPTH_MAX = 32,       /* folders of a path */
    WB_TRAP_REPEAT_MAX = 4,       /* how often one folder name may occur in a path */
    WB_TRAP_ADJACENT_MAX = 2,     /* ... in a row */
    WB_TRAP_CALENDAR_MAX = 800,   /* URLs of one shape that looks like a calendar's */
    WB_TRAP_SIMILAR_MAX = 50,     /* pages of one shape in a row, each like the one before */
    WB_TRAP_SIMILAR_BITS = 3,     /* SimHashes that differ in so many bits at most are alike */
    WB_TRAP_FAMILY = 1000,        /* after so many useful pages of one shape another one is worth half */
};

/* What is remembered of one site. Embedded; all bytes zero: nothing yet. */
struct wb_trap {
    struct wb_trap_shape *shapes; /* a small hash table of fixed size; NULL: none yet */
};

/*
 * Checks a path with its query, and counts it if it passes. NULL: it passes. Otherwise the guard: "trap:path",
 * "trap:long", "trap:calendar" or "trap:similar".
 */
const char *wb_trap_check(struct wb_trap *trap, struct wb_slice path, int64_t now_ms);

/* A page of that path was fetched, with this SimHash (0: it has no text). */
void wb_trap_learn(struct wb_trap *trap, struct wb_slice path, uint64_t simhash);

/* A path was asked for. useful: a page came that was not known before. */
void wb_trap_tried(struct wb_trap *trap, struct wb_slice path, bool useful);

/*
 * What another URL of that shape is worth, from nearly 0 to 1, judged by what came of the others and how many there
 * are. 1 if nothing is known about the shape.
 */
double wb_trap_promise(struct wb_trap *trap, struct wb_slice path);
void wb_trap_release(struct wb_trap *trap);

#endif
