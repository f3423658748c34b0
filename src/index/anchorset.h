/*
 * anchorset.h - the texts of the links to one URL: each once, with the number of links that have it.
 *
 * The texts that most links have are kept, at most WB_ANCHORSET_TEXTS of them; which ones, and in which order, depends
 * on the links alone.
 */
#ifndef WB_INDEX_ANCHORSET_H
#define WB_INDEX_ANCHORSET_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "index/docwords.h"

#define WB_ANCHORSET_TEXTS 64

struct wb_anchor_entry {
    uint64_t hash;
    uint32_t anchor;
};

/* All zero is an empty one. */
struct wb_anchorset {
    struct wb_arena texts;
    WB_MAP(struct wb_anchor_entry) table;
    WB_VEC(struct wb_anchor) anchors;
};

void wb_anchorset_clear(struct wb_anchorset *set);
void wb_anchorset_release(struct wb_anchorset *set);
int wb_anchorset_add(struct wb_anchorset *set, struct wb_slice text);

/* Puts the texts in order, leaves out those beyond the limit, and returns a hash of what remains; 0 if nothing does. */
uint64_t wb_anchorset_finish(struct wb_anchorset *set);

#endif
