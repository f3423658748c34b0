/*
 * pagelist.c - makes the list of pages of a stream that cannot simply follow the disk: in another order than the
 * crawl's, or with a query, or with every capture.
 *
 *   facts scan of the snapshot ---> selected? (site, time, part, ... and the set of docids that the index found)
 *                              ---> key of the order ---> sort ---> ids
 *
 * The list is fixed when the stream begins. It goes to the shelf, so that a stream that is resumed has the same list
 * although another generation, with other ranks, has become active. Memory: 40 bytes for each selected page while it is
 * made, 16 afterwards; in the order of URLs also the texts of the SURTs.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/stop.h"
#include "stream/stream_own.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LOOKED_AT_ONCE = 1024 }; /* pages between two looks at whether a signal came */

/* A page and its place in the order. Missing keys come last, in both directions. */
struct pagelist_entry {
    uint64_t key; /* ascending; of URLs: the first eight bytes of the SURT */
    struct wb_pageid id;
    const char *surt; /* of URLs: the rest, ended by a NUL byte; SURTs have none */
};

struct pagelist_maker {
    struct wb_stream *stream;
    WB_VEC(struct pagelist_entry) entries;
    uint64_t *bits;          /* the docids that the index selects; NULL: any page */
    const double *ranks;     /* by docid */
    const int64_t *modified; /* by docid; NULL: the pages are read */
    struct wb_extractor *extractor;
    struct wb_arena texts;
    struct wb_buf surt;
};

bool wb_pagelist_needed(const struct wb_stream *stream)
{
    const struct wb_stream_spec *spec = &stream->spec;

    return spec->order != WB_STREAM_CRAWL || spec->reverse || spec->versions || spec->selection.query.len ||
           (spec->selection.lang.len && stream->ticket.generation);
}

/* ---- keys ---------------------------------------------------------------------------------------- */

/* Numbers as unsigned ones in the same order; UINT64_MAX is left for "missing". */
static uint64_t key_of_time(int64_t time_ms)
{
    uint64_t key = (uint64_t)time_ms ^ UINT64_C(1) << 63;

    return key == UINT64_MAX ? key - 1 : key;
}

/* The highest rank comes first. Ranks are not negative, so their bits are in the order of their values. */
static uint64_t key_of_rank(double rank)
{
    uint64_t bits;

    memcpy(&bits, &rank, sizeof bits);
    return rank >= 0 ? INT64_MAX - bits : UINT64_MAX;
}

/* Reverses the order of keys, but leaves the missing ones at the end. */
static uint64_t reversed(uint64_t key)
{
    return key == UINT64_MAX ? key : UINT64_MAX - 1 - key;
}

static int read_modified(struct pagelist_maker *m, const struct wb_page *page, uint32_t docid, uint64_t *key_out)
{
    struct wb_extract_input input = {
        .url = page->url, .type = page->type, .charset = page->charset, .body = page->body};
    struct wb_extract extract;

    *key_out = UINT64_MAX;
    if (m->modified) {
        if (docid != WB_DOCID_NONE && m->modified[docid] != 0)
            *key_out = key_of_time(m->modified[docid]);
        return 0;
    }
    int err = wb_extract(m->extractor, &input, &extract);
    int64_t modified_ms = err < 0 || extract.modified_ms ? extract.modified_ms
                                                         : wb_http_modified(page->head, page->time_ms);
    if (err == 0 && modified_ms != 0)
        *key_out = key_of_time(modified_ms);
    return err;
}

static int read_surt(struct pagelist_maker *m, const struct wb_page *page, struct pagelist_entry *entry)
{
    int err = wb_surt_of_key(page->key, &m->surt);
    size_t len = m->surt.len, first = len < 8 ? len : 8;
    char *rest = err == 0 ? wb_arena_take(&m->texts, len - first + 1) : NULL;

    if (err < 0 || !rest)
        return err < 0 ? err : WB_E_NOMEM;
    entry->key = 0;
    for (size_t i = 0; i < 8; i++)
        entry->key = entry->key << 8 | (i < first ? (uint8_t)m->surt.ptr[i] : 0);
    memcpy(rest, m->surt.ptr + first, len - first);
    rest[len - first] = '\0';
    entry->surt = rest;
    return 0;
}

static int find_key(struct pagelist_maker *m, const struct wb_page *page, uint32_t docid, struct pagelist_entry *entry)
{
    int err = 0;

    switch (m->stream->spec.order) {
    case WB_STREAM_CRAWL:
        entry->key = m->entries.count;
        break;
    case WB_STREAM_URL:
        return read_surt(m, page, entry);
    case WB_STREAM_RANK:
        entry->key = docid == WB_DOCID_NONE ? UINT64_MAX : key_of_rank(m->ranks[docid]);
        break;
    case WB_STREAM_DATE:
        entry->key = key_of_time(page->time_ms);
        break;
    case WB_STREAM_MODIFIED:
        err = read_modified(m, page, docid, &entry->key);
        break;
    }
    if (m->stream->spec.reverse)
        entry->key = reversed(entry->key);
    return err;
}

/* ---- collecting ---------------------------------------------------------------------------------- */

/* Asks the index which pages match the query and the language. */
static int ask_index(struct pagelist_maker *m)
{
    const struct wb_selection *selection = &m->stream->spec.selection;
    bool lang = selection->lang.len && m->stream->generation_open && m->stream->language == 0;
    struct wb_buf query = WB_BUF_INIT;
    size_t bad_at;
    int err = 0;

    if (!selection->query.len && !lang)
        return 0;
    if (lang)
        err = wb_buf_printf(&query, "lang:%.*s ", WB_SLICE_ARG(selection->lang));
    if (err == 0 && selection->query.len)
        err = wb_buf_printf(&query, lang ? "(%.*s)" : "%.*s", WB_SLICE_ARG(selection->query));
    /* A query that is wrong is judged by itself, so that the message shows what was asked. */
    if (err == 0 && lang && selection->query.len) {
        err = wb_search_pages(m->stream->searcher, selection->query, true, &m->bits, &bad_at);
        wb_free(m->bits);
        m->bits = NULL;
    }
    if (err == 0)
        err = wb_search_pages(m->stream->searcher, wb_buf_slice(&query), true, &m->bits, &bad_at);
    wb_buf_release(&query);
    return err;
}

static int prepare(struct pagelist_maker *m)
{
    struct wb_stream *stream = m->stream;
    const void *values = NULL;
    int err = ask_index(m);

    if (err == 0 && stream->spec.order == WB_STREAM_RANK) {
        err = wb_index_fact(wb_searcher_index(stream->searcher), WB_FACT_RANK, &values);
        m->ranks = values;
    }
    if (err == 0 && stream->spec.order == WB_STREAM_MODIFIED && stream->generation_open) {
        err = wb_index_fact(wb_searcher_index(stream->searcher), WB_FACT_MODIFIED, &values);
        m->modified = values;
    } else if (err == 0 && stream->spec.order == WB_STREAM_MODIFIED) {
        err = wb_extractor_new(&m->extractor);
    }
    return err;
}

static int add_page(struct pagelist_maker *m, const struct wb_page *page)
{
    const struct wb_stream_spec *spec = &m->stream->spec;
    bool wanted = spec->versions ? wb_selection_has_site(&spec->selection, page->key)
                                 : wb_selection_matches(&spec->selection, page);
    uint32_t docid = wb_docid_table_find(&m->stream->docids, page->id);

    if (!wanted || !wb_spec_has_part(spec, page->id))
        return 0;
    if (m->bits && (docid == WB_DOCID_NONE || !(m->bits[docid / 64] >> docid % 64 & 1)))
        return 0;
    struct pagelist_entry entry = {.id = page->id};
    int err = find_key(m, page, docid, &entry);
    return err < 0 ? err : wb_vec_push(&m->entries, entry);
}

static int collect(struct pagelist_maker *m)
{
    struct wb_stream *stream = m->stream;
    struct wb_store_scan_options options = {.snapshot = stream->spec.versions ? 0 : stream->ticket.snapshot,
                                            .site = wb_selection_only_site(&stream->spec.selection),
                                            .facts = m->extractor == NULL,
                                            .gone = stream->spec.versions,
                                            .at_once = stream->home->at_once};
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    uint64_t looked = 0;
    int err = wb_store_scan_open(stream->store, &options, &scan);

    while (err == 0) {
        int got = wb_store_scan_next(scan, &page);
        if (got == 0)
            break;
        if (got == WB_E_CORRUPT) { /* which pages these were is not known, so the list cannot have them */
            stream->damaged++;
            if (stream->late.code == 0)
                wb_error_save(got, &stream->late);
            continue;
        }
        err = got < 0 ? got : add_page(m, &page);
        if (err == 0 && ++looked % LOOKED_AT_ONCE == 0 && wb_stop_requested())
            err = wb_fail(WB_E_STOPPED, "stopped by a signal while the list of pages was being made");
    }
    wb_store_scan_close(scan);
    return err;
}

/* ---- sorting ------------------------------------------------------------------------------------- */

static int compare_entries(const void *a, const void *b)
{
    const struct pagelist_entry *x = a, *y = b;
    int order = x->key < y->key ? -1 : x->key > y->key;

    if (order == 0 && x->surt && y->surt)
        order = strcmp(x->surt, y->surt);
    return order ? order : wb_pageid_compare(x->id, y->id);
}

/* The order of URLs backwards; other orders have reversed keys. */
static int compare_backwards(const void *a, const void *b)
{
    return compare_entries(b, a);
}

static int finish(struct pagelist_maker *m, struct wb_pagelist *list_out)
{
    const struct wb_stream_spec *spec = &m->stream->spec;
    bool backwards = spec->order == WB_STREAM_URL && spec->reverse;
    size_t count = m->entries.count;

    if (count > 1 && (spec->order != WB_STREAM_CRAWL || spec->reverse))
        qsort(m->entries.items, count, sizeof *m->entries.items, backwards ? compare_backwards : compare_entries);
    /* Captures, and pages whose language is still to be found, count as they are delivered. */
    if (spec->limit && spec->limit < count && !spec->versions && m->stream->language == 0)
        count = (size_t)spec->limit;
    int err = wb_buf_reserve(&list_out->bytes, count * WB_PAGEID_BYTES + 1);
    for (size_t i = 0; err == 0 && i < count; i++)
        wb_pageid_put(m->entries.items[i].id, list_out->bytes.ptr + i * WB_PAGEID_BYTES);
    if (err == 0)
        list_out->bytes.len = count * WB_PAGEID_BYTES;
    list_out->count = err == 0 ? count : 0;
    return err;
}

int wb_pagelist_make(struct wb_stream *stream)
{
    struct pagelist_maker maker = {.stream = stream};
    int err = prepare(&maker);

    if (err == 0)
        err = collect(&maker);
    if (err == 0)
        err = finish(&maker, &stream->list);
    wb_free(maker.bits);
    wb_extractor_free(maker.extractor);
    wb_arena_release(&maker.texts);
    wb_buf_release(&maker.surt);
    wb_vec_release(&maker.entries);
    return err;
}

int wb_pagelist_load(struct wb_pagelist *list, struct wb_buf *bytes)
{
    if (bytes->len % WB_PAGEID_BYTES)
        return wb_fail(WB_E_CORRUPT, "the list of a stream's pages is damaged");
    wb_pagelist_release(list);
    list->bytes = wb_buf_take(bytes);
    list->count = list->bytes.len / WB_PAGEID_BYTES;
    return 0;
}

void wb_pagelist_release(struct wb_pagelist *list)
{
    wb_buf_release(&list->bytes);
    *list = (struct wb_pagelist){.bytes = WB_BUF_INIT};
}
