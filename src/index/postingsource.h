/*
 * postingsource.h - the postings of one term from one input of the merge, one after the other: from a run, or from the
 * last generation, whose postings get their new docids here and lose what is not kept.
 */
#ifndef WB_INDEX_POSTINGSOURCE_H
#define WB_INDEX_POSTINGSOURCE_H

#include "index/carry.h"
#include "index/run.h"

struct wb_postingsource {
    struct wb_posting posting; /* the current one; docid WB_DOCID_NONE at the end of a run */
    bool positions;            /* the term has positions */

    /* of a run */
    const char *at, *end;
    uint64_t left;
    WB_VEC(uint32_t) gaps;

    /* of the last generation */
    const struct wb_carry *carry;
    struct wb_postlist *list;
    uint32_t block_number, next; /* the block after the one that was read; the next posting of the block */
    size_t gap_at;               /* how many gaps of the block belong to postings before `next` */
    struct wb_posting_block block;
};

/* Starts with a term of a run, and goes to its first posting. */
int wb_postingsource_run(struct wb_postingsource *source, const struct wb_run_cursor *cursor);

/* Starts with a term of the last generation. Nothing is read yet. */
int wb_postingsource_old(struct wb_postingsource *source, const struct wb_carry *carry, const struct wb_term *term,
                         bool positions);

/* Goes to the next posting of a run. */
int wb_postingsource_next(struct wb_postingsource *source);

/*
 * If a term of the last generation has at most one block of postings and all of them are kept, adds them as they are,
 * without decoding more than their docids, and returns 1. Otherwise adds nothing and returns 0. Nothing may have been
 * read yet, and no run may have the term.
 */
int wb_postingsource_copy(struct wb_postingsource *source, struct wb_postings_writer *writer);

/*
 * Adds the postings of the last generation that come before this docid to a list, as they are, many at a time. Returns
 * 1 if the next one has this docid, 0 if not, or an error. WB_DOCID_NONE: adds all that are left.
 */
int wb_postingsource_pass(struct wb_postingsource *source, uint32_t docid, struct wb_postings_writer *writer);

/* Takes the next posting of the last generation, after wb_postingsource_pass() has found it. */
int wb_postingsource_take(struct wb_postingsource *source);
void wb_postingsource_release(struct wb_postingsource *source);

#endif
