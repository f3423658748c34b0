/*
 * block_plan.h - a block before it is written: which records it has, in which frames.
 *
 * Made by block_build.c for new blocks and by block_rewrite.c for changed ones, and written
 * by block_build.c. Nothing else should use it.
 *
 *   items:  [ a b c | d e f g | h | c' c'' ]     the records, in each frame sorted by slot
 *   frames:   0       1         2   3            consecutive items; either copied from an
 *                     lead          base: 0      existing block, or to be compressed
 */
#ifndef WB_STORE_BLOCK_PLAN_H
#define WB_STORE_BLOCK_PLAN_H

#include "block/block.h"

/* A record. head and body are NULL if its frame is copied. */
struct wb_block_item {
    struct wb_pageid id;
    const char *digests, *head, *body;
    uint32_t head_bytes, body_bytes;
    int32_t newest; /* the item of which this is an older version, or -1 */
    uint16_t slot;
    bool dead;
    bool old;                   /* not the latest version of its page */
    bool apart;                 /* it shares no frame with the latest versions of pages, and is not part of the lead */
    struct wb_block_page *page; /* where to tell the slot and the stored bytes, or NULL */
};

struct wb_block_plan_frame {
    size_t first, count;               /* its items */
    int32_t base;                      /* another frame of the plan, or -1 */
    const struct wb_block_frame *from; /* what is copied, or NULL if the frame is to be compressed */
    struct wb_slice raw;               /* of a copied frame that is the base of one to be compressed */
    uint32_t stored_bytes, raw_bytes, check, heads_stored; /* filled in when it is written */
};

struct wb_block_plan {
    WB_VEC(struct wb_block_item) items;
    WB_VEC(struct wb_block_plan_frame) frames;
    int32_t lead; /* the frame to be stored first, or -1 */
    uint32_t next_slot;
    uint64_t site, logical, commit;
    const char *block; /* where frames are copied from */
};

/* An item for a record; the head ends where the body that the record names begins. */
struct wb_block_item wb_block_item_of(struct wb_slice record);

/* Divides all items into frames: chooses the lead, and puts older versions after it into frames of their own. */
int wb_block_plan_all(struct wb_block_plan *plan);

/*
 * Divides the items from `first` on, which have no frames yet, into frames. Items that are
 * no older versions get base `lead`, which may be -1.
 */
int wb_block_plan_rest(struct wb_block_plan *plan, size_t first, int32_t lead);

/* Compresses and copies the frames, and appends the block to out. On error out is unchanged. */
int wb_block_plan_write(struct wb_block_builder *builder, struct wb_block_plan *plan, struct wb_buf *out);
void wb_block_plan_release(struct wb_block_plan *plan);

#endif
