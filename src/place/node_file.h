/*
 * node_file.h - a file of a node: a struct wb_file that keeps its node open, and that only one may write to at a time.
 * Every transfer names its offset, so threads can share one for reading.
 *
 * Writing needs a *claim*. A claim is a lock on the open file (flock): it excludes all others who have opened the file,
 * in this process and in others, and ends when the file is closed or the process ends. A file that is created is
 * claimed from its first moment, and a file that somebody else has claimed is not removed. So nobody ever removes a new
 * file of an old name by mistake.
 */
#ifndef WB_PLACE_NODE_FILE_H
#define WB_PLACE_NODE_FILE_H

#include "os/file.h"

struct wb_node;

enum { WB_NODE_NAME_MAX = 64 }; /* with the NUL: "pages/", and letters, digits, '.', '_' and '-' */

struct wb_node_file {
    struct wb_node *node; /* NULL: not open. Held */
    struct wb_file file;
    const char *path; /* of file: for messages */
    const char *name; /* the end of path: what the node calls it */
    bool writable, claimed;
};

#define WB_NODE_FILE_INIT ((struct wb_node_file){0})

/*
 * Opens a file for reading, or for writing as well. What was removed can still be read by those who have it open.
 * WB_E_NOTFOUND if there is none, WB_E_DOWN; WB_E_INVALID if no file of a node can have this name.
 */
int wb_node_file_open(struct wb_node *node, const char *name, bool write, struct wb_node_file *file_out);

/* Makes an empty file, which we have claimed. WB_E_INVALID if there is a file of this name. */
int wb_node_file_create(struct wb_node *node, const char *name, struct wb_node_file *file_out);

/* Closes the file and ends the claim. Closing a file that is not open does nothing. */
void wb_node_file_close(struct wb_node_file *file);

/*
 * Makes us the only one who writes to the file, until it is closed. Never waits. WB_E_BUSY if somebody else has claimed
 * it, WB_E_NOTFOUND if it was removed.
 */
int wb_node_file_claim(struct wb_node_file *file);
void wb_node_file_release(struct wb_node_file *file);

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

/* Removes the name of an open file, unless somebody has done it before. WB_E_BUSY: somebody else writes to it. */
int wb_node_file_remove(const struct wb_node_file *file);

/* ---- hints: nothing depends on them ------------------------------------------------------------------------ */

enum wb_node_hint {
    WB_NODE_SEQUENTIAL, /* the file will be read from start to end */
    WB_NODE_WRITE_BACK, /* the disk should begin to write `len` bytes at `offset` */
};
void wb_node_file_hint(const struct wb_node_file *file, enum wb_node_hint hint, uint64_t offset, uint64_t len);

#endif
