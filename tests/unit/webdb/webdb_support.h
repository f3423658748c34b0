/*
 * webdb_support.h - editions written without a merge: the parts of an edition as plain arrays, which a test fills with
 * random data, changes as it likes, and writes to files. Header only, because every test program is one file.
 */
#ifndef WB_TESTS_WEBDB_SUPPORT_H
#define WB_TESTS_WEBDB_SUPPORT_H

#include "../journal/edit_support.h"
#include "base/bytes.h"
#include "webdb/edition.h"
#include "webdb/linklist.h"
#include "webdb/pagerow.h"
#include "webdb/sitesum.h"
#include "webdb/spelling.h"

#include <math.h>

/* A link as one of the two tables has it: owner is the content and number the page, or the other way round. */
struct part_link {
    uint64_t owner, number;
    char anchor[32];
    uint8_t anchor_len, tag, flags;
};

struct part_site {
    char surt[64];
    struct wb_webdb_site sum;
};

struct parts {
    struct wb_webdb_page *pages;  /* by SURT; url and surt are from the heap */
    size_t page_count;
    struct wb_content *contents;
    size_t content_count;
    struct part_link *out, *in;
    size_t out_count, in_count;
    uint32_t *degrees;
    size_t degree_count;
    uint32_t *near;               /* by page; UINT32_MAX: none */
    size_t near_count;
    uint8_t *kinds;               /* by page: enum wb_webdb_kind */
    size_t kind_count;
    struct wb_stored_id *ids;     /* by id */
    size_t id_count;
    struct wb_slice rules_key, rules_row; /* a row of robots.txt; key NULL: none */
    struct part_site *sites;
    size_t site_count;
    struct wb_manifest manifest;  /* its bytes are filled in when the files are written, plus bytes_off */
    uint64_t bytes_off, link_bytes_off;
    size_t piece_items;           /* 0: as many as a piece holds */
    bool skip_piece;              /* the second piece of a list is left out */
    struct wb_slice last_key, last_value; /* a record after all others of links by URL; key NULL: none */
    size_t block_bytes;
};

/* ---- making ------------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    struct wb_slice x = ((const struct wb_webdb_page *)a)->surt, y = ((const struct wb_webdb_page *)b)->surt;
    int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);

    return order ? order : x.len < y.len ? -1 : x.len > y.len;
}

static int compare_entries(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct wb_content));
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct wb_stored_id));
}

static int compare_links(const void *a, const void *b)
{
    const struct part_link *x = a, *y = b;

    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void set_url(struct wb_webdb_page *page, const char *url)
{
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT;

    assert_int_equal(wb_spelling_surt(wb_slice_str(url), &parsed, &key, &surt), 0);
    page->url = wb_slice(wb_strdup(url), strlen(url));
    page->surt = wb_slice(wb_strndup(surt.ptr, surt.len), surt.len);
    wb_url_release(&parsed);
    wb_buf_release(&key);
    wb_buf_release(&surt);
}

/* The kind of each page, and the ids of those that the store has. */
static void make_kinds(struct parts *parts)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    parts->kinds = wb_alloc_zero(parts->page_count + 1, 1);
    parts->ids = wb_alloc_zero(parts->page_count + 1, sizeof *parts->ids);
    parts->kind_count = parts->page_count;
    for (size_t i = 0; i < parts->page_count; i++) {
        const struct wb_webdb_page *page = &parts->pages[i];
        bool loaded = page->flags & WB_PAGE_LOADED, stored = page->has_content && !loaded;
        if (!(page->flags & WB_PAGE_TARGET))
            parts->kinds[i] = (uint8_t)(WB_IS_PAGE | (stored ? WB_IS_STORED : 0) | (loaded ? WB_IS_LOADED : 0));
        if (!stored)
            continue;
        assert_int_equal(wb_url_parse(page->url, NULL, &url), 0);
        assert_int_equal(wb_url_key(&url, &key), 0);
        wb_pageid_put(wb_pageid_of_key(wb_buf_slice(&key)), parts->ids[parts->id_count].id);
        wb_put32_be(parts->ids[parts->id_count++].page, (uint32_t)i);
    }
    if (parts->id_count)
        qsort(parts->ids, parts->id_count, sizeof *parts->ids, compare_ids);
    wb_url_release(&url);
    wb_buf_release(&key);
}

/* A random row: pages with and without content, copies, mere targets, pages of a loaded graph. */
static void chance_row(uint64_t *chance, struct parts *parts, size_t i, unsigned sites)
{
    struct wb_webdb_page *page = &parts->pages[i];
    unsigned site = (unsigned)chance_below(chance, sites), what = (unsigned)chance_below(chance, 10);
    char url[128];

    *page = (struct wb_webdb_page){.etag = WB_SLICE_EMPTY, .modified = WB_SLICE_EMPTY, .type = WB_SLICE_EMPTY,
                                   .location = WB_SLICE_EMPTY};
    snprintf(url, sizeof url, "%s://www%u.example%s/%s/%zu%s", site % 3 ? "http" : "https", site,
             site % 4 ? "" : ":8080", chance_below(chance, 2) ? "a" : "b/c", i,
             chance_below(chance, 3)   ? ""
             : chance_below(chance, 2) ? "/"
                                       : "?q=1");
    set_url(page, url);
    page->first_seen_ms = 1767225600000 + (int64_t)chance_below(chance, 1u << 30);
    page->depth = (uint16_t)chance_below(chance, 20);
    if (what == 0) {
        page->flags = WB_PAGE_TARGET;
        return;
    }
    page->flags = chance_below(chance, 2) ? WB_PAGE_WANTED : 0;
    if (what == 1) {
        page->flags |= WB_PAGE_SCORED;
        page->score = (double)chance_below(chance, 1000) / 7;
    }
    if (what < 4)
        return;
    page->has_content = true;
    page->flags |= what == 4 ? WB_PAGE_LOADED : 0;
    page->status = what == 5 ? 404 : 200;
    page->outcome = WB_OUTCOME_STORED;
    page->last_tried_ms = page->last_seen_ms = page->last_changed_ms = page->first_seen_ms + 5000;
    page->bytes = chance_below(chance, 100000);
    page->type = WB_SLICE_LIT("text/html");
    page->history.visits = (uint32_t)chance_below(chance, 5);
    page->history.unchanged_days = page->history.visits * 1.37;
    size_t of = i ? (size_t)chance_below(chance, i) : 0;
    if (what == 6 && parts->pages[of].has_content && of != i) {
        memcpy(page->md5, parts->pages[of].md5, sizeof page->md5);
    } else {
        wb_put64(page->md5, chance_next(chance));
        wb_put64(page->md5 + 8, chance_next(chance));
    }
}

/* The number of the content that entry i belongs to. */
static uint64_t content_of_entry(const struct parts *parts, size_t i)
{
    while (i && memcmp(parts->contents[i].md5, parts->contents[i - 1].md5, WB_MD5_BYTES) == 0)
        i--;
    return i;
}

static void make_links(uint64_t *chance, struct parts *parts, size_t links)
{
    const char *words[] = {"home", "", "next page", "index", "another", "a long one that has some words"};
    size_t hub = parts->page_count ? (size_t)chance_below(chance, parts->page_count) : 0, kept = 0;

    parts->out = wb_alloc_zero(links + 1, sizeof *parts->out);
    parts->in = wb_alloc_zero(links + 1, sizeof *parts->in);
    for (size_t i = 0; i < links && parts->content_count; i++) {
        struct part_link *link = &parts->out[i];
        link->owner = content_of_entry(parts, (size_t)chance_below(chance, parts->content_count));
        link->number = chance_below(chance, 3) ? chance_below(chance, parts->page_count) : hub;
        const char *word = words[chance_below(chance, chance_below(chance, 3) ? 2 : COUNT(words))];
        link->anchor_len = (uint8_t)strlen(word);
        memcpy(link->anchor, word, link->anchor_len);
        link->tag = (uint8_t)(1 + chance_below(chance, 2));
        link->flags = (uint8_t)chance_below(chance, 4);
        parts->out_count++;
    }
    if (parts->out_count)
        qsort(parts->out, parts->out_count, sizeof *parts->out, compare_links);
    for (size_t i = 0; i < parts->out_count; i++) {
        if (kept == 0 || compare_links(&parts->out[kept - 1], &parts->out[i]) != 0)
            parts->out[kept++] = parts->out[i];
    }
    parts->out_count = parts->in_count = kept;
    for (size_t i = 0; i < kept; i++) {
        parts->in[i] = parts->out[i];
        parts->in[i].owner = parts->out[i].number;
        parts->in[i].number = parts->out[i].owner;
        parts->degrees[parts->in[i].owner]++;
    }
    if (kept)
        qsort(parts->in, kept, sizeof *parts->in, compare_links);
}

static void make_sites(struct parts *parts)
{
    parts->sites = wb_alloc_zero(parts->page_count + 1, sizeof *parts->sites);
    for (size_t i = 0; i < parts->page_count; i++) {
        const struct wb_webdb_page *page = &parts->pages[i];
        const char *end = memchr(page->surt.ptr, ')', page->surt.len);
        struct part_site *site = parts->site_count ? &parts->sites[parts->site_count - 1] : NULL;
        size_t len = (size_t)(end + 1 - page->surt.ptr);
        if (page->flags & WB_PAGE_TARGET)
            continue;
        if (!site || strlen(site->surt) != len || memcmp(site->surt, page->surt.ptr, len) != 0) {
            site = &parts->sites[parts->site_count++];
            memcpy(site->surt, page->surt.ptr, len);
        }
        wb_sitesum_add(&site->sum, page);
    }
}

static void count_parts(struct parts *parts)
{
    struct wb_webdb_count *count = &parts->manifest.count;

    for (size_t i = 0; i < parts->page_count; i++) {
        count->pages += !(parts->pages[i].flags & WB_PAGE_TARGET);
        count->fetched += parts->pages[i].has_content && !(parts->pages[i].flags & WB_PAGE_LOADED);
    }
    for (size_t i = 0; i < parts->content_count; i++)
        count->contents += content_of_entry(parts, i) == i;
    count->links = parts->in_count;
    count->sites = parts->site_count;
    count->time_ms = 1767225600000;
    parts->manifest.rows = parts->page_count;
}

UNUSED void make_parts(uint64_t *chance, size_t pages, unsigned sites, size_t links, struct parts *parts)
{
    *parts = (struct parts){.page_count = pages};
    parts->pages = wb_alloc_zero(pages + 1, sizeof *parts->pages);
    parts->contents = wb_alloc_zero(pages + 1, sizeof *parts->contents);
    parts->degrees = wb_alloc_zero(pages + 1, sizeof *parts->degrees);
    parts->degree_count = parts->near_count = pages;
    parts->near = wb_alloc_zero(pages + 1, sizeof *parts->near);
    memset(parts->near, 0xff, pages * sizeof *parts->near);
    for (size_t i = 0; i < pages; i++)
        chance_row(chance, parts, i, sites);
    if (pages)
        qsort(parts->pages, pages, sizeof *parts->pages, compare_rows);
    for (size_t i = 0; i < pages; i++) {
        if (!parts->pages[i].has_content)
            continue;
        struct wb_content *entry = &parts->contents[parts->content_count++];
        memcpy(entry->md5, parts->pages[i].md5, sizeof entry->md5);
        wb_put64_be(entry->page, i);
    }
    if (parts->content_count)
        qsort(parts->contents, parts->content_count, sizeof *parts->contents, compare_entries);
    make_links(chance, parts, pages ? links : 0);
    make_sites(parts);
    make_kinds(parts);
    count_parts(parts);
    for (size_t i = 0; i < pages; i++) { /* what readers fill in */
        struct wb_webdb_page *page = &parts->pages[i];
        page->number = i;
        page->inlinks = parts->degrees[i];
        if (!(page->flags & WB_PAGE_SCORED))
            page->score = log2(2 + (double)page->inlinks);
    }
}

/* Parts of different sizes, from nothing to many files and blocks. */
enum { PARTS_SIZES = 6 };

UNUSED void make_parts_of_size(uint64_t *chance, size_t size, struct parts *parts)
{
    static const struct {
        size_t pages, links, piece, block;
        unsigned sites;
    } sizes[PARTS_SIZES] = {{0, 0, 0, 0, 1},      {1, 0, 0, 0, 1},       {2, 5, 0, 0, 1},
                            {40, 300, 1, 300, 3}, {400, 5000, 7, 0, 20}, {5000, 60000, 0, 16 << 10, 40}};

    make_parts(chance, sizes[size].pages, sizes[size].sites, sizes[size].links, parts);
    parts->piece_items = sizes[size].piece;
    parts->block_bytes = sizes[size].block;
}

UNUSED void free_parts(struct parts *parts)
{
    for (size_t i = 0; i < parts->page_count; i++) {
        wb_free((void *)(uintptr_t)parts->pages[i].url.ptr);
        wb_free((void *)(uintptr_t)parts->pages[i].surt.ptr);
    }
    wb_free(parts->pages);
    wb_free(parts->contents);
    wb_free(parts->out);
    wb_free(parts->in);
    wb_free(parts->degrees);
    wb_free(parts->near);
    wb_free(parts->kinds);
    wb_free(parts->ids);
    wb_free(parts->sites);
    *parts = (struct parts){.page_count = 0};
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct wb_table_writer *create_table(const struct parts *parts, const char *edition, const char *name,
                                            const char *kind)
{
    struct wb_table_options options = {.block_bytes = parts->block_bytes ? parts->block_bytes : 1024};
    struct wb_table_writer *writer;
    char *path = wb_path_join(edition, name);

    memcpy(options.kind, kind, sizeof options.kind);
    assert_int_equal(wb_table_create(path, &options, &writer), 0);
    wb_free(path);
    return writer;
}

static uint64_t write_rows(const struct parts *parts, const char *edition)
{
    struct wb_table_writer *writer = create_table(parts, edition, WB_PAGES_FILE, WB_PAGES_KIND);
    struct wb_buf row = WB_BUF_INIT;
    struct wb_table_stat stat;

    for (size_t i = 0; i < parts->page_count; i++) {
        wb_buf_clear(&row);
        assert_int_equal(wb_pagerow_encode(&parts->pages[i], &row), 0);
        assert_int_equal(wb_table_add(writer, parts->pages[i].surt, wb_buf_slice(&row)), 0);
    }
    assert_int_equal(wb_table_finish(writer, &stat), 0);
    wb_buf_release(&row);
    return stat.bytes;
}

static uint64_t write_sites(const struct parts *parts, const char *edition)
{
    struct wb_table_writer *writer = create_table(parts, edition, WB_SITES_FILE, WB_SITES_KIND);
    struct wb_buf row = WB_BUF_INIT;
    struct wb_table_stat stat;

    for (size_t i = 0; i < parts->site_count; i++) {
        wb_buf_clear(&row);
        assert_int_equal(wb_sitesum_encode(&parts->sites[i].sum, &row), 0);
        assert_int_equal(wb_table_add(writer, wb_slice_str(parts->sites[i].surt), wb_buf_slice(&row)), 0);
    }
    assert_int_equal(wb_table_finish(writer, &stat), 0);
    wb_buf_release(&row);
    return stat.bytes;
}

static uint64_t write_links(const struct parts *parts, const char *edition, const char *name, const char *kind,
                            const struct part_link *links, size_t count)
{
    static struct wb_linkitem items[WB_LINKLIST_ITEMS];
    struct wb_table_writer *writer = create_table(parts, edition, name, kind);
    size_t most = parts->piece_items ? parts->piece_items : WB_LINKLIST_ITEMS;
    struct wb_buf piece = WB_BUF_INIT;
    struct wb_table_stat stat;
    char key[WB_LINKLIST_KEY_MAX];
    uint32_t number = 0;

    for (size_t i = 0; i < count;) {
        size_t n = 0;
        for (; n < most && i + n < count && links[i + n].owner == links[i].owner; n++)
            items[n] = (struct wb_linkitem){links[i + n].number, wb_slice(links[i + n].anchor, links[i + n].anchor_len),
                                            links[i + n].tag, links[i + n].flags};
        wb_buf_clear(&piece);
        assert_int_equal(wb_linklist_encode(items, n, &piece), 0);
        number = i && links[i - 1].owner == links[i].owner ? number + 1 : 0;
        if (!parts->skip_piece || number != 1)
            assert_int_equal(
                wb_table_add(writer, wb_slice(key, wb_linklist_key(links[i].owner, number, key)), wb_buf_slice(&piece)),
                0);
        i += n;
    }
    if (parts->last_key.ptr && links == parts->in)
        assert_int_equal(wb_table_add(writer, parts->last_key, parts->last_value), 0);
    assert_int_equal(wb_table_finish(writer, &stat), 0);
    wb_buf_release(&piece);
    return stat.bytes;
}

static uint64_t write_column(const char *edition, const char *name, const char *kind, const void *records, size_t bytes,
                             size_t count)
{
    struct wb_column_writer *writer;
    char *path = wb_path_join(edition, name);
    uint64_t size;

    assert_int_equal(wb_column_create(path, kind, bytes, &writer), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(wb_column_add(writer, (const char *)records + i * bytes), 0);
    assert_int_equal(wb_column_finish(writer, &size), 0);
    wb_free(path);
    return size;
}

static uint64_t write_rules(const struct parts *parts, const char *edition)
{
    struct wb_table_writer *writer = create_table(parts, edition, WB_RULES_FILE, WB_RULES_KIND);
    struct wb_table_stat stat;

    if (parts->rules_key.ptr)
        assert_int_equal(wb_table_add(writer, parts->rules_key, parts->rules_row), 0);
    assert_int_equal(wb_table_finish(writer, &stat), 0);
    return stat.bytes;
}

static uint64_t write_near(const struct parts *parts, const char *edition)
{
    uint8_t *near = wb_alloc_zero(parts->near_count + 1, 4);

    for (size_t i = 0; i < parts->near_count; i++)
        wb_put32(near + 4 * i, parts->near[i]);
    uint64_t bytes = write_column(edition, WB_NEAR_FILE, WB_NEAR_KIND, near, 4, parts->near_count);
    wb_free(near);
    return bytes;
}

static uint64_t write_kinds_and_ids(const struct parts *parts, const char *edition)
{
    return write_column(edition, WB_KINDS_FILE, WB_KINDS_KIND, parts->kinds, 1, parts->kind_count) +
           write_column(edition, WB_IDS_FILE, WB_IDS_KIND, parts->ids, sizeof *parts->ids, parts->id_count);
}

/* Writes an edition; its manifest gets this number unless it has one. */
UNUSED void write_parts(const char *dir, uint32_t number, const struct parts *parts)
{
    struct wb_manifest manifest = parts->manifest;
    struct wb_webdb_count *count = &manifest.count;
    char *edition = wb_edition_path(dir, number), *path = wb_path_join(edition, WB_MANIFEST_FILE);
    uint8_t *degrees = wb_alloc_zero(parts->degree_count + 1, 4);

    assert_int_equal(wb_path_mkdirs(edition), 0);
    for (size_t i = 0; i < parts->degree_count; i++)
        wb_put32(degrees + 4 * i, parts->degrees[i]);
    count->link_bytes = write_links(parts, edition, WB_OUTLINKS_FILE, WB_OUTLINKS_KIND, parts->out, parts->out_count);
    count->link_bytes += write_links(parts, edition, WB_INLINKS_FILE, WB_INLINKS_KIND, parts->in, parts->in_count);
    count->bytes = count->link_bytes + write_rows(parts, edition) + write_sites(parts, edition);
    count->bytes += write_column(edition, WB_CONTENTS_FILE, WB_CONTENTS_KIND, parts->contents, sizeof *parts->contents,
                                 parts->content_count);
    count->bytes += write_column(edition, WB_DEGREES_FILE, WB_DEGREES_KIND, degrees, 4, parts->degree_count);
    count->bytes += write_near(parts, edition) + write_rules(parts, edition) + write_kinds_and_ids(parts, edition);
    count->bytes += parts->bytes_off;
    count->link_bytes += parts->link_bytes_off;
    count->edition = count->edition ? count->edition : number;
    assert_int_equal(wb_manifest_write(path, &manifest), 0);
    wb_free(degrees);
    wb_free(edition);
    wb_free(path);
}

/* ---- one that is replaced all the time ------------------------------------------------------- */

static void link_files(const char *old, const char *fresh, uint32_t number)
{
    static const char *const names[] = {WB_PAGES_FILE,   WB_CONTENTS_FILE, WB_OUTLINKS_FILE, WB_INLINKS_FILE,
                                        WB_DEGREES_FILE, WB_SITES_FILE,    WB_NEAR_FILE,     WB_RULES_FILE,
                                        WB_KINDS_FILE,   WB_IDS_FILE};
    char *from = wb_path_join(old, WB_MANIFEST_FILE), *to = wb_path_join(fresh, WB_MANIFEST_FILE);
    struct wb_manifest manifest;

    must(wb_manifest_read(from, &manifest) == 0);
    manifest.count.edition = number;
    must(wb_manifest_write(to, &manifest) == 0);
    wb_manifest_release(&manifest);
    wb_free(from);
    wb_free(to);
    for (size_t i = 0; i < COUNT(names); i++) {
        from = wb_path_join(old, names[i]);
        to = wb_path_join(fresh, names[i]);
        must(link(from, to) == 0);
        wb_free(from);
        wb_free(to);
    }
}

/*
 * A child's work: publishes editions of the files of number 1 as fast as it can, and removes the ones before. context:
 * the directory.
 */
UNUSED void publish_for_ever(void *context, int to)
{
    const char *dir = context;
    char *fresh = wb_path_join(dir, WB_WEBDB_DIR "/new-1"), *retired = wb_path_join(dir, WB_WEBDB_DIR "/old-1");

    (void)to;
    for (uint32_t number = 1;; number++) {
        char *old = wb_edition_path(dir, number), *next = wb_edition_path(dir, number + 1);
        must(wb_path_mkdirs(fresh) == 0);
        link_files(old, fresh, number + 1);
        must(wb_path_rename(fresh, next) == 0);
        must(wb_path_rename(old, retired) == 0);
        must(wb_series_remove(retired) == 0);
        wb_free(old);
        wb_free(next);
    }
}

#endif
