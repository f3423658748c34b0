/*
 * node_identity.h - the file webbase.node, which makes a directory a node and says of which repository.
 *
 * A disk that is not mounted leaves an empty directory behind, and a disk can be mounted in the place of another. So
 * nothing is read from or written to a directory before its identity was checked. docs/formats/node.md is the reference
 * of the file.
 */
#ifndef WB_PLACE_NODE_IDENTITY_H
#define WB_PLACE_NODE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

struct wb_buf;

#define WB_NODE_IDENTITY_NAME "webbase.node"
#define WB_NODE_DIR "pages" /* all other files of a node are in this directory */

enum { WB_NODE_FORMAT = 1, WB_NODE_ID_BYTES = 16 };

struct wb_node_identity {
    uint8_t repository[WB_NODE_ID_BYTES]; /* the id in webbase.repo */
    uint32_t number;                      /* from 1 */
    uint8_t id[WB_NODE_ID_BYTES];         /* random: two nodes that had the same number one after the other differ */
};

/*
 * Makes a directory a node, durably and in one step: after a crash it is a node or can be made one. The directory is
 * empty, or does not exist yet and its parent does. What an interrupted attempt has left does not count, nor does
 * lost+found. If it is exactly this node already, nothing happens. WB_E_INVALID, naming the directory: its parent does
 * not exist, it is not a directory, it is not empty, or it is a node already. WB_E_BUSY: another process is making it
 * a node.
 */
int wb_node_make(const char *dir, const struct wb_node_identity *identity);

/* Whether there is nothing in a directory but what an interrupted wb_node_make() has left, and lost+found. */
int wb_node_dir_is_empty(const char *dir, bool *empty_out);

/*
 * Checks that the directory is this node. WB_E_DOWN, with a message that names the directory and says what is wrong:
 * it is missing or empty (is the disk mounted?), a file, the node of another repository, another node of this one, or
 * webbase.node is damaged or cannot be read. WB_E_NEWER: webbase.node has another format.
 */
int wb_node_check(const char *dir, const struct wb_node_identity *expected);

/* What webbase.node says. WB_E_NOTFOUND: there is none. WB_E_CORRUPT, WB_E_NEWER. */
int wb_node_identity_read(const char *dir, struct wb_node_identity *identity_out);

/* Appends what webbase.node says of this node. */
int wb_node_identity_format(const struct wb_node_identity *identity, struct wb_buf *text);

/*
 * The opposite of wb_node_make(): removes the files of pages whose names are those of segments or buckets, then
 * webbase.node. Never removes anything else, and never the directory itself. Can be interrupted and repeated: if
 * webbase.node or the whole directory is gone, nothing happens. WB_E_DOWN if the directory is another node.
 */
int wb_node_unmake(const char *dir, const struct wb_node_identity *expected);

#endif
