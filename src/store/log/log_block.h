/*
 * log_block.h - puts whole blocks of pages, as another store has compressed them. Only for organisations that consist
 * of segments.
 */
#ifndef WB_STORE_LOG_BLOCK_H
#define WB_STORE_LOG_BLOCK_H

#include "store/log/log.h"

/* A page of the block, and what the other catalog knows about it. */
struct wb_log_block_page {
    struct wb_pageid id;
    uint16_t slot;
    struct wb_catalog_entry entry; /* its place does not matter */
    struct wb_slice site;
    bool differs; /* its record may say something else about time and lifetime than the entry */
    uint8_t sha1[WB_SHA1_BYTES];
};

/*
 * Puts all pages of a block, which must be all that it contains. Its place and commit are written into its header.
 * Returns 1; 0 if the pages do not belong to one bin, so that they must be put one by one; or an error.
 */
int wb_log_put_block(struct wb_log *log, struct wb_buf *block, const struct wb_log_block_page *pages, size_t count);

/* So many pages will be put before the next commit: makes room for them at once. */
int wb_log_expect_pages(struct wb_log *log, size_t count);

/* Writes a finished block behind the others of a bin; id is that of any of its pages. (log_flush.c) */
int wb_log_append(struct wb_log *log, struct wb_pageid id, struct wb_log_bin bin, struct wb_buf *block,
                  struct wb_log_tail **tail_out);

#endif
