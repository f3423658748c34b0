/*
 * node.h - the door of the node room: the places where pages are kept, and how the store's manager talks to them.
 *
 *   manager (src/store) --- request, reply (node_message.h) ---> node: a directory        wb_node_open()
 *                                                           ---> node: another machine    wb_node_open_wire()
 *
 * A node stores bytes in files and knows nothing about pages. The manager never assumes that it can see a node's
 * files. Most callers use struct wb_node_file (node_file.h), which is like struct wb_file and makes the requests.
 * busy.h counts which requests are under way on which node, of all processes.
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
#include "place/node_message.h"

struct wb_node;

/*
 * A directory of this machine. identity: who the node must be; that is checked whenever a file is created, opened or
 * removed, and with all requests about the whole node (WB_E_DOWN), so that a disk that goes away and another that comes
 * in its place are noticed, and one that comes back works again. It is not checked now: see wb_node_probe(). NULL: the
 * directory has no webbase.node, because it is that of the repository itself. Threads may share a node.
 */
int wb_node_open(const char *dir, const struct wb_node_identity *identity, struct wb_node **node_out);

/*
 * A node behind a transport: transport() sends an encoded request and appends the encoded reply to reply. It sends a
 * request again if no reply comes, and returns an error if that does not help (WB_E_DOWN). label names the node in
 * messages. Threads may share the node: one of their requests is under way at a time.
 */
typedef int (*wb_node_exchange)(void *context, struct wb_slice request, struct wb_buf *reply);
int wb_node_open_wire(const char *label, wb_node_exchange transport, void *context, struct wb_node **node_out);

/* Files that are open can still be used; the node is freed when the last of them is closed. NULL is fine. */
void wb_node_close(struct wb_node *node);

/* What messages call the node: its directory. */
const char *wb_node_label(const struct wb_node *node);

/* Carries out a request. Returns reply->code; the message is also that of this thread (base/error.h). */
int wb_node_call(struct wb_node *node, const struct wb_node_request *request, struct wb_node_reply *reply);

/*
 * The other end of a transport: decodes a request, carries it out, and appends the encoded reply. An error of the
 * request is part of the reply. WB_E_PROTO, WB_E_NEWER: the bytes are not a request, and the connection should end;
 * WB_E_NOMEM.
 */
int wb_node_serve(struct wb_node *node, struct wb_slice request, struct wb_buf *reply);

/* Closes the files of one owner, whose connection has ended. */
void wb_node_forget(struct wb_node *node, uint64_t owner);

/* For node_file.c: a file that is open needs the node. An owner that no other request has. */
void wb_node_hold(struct wb_node *node);
uint64_t wb_node_owner(struct wb_node *node);

/* ---- requests about the whole node ------------------------------------------------------------------- */

/* Asks the node who it is. WB_E_DOWN: it is not there, or not the right one; the message says why. */
int wb_node_probe(struct wb_node *node);

struct wb_node_space {
    uint64_t capacity, free; /* bytes of its file system; free: those that we may use */
    bool read_only;
};
int wb_node_space(struct wb_node *node, struct wb_node_space *space_out);

/* Calls each() for all files of the node in the order of their names. Anything but 0 ends the walk, which returns it.
 */
int wb_node_each_file(struct wb_node *node, int (*each)(void *context, const struct wb_node_entry *entry),
                      void *context);

/* Makes the names durable of all files that were created or removed. */
int wb_node_sync_names(struct wb_node *node);

/* Removes a file. It is not an error if there is none. WB_E_BUSY: somebody writes to it. */
int wb_node_remove(struct wb_node *node, const char *name);

#endif
