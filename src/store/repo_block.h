/*
 * repo_block.h - puts whole blocks of pages, as another store has compressed them (pagefile/append_block.h). The commit
 * decides about their pages as about all others.
 */
#ifndef WB_STORE_REPO_BLOCK_H
#define WB_STORE_REPO_BLOCK_H

#include "pagefile/pagefile.h"
#include "store/repo.h"

/* A page of the block, and what the other catalog knows about it. */
struct wb_repo_block_page {
    struct wb_pageid id;
    uint16_t slot;
    struct wb_catalog_entry entry; /* its place does not matter */
    struct wb_slice site;
    bool differs; /* its record may say something else about time and lifetime than the entry */
    uint8_t sha1[WB_SHA1_BYTES];
};

/*
 * Puts all pages of a block, which must be all that it contains. Returns 1; 0 if it cannot be stored as it is, so that
 * they must be put one by one (wb_append_whole); or an error.
 */
int wb_repo_put_block(struct wb_repo *repo, struct wb_slice block, const struct wb_repo_block_page *pages,
                      size_t count);

/* Makes room at once for what will be put, as blocks or one by one (wb_append_expect). */
int wb_repo_expect_blocks(struct wb_repo *repo, const struct wb_append_expected *expected);

#endif
