/*
 * postingsource.h - the postings of one term from one input of the merge, one after the other: from a run, or from the
 * last generation, whose postings get their new docids here and lose what is not kept.
 */
#ifndef WB_INDEX_POSTINGSOURCE_H
#define WB_INDEX_POSTINGSOURCE_H

#include "index/carry.h"
#include "index/run.h"

struct wb_postingsource {
    struct wb_posting posting; /* the current one; docid WB_DOCID_NONE at the end */
    bool positions;            /* the term has positions */

    /* of a run */
    const char *at, *end;
    uint64_t left;
    WB_VEC(uint32_t) gaps;

    /* of the last generation */
    const struct wb_carry *carry;
    struct wb_postlist *list;
    uint32_t block_number, next; /* the block after the one that was read; the next posting of the block */
    struct wb_posting_block block;
};

/* Starts with a term of a run, and goes to its first posting. */
int wb_postingsource_run(struct wb_postingsource *source, const struct wb_run_cursor *cursor);

/* Starts with a term of the last generation. Nothing is read yet. */
int wb_postingsource_old(struct wb_postingsource *source, const struct wb_carry *carry, const struct wb_term *term,
                         bool positions);

/* Reads and filters the next block of the last generation that has anything left. Returns 1, 0 at the end, or an error.
 */
int wb_postingsource_block(struct wb_postingsource *source);

/* Goes to the next posting. */
int wb_postingsource_next(struct wb_postingsource *source);
void wb_postingsource_release(struct wb_postingsource *source);

#endif
