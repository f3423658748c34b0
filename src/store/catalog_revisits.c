/*
 * catalog_revisits.c - converts rows of the catalog to bytes and back: the tables revisits and
 * waiting. A revisit is found by the page that was seen; if its original is another page, also
 * by that one. catalog_rows.c has the rules that all rows follow.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/vec.h"
#include "store/catalog_row.h"

/* Lengths of keys and values. */
enum {
    REVISIT_KEY_BYTES = WB_PAGEID_BYTES + 8, /* page and time */
    REVISIT_BYTES = 1 + 8 + 8 + WB_SHA1_BYTES + WB_PAGEID_BYTES,
    REVISIT_BYTES_2 = 40, /* in format 2, with the page alone as the key */
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
    if (key.len == WB_PAGEID_BYTES && row.len == REVISIT_BYTES_2) { /* of format 2 */
        revisit_out->id = revisit_out->original = wb_pageid_get(key.ptr);
        revisit_out->time_ms = (int64_t)wb_get64(row.ptr);
        revisit_out->has_sha1 = wb_get32(row.ptr + 8) != 0;
        *site_out = wb_get64(row.ptr + 12);
        memcpy(revisit_out->sha1, row.ptr + 20, WB_SHA1_BYTES);
        return true;
    }
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
    /* Whoever has the original needs the URL to store a copy. Without it, the revisit waits for its own content. */
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

    WB_CHECK(each != NULL);
    wb_pageid_put(id, from);
    int err = wb_catalog_row_each_from(txn, WB_CATALOG_REVISITS, wb_slice(from, sizeof from), walk_revisit, &walk);
    return err < 0 ? err : walk.result;
}

int wb_catalog_revisit_each(struct wb_catalog_txn *txn, wb_catalog_each_revisit each, void *context)
{
    struct revisit_walk walk = {.txn = txn, .each = each, .context = context};

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

    WB_CHECK(each != NULL);
    wb_pageid_put(original, from);
    int err = wb_catalog_row_each_from(txn, WB_CATALOG_WAITING, wb_slice(from, sizeof from), walk_waiting, &walk);
    return err < 0 ? err : walk.result;
}

/* ---- format 2 -------------------------------------------------------------------------------------------- */

struct revisit_row {
    struct wb_store_revisit revisit;
    uint64_t site;
};
struct revisit_rows WB_VEC_OF(struct revisit_row);

static int gather_revisit_row(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct revisit_rows *rows = context;

    return wb_vec_push(rows, (struct revisit_row){*revisit, site});
}

int wb_catalog_revisit_upgrade(struct wb_catalog_txn *txn)
{
    struct revisit_rows rows = {0};
    bool is_new;
    int err = wb_catalog_revisit_each(txn, gather_revisit_row, &rows);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    if (err == 0)
        err = wb_catalog_clear(txn, WB_CATALOG_REVISITS);
    for (size_t i = 0; i < rows.count && err == 0; i++)
        err = wb_catalog_revisit_put(txn, rows.items[i].site, &rows.items[i].revisit, &is_new);
    wb_vec_release(&rows);
    return err;
}
