/*
 * store_state_rows.c - the rows of a state (store_state.h), as a copy will have them. It knows two tables: that of
 * nodes, which are inside the repository in a copy, and that of retired files, of which a copy has none.
 */
#include "base/check.h"
#include "base/error.h"
#include "store/state/store_state_own.h"

#include <stdio.h>

struct row_walk {
    const struct wb_state_part *part;
    unsigned table;
    wb_store_each_row each;
    void *context;
};

static const unsigned tables[] = {
#define TABLE_NUMBER(name, number, words) number,
    WB_CATALOG_TABLES(TABLE_NUMBER)
#undef TABLE_NUMBER
};

/* Passes a row on; value.ptr is NULL if it is not there any more. */
static int pass_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct row_walk *walk = context;
    struct wb_catalog_node node;
    char dir[WB_STATE_NODE_MAX], row[WB_TREE_VALUE_MAX];

    if (walk->table != WB_CATALOG_NODES || !value.ptr)
        return walk->each(walk->context, walk->table, key, value);
    int err = wb_catalog_node_decode(walk->part->catalog, key, value, &node);
    if (err < 0)
        return err;
    wb_state_node_dir(&node, dir);
    if (dir[0])
        snprintf(node.dir, sizeof node.dir, "%s", dir);
    node.inside = true;
    return walk->each(walk->context, walk->table, key, wb_slice(row, wb_catalog_node_encode(&node, row)));
}

/* Passes the rows on of all tables: all of them, or those that differ from an older state of the same catalog. */
static int walk_tables(const struct wb_state_part *part, const struct wb_tree_state *older, wb_store_each_row each,
                       void *context)
{
    const struct wb_tree_state *now = wb_catalog_txn_state(&part->txn);
    struct wb_tree *tree = wb_catalog_tree(part->catalog);
    int err = 0;

    for (size_t i = 0; i < sizeof tables / sizeof *tables && err == 0; i++) {
        struct row_walk walk = {part, tables[i], each, context};
        if (tables[i] == WB_CATALOG_RETIRED)
            continue;
        err = older ? wb_tree_diff(tree, older, now, tables[i], pass_row, &walk)
                    : wb_tree_each(tree, now, tables[i], pass_row, &walk);
    }
    return err;
}

int wb_store_state_rows(struct wb_store_state *state, size_t part, wb_store_each_row each, void *context)
{
    WB_CHECK(state->magic == WB_STATE_MAGIC);
    WB_CHECK(part < state->part_count);
    return walk_tables(&state->parts[part], NULL, each, context);
}

int wb_store_state_rows_since(struct wb_store_state *state, size_t part, struct wb_store_state *older,
                              wb_store_each_row each, void *context)
{
    WB_CHECK(state->magic == WB_STATE_MAGIC);
    WB_CHECK(older->magic == WB_STATE_MAGIC);
    WB_CHECK(part < state->part_count && part < older->part_count);
    WB_CHECK(memcmp(state->superblock.id, older->superblock.id, sizeof state->superblock.id) == 0);
    return walk_tables(&state->parts[part], wb_catalog_txn_state(&older->parts[part].txn), each, context);
}

int wb_store_state_rows_since_mark(struct wb_store_state *state, size_t part, struct wb_slice mark,
                                   wb_store_each_row each, void *context)
{
    struct wb_tree_marked marked[WB_STATE_PARTS_MAX];
    struct wb_error_copy why;
    bool there = false;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    WB_CHECK(part < state->part_count);
    if (wb_state_mark_decode(mark, state->superblock.id, marked) != state->part_count)
        return WB_E_NOTFOUND;
    struct wb_tree *tree = wb_catalog_tree(state->parts[part].catalog);
    int err = wb_tree_is_marked(tree, &marked[part], &there);
    if (err < 0 || !there)
        return err < 0 ? err : WB_E_NOTFOUND;
    err = walk_tables(&state->parts[part], &marked[part].state, each, context);
    if (err != WB_E_CORRUPT)
        return err;
    wb_error_save(err, &why); /* if the mark has gone meanwhile, so have its pages */
    if (wb_tree_is_marked(tree, &marked[part], &there) == 0 && !there)
        return WB_E_NOTFOUND;
    return wb_error_restore(&why);
}
