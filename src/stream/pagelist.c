/*
 * pagelist.c - makes the list of pages of a stream that cannot simply follow the disk: in another order than the
 * stored one, or with a query, or with every capture.
 *
 *   facts scan of the snapshot ---> selected? (site, time, part, ... and the set of docids that the index found)
 *                              ---> key of the order ---> sorter ---> ids
 *
 * The list is fixed when the stream begins. It goes to the shelf of an owner, so that a stream that is resumed has the
 * same list although another generation, with other ranks, has become active.
 *
 * Memory is bounded, however many pages there are: the sorter has SORT_BYTES, and a long list is in a file without a
 * name, 16 bytes for each page. What they have on disk is in the directory of the repository, and ends with the stream.
 *
 * Keys are compared as bytes. They end with the id of the page, so that the order is the same each time it is made:
 *
 *   order of URLs       the SURT, a NUL byte (SURTs have none), the id
 *   all others          the value as 8 bytes, in big-endian order, and the id
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/folder.h"
#include "os/nameless.h"
#include "os/stop.h"
#include "stream/stream_own.h"
#include "table/table.h"

#include <inttypes.h>

enum { LOOKED_AT_ONCE = 1024 }; /* pages between two looks at whether a signal came */

#define SORT_BYTES ((size_t)16 << 20)
#define MAPPED_BYTES ((size_t)32 << 10) /* longer lists are in a file */

struct pagelist_maker {
    struct wb_stream *stream;
    struct wb_sorter *sorter;
    size_t count;            /* pages that were added */
    uint64_t *bits;          /* the docids that the index selects; NULL: any page */
    const double *ranks;     /* by docid */
    const int64_t *modified; /* by docid; NULL: the pages are read */
    struct wb_extractor *extractor;
    struct wb_buf key;       /* of the page that is being added */
};

bool wb_pagelist_needed(const struct wb_stream *stream)
{
    const struct wb_stream_spec *spec = &stream->spec;

    return spec->order != WB_STREAM_STORED || spec->reverse || spec->versions || spec->selection.query.len ||
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

/* The value by which a page is sorted; missing ones come last, in both directions. Not of URLs. */
static int find_value(struct pagelist_maker *m, const struct wb_page *page, uint32_t docid, uint64_t *value_out)
{
    int err = 0;

    *value_out = m->count;
    switch (m->stream->spec.order) {
    case WB_STREAM_STORED:
    case WB_STREAM_URL:
        break;
    case WB_STREAM_RANK:
        *value_out = docid == WB_DOCID_NONE ? UINT64_MAX : key_of_rank(m->ranks[docid]);
        break;
    case WB_STREAM_DATE:
        *value_out = key_of_time(page->time_ms);
        break;
    case WB_STREAM_MODIFIED:
        err = read_modified(m, page, docid, value_out);
        break;
    }
    if (m->stream->spec.reverse)
        *value_out = reversed(*value_out);
    return err;
}

/* Makes the key of a page. */
static int make_key(struct pagelist_maker *m, const struct wb_page *page, uint32_t docid)
{
    char id[WB_PAGEID_BYTES], bytes[8];
    uint64_t value = 0;
    int err;

    wb_pageid_put(page->id, id);
    if (m->stream->spec.order == WB_STREAM_URL) {
        err = wb_surt_of_key(page->key, &m->key);
        if (err == 0)
            err = wb_buf_append_char(&m->key, '\0');
    } else {
        err = find_value(m, page, docid, &value);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(value >> (56 - 8 * i));
        wb_buf_clear(&m->key);
        if (err == 0)
            err = wb_buf_append(&m->key, bytes, sizeof bytes);
    }
    return err == 0 ? wb_buf_append(&m->key, id, sizeof id) : err;
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

/* Where files without a name are made: a repository that cannot be written to can be read nevertheless. */
static const char *temporary_dir(const struct wb_stream *stream)
{
    return wb_folder_is_writable(stream->home->dir) ? stream->home->dir : "/tmp";
}

static int prepare(struct pagelist_maker *m)
{
    struct wb_sorter_options sorting = {.dir = temporary_dir(m->stream), .memory_bytes = SORT_BYTES};
    struct wb_stream *stream = m->stream;
    const void *values = NULL;
    int err = ask_index(m);

    if (err == 0)
        err = wb_sorter_open(&sorting, &m->sorter);

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
    int err = make_key(m, page, docid);
    m->count += err == 0;
    return err < 0 ? err : wb_sorter_add(m->sorter, wb_buf_slice(&m->key), WB_SLICE_EMPTY);
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

/* Room for the ids. Where no file is possible, they are in memory. */
static int take_room(struct wb_pagelist *list, const char *dir, size_t bytes, char **ids_out)
{
    void *map = NULL;

    WB_CHECK(!list->map && list->bytes.len == 0);
    if (bytes > MAPPED_BYTES && wb_nameless_map(dir, bytes, &map) == 0) {
        list->map = map;
        list->map_bytes = bytes;
        *ids_out = map;
        return 0;
    }
    int err = wb_buf_reserve(&list->bytes, bytes + 1);
    *ids_out = list->bytes.ptr;
    if (err == 0)
        list->bytes.len = bytes;
    return err;
}

/* Takes the ids off the ends of the keys; in the order of URLs backwards, from the end. */
static int take_ids(struct pagelist_maker *m, char *ids, size_t count, bool backwards)
{
    struct wb_table_record record;
    int got = 1;

    for (size_t i = 0; got > 0 && i < m->count; i++) {
        got = wb_sorter_next(m->sorter, &record);
        size_t place = backwards ? m->count - 1 - i : i;
        WB_CHECK(got <= 0 || record.key.len >= WB_PAGEID_BYTES);
        if (got > 0 && place < count)
            memcpy(ids + place * WB_PAGEID_BYTES, record.key.ptr + record.key.len - WB_PAGEID_BYTES, WB_PAGEID_BYTES);
        if (!backwards && i + 1 == count)
            break;
    }
    WB_CHECK(got != 0 || m->count == 0);
    return got < 0 ? got : 0;
}

static int finish(struct pagelist_maker *m, struct wb_pagelist *list)
{
    WB_CHECK(list->count == 0);
    const struct wb_stream_spec *spec = &m->stream->spec;
    size_t count = m->count;
    char *ids = NULL;

    /* Captures, and pages whose language is still to be found, count as they are delivered. */
    if (spec->limit && spec->limit < count && !spec->versions && m->stream->language == 0)
        count = (size_t)spec->limit;
    int err = wb_sorter_sort(m->sorter);
    if (err == 0)
        err = take_room(list, temporary_dir(m->stream), count * WB_PAGEID_BYTES, &ids);
    if (err == 0)
        err = take_ids(m, ids, count, spec->order == WB_STREAM_URL && spec->reverse);
    list->count = err == 0 ? count : 0;
    return err;
}

int wb_pagelist_make(struct wb_stream *stream)
{
    struct pagelist_maker maker = {.stream = stream};
    int err = prepare(&maker);

    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    if (err == 0)
        err = collect(&maker);
    if (err == 0)
        err = finish(&maker, &stream->list);
    wb_free(maker.bits);
    wb_extractor_free(maker.extractor);
    wb_sorter_close(maker.sorter);
    wb_buf_release(&maker.key);
    return err;
}

struct wb_slice wb_pagelist_ids(const struct wb_pagelist *list)
{
    if (list->kept.memory)
        return list->kept.bytes;
    return list->map ? wb_slice(list->map, list->count * WB_PAGEID_BYTES) : wb_buf_slice(&list->bytes);
}

int wb_pagelist_load(struct wb_pagelist *list, const char *dir, uint64_t hash)
{
    wb_pagelist_release(list);
    if (hash == wb_shelf_hash(WB_SLICE_EMPTY)) /* no page at all */
        return 0;
    int err = wb_shelf_map(dir, hash, &list->kept);
    if (err == 0 && list->kept.bytes.len % WB_PAGEID_BYTES)
        err = wb_fail(WB_E_CORRUPT, "the list of a stream's pages is damaged");
    list->count = err == 0 ? list->kept.bytes.len / WB_PAGEID_BYTES : 0;
    return err;
}

void wb_pagelist_release(struct wb_pagelist *list)
{
    if (list->map)
        wb_nameless_unmap(list->map, list->map_bytes);
    wb_shelf_unmap(&list->kept);
    wb_buf_release(&list->bytes);
    *list = (struct wb_pagelist){.bytes = WB_BUF_INIT};
}
