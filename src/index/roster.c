/*
 * roster.c - collects the pages of the snapshot, walks over the URLs of the edition, and gives out docids.
 *
 * Both sides are read once and in full, whatever has changed: facts only, so no body is decompressed. A stored page
 * that webdb does not know has no docid; `update` adopts such pages, so there are none but those that are not on
 * the web (a WARC may hold other things).
 */
#include "index/alternates.h"
#include "index/roster.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "index/build.h"
#include "index/sitetable.h"
#include "index/urlfile.h"
#include "os/nameless.h"

#include <stdlib.h>

enum { PROGRESS_EVERY = 8192 };

struct type_entry {
    uint64_t hash;
    uint32_t type;
};

union type_map WB_MAP_OF(struct type_entry);

/* ---- the store's side -------------------------------------------------------------------------- */

/* The number of a media type, in the order of arrival for now. */
static int number_type(struct wb_roster *roster, union type_map *map, struct wb_slice type, uint32_t *number_out)
{
    uint64_t hash = wb_hash64_seeded(type.ptr, type.len, map->map.seed);
    struct type_entry *entry = NULL;
    struct wb_slice copy;

    while ((entry = wb_map_next(map, hash, entry)))
        if (wb_slice_equal(roster->types.items[entry->type], type)) {
            *number_out = entry->type;
            return 0;
        }
    /* A server can invent types, but at most one for each page, so they take less memory than the pages do. */
    int err = wb_arena_copy(&roster->texts, type, &copy);
    if (err == 0)
        err = wb_vec_push(&roster->types, copy);
    entry = err == 0 ? wb_map_add(map, hash) : NULL;
    if (!entry)
        return WB_E_NOMEM;
    entry->type = *number_out = (uint32_t)roster->types.count - 1;
    return 0;
}

static int grow_pages(struct wb_build *build, struct wb_roster *roster)
{
    size_t room = roster->page_room * 2;
    void *memory;

    WB_CHECK(roster->page_count == roster->page_room);
    int err = wb_nameless_map(build->root, room * sizeof *roster->pages, &memory);

    if (err < 0)
        return err;
    memcpy(memory, roster->pages, roster->page_count * sizeof *roster->pages);
    wb_nameless_unmap(roster->pages, roster->page_room * sizeof *roster->pages);
    roster->pages = memory;
    roster->page_room = room;
    return 0;
}

static int add_page(struct wb_build *build, struct wb_roster *roster, union type_map *types, const struct wb_page *page)
{
    struct wb_roster_page entry = {page->id, page->time_ms,    page->body_bytes, page->epoch, WB_DOCID_NONE,
                                   0,        /* versions */ 1, page->status};
    int err = roster->page_count == roster->page_room ? grow_pages(build, roster) : 0;

    if (err == 0)
        err = number_type(roster, types, page->type, &entry.type);
    WB_CHECK(err < 0 || roster->page_count < roster->page_room);
    if (err == 0)
        roster->pages[roster->page_count++] = entry;
    return err;
}

static int by_id(const void *a, const void *b)
{
    const struct wb_roster_page *x = a, *y = b;

    return wb_pageid_compare(x->id, y->id);
}

static int scan_pages(struct wb_build *build, struct wb_roster *roster, union type_map *types)
{
    struct wb_store_scan_options options = {.snapshot = build->snapshot.number, .facts = true};
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    int more = 0, err;

    WB_CHECK(roster->page_count == 0);
    roster->page_room = build->snapshot.pages + 1024;
    void *memory = NULL;
    err = wb_nameless_map(build->root, roster->page_room * sizeof *roster->pages, &memory);
    roster->pages = memory;
    if (err == 0)
        err = wb_store_scan_open(build->store, &options, &scan);
    while (err == 0 && (more = wb_store_scan_next(scan, &page)) != 0) {
        if (more == WB_E_CORRUPT) {
            wb_build_damaged(build);
            continue;
        }
        err = more < 0 ? more : add_page(build, roster, types, &page);
        if (err == 0 && roster->page_count % PROGRESS_EVERY == 0)
            err = wb_build_progress(build, "looking through the snapshot", roster->page_count, build->snapshot.pages);
    }
    wb_store_scan_close(scan);
    if (err == 0 && roster->page_count)
        qsort(roster->pages, roster->page_count, sizeof *roster->pages, by_id);
    return err;
}

struct wb_roster_page *wb_roster_find(const struct wb_roster *roster, struct wb_pageid id)
{
    size_t low = 0, high = roster->page_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = wb_pageid_compare(roster->pages[middle].id, id);
        if (order == 0)
            return &roster->pages[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- media types ------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return wb_slice_compare(**(struct wb_slice *const *)a, **(struct wb_slice *const *)b);
}

static int write_types(struct wb_build *build, const struct wb_roster *roster, struct wb_slice *const *sorted)
{
    struct wb_table_options options = {.kind = WB_TYPES_KIND};
    struct wb_table_writer *table = NULL;
    char *path = wb_build_path(build, WB_TYPES_FILE);
    int err = path ? wb_table_create(path, &options, &table) : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < roster->types.count; i++)
        err = wb_table_add(table, *sorted[i], WB_SLICE_EMPTY);
    wb_free(path);
    if (err < 0) {
        wb_table_abandon(table);
        return err;
    }
    return wb_table_finish(table, NULL);
}

/* Numbers the types in alphabetical order, so that the numbers do not depend on the order of pages on disk. */
static int sort_types(struct wb_build *build, struct wb_roster *roster)
{
    size_t count = roster->types.count;
    struct wb_slice **sorted = wb_alloc_zero(count + 1, sizeof *sorted);
    uint32_t *rank = wb_alloc_zero(count + 1, sizeof *rank);
    int err = sorted && rank ? 0 : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < count; i++)
        sorted[i] = &roster->types.items[i];
    if (err == 0) {
        qsort(sorted, count, sizeof *sorted, by_text);
        for (size_t i = 0; i < count; i++)
            rank[sorted[i] - roster->types.items] = (uint32_t)i;
        for (size_t i = 0; i < roster->page_count; i++) {
            WB_CHECK(roster->pages[i].type < count);
            roster->pages[i].type = rank[roster->pages[i].type];
        }
        err = write_types(build, roster, sorted);
    }
    wb_free(sorted);
    wb_free(rank);
    return err;
}

/* ---- webdb's side ------------------------------------------------------------------------------ */

/* Adds a URL to the order of URL keys. Equal keys keep the order of SURTs. */
static int note_urlkey(struct wb_build *build, const struct wb_webdb_page *row, struct wb_buf scratch[2])
{
    char number[1 + 4] = {0};
    int err = wb_surt_to_key(row->surt, &scratch[0]);

    wb_put32_be(number + 1, (uint32_t)row->number);
    if (err == 0)
        err = wb_urlkey_of_key(wb_buf_slice(&scratch[0]), &scratch[1]);
    if (err == 0)
        err = wb_buf_append(&scratch[1], number, sizeof number);
    return err < 0 ? err : wb_sorter_add(build->urlkeys, wb_buf_slice(&scratch[1]), WB_SLICE_EMPTY);
}

static int note_url(struct wb_build *build, struct wb_roster *roster, const struct wb_webdb_page *row, uint64_t *bits,
                    struct wb_sitetable *sites)
{
    WB_CHECK(row->number < roster->url_count);
    struct wb_roster_url *url = &roster->urls[row->number];
    int err = wb_webdb_page_id(build->webdb, row, &url->id);
    if (err < 0)
        return err;
    struct wb_roster_page *page = wb_roster_find(roster, url->id);
    url->changed_ms = row->last_changed_ms;
    url->simhash = row->has_content ? row->simhash : 0;
    url->page = page ? (uint32_t)(page - roster->pages) : WB_DOCID_NONE;
    url->near = (uint32_t)(row->near ? row->near_number : row->number);
    const unsigned deleted = WB_PAGE_TARGET | WB_PAGE_BARRED;
    url->depth = (row->flags & deleted) == deleted ? WB_DEPTH_DELETED : row->depth;
    if (page) {
        page->docid = (uint32_t)roster->known++;
        bits[row->number / 64] |= UINT64_C(1) << row->number % 64;
    }
    return wb_sitetable_add(sites, row->surt, page != NULL, &url->site);
}

static int walk_urls(struct wb_build *build, struct wb_roster *roster, uint64_t *bits, struct wb_sitetable *sites,
                     struct wb_urlfile_writer *urls)
{
    struct wb_buf scratch[2] = {WB_BUF_INIT, WB_BUF_INIT};
    struct wb_webdb_pages *walk = NULL;
    struct wb_webdb_page row;
    int more = 0, err = wb_webdb_urls(build->webdb, 0, &walk);

    while (err == 0 && (more = wb_webdb_pages_next(walk, &row)) != 0) {
        err = more < 0 ? more : 0;
        if (err == 0 && row.number >= roster->url_count)
            err = wb_fail(WB_E_CORRUPT, "edition %u of the web database has more URLs than it says",
                          build->options->edition);
        if (err == 0)
            err = note_url(build, roster, &row, bits, sites);
        if (err == 0)
            err = note_urlkey(build, &row, scratch);
        if (err == 0 && roster->urls[row.number].page != WB_DOCID_NONE)
            err = wb_alternates_note(build, row.surt, (uint32_t)roster->known - 1);
        if (err == 0)
            err = wb_urlfile_add(urls, row.url);
        if (err == 0 && row.number % PROGRESS_EVERY == 0)
            err = wb_build_progress(build, "looking through webdb", row.number, roster->url_count);
    }
    wb_webdb_pages_close(walk);
    for (int i = 0; i < 2; i++)
        wb_buf_release(&scratch[i]);
    return err;
}

/* The walk, which also writes the file of URLs. */
static int walk_and_write(struct wb_build *build, struct wb_roster *roster, uint64_t *bits, struct wb_sitetable *sites)
{
    struct wb_urlfile_writer urls;
    char *path = wb_build_path(build, WB_URLS_FILE);
    int err = path ? wb_urlfile_create(path, &urls) : WB_E_NOMEM;

    wb_free(path);
    return err < 0 ? err : wb_urlfile_end(&urls, walk_urls(build, roster, bits, sites, &urls));
}

static int write_docids(struct wb_build *build, struct wb_roster *roster, const uint64_t *bits,
                        const struct wb_sitetable *sites)
{
    char *docids = wb_build_path(build, WB_DOCMAP_FILE), *table = wb_build_path(build, WB_SITES_TABLE_FILE);
    int err = docids && table ? wb_docmap_write(docids, bits, roster->url_count) : WB_E_NOMEM;

    if (err == 0)
        err = wb_docmap_open(docids, &roster->docmap);
    WB_CHECK(err < 0 || roster->docmap.pages == roster->known);
    if (err == 0)
        err = wb_sitetable_write(sites, table, (uint32_t)roster->known);
    wb_free(docids);
    wb_free(table);
    return err;
}

static int make_docids(struct wb_build *build, struct wb_roster *roster)
{
    struct wb_sitetable sites = {.sites = WB_VEC_INIT};
    struct wb_webdb_count count;
    void *memory = NULL;

    WB_CHECK(!roster->urls && roster->known == 0);
    wb_webdb_count(build->webdb, &count);
    roster->url_count = count.urls;
    if (count.urls >= WB_DOCID_NONE)
        return wb_fail(WB_E_LIMIT, "the web database has more URLs than there are docids");
    uint64_t *bits = wb_alloc_zero(count.urls / 64 + 1, sizeof *bits);
    int err = bits ? wb_nameless_map(build->root, (count.urls + 1) * sizeof *roster->urls, &memory) : WB_E_NOMEM;
    roster->urls = memory;
    if (err == 0)
        err = walk_and_write(build, roster, bits, &sites);
    if (err == 0)
        err = write_docids(build, roster, bits, &sites);
    roster->site_count = (uint32_t)sites.sites.count;
    wb_sitetable_release(&sites);
    wb_free(bits);
    return err;
}

/*
 * Counts versions, if any page can have more than one: those that the policy keeps. A snapshot may hold others, but
 * then the count would depend on which generations happen to be there.
 */
static int count_versions(struct wb_build *build, struct wb_roster *roster)
{
    struct wb_store_stat stat;
    int err = wb_store_stat(build->store, &stat);

    build->manifest.history = stat.history;
    if (err < 0 || stat.versions == stat.pages || stat.history.keep == WB_STORE_KEEP_NEWEST)
        return err;
    uint64_t most = stat.history.keep == WB_STORE_KEEP_COUNT ? stat.history.value : UINT32_MAX;
    for (size_t i = 0; err == 0 && i < roster->page_count; i++) {
        struct wb_store_timeline timeline;
        err = wb_store_timeline(build->store, roster->pages[i].id, &timeline);
        if (err == 0) {
            roster->pages[i].versions = (uint32_t)(timeline.count < most ? timeline.count : most);
            wb_store_timeline_release(&timeline);
        }
        if (err == WB_E_NOTFOUND) /* taken down meanwhile */
            err = 0;
        if (err == 0 && i % PROGRESS_EVERY == 0)
            err = wb_build_progress(build, "counting versions", i, roster->page_count);
    }
    return err;
}

int wb_roster_make(struct wb_build *build, struct wb_roster *roster)
{
    union type_map types = WB_MAP_INIT((uint64_t)(uintptr_t)roster);

    *roster = (struct wb_roster){.page_count = 0};
    int err = scan_pages(build, roster, &types);
    wb_map_release(&types);
    if (err == 0)
        err = sort_types(build, roster);
    if (err == 0)
        err = make_docids(build, roster);
    if (err == 0)
        err = count_versions(build, roster);
    WB_CHECK(roster->known <= roster->page_count);
    build->result->unknown = roster->page_count - roster->known;
    return err;
}

void wb_roster_release(struct wb_roster *roster)
{
    if (roster->pages)
        wb_nameless_unmap(roster->pages, roster->page_room * sizeof *roster->pages);
    if (roster->urls)
        wb_nameless_unmap(roster->urls, (roster->url_count + 1) * sizeof *roster->urls);
    wb_docmap_close(&roster->docmap);
    wb_vec_release(&roster->types);
    wb_arena_release(&roster->texts);
    *roster = (struct wb_roster){.page_count = 0};
}
