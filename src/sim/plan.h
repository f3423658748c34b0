/*
 * plan.h - everything there is to know about a page, computed from its number.
 *
 *   number                     page
 *   0 ...                      exists from the start; these pages form a tree
 *   WB_PLAN_NEW + n            born later: n is 16 * cell of its birth + event in that cell (life.h)
 *   WB_PLAN_LATEST             /latest/: links to the pages born in the current group of cells
 *   WB_PLAN_LATEST + 1 + g     /latest/g: the same for group g, once it is complete
 *   WB_PLAN_SITES + n          the front's lists of sites: /sites/2 ...
 */
#ifndef WB_SIM_PLAN_H
#define WB_SIM_PLAN_H

#include "sim/world.h"

#define WB_PLAN_NEW 0x40000000u
#define WB_PLAN_LATEST 0x80000000u
#define WB_PLAN_SITES 0xa0000000u
#define WB_PLAN_NONE 0xffffffffu

/* How many cells of births form a group. */
#define WB_PLAN_LATEST_CELLS 16
#define WB_PLAN_SITES_PER_PAGE 1000u

/*
 * What pages do: name, word in the truth, weight in thousandths of all leaves, HTTP status
 * (0: the answer is not HTTP), and whether only a hostile web has this kind.
 */
#define WB_PLAN_KINDS(X)                                                                 \
    X(WB_KIND_PAGE, "page", 0, 200, false)                                               \
    X(WB_KIND_REDIRECT, "redirect", 25, 301, false)         /* to a page of the site */  \
    X(WB_KIND_CHAIN, "chain", 8, 302, false)                /* three redirects */        \
    X(WB_KIND_OUT, "out", 8, 301, false)                    /* to another site */        \
    X(WB_KIND_MISSING, "missing", 15, 404, false)                                        \
    X(WB_KIND_GONE, "gone", 5, 410, false)                                               \
    X(WB_KIND_DUPLICATE, "duplicate", 15, 200, false)       /* another page's bytes */   \
    X(WB_KIND_NEAR, "near-duplicate", 15, 200, false)                                    \
    X(WB_KIND_LATIN, "windows-1252", 8, 200, false)                                      \
    X(WB_KIND_SJIS, "shift_jis", 8, 200, false)                                          \
    X(WB_KIND_UTF16, "utf-16", 8, 200, false)                                            \
    X(WB_KIND_LOOP, "loop", 12, 302, true)                                               \
    X(WB_KIND_LONG_CHAIN, "long-chain", 12, 301, true)      /* 60 redirects */           \
    X(WB_KIND_BAD_LOCATION, "bad-location", 12, 302, true)                               \
    X(WB_KIND_ERROR, "error", 12, 500, true)                                             \
    X(WB_KIND_UNAVAILABLE, "unavailable", 12, 503, true)    /* recovers */               \
    X(WB_KIND_TOO_MANY, "too-many", 12, 429, true)          /* recovers */               \
    X(WB_KIND_SLOW_FIRST, "slow-first", 12, 200, true)      /* two seconds */            \
    X(WB_KIND_SLOW_BODY, "slow-body", 12, 200, true)        /* 512 bytes a 200 ms */     \
    X(WB_KIND_SILENT, "silent", 12, 0, true)                /* never answers */          \
    X(WB_KIND_RESET_HEAD, "reset-head", 12, 0, true)                                     \
    X(WB_KIND_RESET_BODY, "reset-body", 12, 200, true)                                   \
    X(WB_KIND_SHORT, "short", 12, 200, true)                /* ends before its length */ \
    X(WB_KIND_LONG, "long", 12, 200, true)                  /* continues after it */     \
    X(WB_KIND_ENDLESS, "endless-body", 12, 200, true)                                    \
    X(WB_KIND_ENDLESS_HEAD, "endless-head", 12, 0, true)                                 \
    X(WB_KIND_HUGE_HEAD, "huge-head", 12, 200, true)        /* 1 MB of headers */        \
    X(WB_KIND_BOMB, "bomb", 12, 200, true)                  /* 1 GB of gzip'd zeros */   \
    X(WB_KIND_BOMB_NESTED, "bomb-nested", 12, 200, true)    /* the same, gzip'd again */ \
    X(WB_KIND_BAD_GZIP, "bad-gzip", 12, 200, true)                                       \
    X(WB_KIND_BAD_CHUNKS, "bad-chunks", 12, 200, true)                                   \
    X(WB_KIND_GARBAGE, "garbage", 12, 0, true)                                           \
    X(WB_KIND_BAD_HEAD, "bad-head", 12, 0, true)            /* NUL and no colon in lines */ \
    X(WB_KIND_TWO_LENGTHS, "two-lengths", 12, 0, true)      /* that differ */            \
    X(WB_KIND_UNKNOWN_CODING, "unknown-coding", 12, 200, true)                           \
    X(WB_KIND_CALENDAR, "calendar", 12, 200, true)          /* a month links to the next */ \
    X(WB_KIND_REPEAT, "repeat", 12, 200, true)              /* x/a/b/a/b/... */          \
    X(WB_KIND_SESSION, "session", 12, 200, true)            /* a new id in every link */ \
    X(WB_KIND_SOFT404, "soft-404", 12, 200, true)           /* 200 for what is not there */ \
    X(WB_KIND_MANY_LINKS, "many-links", 4, 200, true)       /* 5,000 to nothing */      \
    X(WB_KIND_DEEP, "deep", 4, 200, true)                   /* 100,000 open elements */

enum wb_plan_kind {
#define WB_KIND_ENUM(name, word, weight, status, hostile) name,
    WB_PLAN_KINDS(WB_KIND_ENUM)
#undef WB_KIND_ENUM
    WB_KIND_COUNT
};

const char *wb_plan_kind_word(enum wb_plan_kind kind);

/* Assigns a kind to each slot, in proportion to the weights. */
void wb_plan_kinds_fill(bool hostile, uint8_t slots_out[WB_WORLD_KIND_SLOTS]);

struct wb_plan {
    uint32_t site, page;
    enum wb_plan_kind kind;
    bool allowed;     /* robots.txt allows it */
    bool open_door;   /* allowed inside a closed folder: it is below /private/open/ */
    bool reachable;   /* through links or the sitemap */
    bool isolated;    /* no page of its own site links to it */
    bool mapped;      /* only the sitemap mentions it */
    double rate;      /* changes per second of the web */
    double born, gone; /* in seconds of the web; gone is INFINITY if it stays */
};

/* Computes the plan of a page; false if no page will ever have this number. */
bool wb_plan_make(const struct wb_world *world, uint32_t site, uint32_t page, struct wb_plan *plan_out);

/* True if the page exists now, that is, answers at all, even with an error. */
bool wb_plan_alive(const struct wb_plan *plan, const struct wb_world_moment *now);

/* Returns the version of its text, which increases with each change, and when it last changed. */
uint64_t wb_plan_version(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now,
                         double *changed_out);

/* The status it answers with now; 0 if the answer is not HTTP. */
int wb_plan_status(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now);

/* For kinds that recover: how many seconds until it does, or 0 if it answers now. */
unsigned wb_plan_wait(const struct wb_world *world, const struct wb_plan *plan, const struct wb_world_moment *now);

/* The page of the same site to which a redirect leads, or which a duplicate copies. */
uint32_t wb_plan_twin(const struct wb_world *world, const struct wb_plan *plan);

/* The first group of births that is not complete yet; every earlier group has its own /latest/ page. */
uint32_t wb_plan_group(const struct wb_world_site *site, const struct wb_world_moment *now);

#endif
