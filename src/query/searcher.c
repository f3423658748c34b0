/*
 * searcher.c - opens a generation for searching, and knows which documents must not be shown.
 *
 * A takedown has to take effect at once, but a generation never changes. So before every search the store is asked
 * whether its bars are still the same. That is all, as long as they are; otherwise they are read, and the set of
 * documents that may be shown is made again.
 */
#include "base/error.h"
#include "base/kept.h"
#include "base/map.h"
#include "query/searcher.h"
#include "url/url.h"

int wb_searcher_open(const char *dir, struct wb_searcher **searcher_out)
{
    struct wb_searcher *searcher = wb_alloc_zero(1, sizeof *searcher);
    int err = searcher ? wb_index_open(dir, &searcher->index) : WB_E_NOMEM;

    *searcher_out = NULL;
    if (searcher)
        searcher->magic = WB_SEARCHER_MAGIC;
    if (err == 0)
        err = wb_store_open(dir, WB_STORE_READ, &searcher->store);
    if (err == 0)
        err = wb_snippeter_new(&searcher->snippeter);
    if (err == 0)
        err = wb_text_reader_new(&searcher->reader);
    const struct wb_index_info *info = err == 0 ? wb_index_info(searcher->index) : NULL;
    if (info && (info->urls > UINT32_MAX - WB_WINDOW || info->pages > info->urls))
        err = wb_fail(WB_E_LIMIT, "%s: the index has more URLs than a search can count", dir);
    if (err < 0) {
        wb_searcher_close(searcher);
        return err;
    }
    searcher->wordlist = (struct wb_wordlist)WB_WORDLIST_INIT;
    searcher->words = wb_snippeter_words(searcher->snippeter);
    searcher->pages = (uint32_t)info->pages;
    searcher->urls = (uint32_t)info->urls;
    searcher->bit_words = ((size_t)searcher->urls / WB_WINDOW + 1) * WB_WINDOW_WORDS;
    *searcher_out = searcher;
    return 0;
}

void wb_searcher_close(struct wb_searcher *searcher)
{
    if (!searcher)
        return;
    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    searcher->magic = 0;
    wb_graph_cursor_close(searcher->in);
    wb_graph_cursor_close(searcher->out);
    wb_wordlist_release(&searcher->wordlist);
    wb_snippeter_free(searcher->snippeter);
    wb_text_reader_free(searcher->reader);
    wb_store_close(searcher->store);
    wb_index_close(searcher->index);
    wb_arena_release(&searcher->scratch);
    wb_kept_drop(WB_KEPT_GENERATIONS, searcher->counted);
    wb_free(searcher->static_max);
    wb_free(searcher->inlinks);
    wb_free(searcher->shown);
    wb_free(searcher->allowed);
    wb_free(searcher);
}

/* Counts what a search cannot do without. It goes with the generation. */
static void count_memory(struct wb_searcher *searcher, size_t bytes)
{
    searcher->counted += bytes;
    wb_kept_need(WB_KEPT_GENERATIONS, bytes);
}

struct wb_index *wb_searcher_index(struct wb_searcher *searcher)
{
    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    return searcher->index;
}

void wb_searcher_use_cache(struct wb_searcher *searcher, struct wb_text_cache *cache)
{
    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    searcher->texts = cache;
}

static bool has_column(void *context, struct wb_slice name)
{
    struct wb_searcher *searcher = context;
    const struct wb_index_column *column;

    return wb_index_column(searcher->index, name, &column) == 0;
}

int wb_searcher_parse(struct wb_searcher *searcher, struct wb_slice query, struct wb_arena *arena,
                      struct wb_ask *ask_out)
{
    struct wb_ask_options options = {has_column, searcher};

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_ask_parse(query, &options, arena, ask_out);
    return err < 0 ? err : wb_ask_simplify(ask_out, arena);
}

/* ---- bars -------------------------------------------------------------------------------------- */

struct bar_copy {
    enum wb_store_bar_kind kind;
    struct wb_pageid id;
    struct wb_slice site;
    bool except;
};

struct bar_list {
    struct wb_arena texts;
    WB_VEC(struct bar_copy) bars;
};

static int take_bar(void *context, const struct wb_store_bar *bar)
{
    struct bar_list *list = context;
    struct bar_copy copy = {.kind = bar->kind, .id = bar->id, .site = WB_SLICE_EMPTY, .except = bar->except};

    /* Another kind would be passed over below, and what it bars would be shown. */
    WB_CHECK(bar->kind == WB_STORE_BAR_SITE || bar->kind == WB_STORE_BAR_PAGE);
    int err = bar->kind == WB_STORE_BAR_SITE ? wb_arena_copy(&list->texts, bar->site, &copy.site) : 0;
    return err < 0 ? err : wb_vec_push(&list->bars, copy);
}

struct wb_range_list WB_VEC_OF(struct wb_index_range);

static int take_range(void *context, struct wb_index_range range)
{
    struct wb_range_list *ranges = context;

    return wb_vec_push(ranges, range);
}

static void clear_range(uint64_t *bits, struct wb_index_range range)
{
    for (uint32_t docid = range.first; docid < range.end; docid++)
        bits[docid / 64] &= ~(1ull << docid % 64);
}

/* wb_index_sites() also gives the hosts below this one: only the site itself is barred. */
static int bar_site(struct wb_searcher *searcher, struct wb_slice site)
{
    struct wb_range_list ranges = WB_VEC_INIT;
    const void *sites = NULL;
    int err = wb_index_sites(searcher->index, site, take_range, &ranges);

    if (err == 0 && ranges.count)
        err = wb_index_fact(searcher->index, WB_FACT_SITE, &sites);
    for (size_t i = 0; err == 0 && i < ranges.count; i++) {
        struct wb_index_range range = ranges.items[i];
        struct wb_slice name;
        WB_CHECK(range.first < range.end && range.end <= searcher->urls);
        err = wb_index_site(searcher->index, ((const uint32_t *)sites)[range.first], &name);
        if (err == 0 && wb_slice_equal(name, site))
            clear_range(searcher->allowed, range);
    }
    wb_vec_release(&ranges);
    return err;
}

static void set_allowed(struct wb_searcher *searcher, uint32_t docid, bool allowed)
{
    WB_CHECK(docid < searcher->urls);
    if (allowed)
        searcher->allowed[docid / 64] |= 1ull << docid % 64;
    else
        searcher->allowed[docid / 64] &= ~(1ull << docid % 64);
}

struct wb_barred_entry {
    uint64_t hash;
    struct wb_pageid id;
    bool except;
};
union wb_barred_map WB_MAP_OF(struct wb_barred_entry);

/* After the next update, a page that was taken down is only a target of links, which webdb does not find by its id. */
static int bar_targets(struct wb_searcher *searcher, union wb_barred_map *barred)
{
    const void *ids = NULL;
    int err = wb_index_fact(searcher->index, WB_FACT_ID, &ids);

    for (uint32_t docid = searcher->pages; err == 0 && docid < searcher->urls; docid++) {
        struct wb_pageid id = wb_pageid_get((const char *)ids + (size_t)docid * WB_PAGEID_BYTES);
        struct wb_barred_entry *entry = NULL;
        while ((entry = wb_map_next(barred, id.lo, entry)))
            if (wb_pageid_equal(entry->id, id))
                set_allowed(searcher, docid, entry->except);
    }
    return err;
}

static int bar_pages(struct wb_searcher *searcher, const struct bar_list *list)
{
    union wb_barred_map targets = WB_MAP_INIT(0);
    int err = 0;

    for (size_t i = 0; err == 0 && i < list->bars.count; i++) {
        const struct bar_copy *bar = &list->bars.items[i];
        uint32_t docid = 0;
        if (bar->kind != WB_STORE_BAR_PAGE)
            continue;
        err = wb_index_find_id(searcher->index, bar->id, &docid);
        if (err == 0)
            set_allowed(searcher, docid, bar->except);
        if (err != WB_E_NOTFOUND)
            continue;
        struct wb_barred_entry *entry = wb_map_add(&targets, bar->id.lo);
        if (entry)
            *entry = (struct wb_barred_entry){entry->hash, bar->id, bar->except};
        err = entry ? 0 : WB_E_NOMEM;
    }
    if (err == 0 && targets.map.count)
        err = bar_targets(searcher, &targets);
    wb_map_release(&targets);
    return err;
}

/* Sites first, then pages, which may be exceptions. */
static int set_bars(struct wb_searcher *searcher, const struct bar_list *list)
{
    int err = 0;

    WB_CHECK((uint64_t)searcher->bit_words * 64 >= searcher->urls);
    memset(searcher->allowed, 0, searcher->bit_words * sizeof *searcher->allowed);
    for (uint32_t docid = 0; docid < searcher->urls; docid += 64)
        searcher->allowed[docid / 64] =
            searcher->urls - docid < 64 ? (1ull << (searcher->urls - docid)) - 1 : UINT64_MAX;
    for (size_t i = 0; err == 0 && i < list->bars.count; i++)
        if (list->bars.items[i].kind == WB_STORE_BAR_SITE)
            err = bar_site(searcher, list->bars.items[i].site);
    return err < 0 ? err : bar_pages(searcher, list);
}

/* Pages with a status other than 2xx are found only by queries with status:, and what was deleted by none. */
static int set_shown(struct wb_searcher *searcher)
{
    const void *statuses = NULL, *depths = NULL;
    uint64_t shown = 0, allowed = 0;
    int err = wb_index_fact(searcher->index, WB_FACT_STATUS, &statuses);

    if (err == 0)
        err = wb_index_fact(searcher->index, WB_FACT_DEPTH, &depths);
    if (err < 0)
        return err;
    memcpy(searcher->shown, searcher->allowed, searcher->bit_words * sizeof *searcher->shown);
    for (uint32_t docid = 0; docid < searcher->pages; docid++) {
        uint16_t status = ((const uint16_t *)statuses)[docid];
        if (status < 200 || status > 299)
            searcher->shown[docid / 64] &= ~(1ull << docid % 64);
    }
    for (uint32_t docid = searcher->pages; docid < searcher->urls; docid++)
        if (((const uint16_t *)depths)[docid] == WB_DEPTH_DELETED)
            searcher->shown[docid / 64] &= ~(1ull << docid % 64);
    for (size_t i = 0; i < searcher->bit_words; i++) {
        shown += (uint64_t)__builtin_popcountll(searcher->shown[i]);
        allowed += (uint64_t)__builtin_popcountll(searcher->allowed[i]);
    }
    searcher->all_shown = shown == searcher->urls;
    searcher->barred = searcher->urls - allowed;
    return 0;
}

/* Makes both sets, or none. */
static int make_sets(struct wb_searcher *searcher)
{
    uint64_t *allowed = wb_alloc_zero(searcher->bit_words, sizeof *allowed);
    uint64_t *shown = wb_alloc_zero(searcher->bit_words, sizeof *shown);

    WB_CHECK(!searcher->shown);
    if (!allowed || !shown) {
        wb_free(allowed);
        wb_free(shown);
        return WB_E_NOMEM;
    }
    searcher->allowed = allowed;
    searcher->shown = shown;
    count_memory(searcher, 2 * searcher->bit_words * sizeof *allowed);
    return 0;
}

/* Reads all bars and makes the sets of documents that may be shown. */
static int read_bars(struct wb_searcher *searcher)
{
    struct bar_list list = {.texts = {0}};

    WB_CHECK(!searcher->bars_read);
    int err = wb_store_bar_each(searcher->store, take_bar, &list);
    if (err == 0 && !searcher->allowed)
        err = make_sets(searcher);
    if (searcher->inlinks) {
        searcher->counted -= (size_t)searcher->urls * sizeof *searcher->inlinks;
        wb_kept_drop(WB_KEPT_GENERATIONS, (size_t)searcher->urls * sizeof *searcher->inlinks);
    }
    wb_free(searcher->inlinks);
    searcher->inlinks = NULL;
    if (err == 0)
        err = set_bars(searcher, &list);
    if (err == 0)
        err = set_shown(searcher);
    wb_arena_release(&list.texts);
    wb_vec_release(&list.bars);
    return err;
}

int wb_searcher_refresh(struct wb_searcher *searcher)
{
    uint64_t version;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_store_bar_version(searcher->store, &version);
    if (err < 0 || (searcher->bars_read && searcher->bars_version == version))
        return err;
    searcher->bars_read = false; /* if reading fails, the next search tries again */
    err = read_bars(searcher);
    searcher->bars_read = err == 0;
    searcher->bars_version = version;
    return err;
}

/* ---- columns and graphs -------------------------------------------------------------------------- */

int wb_searcher_statics(struct wb_searcher *searcher)
{
    const void *statics = NULL;
    size_t panes = ((size_t)searcher->urls / WB_WINDOW + 1) * WB_PANES;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = searcher->statics ? 0 : wb_index_fact(searcher->index, WB_FACT_STATIC, &statics);
    if (err < 0 || searcher->statics)
        return err;
    for (uint32_t docid = 0; docid < searcher->urls; docid++)
        if (((const uint32_t *)statics)[docid] > WB_SCORE_ONE)
            return wb_fail(WB_E_CORRUPT, "the column static has values that no PageRank gives");
    WB_CHECK(!searcher->static_max); /* it comes with the column, or not at all */
    searcher->static_max = wb_alloc_zero(panes, sizeof *searcher->static_max);
    if (!searcher->static_max)
        return WB_E_NOMEM;
    count_memory(searcher, panes * sizeof *searcher->static_max);
    for (uint32_t docid = 0; docid < searcher->urls; docid++) {
        uint32_t value = ((const uint32_t *)statics)[docid], *max = &searcher->static_max[docid / WB_PANE];
        *max = value > *max ? value : *max;
    }
    searcher->statics = statics;
    return 0;
}

int wb_searcher_arcs(struct wb_searcher *searcher, enum wb_webdb_direction direction, uint32_t docid,
                     const uint32_t **list_out, size_t *count_out)
{
    struct wb_graph_cursor **cursor = direction == WB_ARCS_OUT ? &searcher->out : &searcher->in;
    int err = 0;

    WB_CHECK(direction == WB_ARCS_OUT || direction == WB_ARCS_IN);
    WB_CHECK(docid < searcher->urls);
    *list_out = NULL;
    *count_out = 0;
    if (!*cursor)
        err = wb_graph_cursor_open(direction == WB_ARCS_OUT ? wb_index_links_out(searcher->index)
                                                            : wb_index_links_in(searcher->index),
                                   cursor);
    return err < 0 ? err : wb_graph_successors(*cursor, docid, list_out, count_out);
}

/* Takes the links of pages that were taken down out of the numbers of in-links. */
static int count_inlinks(struct wb_searcher *searcher, const uint32_t *column)
{
    uint32_t *inlinks = wb_alloc((size_t)searcher->urls * sizeof *inlinks + 1);
    int err = inlinks ? 0 : WB_E_NOMEM;

    if (err == 0)
        memcpy(inlinks, column, (size_t)searcher->urls * sizeof *inlinks);
    for (uint32_t docid = 0; err == 0 && docid < searcher->pages; docid++) {
        const uint32_t *targets;
        size_t count = 0;
        if (!wb_searcher_barred(searcher, docid))
            continue;
        err = wb_searcher_arcs(searcher, WB_ARCS_OUT, docid, &targets, &count);
        for (size_t i = 0; i < count; i++) {
            WB_CHECK(targets[i] < searcher->urls);
            if (inlinks[targets[i]])
                inlinks[targets[i]]--;
        }
    }
    if (err < 0) {
        wb_free(inlinks);
        return err;
    }
    searcher->inlinks = inlinks;
    count_memory(searcher, (size_t)searcher->urls * sizeof *inlinks);
    return 0;
}

int wb_searcher_inlinks(struct wb_searcher *searcher, const uint32_t **inlinks_out)
{
    const void *column = NULL;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_index_fact(searcher->index, WB_FACT_INLINKS, &column);
    if (err == 0 && searcher->barred && !searcher->inlinks)
        err = count_inlinks(searcher, column);
    *inlinks_out = searcher->inlinks ? searcher->inlinks : column;
    return err;
}

int wb_searcher_find(struct wb_searcher *searcher, struct wb_slice url, uint32_t *docid_out)
{
    struct wb_url parsed = WB_URL_INIT;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_url_parse_typed(url, &parsed);
    *docid_out = WB_DOCID_NONE;
    if (err == 0)
        err = wb_index_find(searcher->index, wb_url_href(&parsed), docid_out);
    wb_url_release(&parsed);
    return err == WB_E_INVALID || err == WB_E_PROTO || err == WB_E_LIMIT ? WB_E_NOTFOUND : err;
}
