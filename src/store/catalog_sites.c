/*
 * catalog_sites.c - converts rows of the catalog to bytes and back: the tables sites
 * and bars, whose rows say something about a site. catalog_rows.c has the rules that all
 * rows follow.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "store/catalog_row.h"

#include <stdio.h>

/* Lengths of keys and values. */
enum {
    SITE_KEY_MAX = 480, /* a longer site is replaced by its hash */
    SITE_HASH_MAX = 32, /* room for "#" and 16 digits */
    SITE_BYTES = 8,
    BAR_BYTES = 20,
};

_Static_assert((int)SITE_KEY_MAX <= (int)WB_TREE_KEY_MAX, "every site key fits in the tree");
_Static_assert(BAR_BYTES == 8 + 8 + 4, "the fields of a bar");

/* ---- sites ------------------------------------------------------------------------------ */

/* What stands for a site that is too long for a key: "#" and its hash. */
static struct wb_slice site_hash(struct wb_slice site, char room[SITE_HASH_MAX])
{
    WB_CHECK(site.len > 0);

    int n = snprintf(room, SITE_HASH_MAX, "#%016llx", (unsigned long long)wb_hash64(site.ptr, site.len));

    WB_CHECK(n > 0);
    WB_CHECK(n < SITE_HASH_MAX);
    return wb_slice(room, (size_t)n);
}

/* The key of a site. Pages without a host, such as "dns:x", are counted under "-", which no host is called. */
static struct wb_slice site_key(struct wb_slice site, char room[SITE_HASH_MAX])
{
    if (site.len == 0)
        return WB_SLICE_LIT("-");
    return site.len <= SITE_KEY_MAX ? site : site_hash(site, room);
}

int wb_catalog_site_add(struct wb_catalog_txn *txn, struct wb_slice site, int64_t pages,
                        struct wb_catalog_summary *summary)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);

    char room[SITE_HASH_MAX], row[SITE_BYTES] = {0};
    struct wb_slice key = site_key(site, room);
    int err = wb_catalog_row_get(txn, WB_CATALOG_SITES, key, sizeof row, row);

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    bool known = err == 0;
    int64_t total = (known ? (int64_t)wb_get64(row) : 0) + pages;
    if (total < 0)
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SITES, "a site with less than no pages");
    if (known && summary->sites == 0)
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SITES, "more sites than counted");
    if (total == 0) {
        summary->sites -= known;
        return known ? wb_catalog_row_delete(txn, WB_CATALOG_SITES, key) : 0;
    }
    summary->sites += !known;
    wb_put64(row, (uint64_t)total);
    return wb_catalog_row_put(txn, WB_CATALOG_SITES, key, row, sizeof row);
}

struct site_walk {
    wb_catalog_each_site each;
    void *context;
};

static int walk_site(void *context, struct wb_slice key, struct wb_slice row)
{
    struct site_walk *walk = context;

    WB_CHECK(row.len == SITE_BYTES);
    return walk->each(walk->context, key, wb_get64(row.ptr));
}

int wb_catalog_site_each(struct wb_catalog_txn *txn, wb_catalog_each_site each, void *context)
{
    struct site_walk walk = {each, context};

    WB_CHECK(each != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_row_each(txn, WB_CATALOG_SITES, 0, SITE_BYTES, walk_site, &walk);
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* The key of a bar: "p" and the page's id, or "s" and the site. */
static struct wb_slice bar_key(enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site,
                               char room[SITE_KEY_MAX])
{
    char site_room[SITE_HASH_MAX];

    WB_CHECK(kind == WB_STORE_BAR_PAGE || kind == WB_STORE_BAR_SITE);
    if (kind == WB_STORE_BAR_PAGE) {
        room[0] = 'p';
        wb_pageid_put(id, room + 1);
        return wb_slice(room, 1 + WB_PAGEID_BYTES);
    }
    WB_CHECK(kind == WB_STORE_BAR_SITE);
    if (site.len >= SITE_KEY_MAX) /* one byte less than in table sites, because of the "s" */
        site = site_hash(site, site_room);
    room[0] = 's';
    memcpy(room + 1, site.ptr, site.len);
    return wb_slice(room, 1 + site.len);
}

static void bar_from_row(const char *row, struct wb_catalog_bar *row_out)
{
    *row_out = (struct wb_catalog_bar){
        .time_ms = (int64_t)wb_get64(row),
        .site = wb_get64(row + 8),
        .except = wb_get32(row + 16) != 0,
    };
}

int wb_catalog_bar_get(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id,
                       struct wb_slice site, struct wb_catalog_bar *row_out)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);

    char key[SITE_KEY_MAX], row[BAR_BYTES];
    int err = wb_catalog_row_get(txn, WB_CATALOG_BARS, bar_key(kind, id, site, key), sizeof row, row);

    *row_out = (struct wb_catalog_bar){0};
    if (err == 0)
        bar_from_row(row, row_out);
    return err;
}

int wb_catalog_bar_put(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id,
                       struct wb_slice site, const struct wb_catalog_bar *from)
{
    char key[SITE_KEY_MAX], row[BAR_BYTES] = {0};

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(kind == WB_STORE_BAR_PAGE || site.len > 0);
    WB_CHECK(kind == WB_STORE_BAR_PAGE || !from->except);
    wb_put64(row, (uint64_t)from->time_ms);
    wb_put64(row + 8, from->site);
    wb_put32(row + 16, from->except);
    return wb_catalog_row_put(txn, WB_CATALOG_BARS, bar_key(kind, id, site, key), row, sizeof row);
}

int wb_catalog_bar_delete(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id,
                          struct wb_slice site)
{
    char key[SITE_KEY_MAX];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(kind == WB_STORE_BAR_PAGE || site.len > 0);
    return wb_catalog_row_delete(txn, WB_CATALOG_BARS, bar_key(kind, id, site, key));
}

struct bar_walk {
    struct wb_catalog_txn *txn;
    wb_catalog_each_bar each;
    void *context;
};

static int walk_bar(void *context, struct wb_slice key, struct wb_slice bytes)
{
    struct bar_walk *walk = context;
    struct wb_catalog_bar row;
    bool page = key.len == 1 + WB_PAGEID_BYTES && key.ptr[0] == 'p';

    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(bytes.len == BAR_BYTES);
    if (!page && (key.len < 1 || key.ptr[0] != 's'))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_BARS, "a key that is neither a page nor a site");
    bar_from_row(bytes.ptr, &row);
    struct wb_store_bar bar = {.time_ms = row.time_ms, .except = row.except};
    bar.kind = page ? WB_STORE_BAR_PAGE : WB_STORE_BAR_SITE;
    if (page)
        bar.id = wb_pageid_get(key.ptr + 1);
    else
        bar.site = wb_slice(key.ptr + 1, key.len - 1);
    return walk->each(walk->context, &bar, &row);
}

int wb_catalog_bar_each(struct wb_catalog_txn *txn, wb_catalog_each_bar each, void *context)
{
    struct bar_walk walk = {txn, each, context};

    WB_CHECK(each != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_row_each(txn, WB_CATALOG_BARS, 0, BAR_BYTES, walk_bar, &walk);
}
