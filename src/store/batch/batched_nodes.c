/*
 * batched_nodes.c - the nodes of a batch design: those of both parts. Read nodes are numbered from 1, update nodes from
 * WB_BATCHED_FIRST_NODE, so that a number says to which part a node belongs.
 */
#include "base/check.h"
#include "store/batch/batched.h"

#include <stdio.h>

/* Passes on the nodes of one part. */
struct node_listing {
    int (*each)(void *context, const struct wb_store_node *node);
    void *context;
    enum wb_store_node_role role;
    uint64_t outside_bytes; /* on nodes that are not in the repository's directory */
};

static int pass_node(void *context, const struct wb_store_node *node)
{
    struct node_listing *l = context;
    struct wb_store_node passed = *node;
    char dir[sizeof WB_BATCHED_UPDATE_DIR + WB_CATALOG_DIR_MAX + 1];

    WB_CHECK(node->dir != NULL);
    WB_CHECK(l->role != WB_STORE_NODE_BOTH);
    passed.role = l->role;
    if (node->dir[0] == '/')
        l->outside_bytes += node->used;
    else if (l->role == WB_STORE_NODE_UPDATE) { /* relative to the repository, as those of the read nodes are */
        snprintf(dir, sizeof dir, WB_BATCHED_UPDATE_DIR "/%s", node->dir);
        passed.dir = dir;
    }
    return l->each ? l->each(l->context, &passed) : 0;
}

int wb_batched_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                         void *context)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct node_listing here = {each, context, WB_STORE_NODE_READ, 0}, there = {each, context, WB_STORE_NODE_UPDATE, 0};
    int err = wb_batched_open_update(batch);

    WB_CHECK(each != NULL);
    if (err == 0)
        err = wb_store_node_each(batch->read, pass_node, &here);
    return err ? err : wb_store_node_each(batch->update, pass_node, &there);
}

int wb_batched_outside_bytes(struct wb_batched *batch, uint64_t *bytes_out)
{
    struct node_listing there = {.role = WB_STORE_NODE_UPDATE};
    int err = wb_store_node_each(batch->update, pass_node, &there);

    WB_CHECK(batch->update != NULL);
    *bytes_out = there.outside_bytes;
    return err;
}
