/*
 * world.h - the sites of the synthetic web: how large each is, what its robots.txt
 * and sitemap are like, what its server can do. Site 0 is the front: the host that
 * lists all others. Pages are not stored; plan.h computes what is to be known of one.
 *
 *   pages of a site:   0 ... linked | by sitemap only | by another site only | by nothing
 *                      a tree of `fan` children a page, page 0 its root
 */
#ifndef WB_SIM_WORLD_H
#define WB_SIM_WORLD_H

#include "base/date.h"
#include "sim/pen.h"
#include "sim/sim.h"


/* The kinds of robots.txt: name, and whether only hostile webs have it. */
#define WB_RULES(X)                                                          \
    X(WB_RULES_NONE, "none", false)       /* 404 */                          \
    X(WB_RULES_SIMPLE, "simple", false)                                      \
    X(WB_RULES_DELAY, "delay", false)     /* with a Crawl-delay */           \
    X(WB_RULES_GROUPS, "groups", false)   /* other agents', *, $ and Allow */ \
    X(WB_RULES_FAILING, "failing", true)  /* 503 for ever: nothing is allowed */ \
    X(WB_RULES_HUGE, "huge", true)        /* its rule comes after 400 KB */  \
    X(WB_RULES_MOVED, "moved", true)      /* behind redirects */             \
    X(WB_RULES_HTML, "html", true)        /* 200 with a page of HTML */      \
    X(WB_RULES_SLOW, "slow", true)

enum wb_rules {
#define WB_RULES_ENUM(name, word, hostile) name,
    WB_RULES(WB_RULES_ENUM)
#undef WB_RULES_ENUM
    WB_RULES_COUNT
};

enum wb_mapkind { WB_MAP_NONE, WB_MAP_XML, WB_MAP_INDEX, WB_MAP_GZ, WB_MAP_TEXT, WB_MAP_COUNT };

struct wb_world_site {
    uint32_t pages;    /* of the start; others are born later */
    uint32_t linked;   /* pages below this number are in the tree */
    uint32_t mapped;   /* from linked to here: named by the sitemap only */
    uint32_t foreign;  /* from mapped to here: linked by the next site's root only; the rest by nothing */
    uint32_t inner;    /* pages below this number have children */
    uint32_t fan;
    enum wb_rules rules;
    enum wb_mapkind map;
    bool alias;        /* has a second name */
    bool etag, modified, gzip;
    double births;     /* a second */
};

#define WB_KIND_SLOTS 1000

struct wb_world {
    uint64_t seed;
    uint32_t sites;              /* the last one's number */
    double speed;
    uint32_t page_bytes;
    bool hostile;
    uint16_t port;
    char front[80];              /* "127.0.0.1:8080" */
    int64_t start_wall_ms;
    uint8_t kinds[WB_KIND_SLOTS]; /* which behaviour a leaf has, drawn by a slot's number */
    struct wb_world_site *site;  /* 0 to sites */
};

/* The moment of a question: seconds since the start, of the web and of the clock on the wall. */
struct wb_moment {
    double web, real;
};

int wb_world_init(const struct wb_sim_options *options, struct wb_world *world_out);
void wb_world_release(struct wb_world *world);

/* Where it listens; known after wb_world_init(). */
void wb_world_set_place(struct wb_world *world, const char *address, uint16_t port, int64_t start_wall_ms);

/* "s3.localhost:8080", the front's host for 0; alias: "a3.localhost:8080". */
void wb_world_host(const struct wb_world *world, uint32_t site, bool alias, struct wb_pen *pen);

/* A moment of the web as milliseconds since 1970: time is compressed by speed; from a fixed day where it stands still. */
int64_t wb_world_stamp(const struct wb_world *world, double web);

const char *wb_rules_word(enum wb_rules rules);
const char *wb_mapkind_word(enum wb_mapkind map);

/* Crawl-delay in seconds, 0: none. */
unsigned wb_world_delay(const struct wb_world_site *site);

/* Whether pages are closed by rules at all; whether all are. */
bool wb_world_has_rules(const struct wb_world_site *site);

#endif
