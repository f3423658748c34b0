/*
 * catalog_sites.c - converts rows of the catalog to bytes and back: the tables sites,
 * bars, revisits and waiting, whose rows say something about a site. A revisit is found by the page
 * that was seen; if its original is another page, also by that one. catalog_rows.c has the rules that all
 * rows follow.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "catalog/catalog_tables.h"

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
    WB_CHECK(site.ptr || site.len == 0);
    if (site.len == 0)
        return WB_SLICE_LIT("-");
    return site.len <= SITE_KEY_MAX ? site : site_hash(site, room);
}

int wb_catalog_site_add(struct wb_catalog_txn *txn, struct wb_slice site, int64_t pages,
                        struct wb_catalog_summary *summary)
{
    WB_CHECK(site.ptr || site.len == 0);
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

uint64_t wb_catalog_site_hash(struct wb_slice name)
{
    uint8_t digits[8];

    WB_CHECK(name.len > 0);
    if (wb_slice_equal(name, WB_SLICE_LIT("-")))
        name = WB_SLICE_LIT("");
    else if (name.ptr[0] == '#' && wb_hex_decode(wb_slice(name.ptr + 1, name.len - 1), digits, sizeof digits))
        return wb_get64_be(digits);
    return wb_hash64(name.ptr, name.len);
}

struct site_walk {
    wb_catalog_each_site each;
    void *context;
};

static int walk_site(void *context, struct wb_slice key, struct wb_slice row)
{
    struct site_walk *walk = context;

    WB_CHECK(walk->each != NULL);
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
    WB_CHECK(site.len < SITE_KEY_MAX);
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
    WB_CHECK(kind <= WB_STORE_BAR_SITE);
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

/* ---- revisits and waiting -------------------------------------------------------------------- */
enum {
    REVISIT_KEY_BYTES = WB_PAGEID_BYTES + 8, /* page and time */
    REVISIT_BYTES = 1 + 8 + 8 + WB_SHA1_BYTES + WB_PAGEID_BYTES,
    WAITING_KEY_BYTES = WB_PAGEID_BYTES + REVISIT_KEY_BYTES,
};
enum revisit_flags { REVISIT_HAS_SHA1 = 1, REVISIT_NOT_MODIFIED = 2 };

/* Times before 1970 sort first. */
static uint64_t time_to_key(int64_t time_ms)
{
    return (uint64_t)time_ms ^ (uint64_t)1 << 63;
}

static void revisit_key(struct wb_pageid id, int64_t time_ms, char *key)
{
    uint64_t time = time_to_key(time_ms);

    wb_pageid_put(id, key);
    wb_put32_be(key + WB_PAGEID_BYTES, (uint32_t)(time >> 32));
    wb_put32_be(key + WB_PAGEID_BYTES + 4, (uint32_t)time);
}

static void waiting_key(const struct wb_store_revisit *revisit, char key[WAITING_KEY_BYTES])
{
    wb_pageid_put(revisit->original, key);
    revisit_key(revisit->id, revisit->time_ms, key + WB_PAGEID_BYTES);
}

/* Returns false if the row is not a revisit. */
static bool revisit_from_row(struct wb_slice key, struct wb_slice row, struct wb_store_revisit *revisit_out,
                             uint64_t *site_out)
{
    *revisit_out = (struct wb_store_revisit){0};
    *site_out = 0;
    if (key.len != REVISIT_KEY_BYTES || row.len != REVISIT_BYTES ||
        (uint8_t)row.ptr[0] > (REVISIT_HAS_SHA1 | REVISIT_NOT_MODIFIED))
        return false;
    uint64_t time = (uint64_t)wb_get32_be(key.ptr + WB_PAGEID_BYTES) << 32 | wb_get32_be(key.ptr + WB_PAGEID_BYTES + 4);
    revisit_out->id = wb_pageid_get(key.ptr);
    revisit_out->time_ms = (int64_t)(time ^ (uint64_t)1 << 63);
    revisit_out->has_sha1 = row.ptr[0] & REVISIT_HAS_SHA1;
    revisit_out->not_modified = row.ptr[0] & REVISIT_NOT_MODIFIED;
    *site_out = wb_get64(row.ptr + 1);
    revisit_out->original_ms = (int64_t)wb_get64(row.ptr + 9);
    memcpy(revisit_out->sha1, row.ptr + 17, WB_SHA1_BYTES);
    revisit_out->original = wb_pageid_get(row.ptr + 17 + WB_SHA1_BYTES);
    return true;
}

int wb_catalog_revisit_put(struct wb_catalog_txn *txn, uint64_t site, const struct wb_store_revisit *revisit,
                           bool *new_out)
{
    char key[REVISIT_KEY_BYTES], waiting[WAITING_KEY_BYTES], row[REVISIT_BYTES];
    size_t len;

    WB_CHECK(revisit->url.ptr || revisit->url.len == 0);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    revisit_key(revisit->id, revisit->time_ms, key);
    int err = wb_catalog_row_read(txn, WB_CATALOG_REVISITS, wb_slice(key, sizeof key), sizeof row, row, &len);
    *new_out = err == WB_E_NOTFOUND;
    if (err != WB_E_NOTFOUND) /* a capture is a page and a time: the first one stays */
        return err;
    row[0] = (char)((revisit->has_sha1 ? REVISIT_HAS_SHA1 : 0) | (revisit->not_modified ? REVISIT_NOT_MODIFIED : 0));
    wb_put64(row + 1, site);
    wb_put64(row + 9, (uint64_t)revisit->original_ms);
    memcpy(row + 17, revisit->sha1, WB_SHA1_BYTES);
    wb_pageid_put(revisit->original, row + 17 + WB_SHA1_BYTES);
    err = wb_catalog_row_put(txn, WB_CATALOG_REVISITS, wb_slice(key, sizeof key), row, sizeof row);
    if (err < 0 || wb_pageid_equal(revisit->id, revisit->original))
        return err;
    /* To store a copy, the writer that has the original needs the URL. Without it, the revisit waits. */
    waiting_key(revisit, waiting);
    bool fits = revisit->url.len && revisit->url.len <= WB_TREE_VALUE_MAX;
    return wb_catalog_row_put(txn, WB_CATALOG_WAITING, wb_slice(waiting, sizeof waiting),
                              fits ? revisit->url.ptr : "", fits ? revisit->url.len : 1);
}

int wb_catalog_revisit_delete(struct wb_catalog_txn *txn, const struct wb_store_revisit *revisit)
{
    char key[REVISIT_KEY_BYTES], waiting[WAITING_KEY_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    revisit_key(revisit->id, revisit->time_ms, key);
    int err = wb_catalog_row_delete(txn, WB_CATALOG_REVISITS, wb_slice(key, sizeof key));
    if (err < 0 || wb_pageid_equal(revisit->id, revisit->original))
        return err;
    waiting_key(revisit, waiting);
    err = wb_catalog_row_delete(txn, WB_CATALOG_WAITING, wb_slice(waiting, sizeof waiting));
    return err == WB_E_NOTFOUND ? wb_catalog_corrupt(txn->catalog, WB_CATALOG_WAITING, "a missing row") : err;
}

/* ---- walks ------------------------------------------------------------------------------------------- */

struct revisit_walk {
    struct wb_catalog_txn *txn;
    const struct wb_pageid *only; /* the page, or the original, whose rows are wanted; NULL: all */
    wb_catalog_each_revisit each;
    void *context;
    int result; /* of the last call of each() */
};

static int walk_revisit(void *context, struct wb_slice key, struct wb_slice row)
{
    struct revisit_walk *walk = context;
    struct wb_store_revisit revisit;
    uint64_t site;

    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(walk->each != NULL);
    if (!revisit_from_row(key, row, &revisit, &site))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_REVISITS, "a row that is not a revisit");
    if (walk->only && !wb_pageid_equal(*walk->only, revisit.id))
        return 1;
    walk->result = walk->each(walk->context, &revisit, site);
    return walk->result;
}

int wb_catalog_revisit_of(struct wb_catalog_txn *txn, struct wb_pageid id, wb_catalog_each_revisit each,
                          void *context)
{
    struct revisit_walk walk = {.txn = txn, .only = &id, .each = each, .context = context};
    char from[WB_PAGEID_BYTES];

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    wb_pageid_put(id, from);
    int err = wb_catalog_row_each_from(txn, WB_CATALOG_REVISITS, wb_slice(from, sizeof from), walk_revisit, &walk);
    return err < 0 ? err : walk.result;
}

int wb_catalog_revisit_each(struct wb_catalog_txn *txn, wb_catalog_each_revisit each, void *context)
{
    struct revisit_walk walk = {.txn = txn, .each = each, .context = context};

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    return wb_catalog_row_each(txn, WB_CATALOG_REVISITS, 0, 0, walk_revisit, &walk);
}

/* A row of table waiting: finds the revisit that it names. The value is its URL, or one zero if that is unknown. */
static int walk_waiting(void *context, struct wb_slice key, struct wb_slice row)
{
    struct revisit_walk *walk = context;
    struct wb_store_revisit revisit;
    char bytes[REVISIT_BYTES], url[WB_TREE_VALUE_MAX];
    uint64_t site;
    size_t len, url_len = row.len;

    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(walk->each != NULL);
    WB_CHECK(walk->only != NULL);
    if (key.len != WAITING_KEY_BYTES || row.len < 1 || row.len > sizeof url)
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_WAITING, "a row of the wrong length");
    if (!wb_pageid_equal(*walk->only, wb_pageid_get(key.ptr)))
        return 1;
    struct wb_slice name = wb_slice(key.ptr + WB_PAGEID_BYTES, REVISIT_KEY_BYTES);
    memcpy(url, row.ptr, url_len);
    int err = wb_catalog_row_read(walk->txn, WB_CATALOG_REVISITS, name, sizeof bytes, bytes, &len);
    if (err == WB_E_NOTFOUND || (err == 0 && !revisit_from_row(name, wb_slice(bytes, len), &revisit, &site)))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_WAITING, "a row without a revisit");
    if (err == 0 && !wb_pageid_equal(revisit.original, *walk->only))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_WAITING, "a row of another original");
    if (err < 0)
        return err;
    if (url[0])
        revisit.url = wb_slice(url, url_len);
    walk->result = walk->each(walk->context, &revisit, site);
    return walk->result;
}

int wb_catalog_revisit_waiting(struct wb_catalog_txn *txn, struct wb_pageid original, wb_catalog_each_revisit each,
                               void *context)
{
    struct revisit_walk walk = {.txn = txn, .only = &original, .each = each, .context = context};
    char from[WB_PAGEID_BYTES];

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    wb_pageid_put(original, from);
    int err = wb_catalog_row_each_from(txn, WB_CATALOG_WAITING, wb_slice(from, sizeof from), walk_waiting, &walk);
    return err < 0 ? err : walk.result;
}
