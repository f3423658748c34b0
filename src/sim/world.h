/*
 * world.h - the sites of the synthetic web: how large each is, what its robots.txt and sitemap
 * are like, and what its server can do.
 *
 * Site 0 is the front, the host that lists all others. Pages are not stored: plan.h computes
 * everything about a page. How the pages of a site can be reached, by number:
 *
 *   0 ... linked           links: a tree in which a page has `fan` children and page 0 is the root
 *   linked ... mapped      only the sitemap
 *   mapped ... foreign     only a link on the root of the next site
 *   foreign ... pages      nothing leads there
 */
#ifndef WB_SIM_WORLD_H
#define WB_SIM_WORLD_H

#include "base/date.h"
#include "sim/pen.h"
#include "sim/sim.h"


/* The kinds of robots.txt: name, word in the truth, and whether only a hostile web has it. */
#define WB_WORLD_RULES(X)                                                    \
    X(WB_RULES_NONE, "none", false)       /* 404 */                          \
    X(WB_RULES_SIMPLE, "simple", false)                                      \
    X(WB_RULES_DELAY, "delay", false)     /* with a Crawl-delay */           \
    X(WB_RULES_GROUPS, "groups", false)   /* other agents', *, $ and Allow */ \
    X(WB_RULES_FAILING, "failing", true)  /* 503 forever: nothing is allowed */ \
    X(WB_RULES_HUGE, "huge", true)        /* its rule comes after 400 KB */  \
    X(WB_RULES_MOVED, "moved", true)      /* behind redirects */             \
    X(WB_RULES_HTML, "html", true)        /* 200 with a page of HTML */      \
    X(WB_RULES_SLOW, "slow", true)

enum wb_world_rules {
#define WB_RULES_ENUM(name, word, hostile) name,
    WB_WORLD_RULES(WB_RULES_ENUM)
#undef WB_RULES_ENUM
    WB_RULES_COUNT
};

enum wb_world_map { WB_MAP_NONE, WB_MAP_XML, WB_MAP_INDEX, WB_MAP_GZ, WB_MAP_TEXT, WB_MAP_COUNT };

struct wb_world_site {
    uint32_t pages;    /* those that exist from the start; others are born later */
    uint32_t linked;   /* pages below this number are in the tree */
    uint32_t mapped;   /* from linked to here: only the sitemap mentions them */
    uint32_t foreign;  /* from mapped to here: only the next site's root links to them; nothing to the rest */
    uint32_t inner;    /* pages below this number have children */
    uint32_t fan;
    enum wb_world_rules rules;
    enum wb_world_map map;
    bool alias;        /* has a second name */
    bool etag, modified, gzip;
    double births;     /* per second of the web */
};

#define WB_WORLD_KIND_SLOTS 1000

struct wb_world {
    uint64_t seed;
    uint32_t sites;              /* the number of the last site */
    double speed;
    uint32_t page_bytes;
    bool hostile;
    uint16_t port;
    char front[80];              /* "127.0.0.1:8080" */
    int64_t start_wall_ms;
    uint8_t kinds[WB_WORLD_KIND_SLOTS]; /* a leaf draws a slot, which says what kind of page it is */
    struct wb_world_site *site;  /* indexed from 0 to sites */
};

/* A moment as seconds since the start: in the time of the web, and in real time. */
struct wb_world_moment {
    double web, real;
};

int wb_world_init(const struct wb_sim_options *options, struct wb_world *world_out);
void wb_world_release(struct wb_world *world);

/* Says where the server listens, which is known only after wb_world_init(). */
void wb_world_set_place(struct wb_world *world, const char *address, uint16_t port, int64_t start_wall_ms);

/* Writes the host of a site: "s3.localhost:8080", or "a3.localhost:8080" for its alias; 0 is the front's host. */
void wb_world_host(const struct wb_world *world, uint32_t site, bool alias, struct wb_pen *pen);

/*
 * Converts a moment of the web into milliseconds since 1970, as clients see it: compressed by the
 * speed, or relative to a fixed day if time stands still.
 */
int64_t wb_world_stamp(const struct wb_world *world, double web);

const char *wb_world_rules_word(enum wb_world_rules rules);
const char *wb_world_map_word(enum wb_world_map map);

/* The Crawl-delay in seconds, or 0. */
unsigned wb_world_delay(const struct wb_world_site *site);

/* True if robots.txt of this site closes any pages. */
bool wb_world_has_rules(const struct wb_world_site *site);

#endif
