/*
 * graph_import.c - vertices and edges into webdb.
 *
 *   vertices, sorted by SURT beside the pages that webdb has   -> pages; ID -> content, ID -> URL
 *   edges, sorted by their source, beside ID -> content        -> (target, content)
 *   sorted by target, beside ID -> URL                         -> links
 *
 * A link comes from a content, and nothing was fetched of a vertex: the content of a loaded page is a name, the MD5 of
 * "vertex " and its normal form. A page that has a content keeps it, and the edges come from that. IDs are any
 * numbers in any order. Everything larger than a line is sorted on disk; webdb changes when all is read, or not at all.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "ingest/graph.h"
#include "ingest/linewalk.h"
#include "ingest/repository.h"
#include "os/clock.h"
#include "os/stop.h"
#include "extract/extract.h"
#include "table/table.h"

#define NAME_MAX_BYTES WB_URL_MAX_BYTES

struct graph_importer {
    const struct wb_graph_import_options *options;
    struct wb_loaded *loaded;
    struct wb_linewalk walk;
    struct wb_webdb_writer *writer;
    struct wb_sorter *by_surt;    /* SURT, 0, ID -> MD5, URL */
    struct wb_sorter *contents;   /* ID -> MD5 */
    struct wb_sorter *urls;       /* ID -> URL */
    struct wb_sorter *by_source;  /* source, target */
    struct wb_sorter *by_target;  /* target, MD5 */
    struct wb_url url;
    struct wb_buf text, key, surt, message;
    int64_t now_ms;
};

static int open_sorter(const struct graph_importer *im, struct wb_sorter **sorter_out)
{
    struct wb_sorter_options options = {.dir = im->options->dir, .memory_bytes = im->options->memory_bytes / 8, .threads = 1};

    return wb_sorter_open(&options, sorter_out);
}

static void close_sorter(struct wb_sorter **sorter)
{
    if (*sorter)
        wb_sorter_close(*sorter);
    *sorter = NULL;
}

static int stopped(void)
{
    return wb_stop_requested() ? wb_fail(WB_E_STOPPED, "stopped by a signal; nothing was changed") : 0;
}

/* Two fields of a line; what follows another tab is left alone. */
static bool split_line(struct wb_slice line, struct wb_slice *first_out, struct wb_slice *second_out)
{
    const char *tab = memchr(line.ptr, '\t', line.len);

    if (!tab)
        return false;
    *first_out = wb_slice(line.ptr, (size_t)(tab - line.ptr));
    line = wb_slice(tab + 1, line.len - first_out->len - 1);
    tab = memchr(line.ptr, '\t', line.len);
    *second_out = wb_slice(line.ptr, tab ? (size_t)(tab - line.ptr) : line.len);
    return second_out->len > 0;
}

/* ---- vertices -------------------------------------------------------------------------------------- */

/* Reads the name into url, key and surt. */
static int read_name(struct graph_importer *im, struct wb_slice name)
{
    wb_buf_clear(&im->text);
    int err = wb_graph_url(name, &im->text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&im->text), NULL, &im->url);
    if (err == 0 && !wb_url_is_http(&im->url))
        err = wb_fail(WB_E_PROTO, "no URL of http or https: %.*s", WB_SLICE_ARG(name));
    if (err == 0)
        err = wb_url_key(&im->url, &im->key);
    return err < 0 ? err : wb_key_surt(wb_buf_slice(&im->key), &im->surt);
}

static int vertex_md5(struct graph_importer *im, uint8_t md5_out[WB_EDIT_MD5_BYTES])
{
    wb_buf_clear(&im->message);
    int err = wb_buf_append_str(&im->message, "vertex ");
    if (err == 0)
        err = wb_buf_append_slice(&im->message, wb_buf_slice(&im->key));
    if (err == 0)
        wb_md5(wb_buf_slice(&im->message), md5_out);
    return err;
}

static int take_vertex(void *context, struct wb_slice line)
{
    struct graph_importer *im = context;
    struct wb_slice number, name;
    uint8_t md5[WB_EDIT_MD5_BYTES];
    uint64_t id;
    char suffix[9] = {0};

    if (line.len == 0)
        return 0;
    if (!split_line(line, &number, &name) || !wb_slice_to_u64(number, &id) || name.len > NAME_MAX_BYTES)
        return wb_fail(WB_E_PROTO, "no vertex: it should be a number, a tab and a name");
    int err = read_name(im, name);
    if (err == 0)
        err = vertex_md5(im, md5);
    wb_put64_be(suffix + 1, id);
    if (err == 0)
        err = wb_buf_append(&im->surt, suffix, sizeof suffix);
    wb_buf_clear(&im->text);
    if (err == 0)
        err = wb_buf_append(&im->text, md5, sizeof md5);
    struct wb_slice href = wb_url_href(&im->url);
    if (im->url.has_fragment)
        href.len = im->url.fragment_at - 1;
    if (err == 0)
        err = wb_buf_append_slice(&im->text, href);
    if (err == 0)
        err = wb_sorter_add(im->by_surt, wb_buf_slice(&im->surt), wb_buf_slice(&im->text));
    im->loaded->pages += err == 0;
    return err;
}

/* What webdb has of the pages that vertices name: a walk beside theirs. */
struct known {
    struct wb_webdb *webdb;      /* NULL: nothing yet */
    struct wb_webdb_pages *pages;
    struct wb_webdb_page page;
    bool has_page;
};

static int known_next(struct known *known)
{
    int got = wb_webdb_pages_next(known->pages, &known->page);

    known->has_page = got > 0;
    return got < 0 ? got : 0;
}

static int known_open(const char *dir, struct known *known)
{
    *known = (struct known){.webdb = NULL};
    int err = wb_webdb_open(dir, &known->webdb);
    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0)
        err = wb_webdb_pages(known->webdb, &known->pages);
    return err < 0 ? err : known_next(known);
}

static void known_close(struct known *known)
{
    if (known->pages)
        wb_webdb_pages_close(known->pages);
    if (known->webdb)
        wb_webdb_close(known->webdb);
}

/* The page of a SURT, NULL where there is none; SURTs are asked for in order. */
static int known_find(struct known *known, struct wb_slice surt, const struct wb_webdb_page **page_out)
{
    *page_out = NULL;
    while (known->has_page) {
        struct wb_slice has = known->page.surt;
        int order = memcmp(has.ptr, surt.ptr, has.len < surt.len ? has.len : surt.len);
        order = order ? order : has.len < surt.len ? -1 : has.len > surt.len;
        if (order == 0)
            *page_out = &known->page;
        if (order >= 0)
            return 0;
        int err = known_next(known);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Adds a vertex's page, or its content to a page that was only heard of. */
static int add_page(struct graph_importer *im, const struct wb_webdb_page *known, struct wb_slice url, const uint8_t md5[WB_EDIT_MD5_BYTES])
{
    struct wb_webdb_page page = {.url = url, .surt = WB_SLICE_EMPTY, .flags = WB_PAGE_WANTED, .first_seen_ms = im->now_ms,
                                 .etag = WB_SLICE_EMPTY, .modified = WB_SLICE_EMPTY, .type = WB_SLICE_EMPTY, .location = WB_SLICE_EMPTY};

    if (known)
        page = *known;
    page.flags |= WB_PAGE_LOADED;
    page.has_content = true;
    memcpy(page.md5, md5, sizeof page.md5);
    return known ? wb_webdb_add_page(im->writer, &page) : wb_webdb_add_page_if_not_present(im->writer, &page, NULL);
}

static int add_vertex(struct graph_importer *im, struct known *known, const struct wb_record *record, bool again)
{
    struct wb_slice surt = wb_slice(record->key.ptr, record->key.len - 9), id = wb_slice(record->key.ptr + record->key.len - 8, 8);
    struct wb_slice md5 = wb_slice(record->value.ptr, WB_EDIT_MD5_BYTES);
    struct wb_slice url = wb_slice(record->value.ptr + WB_EDIT_MD5_BYTES, record->value.len - WB_EDIT_MD5_BYTES);
    const struct wb_webdb_page *page = NULL;

    int err = known_find(known, surt, &page);
    if (err < 0)
        return err;
    if (page && page->has_content) {
        im->loaded->known++;
        md5 = wb_slice((const char *)page->md5, sizeof page->md5);
    } else if (!again) {
        err = add_page(im, page, url, (const uint8_t *)md5.ptr);
    }
    if (err == 0)
        err = wb_sorter_add(im->contents, id, md5);
    return err < 0 ? err : wb_sorter_add(im->urls, id, url);
}

static int add_vertices(struct graph_importer *im)
{
    struct wb_record record;
    struct known known;
    int got = 0, err = known_open(im->options->dir, &known);

    wb_buf_clear(&im->surt);
    if (err == 0)
        err = wb_sorter_sort(im->by_surt);
    while (err == 0 && (got = wb_sorter_next(im->by_surt, &record)) > 0) {
        /* Several vertices may be spellings of one page. */
        struct wb_slice surt = wb_slice(record.key.ptr, record.key.len - 9);
        bool again = wb_slice_equal(surt, wb_buf_slice(&im->surt));
        wb_buf_clear(&im->surt);
        err = wb_buf_append_slice(&im->surt, surt);
        if (err == 0)
            err = add_vertex(im, &known, &record, again);
        if (err == 0)
            err = stopped();
    }
    known_close(&known);
    close_sorter(&im->by_surt);
    return err < 0 ? err : got;
}

/* ---- edges ------------------------------------------------------------------------------------------- */

static int take_edge(void *context, struct wb_slice line)
{
    struct graph_importer *im = context;
    struct wb_slice first, second;
    uint64_t source, target;
    char key[16];

    if (line.len == 0)
        return 0;
    if (!split_line(line, &first, &second) || !wb_slice_to_u64(first, &source) || !wb_slice_to_u64(second, &target))
        return wb_fail(WB_E_PROTO, "no edge: it should be a number, a tab and a number");
    wb_put64_be(key, source);
    wb_put64_be(key + 8, target);
    int err = wb_sorter_add(im->by_source, wb_slice(key, sizeof key), WB_SLICE_EMPTY);
    im->loaded->links += err == 0;
    return err;
}

/* Two sorters side by side: calls back for each record of edges with the value of its vertex. */
typedef int (*join_take)(struct graph_importer *im, struct wb_slice vertex, struct wb_slice edge);

static int join(struct graph_importer *im, struct wb_sorter *vertices, struct wb_sorter *edges, join_take take)
{
    struct wb_record vertex = {.key = WB_SLICE_EMPTY}, edge;
    int got = 0, err = wb_sorter_sort(vertices), left;

    if (err == 0)
        err = wb_sorter_sort(edges);
    left = err == 0 ? wb_sorter_next(vertices, &vertex) : 0;
    while (err == 0 && (got = wb_sorter_next(edges, &edge)) > 0) {
        while (left > 0 && memcmp(vertex.key.ptr, edge.key.ptr, 8) < 0)
            left = wb_sorter_next(vertices, &vertex);
        if (left < 0)
            err = left;
        else if (left > 0 && memcmp(vertex.key.ptr, edge.key.ptr, 8) == 0)
            err = take(im, vertex.value, wb_slice(edge.key.ptr + 8, edge.key.len - 8));
        else
            im->loaded->loose++;
        if (err == 0)
            err = stopped();
    }
    return err < 0 ? err : got;
}

static int take_source(struct graph_importer *im, struct wb_slice md5, struct wb_slice target)
{
    char key[8 + WB_EDIT_MD5_BYTES];

    memcpy(key, target.ptr, 8);
    memcpy(key + 8, md5.ptr, WB_EDIT_MD5_BYTES);
    return wb_sorter_add(im->by_target, wb_slice(key, sizeof key), WB_SLICE_EMPTY);
}

static int take_target(struct graph_importer *im, struct wb_slice url, struct wb_slice md5)
{
    struct wb_webdb_link link = {.to = url, .anchor = WB_SLICE_EMPTY, .tag = WB_LINK_A, .flags = WB_EDIT_LINK_FOLLOW};

    memcpy(link.from_md5, md5.ptr, sizeof link.from_md5);
    return wb_webdb_add_link(im->writer, &link);
}

static int add_edges(struct graph_importer *im)
{
    int err = open_sorter(im, &im->by_source);

    if (err == 0)
        err = wb_linewalk_file(&im->walk, im->options->edges, take_edge, im);
    if (err == 0)
        err = open_sorter(im, &im->by_target);
    if (err == 0)
        err = join(im, im->contents, im->by_source, take_source);
    close_sorter(&im->contents);
    close_sorter(&im->by_source);
    if (err == 0)
        err = join(im, im->urls, im->by_target, take_target);
    close_sorter(&im->urls);
    close_sorter(&im->by_target);
    return err;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static int read_all(struct graph_importer *im)
{
    const struct wb_graph_import_options *options = im->options;
    int err = wb_repository_open_webdb(options->dir, options->memory_bytes / 2, im->now_ms, &im->writer);

    if (err == 0)
        err = open_sorter(im, &im->by_surt);
    if (err == 0)
        err = wb_linewalk_file(&im->walk, options->vertices, take_vertex, im);
    if (err == 0 && im->loaded->pages == 0)
        err = wb_fail(WB_E_PROTO, "%s: there is no vertex in it", options->vertices);
    if (err == 0)
        err = open_sorter(im, &im->contents);
    if (err == 0)
        err = open_sorter(im, &im->urls);
    if (err == 0)
        err = add_vertices(im);
    if (err == 0 && options->edges)
        err = add_edges(im);
    return err;
}

int wb_graph_import(const struct wb_graph_import_options *options, const struct wb_ingest_sink *sink, struct wb_loaded *loaded_out)
{
    struct graph_importer im = {.options = options, .loaded = loaded_out, .walk = {.sink = sink}, .url = WB_URL_INIT,
                                .now_ms = wb_clock_wall_ms()};

    *loaded_out = (struct wb_loaded){.pages = 0};
    int err = read_all(&im);
    if (err == 0) {
        err = wb_webdb_writer_close(im.writer, &loaded_out->merge);
        im.writer = NULL;
    }
    loaded_out->bad_lines = im.walk.bad_lines;
    loaded_out->unfinished = im.walk.unfinished;
    wb_webdb_writer_abandon(im.writer);
    close_sorter(&im.by_surt);
    close_sorter(&im.contents);
    close_sorter(&im.urls);
    close_sorter(&im.by_source);
    close_sorter(&im.by_target);
    struct wb_buf *bufs[] = {&im.text, &im.key, &im.surt, &im.message};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        wb_buf_release(bufs[i]);
    wb_url_release(&im.url);
    return err;
}
