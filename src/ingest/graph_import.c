/*
 * graph_import.c - loads vertices and edges into webdb.
 *
 *   1 vertices, sorted by SURT, joined with the pages of webdb  -> pages; (ID -> content), (ID -> URL)
 *   2 edges, sorted by source ID, joined with ID -> content     -> (target ID, content)
 *   3 those, sorted by target ID, joined with ID -> URL         -> links
 *
 * In webdb a link starts from a content, but nothing was fetched for a vertex. A loaded page therefore gets a made-up
 * content, the MD5 of "vertex " and its normal form. A page that has a content keeps it, and its edges start from that.
 *
 * IDs are any numbers in any order. Memory is bounded: everything larger than a line is sorted on disk. webdb changes
 * once everything was read, or not at all.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "ingest/vertexname.h"
#include "ingest/linewalk.h"
#include "ingest/repository.h"
#include "os/clock.h"
#include "os/stop.h"
#include "table/table.h"

#define NAME_MAX_BYTES WB_URL_MAX_BYTES

enum {
    ID_BYTES = 8,               /* an ID in a sort key, big-endian, so that keys sort as the numbers do */
    SURT_TAIL = 1 + ID_BYTES,   /* what follows a SURT in a key of by_surt: a zero byte, and an ID */
};

struct graph_importer {
    const struct wb_graph_import_options *options;
    struct wb_ingest_load *load;
    struct wb_linewalk walk;
    struct wb_webdb_writer *writer;
    /* What each sorter holds, as key -> value. */
    struct wb_sorter *by_surt;    /* SURT, 0, ID -> MD5, URL */
    struct wb_sorter *contents;   /* ID -> MD5 */
    struct wb_sorter *urls;       /* ID -> URL */
    struct wb_sorter *by_source;  /* source ID, target ID */
    struct wb_sorter *by_target;  /* target ID, MD5 */
    /* Of the current vertex. */
    struct wb_url url;
    struct wb_buf text, key, surt, message;
    int64_t now_ms;
};

static int open_sorter(const struct graph_importer *im, struct wb_sorter **sorter_out)
{
    struct wb_sorter_options options = {.dir = im->options->dir, .memory_bytes = im->options->memory_bytes / 8,
                                        .threads = 1};

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

/* The first two fields of a line; what follows another tab is ignored. */
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

/* ---- 1: vertices ------------------------------------------------------------------------------- */

/* Reads the name of a vertex into url, key and surt. */
static int read_name(struct graph_importer *im, struct wb_slice name)
{
    wb_buf_clear(&im->text);
    int err = wb_graph_url(name, &im->text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&im->text), NULL, &im->url);
    if (err == 0 && !wb_url_is_http(&im->url))
        err = wb_fail(WB_E_PROTO, "not an http or https URL: %.*s", WB_SLICE_ARG(name));
    if (err == 0)
        err = wb_url_key(&im->url, &im->key);
    return err < 0 ? err : wb_surt_of_key(wb_buf_slice(&im->key), &im->surt);
}

/* The made-up content of the current vertex. */
static int vertex_md5(struct graph_importer *im, uint8_t md5_out[WB_MD5_BYTES])
{
    wb_buf_clear(&im->message);
    int err = wb_buf_append_str(&im->message, "vertex ");
    if (err == 0)
        err = wb_buf_append_slice(&im->message, wb_buf_slice(&im->key));
    if (err == 0)
        wb_md5(wb_buf_slice(&im->message), md5_out);
    return err;
}

/* A line of the file of vertices. */
static int take_vertex(void *context, struct wb_slice line)
{
    struct graph_importer *im = context;
    struct wb_slice number, name;
    uint8_t md5[WB_MD5_BYTES];
    uint64_t id;
    char tail[SURT_TAIL] = {0};

    if (line.len == 0)
        return 0;
    if (!split_line(line, &number, &name) || !wb_slice_to_u64(number, &id) || name.len > NAME_MAX_BYTES)
        return wb_fail(WB_E_PROTO, "not a vertex: it should be a number, a tab and a name");
    int err = read_name(im, name);
    if (err == 0)
        err = vertex_md5(im, md5);
    wb_put64_be(tail + 1, id);
    if (err == 0)
        err = wb_buf_append(&im->surt, tail, sizeof tail);
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
    im->load->pages += err == 0;
    return err;
}

/* A walk through the pages of webdb, in step with the sorted vertices. */
struct known_pages {
    struct wb_webdb *webdb;      /* NULL: there is none yet */
    struct wb_webdb_pages *pages;
    struct wb_webdb_page page;
    bool has_page;
};

static int next_known(struct known_pages *known)
{
    int got = wb_webdb_pages_next(known->pages, &known->page);

    known->has_page = got > 0;
    return got < 0 ? got : 0;
}

static int open_known(const char *dir, struct known_pages *known)
{
    *known = (struct known_pages){.webdb = NULL};
    int err = wb_webdb_open(dir, &known->webdb);
    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0)
        err = wb_webdb_pages(known->webdb, &known->pages);
    return err < 0 ? err : next_known(known);
}

static void close_known(struct known_pages *known)
{
    if (known->pages)
        wb_webdb_pages_close(known->pages);
    if (known->webdb)
        wb_webdb_close(known->webdb);
}

/* Finds the page of a SURT; NULL if there is none. SURTs must be asked for in order. */
static int find_known(struct known_pages *known, struct wb_slice surt, const struct wb_webdb_page **page_out)
{
    *page_out = NULL;
    while (known->has_page) {
        int order = wb_slice_compare(known->page.surt, surt);
        if (order == 0)
            *page_out = &known->page;
        if (order >= 0)
            return 0;
        int err = next_known(known);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Adds the page of a vertex. If it is known, but has no content, it gets one. */
static int add_page(struct graph_importer *im, const struct wb_webdb_page *known, struct wb_slice url,
                    const uint8_t md5[WB_MD5_BYTES])
{
    struct wb_webdb_page page = {.url = url, .surt = WB_SLICE_EMPTY, .flags = WB_PAGE_WANTED,
                                 .first_seen_ms = im->now_ms, .etag = WB_SLICE_EMPTY, .modified = WB_SLICE_EMPTY,
                                 .type = WB_SLICE_EMPTY, .location = WB_SLICE_EMPTY};

    if (known)
        page = *known;
    page.flags |= WB_PAGE_LOADED;
    page.has_content = true;
    memcpy(page.md5, md5, sizeof page.md5);
    return known ? wb_webdb_add_page(im->writer, &page) : wb_webdb_add_page_if_not_present(im->writer, &page, NULL);
}

static struct wb_slice surt_of(const struct wb_table_record *record)
{
    WB_CHECK(record->key.len > SURT_TAIL);
    return wb_slice(record->key.ptr, record->key.len - SURT_TAIL);
}

/* record: of by_surt. again: the vertex before it names the same page. */
static int add_vertex(struct graph_importer *im, struct known_pages *known, const struct wb_table_record *record,
                      bool again)
{
    struct wb_slice surt = surt_of(record);
    struct wb_slice id = wb_slice(record->key.ptr + record->key.len - ID_BYTES, ID_BYTES);
    struct wb_slice md5 = wb_slice(record->value.ptr, WB_MD5_BYTES);
    struct wb_slice url = wb_slice(record->value.ptr + WB_MD5_BYTES, record->value.len - WB_MD5_BYTES);
    const struct wb_webdb_page *page = NULL;

    int err = find_known(known, surt, &page);
    if (err < 0)
        return err;
    if (page && page->has_content) {
        im->load->known++;
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
    struct wb_table_record record;
    struct known_pages known;
    int got = 0, err = open_known(im->options->dir, &known);

    wb_buf_clear(&im->surt);
    if (err == 0)
        err = wb_sorter_sort(im->by_surt);
    while (err == 0 && (got = wb_sorter_next(im->by_surt, &record)) > 0) {
        /* Several vertices may be spellings of one page. */
        struct wb_slice surt = surt_of(&record);
        bool again = wb_slice_equal(surt, wb_buf_slice(&im->surt));
        wb_buf_clear(&im->surt);
        err = wb_buf_append_slice(&im->surt, surt);
        if (err == 0)
            err = add_vertex(im, &known, &record, again);
        if (err == 0)
            err = stopped();
    }
    close_known(&known);
    close_sorter(&im->by_surt);
    return err < 0 ? err : got;
}

/* ---- 2, 3: edges ------------------------------------------------------------------------------- */

/* A line of the file of edges. */
static int take_edge(void *context, struct wb_slice line)
{
    struct graph_importer *im = context;
    struct wb_slice first, second;
    uint64_t source, target;
    char key[2 * ID_BYTES];

    if (line.len == 0)
        return 0;
    if (!split_line(line, &first, &second) || !wb_slice_to_u64(first, &source) || !wb_slice_to_u64(second, &target))
        return wb_fail(WB_E_PROTO, "not an edge: it should be a number, a tab and a number");
    wb_put64_be(key, source);
    wb_put64_be(key + ID_BYTES, target);
    int err = wb_sorter_add(im->by_source, wb_slice(key, sizeof key), WB_SLICE_EMPTY);
    im->load->links += err == 0;
    return err;
}

/*
 * Sorts both and walks through them in step. For each record of edges it calls take() with the value of the vertex that
 * the record's key starts with, and with the rest of the key. Edges without a vertex are counted as loose.
 */
typedef int (*join_take)(struct graph_importer *im, struct wb_slice vertex, struct wb_slice edge);

static int join(struct graph_importer *im, struct wb_sorter *vertices, struct wb_sorter *edges, join_take take)
{
    struct wb_table_record vertex = {.key = WB_SLICE_EMPTY}, edge;
    int got = 0, err = wb_sorter_sort(vertices), left;

    if (err == 0)
        err = wb_sorter_sort(edges);
    left = err == 0 ? wb_sorter_next(vertices, &vertex) : 0;
    while (err == 0 && (got = wb_sorter_next(edges, &edge)) > 0) {
        while (left > 0 && memcmp(vertex.key.ptr, edge.key.ptr, ID_BYTES) < 0)
            left = wb_sorter_next(vertices, &vertex);
        if (left < 0)
            err = left;
        else if (left > 0 && memcmp(vertex.key.ptr, edge.key.ptr, ID_BYTES) == 0)
            err = take(im, vertex.value, wb_slice(edge.key.ptr + ID_BYTES, edge.key.len - ID_BYTES));
        else
            im->load->loose++;
        if (err == 0)
            err = stopped();
    }
    return err < 0 ? err : got;
}

static int take_source(struct graph_importer *im, struct wb_slice md5, struct wb_slice target)
{
    char key[ID_BYTES + WB_MD5_BYTES];

    WB_CHECK(target.len == ID_BYTES && md5.len == WB_MD5_BYTES);
    memcpy(key, target.ptr, ID_BYTES);
    memcpy(key + ID_BYTES, md5.ptr, WB_MD5_BYTES);
    return wb_sorter_add(im->by_target, wb_slice(key, sizeof key), WB_SLICE_EMPTY);
}

static int take_target(struct graph_importer *im, struct wb_slice url, struct wb_slice md5)
{
    struct wb_webdb_link link = {.to = url, .anchor = WB_SLICE_EMPTY, .tag = WB_EXTRACT_LINK_A,
                                 .flags = WB_PAGELINK_FOLLOW};

    WB_CHECK(md5.len == sizeof link.from_md5);
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

/* ---- the whole --------------------------------------------------------------------------------- */

static int read_all(struct graph_importer *im)
{
    const struct wb_graph_import_options *options = im->options;
    int err = wb_repository_open_webdb(options->dir, options->memory_bytes / 2, im->now_ms, &im->writer);

    if (err == 0)
        err = open_sorter(im, &im->by_surt);
    if (err == 0)
        err = wb_linewalk_file(&im->walk, options->vertices, take_vertex, im);
    if (err == 0 && im->load->pages == 0)
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

int wb_graph_import(const struct wb_graph_import_options *options, const struct wb_ingest_sink *sink,
                    struct wb_ingest_load *load_out)
{
    struct graph_importer im = {.options = options, .load = load_out, .walk = {.sink = sink}, .url = WB_URL_INIT,
                                .now_ms = wb_clock_wall_ms()};

    *load_out = (struct wb_ingest_load){.pages = 0};
    int err = read_all(&im);
    if (err == 0) {
        err = wb_webdb_writer_close(im.writer, &load_out->merge);
        im.writer = NULL;
    }
    load_out->bad_lines = im.walk.bad_lines;
    load_out->unfinished = im.walk.unfinished;
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
