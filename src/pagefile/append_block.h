/*
 * append_block.h - puts whole blocks of pages, as another store has compressed them. Only for organisations that
 * consist of segments.
 */
#ifndef WB_PAGEFILE_APPEND_BLOCK_H
#define WB_PAGEFILE_APPEND_BLOCK_H

#include "pagefile/pagefile_files.h"

/* A page of the block. */
struct wb_append_page {
    struct wb_pageid id;
    uint16_t slot;
    uint32_t stored_bytes;
    uint8_t sha1[WB_SHA1_BYTES];
};

/*
 * Appends a block, of which these must be all pages: each becomes a put that is placed already. Returns 1; 0 if they do
 * not belong to one bin, that to which they would go if they were put, so that they must be put one by one; or an
 * error. Only for organisations that consist of segments (wb_pagefile_kind.whole_blocks).
 */
int wb_append_whole(struct wb_pagefile *files, struct wb_slice block, const struct wb_append_page *pages, size_t count);

/* What will be put, as blocks or one by one. */
struct wb_append_expected {
    size_t pages;          /* before the next commit */
    uint64_t record_bytes; /* of all records, about ... */
    uint64_t stored_bytes; /* ... and of the blocks that they are in */
};

/* Makes room for it at once, and decides how blocks are divided among nodes, and among the ranges of a hashed-log. */
int wb_append_expect(struct wb_pagefile *files, const struct wb_append_expected *expected);

/* Returns when all blocks that were put are in their files. */
int wb_append_runs_end(struct wb_pagefile *files);

/* Forgets blocks that are not; gives up the memory for them. */
void wb_append_runs_drop(struct wb_pagefile *files);
void wb_append_runs_release(struct wb_pagefile *files);

/* The segment to which a bin's next block is appended. (append_flush.c) */
int wb_tail_find(struct wb_pagefile *files, const struct wb_bin *bin, struct wb_tail **tail_out);

/* The bin for a block that could not be appended to this one: the error if there is none. (append_flush.c) */
int wb_bin_other(struct wb_pagefile *files, struct wb_pageid id, int err, struct wb_bin *bin);

/* Writes a finished block behind the others of a bin; id is that of any of its pages. (append_flush.c) */
int wb_append(struct wb_pagefile *files, struct wb_pageid id, struct wb_bin bin, struct wb_buf *block,
              struct wb_tail **tail_out);

/* ---- compressing (append_flush.c) ------------------------------------------------------------------------ */

/* Hands the current group to the workers, then waits for the previous group and appends it. */
int wb_flush_start(struct wb_pagefile *files);

/* Appends everything. Afterwards nothing is in flight. */
int wb_flush_all(struct wb_pagefile *files);

/* Drops what is in flight. */
void wb_flush_drop(struct wb_pagefile *files);

int wb_builders_new(unsigned count, struct wb_builders **builders_out);
void wb_builders_free(struct wb_builders *builders);

/* For a job of the writer's pool: there is one for each worker. */
struct wb_block_builder *wb_builder_take(struct wb_builders *builders);
void wb_builder_give(struct wb_builders *builders, struct wb_block_builder *builder);

#endif
