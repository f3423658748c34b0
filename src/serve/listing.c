/* listing.c - finds the URLs of a listing, and when they were captured. See listing.h. */
#include "serve/listing.h"
#include "base/check.h"
#include "base/error.h"
#include "page/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An answer ends early when it has read the times of so many captures. */
#define CAPTURES_MAX ((uint64_t)1 << 20)

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static const char *const sort_names[] = {"url", "captures", "first", "last"};

const char *wb_listing_sort_name(enum wb_listing_sort sort)
{
    WB_CHECK(sort <= WB_LISTING_BY_LAST);
    return sort_names[sort];
}

/* "captures" is the smallest first, "-captures" the largest. */
static int read_sort(struct wb_call *call, struct wb_listing *l)
{
    struct wb_slice text = wb_http_param(call->request, "sort"), name = text;

    if (text.len == 0)
        return 0;
    l->down = text.ptr[0] == '-';
    if (l->down)
        name = wb_slice(text.ptr + 1, text.len - 1);
    for (l->sort = WB_LISTING_BY_URL; l->sort <= WB_LISTING_BY_LAST; l->sort++)
        if (wb_slice_equal(name, wb_slice_str(sort_names[l->sort])))
            return 0;
    return wb_fail(WB_E_INVALID, "sort=%.*s: there are url, captures, first and last, each also with - in front",
                   WB_SLICE_ARG(text));
}

/* "404", or "4xx" for all from 400 to 499. */
static bool is_status(struct wb_slice text)
{
    bool all = text.len == 3 && text.ptr[1] == 'x' && text.ptr[2] == 'x';
    uint64_t number;

    return text.len == 3 && (all ? text.ptr[0] >= '1' && text.ptr[0] <= '5' : wb_slice_to_u64(text, &number));
}

static int read_params(struct wb_call *call, struct wb_listing *l)
{
    int err = cdx_query_url(call, &l->query);

    /* Without a mark, everything that begins like this is meant. */
    if (l->query.match == CDX_EXACT)
        l->query.match = CDX_PREFIX;
    l->q = wb_http_param(call->request, "q");
    l->type = wb_http_param(call->request, "type");
    l->status = wb_http_param(call->request, "status");
    l->after = wb_http_param(call->request, "after");
    if (err == 0 && l->status.len && !is_status(l->status))
        err = wb_fail(WB_E_INVALID, "status=%.*s: write 404, or 4xx for all from 400 to 499", WB_SLICE_ARG(l->status));
    if (err == 0)
        err = read_sort(call, l);
    if (err == 0)
        err = wb_call_number(call, "limit", WB_LISTING_DEFAULT, WB_LISTING_MAX, &l->limit);
    if (err == 0 && l->limit == 0)
        err = wb_fail(WB_E_INVALID, "limit=0: an answer has at least one URL");
    return err;
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

static bool contains(struct wb_slice text, struct wb_slice part)
{
    if (part.len == 0)
        return true;
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (strncasecmp(text.ptr + i, part.ptr, part.len) == 0)
            return true;
    return false;
}

static bool has_type(struct wb_slice type, struct wb_slice wanted)
{
    return wanted.len == 0 || wb_slice_equal(type, wanted) ||
           (wb_slice_starts(type, wanted) && type.len > wanted.len && type.ptr[wanted.len] == '/');
}

static bool has_status(uint16_t status, struct wb_slice wanted)
{
    char text[8];

    snprintf(text, sizeof text, "%03u", status % 1000u);
    return wanted.len == 0 || strncmp(text, wanted.ptr, wanted.ptr[1] == 'x' ? 1 : 3) == 0;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int keep(struct wb_listing *l, struct wb_slice text, struct wb_slice *copy_out)
{
    *copy_out = WB_SLICE_EMPTY;
    return text.len ? wb_arena_copy(&l->texts, text, copy_out) : 0;
}

/* Adds the captures of one page to its row. */
static int add_page(struct wb_call *call, struct wb_listing *l, struct wb_pageid id, struct wb_listing_row *row)
{
    struct wb_store_timeline timeline = {0};
    int err = wb_store_timeline(call->worker->store, id, &timeline);

    if (err == 0 && timeline.time_count) {
        WB_CHECK(timeline.count > 0);
        int64_t first = timeline.versions[0].time_ms, last = INT64_MIN;
        size_t newest = 0;
        for (size_t i = 0; i < timeline.count; i++)
            if (timeline.versions[i].last_ms >= last) {
                last = timeline.versions[i].last_ms;
                newest = i;
            }
        if (row->captures == 0 || first < row->first_ms)
            row->first_ms = first;
        if (row->captures == 0 || last >= row->last_ms) {
            row->last_ms = last;
            row->status = timeline.versions[newest].status;
        }
        row->captures += timeline.time_count;
        row->versions += timeline.count;
        l->captures += timeline.time_count;
    }
    wb_store_timeline_release(&timeline);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* The media type of a document of the generation; empty if it is no page of it. */
static int read_type(struct wb_index *index, uint32_t docid, struct wb_slice *type_out)
{
    const void *types = NULL;

    *type_out = WB_SLICE_EMPTY;
    if (docid >= wb_index_info(index)->pages)
        return 0;
    int err = wb_index_fact(index, WB_FACT_TYPE, &types);
    return err < 0 ? err : wb_index_type(index, ((const uint32_t *)types)[docid], type_out);
}

/* The group of URLs that the walk has come to, whose first one is docid. */
static int add_group(struct wb_call *call, struct wb_listing *l, const struct cdx_walk *walk, uint32_t docid)
{
    WB_CHECK(walk->chunk == 0);
    WB_CHECK(walk->ids.count > 0);
    struct wb_listing_row row = {0};
    struct wb_slice url, type;
    int err = wb_index_url(walk->index, docid, &url);

    if (err < 0 || !contains(url, l->q))
        return err;
    err = keep(l, url, &row.url);
    if (err == 0)
        err = read_type(walk->index, docid, &type);
    if (err < 0 || !has_type(type, l->type))
        return err;
    for (size_t i = 0; i < walk->ids.count && err == 0; i++)
        err = add_page(call, l, walk->ids.items[i], &row);
    if (err < 0 || row.captures == 0 || !has_status(row.status, l->status))
        return err;
    err = keep(l, type, &row.type);
    if (err == 0)
        err = keep(l, wb_buf_slice(&walk->group_key), &row.key);
    return err < 0 ? err : wb_vec_push(&l->rows, row);
}

/* More URLs than a group can have have one key: their captures belong to the row that is there already. */
static int add_more(struct wb_call *call, struct wb_listing *l, const struct cdx_walk *walk)
{
    struct wb_listing_row *row = l->rows.count ? &l->rows.items[l->rows.count - 1] : NULL;
    int err = 0;

    if (!row || !wb_slice_equal(row->key, wb_buf_slice(&walk->group_key)))
        return 0;
    for (size_t i = 0; i < walk->ids.count && err == 0; i++)
        err = add_page(call, l, walk->ids.items[i], row);
    return err;
}

/* Goes through URLs in the order of their keys, until there are `rows` rows or it has looked at `looks` URLs. */
static int walk_urls(struct wb_call *call, struct wb_listing *l, struct cdx_walk *walk, uint64_t rows, uint64_t looks)
{
    uint64_t captures = looks == UINT64_MAX ? UINT64_MAX : CAPTURES_MAX;
    int more = 1;

    while (more > 0) {
        bool first = walk->at < walk->part_count;
        uint32_t docid = first ? walk->order[walk->next] : 0;
        bool enough = l->rows.count >= rows || l->looked_at >= looks || l->captures > captures;
        struct wb_slice last = wb_buf_slice(&walk->group_key);
        if (enough && last.len) {
            int err = keep(l, last, &l->next); /* where to go on, if there is more */
            if (err < 0)
                return err;
        }
        more = cdx_walk_next(walk);
        if (more <= 0)
            break;
        bool goes_on = walk->chunk > 0;
        if (enough && (!goes_on || l->looked_at / 2 > looks))
            return 0;
        l->looked_at += walk->ids.count;
        int err = goes_on ? add_more(call, l, walk) : add_group(call, l, walk, docid);
        if (err < 0)
            return err;
    }
    l->next = WB_SLICE_EMPTY;
    return more;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static int by_order(const void *a, const void *b, void *context)
{
    const struct wb_listing_row *x = a, *y = b;
    const struct wb_listing *l = context;
    int order = wb_slice_compare(x->key, y->key);

    if (l->sort == WB_LISTING_BY_URL)
        return l->down ? -order : order;
    order = 0;
    if (l->sort == WB_LISTING_BY_CAPTURES)
        order = x->captures < y->captures ? -1 : x->captures > y->captures;
    else if (l->sort == WB_LISTING_BY_FIRST)
        order = x->first_ms < y->first_ms ? -1 : x->first_ms > y->first_ms;
    else if (l->sort == WB_LISTING_BY_LAST)
        order = x->last_ms < y->last_ms ? -1 : x->last_ms > y->last_ms;
    return order ? (l->down ? -order : order) : wb_slice_compare(x->key, y->key);
}

/* All rows are read and sorted; what comes before number `after` and behind the limit is dropped again. */
static int read_sorted(struct wb_call *call, struct wb_listing *l, struct cdx_walk *walk)
{
    uint64_t after = 0;
    char text[24];

    WB_CHECK(l->rows.count == 0 && (l->sort != WB_LISTING_BY_URL || l->down));
    if (l->urls > WB_LISTING_SORTED)
        return wb_fail(WB_E_INVALID,
                       "sort=%s: more than %d URLs begin like this, and so many are only listed in the order of URLs",
                       sort_names[l->sort], WB_LISTING_SORTED);
    if (l->after.len && !wb_slice_to_u64(l->after, &after))
        return wb_fail(WB_E_INVALID, "after=%.*s is not a number, which it is in this order", WB_SLICE_ARG(l->after));
    l->after = WB_SLICE_EMPTY;
    int err = walk_urls(call, l, walk, UINT64_MAX, UINT64_MAX);
    if (err < 0 || l->rows.count == 0)
        return err;
    WB_CHECK(l->next.len == 0);
    WB_CHECK(l->rows.count <= l->urls); /* all were read, and each row is of other URLs */
    qsort_r(l->rows.items, l->rows.count, sizeof *l->rows.items, by_order, l);
    size_t first = after < l->rows.count ? (size_t)after : l->rows.count;
    size_t left = l->rows.count - first, shown = l->limit < left ? (size_t)l->limit : left;
    memmove(l->rows.items, l->rows.items + first, shown * sizeof *l->rows.items);
    l->rows.count = shown;
    if (shown == left)
        return 0;
    snprintf(text, sizeof text, "%zu", first + shown);
    return keep(l, wb_slice_str(text), &l->next);
}

/* Goes on behind the key of the last answer. No character of a key is smaller than this one. */
static int read_in_order(struct wb_call *call, struct wb_listing *l, struct wb_index *index, struct cdx_walk *walk)
{
    int err = 0;

    WB_CHECK(l->sort == WB_LISTING_BY_URL);
    WB_CHECK(!l->down);
    WB_CHECK(l->query.after_key.len == 0);
    if (l->after.len) {
        cdx_walk_release(walk);
        err = wb_buf_printf(&l->query.after_key, "%.*s\001", WB_SLICE_ARG(l->after));
        if (err == 0)
            err = cdx_walk_begin(index, &l->query, walk);
    }
    return err < 0 ? err : walk_urls(call, l, walk, l->limit, WB_LISTING_LOOKS);
}

int wb_listing_read(struct wb_call *call, struct wb_listing *listing_out)
{
    struct wb_listing *l = listing_out;
    struct wb_searcher *searcher;
    struct cdx_walk walk = {0};

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    *l = (struct wb_listing){.query = {.from_ms = INT64_MIN, .to_ms = INT64_MAX}};
    int err = read_params(call, l);
    if (err == 0)
        err = wb_call_searcher(call, &searcher);
    if (err == 0)
        err = cdx_walk_begin(wb_searcher_index(searcher), &l->query, &walk);
    if (err == 0)
        l->urls = cdx_walk_count(&walk);
    if (err == 0 && (l->sort != WB_LISTING_BY_URL || l->down))
        err = read_sorted(call, l, &walk);
    else if (err == 0)
        err = read_in_order(call, l, wb_searcher_index(searcher), &walk);
    cdx_walk_release(&walk);
    WB_CHECK(err < 0 || l->rows.count <= l->limit);
    return err;
}

void wb_listing_release(struct wb_listing *l)
{
    cdx_query_release(&l->query);
    wb_vec_release(&l->rows);
    wb_arena_release(&l->texts);
}
