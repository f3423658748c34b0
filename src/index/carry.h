/*
 * carry.h - what the next generation takes from the last one.
 *
 * A page that has not changed keeps its postings and the facts of its contents; only its docid moves. So most of a
 * generation is a copy, and reading, breaking into words and sorting is done for new and changed pages alone. The texts
 * of links to a page belong to other pages: if they have changed, only they are replaced.
 */
#ifndef WB_INDEX_CARRY_H
#define WB_INDEX_CARRY_H

#include "base/check.h"
#include "index/generation.h"

struct wb_build;

/* All zero: there is no last generation, and everything is new. */
struct wb_carry {
    struct wb_index *old;
    uint64_t old_urls, new_urls;
    uint32_t *docid; /* by old docid: the new one; WB_DOCID_NONE if nothing of it is kept */
    uint8_t *keep;   /* by old docid: enum wb_keep, what is kept of its postings */
    uint32_t *from;  /* by new docid: the old one; WB_DOCID_NONE if there is none */
};

/* Compares the roster with the last generation. Release it even after an error. */
int wb_carry_make(struct wb_build *build, struct wb_index *old, struct wb_carry *carry_out);
void wb_carry_release(struct wb_carry *carry);

/* Whether a page must be read, by its new docid. */
static inline bool wb_carry_is_fresh(const struct wb_carry *carry, uint32_t docid)
{
    WB_CHECK(!carry->old || docid < carry->new_urls);
    return !carry->old || carry->from[docid] == WB_DOCID_NONE || carry->keep[carry->from[docid]] == WB_KEEP_NOTHING;
}

/*
 * Compares the texts of the links to a URL, by their hash, with those of the last generation. Returns whether they must
 * be indexed; if so, the old ones are dropped.
 */
bool wb_carry_anchors_changed(struct wb_carry *carry, uint32_t docid, uint64_t hash);

/* The same for all URLs at once that have no links any more: anchors, by new docid, is 0 for them. */
void wb_carry_drop_anchors(struct wb_carry *carry, const uint64_t *anchors);

#endif
