/*
 * catalog_nodes.c - where files are: the tables nodes and retired as bytes.
 *
 * A node's row: flags (4), id (16), length of its directory (4), the directory, and if it takes any cells, these (128).
 * A retired file's row: transaction (8), node (4).
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "catalog/catalog_tables.h"

enum {
    RETIRED_KEY_BYTES = 8,
    RETIRED_BYTES = 12,
    NODE_KEY_BYTES = 4,
    NODE_HEAD_BYTES = 24,
    NODE_BYTES_MAX = NODE_HEAD_BYTES + WB_CATALOG_DIR_MAX + WB_CELLS_BYTES,
};

enum node_flags { NODE_INSIDE = 1, NODE_ARRIVING = 2, NODE_LEAVING = 4 };

_Static_assert((int)NODE_BYTES_MAX <= (int)WB_TREE_VALUE_MAX, "every node's row fits in the tree");

/* ---- nodes ------------------------------------------------------------------------------------------------- */

/* Returns false if the row contradicts itself. */
static bool node_from_row(const char *key, const char *row, size_t len, struct wb_catalog_node *node_out)
{
    *node_out = (struct wb_catalog_node){.number = wb_get32_be(key)};
    if (len < NODE_HEAD_BYTES)
        return false;
    uint32_t flags = wb_get32(row), dir = wb_get32(row + 20);
    if (node_out->number == 0 || dir == 0 || dir > WB_CATALOG_DIR_MAX ||
        (len != NODE_HEAD_BYTES + dir && len != NODE_HEAD_BYTES + dir + WB_CELLS_BYTES))
        return false;
    node_out->inside = flags & NODE_INSIDE;
    node_out->arriving = flags & NODE_ARRIVING;
    node_out->leaving = flags & NODE_LEAVING;
    memcpy(node_out->id, row + 4, sizeof node_out->id);
    memcpy(node_out->dir, row + NODE_HEAD_BYTES, dir);
    if (len > NODE_HEAD_BYTES + dir)
        wb_cells_read(row + NODE_HEAD_BYTES + dir, &node_out->cells);
    return memchr(node_out->dir, 0, dir) == NULL;
}

static int node_damaged(const struct wb_catalog *catalog)
{
    return wb_catalog_corrupt(catalog, WB_CATALOG_NODES, "a row that contradicts itself");
}

int wb_catalog_node_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_catalog_node *row_out)
{
    char key[NODE_KEY_BYTES], row[NODE_BYTES_MAX];
    size_t len;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(number > 0);
    *row_out = (struct wb_catalog_node){0};
    wb_put32_be(key, number);
    int err = wb_catalog_row_read(txn, WB_CATALOG_NODES, wb_slice(key, sizeof key), sizeof row, row, &len);
    return err == 0 && !node_from_row(key, row, len, row_out) ? node_damaged(txn->catalog) : err;
}

int wb_catalog_node_decode(const struct wb_catalog *catalog, struct wb_slice key, struct wb_slice row,
                           struct wb_catalog_node *node_out)
{
    bool sound = key.len == NODE_KEY_BYTES && node_from_row(key.ptr, row.ptr, row.len, node_out);

    return sound ? 0 : node_damaged(catalog);
}

size_t wb_catalog_node_encode(const struct wb_catalog_node *node, char row[WB_TREE_VALUE_MAX])
{
    size_t dir = strlen(node->dir);

    WB_CHECK(dir > 0 && dir <= WB_CATALOG_DIR_MAX);
    wb_put32(row, (node->inside ? NODE_INSIDE : 0u) | (node->arriving ? NODE_ARRIVING : 0u) |
                      (node->leaving ? NODE_LEAVING : 0u));
    memcpy(row + 4, node->id, sizeof node->id);
    wb_put32(row + 20, (uint32_t)dir);
    memcpy(row + NODE_HEAD_BYTES, node->dir, dir);
    wb_cells_write(&node->cells, row + NODE_HEAD_BYTES + dir);
    return NODE_HEAD_BYTES + dir + (wb_cells_count(&node->cells) ? WB_CELLS_BYTES : 0);
}

int wb_catalog_node_put(struct wb_catalog_txn *txn, const struct wb_catalog_node *node)
{
    char key[NODE_KEY_BYTES], row[WB_TREE_VALUE_MAX] = {0};

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(node->number > 0);
    wb_put32_be(key, node->number);
    return wb_catalog_row_put(txn, WB_CATALOG_NODES, wb_slice(key, sizeof key), row, wb_catalog_node_encode(node, row));
}

int wb_catalog_node_delete(struct wb_catalog_txn *txn, uint32_t number)
{
    char key[NODE_KEY_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(number > 0);
    wb_put32_be(key, number);
    return wb_catalog_row_delete(txn, WB_CATALOG_NODES, wb_slice(key, sizeof key));
}

struct node_walk {
    struct wb_catalog *catalog;
    wb_catalog_each_node each;
    void *context;
};

static int walk_node(void *context, struct wb_slice key, struct wb_slice row)
{
    struct node_walk *walk = context;
    struct wb_catalog_node node;

    WB_CHECK(key.len == NODE_KEY_BYTES);
    if (!node_from_row(key.ptr, row.ptr, row.len, &node))
        return node_damaged(walk->catalog);
    return walk->each(walk->context, &node);
}

int wb_catalog_node_each(struct wb_catalog_txn *txn, wb_catalog_each_node each, void *context)
{
    struct node_walk walk = {txn->catalog, each, context};

    WB_CHECK(each != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_row_each(txn, WB_CATALOG_NODES, NODE_KEY_BYTES, 0, walk_node, &walk);
}

/* ---- retired files --------------------------------------------------------------------------- */

static void retired_key(uint32_t number, uint32_t revision, char key[RETIRED_KEY_BYTES])
{
    WB_CHECK(number > 0);
    wb_put32_be(key, number);
    wb_put32_be(key + 4, revision);
}

int wb_catalog_retired_put(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, uint32_t node,
                           uint64_t txn_id)
{
    char key[RETIRED_KEY_BYTES], row[RETIRED_BYTES] = {0};

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(txn_id <= wb_catalog_txn_id(txn));
    retired_key(number, revision, key);
    wb_put64(row, txn_id);
    wb_put32(row + 8, node);
    return wb_catalog_row_put(txn, WB_CATALOG_RETIRED, wb_slice(key, sizeof key), row, sizeof row);
}

int wb_catalog_retired_delete(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision)
{
    char key[RETIRED_KEY_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    retired_key(number, revision, key);
    return wb_catalog_row_delete(txn, WB_CATALOG_RETIRED, wb_slice(key, sizeof key));
}

int wb_catalog_retired_has(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, bool *has_out)
{
    char key[RETIRED_KEY_BYTES], row[RETIRED_BYTES];
    int err;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    retired_key(number, revision, key);
    err = wb_catalog_row_get(txn, WB_CATALOG_RETIRED, wb_slice(key, sizeof key), sizeof row, row);
    *has_out = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

struct retired_walk {
    wb_catalog_each_retired each;
    void *context;
};

static int walk_retired(void *context, struct wb_slice key, struct wb_slice row)
{
    struct retired_walk *walk = context;

    WB_CHECK(key.len == RETIRED_KEY_BYTES);
    WB_CHECK(row.len == RETIRED_BYTES);
    return walk->each(walk->context, wb_get32_be(key.ptr), wb_get32_be(key.ptr + 4), wb_get32(row.ptr + 8),
                      wb_get64(row.ptr));
}

int wb_catalog_retired_each(struct wb_catalog_txn *txn, wb_catalog_each_retired each, void *context)
{
    struct retired_walk walk = {each, context};

    WB_CHECK(each != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_row_each(txn, WB_CATALOG_RETIRED, RETIRED_KEY_BYTES, RETIRED_BYTES, walk_retired, &walk);
}
