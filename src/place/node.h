/*
 * node.h - nodes: the directories in which pages are kept. A node stores bytes in files and knows nothing about pages.
 * A node is never another machine: many machines share a repository by whole shards, each of which has its own nodes
 * (docs/design/0039-node-messages.md).
 *
 * Files of nodes are reached through struct wb_node_file (node_file.h), which is like struct wb_file. busy.h counts
 * which requests are under way on which node, of all processes.
 *
 *   struct wb_node *node = NULL;
 *   int err = wb_node_open("/disk2/pages-of-mine", &identity, &node);
 *   struct wb_node_file file = WB_NODE_FILE_INIT;
 *   if (err == 0)
 *       err = wb_node_file_open(node, "pages/00000007.seg", false, &file);  // WB_E_DOWN: and why
 *   if (err == 0)
 *       err = wb_node_file_read_exact(&file, 0, header, sizeof header);
 *   wb_node_file_close(&file);
 *   wb_node_close(node);
 */
#ifndef WB_PLACE_NODE_H
#define WB_PLACE_NODE_H

#include "place/busy.h"
#include "place/node_file.h"
#include "place/node_identity.h"

struct wb_node;

/*
 * A directory. identity: who the node must be; that is checked whenever a file is opened, created or removed, and with
 * all calls about the whole node (WB_E_DOWN), so that a disk that goes away and another that comes in its place are
 * noticed, and one that comes back works again. It is not checked now: see wb_node_probe(). NULL: the directory has no
 * webbase.node, because it is that of the repository itself. Threads may share a node.
 */
int wb_node_open(const char *dir, const struct wb_node_identity *identity, struct wb_node **node_out);

/* Files that are open can still be used; the node is freed when the last of them is closed. NULL is fine. */
void wb_node_close(struct wb_node *node);

/* For those who use the node after its owner may have closed it. Ends with wb_node_close(). */
void wb_node_hold(struct wb_node *node);

/* What messages call the node: its directory. */
const char *wb_node_label(const struct wb_node *node);

/* Checks who the node is. WB_E_DOWN: it is not there, or not the right one; the message says why. */
int wb_node_probe(struct wb_node *node);

struct wb_node_space {
    uint64_t capacity, free; /* bytes of its file system; free: those that we may use */
    bool read_only;
};
int wb_node_space(struct wb_node *node, struct wb_node_space *space_out);

struct wb_node_entry {
    char name[WB_NODE_NAME_MAX]; /* "pages/..." */
    uint64_t size, disk_bytes;
};

/* Calls each() for all files of the node in the order of their names. Anything but 0 ends the walk, which returns it.
 */
int wb_node_each_file(struct wb_node *node, int (*each)(void *context, const struct wb_node_entry *entry),
                      void *context);

/* Makes the names durable of all files that were created or removed. */
int wb_node_sync_names(struct wb_node *node);

/* Removes a file. It is not an error if there is none. WB_E_BUSY: somebody writes to it. */
int wb_node_remove(struct wb_node *node, const char *name);

#endif
