/* superblock.h - the file webbase.repo: that a directory is a repository, and of which kind. */
#ifndef WB_STORE_SUPERBLOCK_H
#define WB_STORE_SUPERBLOCK_H

#include "base/buf.h"

#define WB_SUPERBLOCK_NAME "webbase.repo"
#define WB_SUPERBLOCK_LOCK_NAME "webbase.lock"

enum { WB_SUPERBLOCK_FORMAT = 2, WB_SUPERBLOCK_ID_BYTES = 16, WB_SUPERBLOCK_WORD_MAX = 32 };

struct wb_superblock {
    uint32_t format;
    char organisation[WB_SUPERBLOCK_WORD_MAX];
    char update[WB_SUPERBLOCK_WORD_MAX];
    uint8_t id[WB_SUPERBLOCK_ID_BYTES]; /* random; every segment of the repository carries it */
    int64_t created_ms;
};

/* WB_E_NOTFOUND: dir holds no repository; WB_E_NEWER; WB_E_INVALID: of a format that is no longer read; WB_E_CORRUPT. Messages name dir or the file. */
int wb_superblock_read(const char *dir, struct wb_superblock *superblock_out);

/* Writes it in one step, so that a repository is there whole or not at all. */
int wb_superblock_write(const char *dir, const struct wb_superblock *superblock);

#endif
