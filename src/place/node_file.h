/*
 * node_file.h - a file of a node: what struct wb_file is for a path. Each call is one request (node_message.h), or
 * several if it transfers more than WB_NODE_BYTES_MAX bytes. Every transfer names its offset, so threads can share one
 * for reading.
 */
#ifndef WB_PLACE_NODE_FILE_H
#define WB_PLACE_NODE_FILE_H

#include "place/node_message.h"

struct wb_node;

struct wb_node_file {
    struct wb_node *node; /* NULL: not open */
    uint64_t owner;       /* random: who we are, in requests for this file */
    uint32_t seat;        /* where the node finds it */
    char *path;           /* owned; for messages */
    char name[WB_NODE_NAME_MAX];
};

#define WB_NODE_FILE_INIT ((struct wb_node_file){0})

/* Opens a file for reading, or for writing as well. WB_E_NOTFOUND if there is none, WB_E_DOWN. */
int wb_node_file_open(struct wb_node *node, const char *name, bool write, struct wb_node_file *file_out);

/* Makes an empty file, which we have claimed. WB_E_INVALID if there is a file of this name. */
int wb_node_file_create(struct wb_node *node, const char *name, struct wb_node_file *file_out);

/* Closes the file and ends the claim. Closing a file that is not open does nothing. */
void wb_node_file_close(struct wb_node_file *file);

/* Makes us the only one who writes to the file, until it is closed. WB_E_BUSY if somebody else is. Never waits. */
int wb_node_file_claim(const struct wb_node_file *file);
void wb_node_file_release(const struct wb_node_file *file);

/* Reads up to len bytes at offset. *got_out is less than len only at the end of the file. */
int wb_node_file_read_at(const struct wb_node_file *file, uint64_t offset, void *bytes_out, size_t len,
                         size_t *got_out);

/* Reads exactly len bytes; WB_E_CORRUPT if the file ends before. */
int wb_node_file_read_exact(const struct wb_node_file *file, uint64_t offset, void *bytes_out, size_t len);

/* Writes all bytes at offset; needs the claim. After an error any part of them may have been written. */
int wb_node_file_write_at(const struct wb_node_file *file, uint64_t offset, const void *bytes, size_t len);

/* Returns when the file's bytes and its size are on disk. Its name is not: see wb_node_sync_names(). */
int wb_node_file_sync(const struct wb_node_file *file);

int wb_node_file_truncate(const struct wb_node_file *file, uint64_t size); /* needs the claim */
int wb_node_file_size(const struct wb_node_file *file, uint64_t *size_out);

/* Removes the name of an open file. What is open can still be read. WB_E_BUSY: somebody else writes to it. */
int wb_node_file_remove(const struct wb_node_file *file);

/* The node may ignore it. */
void wb_node_file_hint(const struct wb_node_file *file, enum wb_node_hint hint, uint64_t offset, uint64_t len);

#endif
