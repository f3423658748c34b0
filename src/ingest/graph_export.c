/*
 * graph_export.c - writes webdb's pages and links as vertices and edges. It changes nothing in webdb.
 *
 *   1 pages by URL, joined with links by target                  -> vertices; (content, source), (content, target)
 *   2 those, sorted by content: each source x each target        -> (source, target)
 *   3 those, sorted                                              -> edges, each once
 *
 * A link starts from a content, and every page with that content is the source of an edge.
 *
 * Sources and targets are numbers of nodes. A node is a page; for the graph of hosts it is a site, and a map leads from
 * a site to its host, since a host may have several sites (ports). The sorters bound the memory. Not bounded by them
 * are the map, 8 bytes per site in a mapped file without a name, and the list of pages that have one content.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "ingest/vertexname.h"
#include "ingest/ingest.h"
#include "ingest/linewriter.h"
#include "os/nameless.h"
#include "os/stop.h"
#include "table/table.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SOURCE = 0,         /* kinds of records about a content; its sources sort before its targets */
    TARGET = 1,
    NODE_BYTES = 8,     /* a number in a sort key, big-endian, so that keys sort as the numbers do */
    CONTENT_KEY = WB_MD5_BYTES + 1 + NODE_BYTES,   /* MD5, kind, node */
    EDGE_KEY = 2 * NODE_BYTES,                          /* source, target */
    LINE_MAX_NUMBERS = 48,
};

struct graph_exporter {
    const struct wb_graph_export_options *options;
    struct wb_graph_export *done;     /* what was written so far */
    struct wb_webdb *webdb;
    struct wb_webdb_pages *pages;
    struct wb_webdb_links *links;
    struct wb_sorter *contents, *edges, *hosts;
    struct wb_linewriter *vertices_file, *edges_file;
    /* The current link. */
    struct wb_webdb_link link;
    bool has_link;                     /* false: there are no more links */
    struct wb_buf target, target_surt; /* where it leads */
    struct wb_url url;
    struct wb_buf key;
    /* Sites, for the graph of hosts. */
    struct wb_buf site, name;
    uint64_t site_count;
    uint64_t *host_of;                 /* from the number of a site to the number of its host; NULL: nodes are pages */
    size_t map_bytes;
    struct wb_buf sources;             /* nodes that have the current content, 8 bytes each */
};

static int open_sorter(const struct graph_exporter *x, struct wb_sorter **sorter_out)
{
    struct wb_sorter_options options = {.dir = x->options->dir, .memory_bytes = x->options->memory_bytes / 3,
                                        .threads = 1};

    return wb_sorter_open(&options, sorter_out);
}

static int stopped(void)
{
    return wb_stop_requested() ? wb_fail(WB_E_STOPPED, "stopped by a signal") : 0;
}

/* ---- 1: pages and links ------------------------------------------------------------------------ */

static int add_content(struct graph_exporter *x, const uint8_t md5[WB_MD5_BYTES], uint8_t kind, uint64_t node)
{
    char key[CONTENT_KEY];

    memcpy(key, md5, WB_MD5_BYTES);
    key[WB_MD5_BYTES] = (char)kind;
    wb_put64_be(key + WB_MD5_BYTES + 1, node);
    return wb_sorter_add(x->contents, wb_slice(key, sizeof key), WB_SLICE_EMPTY);
}

/* Reads the next link, and finds the SURT of its target, by which links and pages are joined. */
static int next_link(struct graph_exporter *x)
{
    int got = wb_webdb_links_next(x->links, &x->link);

    x->has_link = got > 0;
    if (got <= 0 || wb_slice_equal(x->link.to, wb_buf_slice(&x->target)))
        return got < 0 ? got : 0;
    wb_buf_clear(&x->target);
    int err = wb_buf_append_slice(&x->target, x->link.to);
    if (err == 0)
        err = wb_url_parse(x->link.to, NULL, &x->url);
    if (err == 0)
        err = wb_url_key(&x->url, &x->key);
    return err < 0 ? err : wb_surt_of_key(wb_buf_slice(&x->key), &x->target_surt);
}

/* Takes the links that lead to a page. Links to a target that sorts before it lead to no page, and are loose. */
static int take_links(struct graph_exporter *x, struct wb_slice surt, uint64_t node)
{
    int err = 0;

    while (err == 0 && x->has_link) {
        int order = wb_slice_compare(wb_buf_slice(&x->target_surt), surt);
        if (order > 0)
            break;
        if (order == 0)
            err = add_content(x, x->link.from_md5, TARGET, node);
        else
            x->done->loose++;
        if (err == 0)
            err = next_link(x);
    }
    return err;
}

static int write_vertex(struct graph_exporter *x, uint64_t number, struct wb_slice name)
{
    char text[LINE_MAX_NUMBERS];
    int len = snprintf(text, sizeof text, "%" PRIu64 "\t", number);
    int err = wb_linewriter_append(x->vertices_file, text, (size_t)len);

    if (err == 0)
        err = wb_linewriter_append(x->vertices_file, name.ptr, name.len);
    x->done->vertices++;
    return err < 0 ? err : wb_linewriter_append(x->vertices_file, "\n", 1);
}

/* The number of a page's site; sites are numbered in the order in which they come. */
static int site_node(struct graph_exporter *x, struct wb_slice surt, uint64_t *node_out)
{
    struct wb_slice site = wb_surt_site(surt);
    char number[8];

    *node_out = x->site_count ? x->site_count - 1 : 0;
    if (x->site_count && wb_slice_equal(site, wb_buf_slice(&x->site)))
        return 0;
    *node_out = x->site_count++;
    wb_buf_clear(&x->site);
    wb_buf_clear(&x->name);
    int err = wb_buf_append_slice(&x->site, site);
    if (err == 0)
        err = wb_graph_host(surt, &x->name);
    if (err == 0)
        err = wb_buf_append_char(&x->name, '\0');
    wb_put64_be(number, *node_out);
    if (err == 0)
        err = wb_buf_append(&x->name, number, sizeof number);
    return err < 0 ? err : wb_sorter_add(x->hosts, wb_buf_slice(&x->name), WB_SLICE_EMPTY);
}

static int take_page(struct graph_exporter *x, const struct wb_webdb_page *page)
{
    uint64_t node = x->done->vertices;
    int err = x->options->hosts ? site_node(x, page->surt, &node) : write_vertex(x, node, page->url);

    if (err == 0 && page->has_content)
        err = add_content(x, page->md5, SOURCE, node);
    return err < 0 ? err : take_links(x, page->surt, node);
}

static int take_pages(struct graph_exporter *x)
{
    struct wb_webdb_page page;
    int got, err = next_link(x);

    while (err == 0 && (got = wb_webdb_pages_next(x->pages, &page)) != 0) {
        err = got < 0 ? got : take_page(x, &page);
        if (err == 0)
            err = stopped();
    }
    while (err == 0 && x->has_link) {
        x->done->loose++;
        err = next_link(x);
    }
    return err;
}

/* Writes the hosts as vertices, in the order of their names, and maps each site to its host. */
static int number_hosts(struct graph_exporter *x)
{
    struct wb_table_record record;
    int got = 0, err = wb_sorter_sort(x->hosts);
    void *map = NULL;

    if (err == 0 && x->site_count)
        err = wb_nameless_map(x->options->dir, x->site_count * sizeof *x->host_of, &map);
    if (err < 0 || !map)
        return err;
    x->host_of = map;
    x->map_bytes = x->site_count * sizeof *x->host_of;
    wb_buf_clear(&x->name);
    while (err == 0 && (got = wb_sorter_next(x->hosts, &record)) > 0) {
        struct wb_slice name = wb_slice(record.key.ptr, record.key.len - 9);
        if (x->done->vertices == 0 || !wb_slice_equal(name, wb_buf_slice(&x->name))) {
            wb_buf_clear(&x->name);
            err = wb_buf_append_slice(&x->name, name);
            if (err == 0)
                err = write_vertex(x, x->done->vertices, name);
        }
        uint64_t site = wb_get64_be(record.key.ptr + record.key.len - NODE_BYTES);
        WB_CHECK(site < x->site_count && x->done->vertices > 0);
        x->host_of[site] = x->done->vertices - 1;
    }
    return err < 0 ? err : got;
}

/* ---- 2: contents ------------------------------------------------------------------------------- */

/* An edge to the target from each source of the current content. */
static int add_edges(struct graph_exporter *x, uint64_t target)
{
    char key[EDGE_KEY];
    int err = 0;

    wb_put64_be(key + 8, x->host_of ? x->host_of[target] : target);
    for (size_t at = 0; err == 0 && at < x->sources.len; at += 8) {
        uint64_t source = wb_get64(x->sources.ptr + at);
        wb_put64_be(key, x->host_of ? x->host_of[source] : source);
        /* The graph of hosts has no loops. */
        if (!x->host_of || memcmp(key, key + 8, 8) != 0)
            err = wb_sorter_add(x->edges, wb_slice(key, sizeof key), WB_SLICE_EMPTY);
    }
    return err;
}

/* Notes a node that has the current content; several pages of one site are one node. */
static int add_source(struct graph_exporter *x, uint64_t node)
{
    char bytes[8];

    if (x->sources.len && wb_get64(x->sources.ptr + x->sources.len - 8) == node)
        return 0;
    wb_put64(bytes, node);
    return wb_buf_append(&x->sources, bytes, sizeof bytes);
}

/* The records of a content come together, its sources first. */
static int join_contents(struct graph_exporter *x)
{
    uint8_t md5[WB_MD5_BYTES] = {0};
    struct wb_table_record record;
    int got = 0, err = wb_sorter_sort(x->contents);

    while (err == 0 && (got = wb_sorter_next(x->contents, &record)) > 0) {
        const char *key = record.key.ptr;
        WB_CHECK(record.key.len == CONTENT_KEY);
        uint64_t node = wb_get64_be(key + WB_MD5_BYTES + 1);
        if (memcmp(md5, key, sizeof md5) != 0) {
            memcpy(md5, key, sizeof md5);
            wb_buf_clear(&x->sources);
        }
        err = key[WB_MD5_BYTES] == SOURCE ? add_source(x, node) : add_edges(x, node);
        if (err == 0)
            err = stopped();
    }
    return err < 0 ? err : got;
}

/* ---- 3: edges ---------------------------------------------------------------------------------- */

static int write_edges(struct graph_exporter *x)
{
    char before[EDGE_KEY] = {0}, text[LINE_MAX_NUMBERS];
    struct wb_table_record record;
    int got = 0, err = wb_sorter_sort(x->edges);

    while (err == 0 && (got = wb_sorter_next(x->edges, &record)) > 0) {
        WB_CHECK(record.key.len == EDGE_KEY);
        if (x->done->edges && memcmp(before, record.key.ptr, sizeof before) == 0)
            continue;
        memcpy(before, record.key.ptr, sizeof before);
        int len = snprintf(text, sizeof text, "%" PRIu64 "\t%" PRIu64 "\n", wb_get64_be(before),
                           wb_get64_be(before + 8));
        err = wb_linewriter_append(x->edges_file, text, (size_t)len);
        x->done->edges++;
        if (err == 0)
            err = stopped();
    }
    return err < 0 ? err : got;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int open_all(struct graph_exporter *x)
{
    const struct wb_graph_export_options *options = x->options;
    int err = wb_webdb_open(options->dir, &x->webdb);

    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "there is no webdb in %s yet: 'webbase update' makes it from the journal",
                       options->dir);
    if (err == 0)
        err = wb_linewriter_create(options->vertices, options->force, &x->vertices_file);
    if (err == 0)
        err = wb_linewriter_create(options->edges, options->force, &x->edges_file);
    if (err == 0)
        err = wb_webdb_pages(x->webdb, &x->pages);
    if (err == 0)
        err = wb_webdb_links(x->webdb, &x->links);
    if (err == 0)
        err = open_sorter(x, &x->contents);
    if (err == 0 && options->hosts)
        err = open_sorter(x, &x->hosts);
    return err;
}

static int export_all(struct graph_exporter *x)
{
    int err = take_pages(x);

    if (err == 0 && x->options->hosts)
        err = number_hosts(x);
    wb_sorter_close(x->hosts);
    x->hosts = NULL;
    if (err == 0)
        err = open_sorter(x, &x->edges);
    if (err == 0)
        err = join_contents(x);
    if (err == 0)
        err = write_edges(x);
    if (err < 0)
        return err;
    err = wb_linewriter_finish(x->vertices_file);
    x->vertices_file = NULL;
    if (err < 0)
        return err;
    err = wb_linewriter_finish(x->edges_file);
    x->edges_file = NULL;
    return err;
}

int wb_graph_export(const struct wb_graph_export_options *options, struct wb_graph_export *export_out)
{
    struct graph_exporter x = {.options = options, .done = export_out, .url = WB_URL_INIT};
    struct wb_buf *bufs[] = {&x.target, &x.target_surt, &x.key, &x.site, &x.name, &x.sources};

    *export_out = (struct wb_graph_export){.vertices = 0};
    int err = open_all(&x);
    if (err == 0)
        err = export_all(&x);
    wb_linewriter_abandon(x.vertices_file);
    wb_linewriter_abandon(x.edges_file);
    wb_sorter_close(x.contents);
    wb_sorter_close(x.edges);
    wb_sorter_close(x.hosts);
    if (x.host_of)
        wb_nameless_unmap(x.host_of, x.map_bytes);
    wb_webdb_links_close(x.links);
    wb_webdb_pages_close(x.pages);
    wb_webdb_close(x.webdb);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        wb_buf_release(bufs[i]);
    wb_url_release(&x.url);
    return err;
}
