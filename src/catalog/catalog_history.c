/*
 * catalog_history.c - table history: the past of a page as bytes (history_bytes.c), cut into
 * rows that fit in the tree. The key is the page id and the number of the row, big-endian. The
 * first byte of a row says whether another one follows; the rest belongs to the history.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "catalog/catalog_tables.h"

enum {
    HISTORY_KEY_BYTES = WB_PAGEID_BYTES + 2,
    HISTORY_ROW_BYTES = 960,
    HISTORY_PARTS_MAX = UINT16_MAX,
};
enum history_row_kind { HISTORY_ROW_LAST, HISTORY_ROW_MORE };

_Static_assert((int)HISTORY_ROW_BYTES <= (int)WB_TREE_VALUE_MAX, "every row fits in the tree");

static struct wb_slice history_key(struct wb_pageid id, size_t part, char key[HISTORY_KEY_BYTES])
{
    WB_CHECK(part <= HISTORY_PARTS_MAX);
    wb_pageid_put(id, key);
    key[WB_PAGEID_BYTES] = (char)(part >> 8);
    key[WB_PAGEID_BYTES + 1] = (char)part;
    return wb_slice(key, HISTORY_KEY_BYTES);
}

static int history_damaged(const struct wb_catalog_txn *txn)
{
    return wb_catalog_corrupt(txn->catalog, WB_CATALOG_HISTORY, "a page whose history is incomplete");
}

/* Whether a row has a kind and at least one byte of the history. */
static bool is_part(const char *row, size_t len)
{
    WB_CHECK(row || len == 0);
    return len > 1 && (row[0] == HISTORY_ROW_LAST || row[0] == HISTORY_ROW_MORE);
}

int wb_catalog_history_get(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_buf *bytes_out)
{
    char key[HISTORY_KEY_BYTES], row[HISTORY_ROW_BYTES];
    bool more = true;
    size_t len;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    wb_buf_clear(bytes_out);
    for (size_t part = 0; more; part++) {
        if (part > HISTORY_PARTS_MAX)
            return history_damaged(txn);
        int err = wb_catalog_row_read(txn, WB_CATALOG_HISTORY, history_key(id, part, key), sizeof row, row, &len);
        if ((err == WB_E_NOTFOUND && part > 0) || (err == 0 && !is_part(row, len)))
            err = history_damaged(txn);
        if (err == 0)
            err = wb_buf_append(bytes_out, row + 1, len - 1);
        if (err < 0)
            return err;
        more = row[0] == HISTORY_ROW_MORE;
    }
    WB_CHECK(bytes_out->len > 0);
    return 0;
}

/* Writes one row, unless it is there already. */
static int put_row(struct wb_catalog_txn *txn, struct wb_slice key, struct wb_slice row)
{
    char there[HISTORY_ROW_BYTES];
    size_t len;
    int err = wb_catalog_row_read(txn, WB_CATALOG_HISTORY, key, sizeof there, there, &len);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(key.len == HISTORY_KEY_BYTES);
    WB_CHECK(row.len <= HISTORY_ROW_BYTES);
    WB_CHECK(row.len > 1);
    if (err == 0 && wb_slice_equal(wb_slice(there, len), row))
        return 0;
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    return wb_catalog_row_put(txn, WB_CATALOG_HISTORY, key, row.ptr, row.len);
}

/* Deletes the rows of a page from number `part` on. */
static int delete_from(struct wb_catalog_txn *txn, struct wb_pageid id, size_t part)
{
    char key[HISTORY_KEY_BYTES];
    int err = 0;

    WB_CHECK(part <= (size_t)HISTORY_PARTS_MAX + 1);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    while (err == 0 && part <= HISTORY_PARTS_MAX)
        err = wb_catalog_row_delete(txn, WB_CATALOG_HISTORY, history_key(id, part++, key));
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_catalog_history_put(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_slice bytes)
{
    char key[HISTORY_KEY_BYTES], row[HISTORY_ROW_BYTES];
    size_t part = 0;

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(bytes.len > 0);
    while (bytes.len) {
        size_t len = bytes.len < sizeof row - 1 ? bytes.len : sizeof row - 1;
        row[0] = len < bytes.len ? HISTORY_ROW_MORE : HISTORY_ROW_LAST;
        memcpy(row + 1, bytes.ptr, len);
        if (part > HISTORY_PARTS_MAX)
            return wb_fail(WB_E_LIMIT, "a page has more captures than a history can hold");
        int err = put_row(txn, history_key(id, part++, key), wb_slice(row, len + 1));
        if (err < 0)
            return err;
        bytes = wb_slice(bytes.ptr + len, bytes.len - len);
    }
    return delete_from(txn, id, part);
}

int wb_catalog_history_delete(struct wb_catalog_txn *txn, struct wb_pageid id)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return delete_from(txn, id, 0);
}

/* ---- all pages ---------------------------------------------------------------------------------- */

struct history_walk {
    struct wb_catalog_txn *txn;
    struct wb_buf bytes; /* of the page whose rows are being read */
    struct wb_pageid id;
    size_t parts;        /* rows of it that were read; 0: the next row begins a page */
    wb_catalog_each_history each;
    wb_tree_passed damaged; /* NULL: damage ends the walk */
    bool between;           /* rows before the next page's first are of a page that is damaged */
    void *context;
};

/* Passes over a page whose rows are damaged, if that is wanted. */
static int pass_page(struct history_walk *walk)
{
    bool before = walk->between;

    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    walk->parts = 0;
    walk->between = true;
    if (!walk->damaged)
        return history_damaged(walk->txn);
    if (before) /* it was said already */
        return 0;
    (void)history_damaged(walk->txn);
    return walk->damaged(walk->context);
}

/* The walk has passed over rows: those of the current page may have been among them. */
static int pass_rows(void *context)
{
    struct history_walk *walk = context;

    WB_CHECK(walk->damaged != NULL);
    walk->parts = 0;
    walk->between = true;
    return walk->damaged(walk->context);
}

static int walk_history(void *context, struct wb_slice key, struct wb_slice row)
{
    struct history_walk *walk = context;

    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(walk->parts <= (size_t)HISTORY_PARTS_MAX + 1);
    WB_CHECK(walk->parts == 0 || walk->bytes.len > 0);
    if (key.len != HISTORY_KEY_BYTES || !is_part(row.ptr, row.len))
        return pass_page(walk);
    struct wb_pageid id = wb_pageid_get(key.ptr);
    size_t part = (size_t)(uint8_t)key.ptr[WB_PAGEID_BYTES] << 8 | (uint8_t)key.ptr[WB_PAGEID_BYTES + 1];
    if (part == 0 && walk->parts && walk->damaged) { /* the page before is not complete */
        int passed = pass_page(walk);
        if (passed != 0)
            return passed;
    }
    if (part != walk->parts || (part > 0 && !wb_pageid_equal(id, walk->id)))
        return pass_page(walk);
    walk->between = false;
    if (part == 0)
        wb_buf_clear(&walk->bytes);
    walk->id = id;
    int err = wb_buf_append(&walk->bytes, row.ptr + 1, row.len - 1);
    if (err < 0)
        return err;
    if (row.ptr[0] == HISTORY_ROW_MORE) {
        walk->parts++;
        return 0;
    }
    walk->parts = 0;
    return walk->each(walk->context, id, wb_buf_slice(&walk->bytes));
}

int wb_catalog_history_each_sound(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_history each,
                                  wb_tree_passed damaged, void *context)
{
    struct history_walk walk = {
        .txn = txn, .bytes = WB_BUF_INIT, .each = each, .damaged = damaged, .context = context};
    char key[HISTORY_KEY_BYTES];

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    int err = wb_catalog_row_each_sound(txn, WB_CATALOG_HISTORY, history_key(from, 0, key), walk_history,
                                        damaged ? pass_rows : NULL, &walk);
    if (err == 0 && walk.parts)
        err = pass_page(&walk);
    wb_buf_release(&walk.bytes);
    return err;
}

int wb_catalog_history_each(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_history each,
                            void *context)
{
    return wb_catalog_history_each_sound(txn, from, each, NULL, context);
}
