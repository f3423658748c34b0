/*
 * bench_graph.h - a web of pages and links, generated from a seed, for measuring databases of links.
 *
 * The sizes of sites follow a power law. Each site has pages that are known from the start ("old"), pages that are
 * found later ("new"), and pages that links lead to but that nobody fetched. A page has about 50 links: navigation,
 * which is the same on every page of a site, neighbours, well-known pages of the site, and a tenth to pages of other
 * sites, by popularity. Only the list of sites is kept in memory: every page is generated when it is asked for.
 */
#ifndef WB_BENCH_BENCH_GRAPH_H
#define WB_BENCH_BENCH_GRAPH_H

#include "webdb/webdb.h"

#define GRAPH_URL_MAX 160
#define GRAPH_ANCHOR_MAX 64
#define GRAPH_LINKS_MAX 82

struct graph_site {
    uint32_t old_first, new_first; /* the numbers of its first old and first new page */
    uint32_t old_count, new_count;
    uint32_t size;                 /* all its pages, including those that nobody fetched */
    uint32_t host_len;
    char host[44];
};

struct graph {
    uint64_t seed;
    struct graph_site *sites;
    uint32_t site_count;
    uint32_t old_count, new_count; /* pages */
};

/* Makes a web with so many old pages and half as many new ones. */
int graph_new(uint64_t seed, uint32_t old_count, struct graph *graph_out);
void graph_release(struct graph *graph);

/* A link as numbers, before it is written as text. */
struct graph_target {
    uint32_t site, local;
    bool navigation;
    uint8_t tag, flags;
};

/* A page with its links, in the form in which databases get them. */
struct graph_page {
    uint32_t site, local, version;
    struct wb_webdb_page page; /* borrows from this struct */
    struct graph_target links[GRAPH_LINKS_MAX];
    size_t link_count;
    char url[GRAPH_URL_MAX], etag[24], anchor[GRAPH_ANCHOR_MAX], to[GRAPH_URL_MAX];
};

/* Generates an old or a new page. With version > 0, its content and one link in ten have changed. */
void graph_page(const struct graph *graph, bool old, uint32_t number, uint32_t version, struct graph_page *page_out);

/* Returns its i-th link as text, which is valid until the next call. */
void graph_link(const struct graph *graph, struct graph_page *page, size_t i, struct wb_webdb_link *link_out);

/* Returns the pages in the order of a crawl of many sites at once: successive pages are from different sites. */
uint32_t graph_shuffled(uint32_t number, uint32_t count);

/* The URL that most pages link to. */
struct wb_slice graph_popular(const struct graph *graph, char url_out[GRAPH_URL_MAX]);

/* Generates edit number i of the benchmark: changed old pages and new pages take turns. */
void graph_edit(const struct graph *graph, uint32_t i, struct graph_page *page_out);
uint32_t graph_edit_count(const struct graph *graph);

#endif
