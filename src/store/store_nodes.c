/*
 * store_nodes.c - the calls of the door that concern nodes (store_nodes.h): checks arguments and passes them on to the
 * organisation. It knows nothing about nodes itself.
 */
#include "base/check.h"
#include "base/error.h"
#include "store/organisation.h"

const char *wb_store_node_role_word(enum wb_store_node_role role)
{
    WB_CHECK(role <= WB_STORE_NODE_READ);
    return role == WB_STORE_NODE_UPDATE ? "update" : role == WB_STORE_NODE_READ ? "read" : "both";
}

const char *wb_store_node_state_word(enum wb_store_node_state state)
{
    static const char *const words[] = {
        [WB_STORE_NODE_IDLE] = "idle",
        [WB_STORE_NODE_STREAMING] = "streaming",
        [WB_STORE_NODE_STORING] = "storing",
        [WB_STORE_NODE_DOWN] = "down",
    };

    WB_CHECK(state <= WB_STORE_NODE_DOWN);
    return words[state];
}

static int no_nodes(void)
{
    return wb_fail(WB_E_INVALID, "this repository has no nodes");
}

int wb_store_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                       void *context)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(each != NULL);
    return store->ops->node_each ? store->ops->node_each(store, each, context) : no_nodes();
}
