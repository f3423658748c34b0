/*
 * cdx_walk.c - the URLs of a CDX query, in the order of SURTs. Docids have that order in two parts: pages of the
 * generation, and all other URLs, which may be pages of the past. The walk merges the two.
 */
#include "base/error.h"
#include "serve/cdx_server.h"
#include "url/url.h"

/* ---- ranges -------------------------------------------------------------------------------------- */

struct range_context {
    struct cdx_walk *walk;
    const struct cdx_query *query;
    uint32_t pages;
    struct wb_buf low;  /* SURT of a prefix; empty: none */
    struct wb_buf surt; /* of a URL */
    int err;
};

static int surt_of(struct range_context *c, uint32_t docid)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    struct wb_slice text;

    int err = wb_index_url(c->walk->index, docid, &text);
    if (err == 0)
        err = wb_url_parse(text, NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_surt_of_key(wb_buf_slice(&key), &c->surt);
    wb_url_release(&url);
    wb_buf_release(&key);
    return err;
}

/* The first docid of a range whose SURT is not before the prefix; with past, the first one that is behind all with it.
 */
static int bound(struct range_context *c, struct wb_index_range range, bool past, uint32_t *docid_out)
{
    struct wb_slice low = wb_buf_slice(&c->low);
    uint32_t first = range.first, end = range.end;

    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        int err = surt_of(c, middle);
        if (err < 0)
            return err;
        struct wb_slice surt = wb_buf_slice(&c->surt);
        bool before = wb_slice_compare(surt, low) < 0 || (past && wb_slice_starts(surt, low));
        if (before)
            first = middle + 1;
        else
            end = middle;
    }
    *docid_out = first;
    return 0;
}

/* Whether all URLs of the range are of the host itself, not of a subdomain. A range has one site. */
static int is_host(struct range_context *c, struct wb_index_range range, bool *is_out)
{
    const uint32_t *sites;
    struct wb_slice name;

    int err = wb_index_fact(c->walk->index, WB_FACT_SITE, (const void **)&sites);
    if (err == 0)
        err = wb_index_site(c->walk->index, sites[range.first], &name);
    *is_out = err == 0 && wb_slice_equal(name, wb_buf_slice(&c->query->key));
    return err;
}

static int add_part(struct range_context *c, struct wb_index_range range)
{
    if (range.first >= range.end)
        return 0;
    return wb_vec_push(&c->walk->parts[range.first >= c->pages], range);
}

/* Splits a range at the borders of sites: neighbours may have come as one. */
static int add_range(void *context, struct wb_index_range range)
{
    struct range_context *c = context;
    enum cdx_match match = c->query->match;
    const uint32_t *sites;
    bool own = true;

    if (match == CDX_DOMAIN)
        return add_part(c, range);
    int err = wb_index_fact(c->walk->index, WB_FACT_SITE, (const void **)&sites);
    while (err == 0 && range.first < range.end) {
        struct wb_index_range one = {range.first, range.first};
        while (one.end < range.end && sites[one.end] == sites[one.first])
            one.end++;
        range.first = one.end;
        if (match == CDX_HOST) {
            err = is_host(c, one, &own);
        } else {
            struct wb_index_range part = one;
            err = bound(c, one, false, &part.first);
            if (err == 0)
                err = bound(c, one, true, &part.end);
            one = part;
        }
        if (err == 0 && own)
            err = add_part(c, one);
    }
    return err;
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static void rewind_part(struct cdx_walk *walk, int p)
{
    walk->at[p] = 0;
    if (walk->parts[p].count == 0)
        return;
    walk->at[p] = walk->reverse ? walk->parts[p].count - 1 : 0;
    const struct wb_index_range *range = &walk->parts[p].items[walk->at[p]];
    walk->next[p] = walk->reverse ? range->end - 1 : range->first;
}

/* Cuts what is before a SURT off the ranges of a part. */
static int cut_part(struct range_context *c, int p)
{
    struct cdx_walk *walk = c->walk;
    size_t kept = 0;
    int err = 0;

    for (size_t i = 0; i < walk->parts[p].count && err == 0; i++) {
        struct wb_index_range range = walk->parts[p].items[i];
        /* Ranges are in order: once one is kept, all that follow are. */
        if (kept == 0)
            err = bound(c, range, false, &range.first);
        if (err == 0 && range.first < range.end)
            walk->parts[p].items[kept++] = range;
    }
    walk->parts[p].count = err == 0 ? kept : 0;
    return err;
}

static int cut_before(struct range_context *c, struct wb_slice surt)
{
    wb_buf_clear(&c->low);
    int err = wb_buf_append_slice(&c->low, surt);
    for (int p = 0; p < 2 && err == 0; p++)
        err = cut_part(c, p);
    return err;
}

int cdx_walk_begin(struct wb_index *index, const struct cdx_query *query, struct cdx_walk *walk_out)
{
    struct range_context c = {.walk = walk_out, .query = query, .pages = (uint32_t)wb_index_info(index)->pages};
    struct wb_slice host = wb_buf_slice(&query->key);
    const char *slash = host.len ? memchr(host.ptr, '/', host.len) : NULL;

    *walk_out =
        (struct cdx_walk){.index = index, .reverse = query->sort == CDX_REVERSE || query->last, .left = UINT64_MAX};
    if (query->match == CDX_PREFIX && slash) {
        c.err = wb_surt_of_key(host, &c.low);
        host.len = (size_t)(slash - host.ptr);
    } else if (query->match == CDX_PREFIX) {
        /* A prefix without a path is one of the host's name: everything below it. */
        c.err = wb_surt_of_key(host, &c.low);
    }
    int err = c.err < 0 ? c.err : wb_index_sites(index, host, add_range, &c);
    err = err == WB_E_NOTFOUND ? 0 : err;
    if (err == 0 && query->after_key.len)
        err = cut_before(&c, wb_buf_slice(&query->after_key));
    for (int p = 0; p < 2; p++)
        rewind_part(walk_out, p);
    wb_buf_release(&c.low);
    wb_buf_release(&c.surt);
    return err;
}

void cdx_walk_release(struct cdx_walk *walk)
{
    wb_vec_release(&walk->parts[0]);
    wb_vec_release(&walk->parts[1]);
}

uint64_t cdx_walk_count(const struct cdx_walk *walk)
{
    uint64_t count = 0;

    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < walk->parts[p].count; i++)
            count += walk->parts[p].items[i].end - walk->parts[p].items[i].first;
    return count;
}

static bool part_has(const struct cdx_walk *walk, int p)
{
    return walk->at[p] < walk->parts[p].count;
}

static void part_advance(struct cdx_walk *walk, int p)
{
    const struct wb_index_range *range = &walk->parts[p].items[walk->at[p]];

    if (!walk->reverse && ++walk->next[p] < range->end)
        return;
    if (walk->reverse && walk->next[p]-- > range->first)
        return;
    /* Backwards, the index of the first range less one is larger than any count, which means the end. */
    walk->at[p] += walk->reverse ? SIZE_MAX : 1;
    if (!part_has(walk, p))
        return;
    range = &walk->parts[p].items[walk->at[p]];
    walk->next[p] = walk->reverse ? range->end - 1 : range->first;
}

bool cdx_walk_next(struct cdx_walk *walk, uint32_t *docid_out)
{
    int p = part_has(walk, 0) ? 0 : 1;

    if (!part_has(walk, p) || walk->left == 0)
        return false;
    if (p == 0 && part_has(walk, 1)) {
        bool first = wb_index_order(walk->index, walk->next[0]) < wb_index_order(walk->index, walk->next[1]);
        p = first != walk->reverse ? 0 : 1;
    }
    *docid_out = walk->next[p];
    part_advance(walk, p);
    walk->left--;
    return true;
}

void cdx_walk_skip(struct cdx_walk *walk, uint64_t n)
{
    uint32_t docid;

    while (n-- > 0 && cdx_walk_next(walk, &docid))
        continue;
}
