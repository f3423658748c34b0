/* node_inside.h - what the kinds of nodes have in common. For the files of this room only. */
#ifndef WB_PLACE_NODE_INSIDE_H
#define WB_PLACE_NODE_INSIDE_H

#include "place/node.h"

#include <stdatomic.h>

enum { WB_NODE_MAGIC = 0x57424e44 };

struct wb_node {
    uint32_t magic;
    _Atomic uint32_t holders; /* whoever has opened it, and its open files */
    _Atomic uint64_t next_owner;
    char *label; /* owned */
    /* Fills *reply, which is zero, except for the message. Returns the code. */
    int (*call)(struct wb_node *node, const struct wb_node_request *request, struct wb_node_reply *reply);
    void (*forget)(struct wb_node *node, uint64_t owner); /* NULL: nothing to forget */
    void (*close)(struct wb_node *node);                  /* releases everything except the label and the struct */
};

/* Fills the common part. WB_E_NOMEM. */
int wb_node_init(struct wb_node *node, const char *label);

#endif
