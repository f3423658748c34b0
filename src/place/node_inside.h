/* node_inside.h - what files of nodes need of their node. For node.c and node_file.c only. */
#ifndef WB_PLACE_NODE_INSIDE_H
#define WB_PLACE_NODE_INSIDE_H

#include "place/node.h"

/*
 * Opens a file of the node with the flags of os/file.h. WB_E_DOWN; WB_E_NOTFOUND; WB_E_INVALID if no file of a node can
 * have this name: nothing outside of the node is ever touched.
 */
int wb_node_open_named(struct wb_node *node, const char *name, unsigned flags, struct wb_file *file_out);

#endif
