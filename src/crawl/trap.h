/*
 * trap.h - guards against sites without end: paths that repeat themselves, calendars, and families of
 * URLs whose pages are all alike. A guard gives a word for why a URL is not followed, which goes to the log.
 */
#ifndef WB_CRAWL_TRAP_H
#define WB_CRAWL_TRAP_H

#include "url/url.h"

enum {
    WB_TRAP_URL_MAX = 2048,       /* bytes of a URL that is followed */
    WB_TRAP_DEPTH_MAX = 32,       /* folders of its path */
    WB_TRAP_REPEAT_MAX = 4,       /* how often a folder's name may come in a path */
    WB_TRAP_ADJACENT_MAX = 2,     /* ... one after the other */
    WB_TRAP_CALENDAR_MAX = 800,   /* URLs of one shape that looks like a calendar's */
    WB_TRAP_SIMILAR_MAX = 50,     /* pages of one shape that were all like the one before */
    WB_TRAP_SIMILAR_BITS = 3,     /* SimHashes that differ by this much are alike */
    WB_TRAP_FAMILY = 1000,        /* pages of one shape after which another one is worth half */
};

/* What is remembered of one site; an embedded struct, all zeros when new. */
struct wb_trap {
    struct wb_trap_shape *shapes; /* a small table by hash; NULL: none yet */
};

/* path: with its query, as in a URL. NULL: fine; else "trap:path", "trap:long", "trap:calendar", "trap:similar". Counts it. */
const char *wb_trap_check(struct wb_trap *trap, struct wb_slice path, int64_t now_ms);

/* A page of that URL was fetched, and looks like this (0: no text). */
void wb_trap_learn(struct wb_trap *trap, struct wb_slice path, uint64_t simhash);

/* A URL was asked for: whether a page came of it that was not there before. */
void wb_trap_tried(struct wb_trap *trap, struct wb_slice path, bool useful);

/* What another URL of that shape is worth, from what came of the others and how many there are: near 0 to 1; 1 where nothing is known. */
double wb_trap_promise(struct wb_trap *trap, struct wb_slice path);
void wb_trap_release(struct wb_trap *trap);

#endif
