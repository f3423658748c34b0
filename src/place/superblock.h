/*
 * superblock.h - the file webbase.repo, which makes a directory a repository and says of which design. It is written as
 * the last step when a repository is created, read whenever one is opened, and never changed.
 */
#ifndef WB_PLACE_SUPERBLOCK_H
#define WB_PLACE_SUPERBLOCK_H

#include "base/buf.h"
#include "place/design.h"

#define WB_SUPERBLOCK_NAME "webbase.repo"
#define WB_SUPERBLOCK_UNFINISHED "webbase.unfinished" /* there instead in a copy that is not complete (unfinished.c)   \
                                                       */
#define WB_SUPERBLOCK_LOCK_NAME "webbase.lock"        /* locked while a repository is being created */

enum { WB_SUPERBLOCK_FORMAT = 1, WB_SUPERBLOCK_ID_BYTES = 16 };

struct wb_superblock {
    struct wb_design design;
    uint8_t id[WB_SUPERBLOCK_ID_BYTES]; /* random; every segment of the repository contains it */
    int64_t created_ms;
};

/*
 * Reads and checks the file. WB_E_NOTFOUND: dir is not a repository. WB_E_NEWER: its format
 * is not the one that this program reads. WB_E_INVALID: a copy that is not complete.
 * WB_E_CORRUPT: damaged. The messages name dir or the file.
 */
int wb_superblock_read(const char *dir, struct wb_superblock *superblock_out);

/* The same with the bytes of the file; the path is for messages. */
int wb_superblock_parse(const char *path, struct wb_slice bytes, struct wb_superblock *superblock_out);

/* Writes the file atomically: afterwards the directory is a repository. */
int wb_superblock_write(const char *dir, const struct wb_superblock *superblock);

/* Whether dir is a copy of a repository that is not complete; and the error if somebody wants to use it. */
bool wb_superblock_is_unfinished(const char *dir);
int wb_superblock_refuse_unfinished(const char *dir);

#endif
