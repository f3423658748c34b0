/*
 * catalog_snapshots.c - converts rows of the catalog to bytes and back: the tables snapshots and
 * holders, and finds out which epochs they hold. catalog_rows.c has the rules that all rows follow.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/vec.h"
#include "catalog/catalog_tables.h"

#include <stdlib.h>

/* Lengths of keys and values. */
enum {
    SNAPSHOT_KEY_BYTES = 4,
    SNAPSHOT_HEAD_BYTES = 24, /* epoch, time, pages; the name follows */
    HOLDER_HEAD_BYTES = 5,    /* of the key: snapshot and kind; the name follows */
    HOLDER_BYTES = 8,
};

static int snapshot_damaged(const struct wb_catalog_txn *txn)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SNAPSHOTS, "a row that is not a snapshot");
}

static int snapshot_from_row(const struct wb_catalog_txn *txn, struct wb_slice key, struct wb_slice row,
                             struct wb_store_snapshot *snapshot_out)
{
    *snapshot_out = (struct wb_store_snapshot){0};
    if (key.len != SNAPSHOT_KEY_BYTES || row.len < SNAPSHOT_HEAD_BYTES ||
        row.len > SNAPSHOT_HEAD_BYTES + WB_STORE_NAME_MAX)
        return snapshot_damaged(txn);
    snapshot_out->number = wb_get32_be(key.ptr);
    snapshot_out->epoch = wb_get64(row.ptr);
    snapshot_out->time_ms = (int64_t)wb_get64(row.ptr + 8);
    snapshot_out->pages = wb_get64(row.ptr + 16);
    memcpy(snapshot_out->name, row.ptr + SNAPSHOT_HEAD_BYTES, row.len - SNAPSHOT_HEAD_BYTES);
    return snapshot_out->number > 0 && snapshot_out->epoch > 0 ? 0 : snapshot_damaged(txn);
}

int wb_catalog_snapshot_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_store_snapshot *snapshot_out)
{
    char key[SNAPSHOT_KEY_BYTES], row[SNAPSHOT_HEAD_BYTES + WB_STORE_NAME_MAX];
    size_t len;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    *snapshot_out = (struct wb_store_snapshot){0};
    wb_put32_be(key, number);
    int err =
        wb_catalog_row_read(txn, WB_CATALOG_SNAPSHOTS, wb_slice(key, sizeof key), sizeof row, row, &len);
    return err < 0 ? err : snapshot_from_row(txn, wb_slice(key, sizeof key), wb_slice(row, len), snapshot_out);
}

int wb_catalog_snapshot_put(struct wb_catalog_txn *txn, const struct wb_store_snapshot *snapshot)
{
    char key[SNAPSHOT_KEY_BYTES], row[SNAPSHOT_HEAD_BYTES + WB_STORE_NAME_MAX];
    size_t name_len = strlen(snapshot->name);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(snapshot->number > 0);
    WB_CHECK(snapshot->epoch > 0);
    WB_CHECK(name_len <= WB_STORE_NAME_MAX);
    wb_put32_be(key, snapshot->number);
    wb_put64(row, snapshot->epoch);
    wb_put64(row + 8, (uint64_t)snapshot->time_ms);
    wb_put64(row + 16, snapshot->pages);
    memcpy(row + SNAPSHOT_HEAD_BYTES, snapshot->name, name_len);
    return wb_catalog_row_put(txn, WB_CATALOG_SNAPSHOTS, wb_slice(key, sizeof key), row,
                              SNAPSHOT_HEAD_BYTES + name_len);
}

int wb_catalog_snapshot_delete(struct wb_catalog_txn *txn, uint32_t number)
{
    char key[SNAPSHOT_KEY_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(number > 0);
    wb_put32_be(key, number);
    return wb_catalog_row_delete(txn, WB_CATALOG_SNAPSHOTS, wb_slice(key, sizeof key));
}

struct snapshot_walk {
    struct wb_catalog_txn *txn;
    wb_catalog_each_snapshot each;
    void *context;
};

static int walk_snapshot(void *context, struct wb_slice key, struct wb_slice row)
{
    struct snapshot_walk *walk = context;
    struct wb_store_snapshot snapshot;
    int err = snapshot_from_row(walk->txn, key, row, &snapshot);

    WB_CHECK(err < 0 || snapshot.number > 0);
    WB_CHECK(walk->each != NULL);
    return err < 0 ? err : walk->each(walk->context, &snapshot);
}

int wb_catalog_snapshot_each(struct wb_catalog_txn *txn, wb_catalog_each_snapshot each, void *context)
{
    struct snapshot_walk walk = {txn, each, context};

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    return wb_catalog_row_each(txn, WB_CATALOG_SNAPSHOTS, SNAPSHOT_KEY_BYTES, 0, walk_snapshot, &walk);
}

/* ---- holders -------------------------------------------------------------------------------------- */

static struct wb_slice holder_key(uint32_t number, const struct wb_store_holder *holder,
                                  char key[HOLDER_HEAD_BYTES + WB_STORE_NAME_MAX])
{
    size_t name_len = strlen(holder->name);

    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(number > 0);
    WB_CHECK(name_len <= WB_STORE_NAME_MAX);
    wb_put32_be(key, number);
    key[4] = (char)holder->kind;
    memcpy(key + HOLDER_HEAD_BYTES, holder->name, name_len);
    return wb_slice(key, HOLDER_HEAD_BYTES + name_len);
}

int wb_catalog_holder_put(struct wb_catalog_txn *txn, uint32_t number, const struct wb_store_holder *holder)
{
    char key[HOLDER_HEAD_BYTES + WB_STORE_NAME_MAX], row[HOLDER_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    wb_put64(row, (uint64_t)holder->expires_ms);
    return wb_catalog_row_put(txn, WB_CATALOG_HOLDERS, holder_key(number, holder, key), row, sizeof row);
}

int wb_catalog_holder_delete(struct wb_catalog_txn *txn, uint32_t number, const struct wb_store_holder *holder)
{
    char key[HOLDER_HEAD_BYTES + WB_STORE_NAME_MAX];

    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_catalog_row_delete(txn, WB_CATALOG_HOLDERS, holder_key(number, holder, key));
}

struct holder_walk {
    struct wb_catalog_txn *txn;
    uint32_t number;
    wb_catalog_each_holder each;
    void *context;
    int result; /* of the last call of each() */
};

/* Returns 1 after the last holder of the snapshot, which ends the walk. */
static int walk_holder(void *context, struct wb_slice key, struct wb_slice row)
{
    struct holder_walk *walk = context;
    struct wb_store_holder holder = {0};

    WB_CHECK(walk->each != NULL);
    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    if (key.len < HOLDER_HEAD_BYTES || key.len > HOLDER_HEAD_BYTES + WB_STORE_NAME_MAX || row.len != HOLDER_BYTES ||
        key.ptr[4] < 0 || key.ptr[4] > WB_STORE_HOLDER_STREAM)
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_HOLDERS, "a row that is not a holder");
    if (wb_get32_be(key.ptr) != walk->number)
        return 1;
    holder.kind = (enum wb_store_holder_kind)key.ptr[4];
    holder.expires_ms = (int64_t)wb_get64(row.ptr);
    memcpy(holder.name, key.ptr + HOLDER_HEAD_BYTES, key.len - HOLDER_HEAD_BYTES);
    walk->result = walk->each(walk->context, walk->number, &holder);
    return walk->result;
}

int wb_catalog_holder_each(struct wb_catalog_txn *txn, uint32_t number, wb_catalog_each_holder each, void *context)
{
    struct holder_walk walk = {.txn = txn, .number = number, .each = each, .context = context};
    char from[SNAPSHOT_KEY_BYTES];

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    wb_put32_be(from, number);
    int err = wb_catalog_row_each_from(txn, WB_CATALOG_HOLDERS, wb_slice(from, sizeof from), walk_holder, &walk);
    return err < 0 ? err : walk.result;
}

/* ---- who holds what ------------------------------------------------------------------------ */

struct held_gathering {
    struct wb_catalog_txn *txn;
    struct wb_epochs *epochs;
    int64_t now_ms;
    bool alive; /* the snapshot has a holder whose time has not run out */
};

static int look_at_holder(void *context, uint32_t number, const struct wb_store_holder *holder)
{
    struct held_gathering *g = context;

    WB_CHECK(number > 0);
    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    (void)number;
    g->alive = g->alive || holder->expires_ms == 0 || holder->expires_ms > g->now_ms;
    return 0;
}

static int gather_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct held_gathering *g = context;

    WB_CHECK(snapshot->number > 0);
    WB_CHECK(snapshot->epoch > 0);
    g->alive = false;
    int err = wb_catalog_holder_each(g->txn, snapshot->number, look_at_holder, g);
    return err < 0 || !g->alive ? err : wb_vec_push(g->epochs, snapshot->epoch);
}

static int compare_epochs(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

int wb_epochs_held(struct wb_catalog_txn *txn, int64_t now_ms, struct wb_epochs *epochs_out)
{
    struct held_gathering g = {.txn = txn, .epochs = epochs_out, .now_ms = now_ms};
    uint64_t pinned = 0;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    wb_vec_clear(epochs_out);
    int err = wb_catalog_count(txn, WB_CATALOG_SNAPSHOTS) ? wb_catalog_snapshot_each(txn, gather_snapshot, &g) : 0;
    while (err == 0) {
        err = wb_tree_pinned(wb_catalog_tree(txn->catalog), pinned, &pinned);
        if (err <= 0)
            break;
        err = wb_vec_push(epochs_out, pinned);
        pinned++;
    }
    if (err == 0 && epochs_out->count > 1)
        qsort(epochs_out->items, epochs_out->count, sizeof *epochs_out->items, compare_epochs);
    return err;
}
