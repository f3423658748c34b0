/*
 * append_block.h - puts whole blocks of pages, as another store has compressed them. Only for organisations that
 * consist of segments.
 */
#ifndef WB_PAGEFILE_APPEND_BLOCK_H
#define WB_PAGEFILE_APPEND_BLOCK_H

#include "store/repo.h"

/* A page of the block, and what the other catalog knows about it. */
struct wb_append_page {
    struct wb_pageid id;
    uint16_t slot;
    struct wb_catalog_entry entry; /* its place does not matter */
    struct wb_slice site;
    bool differs; /* its record may say something else about time and lifetime than the entry */
    uint8_t sha1[WB_SHA1_BYTES];
};

/*
 * Puts all pages of a block, which must be all that it contains. Returns 1; 0 if they do not belong to one bin, that to
 * which they would go if they were put, so that they must be put one by one; or an error.
 */
int wb_append_whole(struct wb_repo *repo, struct wb_slice block, const struct wb_append_page *pages, size_t count);

/* What will be put, as blocks or one by one. */
struct wb_append_expected {
    size_t pages;          /* before the next commit */
    uint64_t record_bytes; /* of all records, about ... */
    uint64_t stored_bytes; /* ... and of the blocks that they are in */
};

/* Makes room for it at once, and decides how blocks are divided among nodes, and among the ranges of a hashed-log. */
int wb_append_expect(struct wb_repo *repo, const struct wb_append_expected *expected);

/* Returns when all blocks that were put are in their files. */
int wb_append_runs_end(struct wb_repo *repo);

/* Forgets blocks that are not; gives up the memory for them. */
void wb_append_runs_drop(struct wb_repo *repo);
void wb_append_runs_release(struct wb_repo *repo);

/* The segment to which a bin's next block is appended. (append_flush.c) */
int wb_tail_find(struct wb_repo *repo, const struct wb_bin *bin, struct wb_tail **tail_out);

/* The bin for a block that could not be appended to this one: the error if there is none. (append_flush.c) */
int wb_bin_other(struct wb_repo *repo, struct wb_pageid id, int err, struct wb_bin *bin);

/*
 * After a failure some blocks are lost, so the ops cannot be committed any more: they must all be dropped. Returns the
 * error. (append_flush.c)
 */
int wb_writer_remember_failure(struct wb_repo_writer *writer, int err);

/* Writes a finished block behind the others of a bin; id is that of any of its pages. (append_flush.c) */
int wb_append(struct wb_repo *repo, struct wb_pageid id, struct wb_bin bin, struct wb_buf *block,
              struct wb_tail **tail_out);

#endif
