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

int wb_store_state_rows(struct wb_store_state *state, size_t part, wb_store_each_row each, void *context)
{
    int err = 0;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    WB_CHECK(part < state->part_count);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && err == 0; i++) {
        struct row_walk walk = {&state->parts[part], tables[i], each, context};
        if (tables[i] == WB_CATALOG_RETIRED)
            continue;
        err = wb_tree_each(wb_catalog_tree(walk.part->catalog), wb_catalog_txn_state(&walk.part->txn), tables[i],
                           pass_row, &walk);
    }
    return err;
}
