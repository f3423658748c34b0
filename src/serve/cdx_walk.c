/*
 * cdx_walk.c - the URLs of a CDX query, in the order of their URL keys. A generation has its docids in that order, so
 * what is asked for is one range of them, or three: a domain is its host, its subdomains, and its host with ports.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/cdx_server.h"
#include "url/url.h"

/* ---- keys ---------------------------------------------------------------------------------------- */

/* Fills walk->key with the URL key at a place in the order, unless it has that already. */
static int read_key(struct cdx_walk *walk, uint32_t place)
{
    struct wb_slice url;

    WB_CHECK(place < wb_index_info(walk->index)->urls);
    if (walk->key.len && walk->key_place == place)
        return 0;
    wb_buf_clear(&walk->key);
    int err = wb_index_url(walk->index, walk->order[place], &url);
    if (err == 0)
        err = wb_urlkey_of_url(url, &walk->key);
    walk->key_place = place;
    return err;
}

enum bound { FIRST_NOT_BEFORE, FIRST_AFTER, FIRST_BEHIND_PREFIX };

/* The first place whose key is not before text, is after it, or is behind all that begin with it. */
static int find_bound(struct cdx_walk *walk, struct wb_slice text, enum bound bound, uint32_t *place_out)
{
    uint32_t first = 0, end = (uint32_t)wb_index_info(walk->index)->urls;

    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        int err = read_key(walk, middle);
        if (err < 0)
            return err;
        struct wb_slice key = wb_buf_slice(&walk->key);
        int order = wb_slice_compare(key, text);
        if (order < 0 || (bound == FIRST_AFTER && order == 0) ||
            (bound == FIRST_BEHIND_PREFIX && wb_slice_starts(key, text)))
            first = middle + 1;
        else
            end = middle;
    }
    *place_out = first;
    return 0;
}

/* ---- ranges -------------------------------------------------------------------------------------- */

static int add_range(struct cdx_walk *walk, struct wb_slice text, enum bound bound, uint32_t from)
{
    struct cdx_range range;

    WB_CHECK(walk->part_count < CDX_PARTS_MAX);
    int err = find_bound(walk, text, FIRST_NOT_BEFORE, &range.first);
    if (err == 0)
        err = find_bound(walk, text, bound, &range.end);
    if (range.first < from)
        range.first = from;
    if (err == 0 && range.first < range.end)
        walk->parts[walk->part_count++] = range;
    return err;
}

/* The host of a key with each of the characters that may follow it. */
static int add_hosts(struct cdx_walk *walk, struct wb_slice key, const char *ends, uint32_t from)
{
    const char *close = key.len ? memchr(key.ptr, ')', key.len) : NULL;
    struct wb_buf text = WB_BUF_INIT;
    int err = 0;

    for (; err == 0 && close && *ends; ends++) {
        wb_buf_clear(&text);
        err = wb_buf_append(&text, key.ptr, (size_t)(close - key.ptr));
        if (err == 0)
            err = wb_buf_append_char(&text, *ends);
        if (err == 0)
            err = add_range(walk, wb_buf_slice(&text), FIRST_BEHIND_PREFIX, from);
    }
    wb_buf_release(&text);
    return err;
}

static void rewind_walk(struct cdx_walk *walk)
{
    walk->at = 0;
    if (walk->part_count == 0)
        return;
    walk->at = walk->reverse ? walk->part_count - 1 : 0;
    WB_CHECK(walk->parts[walk->at].first < walk->parts[walk->at].end);
    walk->next = walk->reverse ? walk->parts[walk->at].end - 1 : walk->parts[walk->at].first;
}

int cdx_walk_begin(struct wb_index *index, const struct cdx_query *query, struct cdx_walk *walk_out)
{
    struct wb_slice key = wb_buf_slice(&query->urlkey);
    const void *order = NULL;
    uint32_t from = 0;

    *walk_out =
        (struct cdx_walk){.index = index, .reverse = query->sort == CDX_REVERSE || query->last, .left = UINT64_MAX};
    int err = wb_index_fact(index, WB_FACT_KEYORDER, &order);
    walk_out->order = order;
    WB_CHECK(query->after_key.len == 0 || !walk_out->reverse); /* a resume key goes on forwards */
    if (err == 0 && query->after_key.len)
        err = find_bound(walk_out, wb_buf_slice(&query->after_key), FIRST_NOT_BEFORE, &from);
    if (err < 0)
        return err;
    bool port = memchr(key.ptr, ':', key.len) && query->has_port;
    switch (query->match) {
    case CDX_EXACT:
        err = add_range(walk_out, key, FIRST_AFTER, from);
        break;
    case CDX_PREFIX:
        err = add_range(walk_out, key, FIRST_BEHIND_PREFIX, from);
        break;
    case CDX_HOST:
        err = add_hosts(walk_out, key, ")", from);
        break;
    case CDX_DOMAIN:
        err = add_hosts(walk_out, key, port ? ")" : "),:", from); /* in the order of bytes */
        break;
    }
    rewind_walk(walk_out);
    return err;
}

void cdx_walk_release(struct cdx_walk *walk)
{
    wb_vec_release(&walk->ids);
    wb_buf_release(&walk->key);
    wb_buf_release(&walk->group_key);
}

uint64_t cdx_walk_count(const struct cdx_walk *walk)
{
    uint64_t count = 0;

    for (size_t i = 0; i < walk->part_count; i++) {
        WB_CHECK(walk->parts[i].first < walk->parts[i].end);
        count += walk->parts[i].end - walk->parts[i].first;
    }
    return count;
}

/* ---- the walk ------------------------------------------------------------------------------------ */

/* Whether there is a place that is next. */
static bool is_inside(const struct cdx_walk *walk)
{
    return walk->at < walk->part_count && walk->next >= walk->parts[walk->at].first &&
           walk->next < walk->parts[walk->at].end;
}

static void advance(struct cdx_walk *walk)
{
    WB_CHECK(is_inside(walk));
    const struct cdx_range *range = &walk->parts[walk->at];

    walk->left -= walk->left > 0;
    if (!walk->reverse && ++walk->next < range->end)
        return;
    if (walk->reverse && walk->next-- > range->first)
        return;
    /* Backwards, the index of the first range less one is larger than any count, which means the end. */
    walk->at += walk->reverse ? SIZE_MAX : 1;
    if (walk->at < walk->part_count)
        walk->next = walk->reverse ? walk->parts[walk->at].end - 1 : walk->parts[walk->at].first;
}

/* Reads the key at the next place. Returns 1 if it is that of the last group, 0 if not, or an error. */
static int goes_on(struct cdx_walk *walk)
{
    WB_CHECK(is_inside(walk));
    int err = read_key(walk, walk->next);

    if (err < 0)
        return err;
    return walk->group_key.len && wb_slice_equal(wb_buf_slice(&walk->key), wb_buf_slice(&walk->group_key));
}

static int begin_group(struct cdx_walk *walk)
{
    wb_buf_clear(&walk->group_key);
    return wb_buf_append_slice(&walk->group_key, wb_buf_slice(&walk->key));
}

int cdx_walk_page(struct cdx_walk *walk, uint64_t first, uint64_t count)
{
    int same = 1, err = 0;

    WB_CHECK(walk->left == UINT64_MAX);
    WB_CHECK(walk->ids.count == 0 && walk->group_key.len == 0); /* it has not begun */
    for (uint64_t n = 0; err == 0 && n < first && walk->at < walk->part_count; n++) {
        if (n + 1 == first)
            err = read_key(walk, walk->next);
        advance(walk);
    }
    if (err == 0 && first > 0)
        err = begin_group(walk);
    walk->left = count;
    while (err == 0 && same > 0 && walk->left > 0 && walk->at < walk->part_count) {
        same = goes_on(walk);
        if (same > 0)
            advance(walk);
    }
    /* If the whole page belongs to a group that began on an earlier one, nothing is left for this one. */
    if (walk->left == 0)
        walk->at = walk->part_count;
    return err < 0 ? err : same < 0 ? same : 0;
}

int cdx_walk_next(struct cdx_walk *walk)
{
    WB_CHECK(walk->index);
    WB_CHECK(walk->part_count <= CDX_PARTS_MAX);
    WB_CHECK(walk->ids.count <= CDX_GROUP_MAX);
    const void *ids = NULL;
    bool first = true;
    int err = wb_index_fact(walk->index, WB_FACT_ID, &ids);

    wb_vec_clear(&walk->ids);
    while (err == 0 && walk->at < walk->part_count && walk->ids.count < CDX_GROUP_MAX) {
        int same = goes_on(walk);
        if (same < 0)
            return same;
        if (!same && (!first || walk->left == 0))
            break;
        if (first)
            walk->chunk = same ? walk->chunk + 1 : 0;
        const char *id = (const char *)ids + (size_t)walk->order[walk->next] * WB_PAGEID_BYTES;
        if (!same)
            err = begin_group(walk);
        if (err == 0)
            err = wb_vec_push(&walk->ids, wb_pageid_get(id));
        first = false;
        advance(walk);
    }
    return err < 0 ? err : walk->ids.count > 0;
}
