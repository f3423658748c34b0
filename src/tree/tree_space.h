/*
 * tree_space.h - the free-space map of a tree: four bits for each page of the file.
 *
 *   0       free
 *   1       in use by the newest state
 *   2 to 5  given up, but a reader may still need it: class 0 to 3
 *
 * A class remembers which readers may need its pages: those of the states from `from` up
 * to, but not including, `to`. As soon as nobody holds one of these states, all pages of
 * the class become free. The pages of many commits share a class, so a slow reader does
 * not cause a list that grows with every commit.
 *
 * Classes 0 and 1 are for pages that the oldest reader may need: they are at least as old
 * as its state. Classes 2 and 3 are for pages that were written later. So a slow reader
 * keeps at most the pages of its own state, but not what was written and replaced since.
 *
 * Of each pair, one class is closed and the other one takes new pages, until the closed
 * one becomes free and they change roles. With only one class, a succession of readers
 * could keep it from ever becoming free.
 *
 * Each commit rewrites the parts of the map that have changed. Like everything else, the
 * map is reached through pointers with checksums:
 *
 *   root record -> up to 32 index pages -> map pages
 */
#ifndef WB_TREE_TREE_SPACE_H
#define WB_TREE_TREE_SPACE_H

#include "base/vec.h"
#include "tree/tree.h"

/* A part of the map: a map page or an index page. */
struct wb_tree_map {
    struct wb_tree_ref ref; /* where it was read from; page 0 if it was never written */
    bool dirty;             /* it has changed since then */
    uint32_t placed;        /* where this commit will write it; 0 if that is not decided yet */
    char *page;             /* its bytes as on disk, including the header */
};

struct wb_tree_space {
    WB_VEC(struct wb_tree_map) maps;
    struct wb_tree_map index[WB_TREE_SPACE_MAX];
    uint32_t cursor;        /* no page before this one is free */
    uint64_t oldest;        /* the oldest state that a reader holds; if there is none, the one we started from */
};

/* For a new transaction: reads what has changed since the last one, and frees classes that no reader needs. */
int wb_tree_space_begin(struct wb_tree *tree);

/* Takes a free page, or makes the file longer by one. */
int wb_tree_space_take(struct wb_tree *tree, uint32_t *page_out);

/* Gives up a page that transaction `born` wrote. */
int wb_tree_space_give(struct wb_tree *tree, uint32_t page, uint64_t born);

/* Writes the parts of the map that have changed. After this, nothing may be taken or given up. */
int wb_tree_space_write(struct wb_tree *tree);

/* After a commit: the map in memory is what is on disk. */
void wb_tree_space_settle(struct wb_tree_space *space);

/* After an abort: parts that were changed must be read again. */
void wb_tree_space_forget(struct wb_tree_space *space);
void wb_tree_space_release(struct wb_tree_space *space);

/* For wb_tree_check(): reads the map of a state, and calls each() for the pages in which the map itself is stored. */
int wb_tree_space_read(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_space *space,
                       int (*each)(void *context, uint32_t page), void *context);

/* The four bits of a page. */
unsigned wb_tree_space_of(const struct wb_tree_space *space, uint32_t page);

#endif
