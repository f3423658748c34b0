/* cdx_rows.c - the captures of all pages that have one URL key, as rows of CDX. */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "page/page.h"
#include "serve/cdx_server.h"
#include "warc/warc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIES = 100 };

void cdx_rows_release(struct cdx_rows *rows)
{
    wb_vec_release(&rows->rows);
    wb_arena_release(&rows->texts);
    wb_buf_release(&rows->lost);
}

static struct wb_slice keep(struct cdx_rows *rows, struct wb_slice text, int *err)
{
    struct wb_slice copy = WB_SLICE_EMPTY;

    if (*err == 0 && text.len)
        *err = wb_arena_copy(&rows->texts, text, &copy);
    return copy;
}

/* What all captures of a version have in common. */
static int read_version(const struct wb_page *page, struct cdx_rows *rows, struct cdx_row *row_out)
{
    char digest[33], number[24];
    struct wb_buf urlkey = WB_BUF_INIT, memory = WB_BUF_INIT;
    struct wb_slice location = WB_SLICE_EMPTY, url = WB_SLICE_EMPTY;
    int err = wb_urlkey_of_key(page->key, &urlkey);

    if (err == 0)
        err = wb_url_public(page->url, &memory, &url);

    wb_base32_encode(page->sha1, WB_SHA1_BYTES, digest);
    if (wb_http_status_redirects(page->status))
        (void)wb_http_header(page->head, "Location", &location);
    *row_out = (struct cdx_row){0};
    row_out->field[CDX_URLKEY] = keep(rows, wb_buf_slice(&urlkey), &err);
    row_out->field[CDX_URL] = keep(rows, url, &err);
    row_out->field[CDX_MIME] = keep(rows, page->type.len ? page->type : WB_SLICE_LIT("unk"), &err);
    snprintf(number, sizeof number, "%u", page->status);
    row_out->field[CDX_STATUS] = keep(rows, wb_slice_str(number), &err);
    row_out->field[CDX_DIGEST] = keep(rows, wb_slice_str(digest), &err);
    snprintf(number, sizeof number, "%" PRIu64, page->body_bytes);
    row_out->field[CDX_LENGTH] = keep(rows, wb_slice_str(number), &err);
    if (err == 0)
        err = wb_url_public(location, &memory, &location);
    row_out->field[CDX_REDIRECT] = keep(rows, location, &err);
    wb_buf_release(&urlkey);
    wb_buf_release(&memory);
    return err;
}

/* Returns 1, 0, or an error. */
static int is_wanted(const struct cdx_query *query, const struct cdx_row *row)
{
    WB_CHECK(query->filter_count <= CDX_FILTERS_MAX);
    int wanted = row->time_ms >= query->from_ms && row->time_ms <= query->to_ms;

    for (size_t i = 0; i < query->filter_count && wanted == 1; i++)
        wanted = cdx_filter_matches(&query->filters[i], row->field[query->filters[i].field]);
    return wanted;
}

/* What a revisit repeats is known by its type and length. It has no place in a file. */
static void resolve(struct cdx_row *row, bool revisit)
{
    row->field[CDX_ORIG_LENGTH] = revisit ? row->field[CDX_LENGTH] : WB_SLICE_LIT("-");
    row->field[CDX_ORIG_OFFSET] = row->field[CDX_ORIG_FILENAME] = WB_SLICE_LIT("-");
}

/* The first capture of a version brought its bytes; the others are revisits. */
static int add_captures(const struct wb_store_timeline *timeline, const struct wb_store_version *version,
                        const struct cdx_query *query, const struct cdx_row *common, struct cdx_rows *rows)
{
    int err = 0;

    WB_CHECK(version->first <= timeline->time_count && version->captures <= timeline->time_count - version->first);
    for (size_t i = 0; i < version->captures && err == 0; i++) {
        struct cdx_row row = *common;
        row.number = rows->rows.count;
        char digits[WB_CDX_TIME_MAX];
        row.time_ms = timeline->times[version->first + i];
        wb_cdx_time(row.time_ms, digits);
        row.field[CDX_TIMESTAMP] = keep(rows, wb_slice_str(digits), &err);
        if (query->resolve)
            resolve(&row, i > 0);
        else if (i > 0)
            row.field[CDX_MIME] = WB_SLICE_LIT("warc/revisit");
        int wanted = err < 0 ? err : is_wanted(query, &row);
        err = wanted < 0 ? wanted : wanted ? wb_vec_push(&rows->rows, row) : 0;
    }
    return err;
}

/* Counts the captures of a version that cannot be read, and keeps the message about the first one. */
static int lose_captures(const struct wb_store_timeline *timeline, const struct wb_store_version *version,
                         const struct cdx_query *query, struct cdx_rows *rows)
{
    WB_CHECK(version->first <= timeline->time_count && version->captures <= timeline->time_count - version->first);
    bool first = rows->left_out == 0;

    for (size_t i = 0; i < version->captures; i++) {
        int64_t time_ms = timeline->times[version->first + i];
        rows->left_out += time_ms >= query->from_ms && time_ms <= query->to_ms;
    }
    if (!first || rows->left_out == 0)
        return 0;
    wb_buf_clear(&rows->lost);
    return wb_buf_append_str(&rows->lost, wb_error_message());
}

/* Returns 1; 0 if the page has changed meanwhile; or an error. A version that cannot be read is left out. */
static int read_once(struct wb_store *store, struct wb_pageid id, const struct cdx_query *query, struct cdx_rows *rows)
{
    struct wb_store_timeline timeline = {0};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;
    struct cdx_row common;
    int got = wb_store_timeline(store, id, &timeline);

    if (got == 0)
        got = 1;
    for (size_t i = 0; i < timeline.count && got > 0; i++) {
        const struct wb_store_version *version = &timeline.versions[i];
        int err = 0;
        if (version->last_ms < query->from_ms || version->time_ms > query->to_ms)
            continue;
        got = wb_store_get_version(store, id, version, &page, &mem);
        if (got > 0) {
            err = read_version(&page, rows, &common);
            if (err == 0)
                err = add_captures(&timeline, version, query, &common, rows);
        } else if (got == WB_E_CORRUPT) {
            err = lose_captures(&timeline, version, query, rows);
            got = 1;
        }
        got = err < 0 ? err : got;
    }
    wb_store_timeline_release(&timeline);
    wb_buf_release(&mem);
    return got == WB_E_NOTFOUND ? 1 : got;
}

static int read_page(struct wb_store *store, struct wb_pageid id, const struct cdx_query *query, struct cdx_rows *rows)
{
    size_t count = rows->rows.count;
    uint64_t left_out = rows->left_out;
    int got = 0;

    for (int i = 0; got == 0 && i < TRIES; i++) {
        rows->rows.count = count;
        rows->left_out = left_out;
        got = read_once(store, id, query, rows);
    }
    if (got == 0)
        return wb_fail(WB_E_BUSY, "a page changes faster than its captures can be listed");
    return got < 0 ? got : 0;
}

static int by_time(const void *a, const void *b)
{
    const struct cdx_row *x = a, *y = b;

    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

int cdx_rows_read(struct wb_store *store, const struct wb_pageid *ids, size_t count, const struct cdx_query *query,
                  struct cdx_rows *rows)
{
    int err = 0;

    wb_vec_clear(&rows->rows);
    wb_arena_clear(&rows->texts);
    for (size_t i = 0; err == 0 && i < count; i++)
        err = read_page(store, ids[i], query, rows);
    if (err == 0 && rows->rows.count)
        qsort(rows->rows.items, rows->rows.count, sizeof *rows->rows.items, by_time);
    return err;
}
