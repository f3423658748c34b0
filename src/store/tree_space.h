/*
 * tree_space.h - which pages of a tree's file are in use: four bits a page.
 *
 *   0       free
 *   1       in use by the newest state
 *   2 to 5  given up, but a reader may still need it: one of four classes
 *
 * A class says which readers: those of states from `from` up to, not including,
 * `to`. When nobody holds such a state, all pages of the class become free. Pages
 * of many commits share a class, so a reader that takes its time costs no list
 * that grows with every commit.
 *
 * Classes 2 and 3 are for pages that the oldest reader may need (they are as old as
 * its state), 4 and 5 for pages written since. So one slow reader keeps the pages of
 * its own state, at most as many as that state has, and not all that was written and
 * replaced since. Of each pair one class is closed and the other takes what is
 * given up, until the closed one is free and they change places: otherwise readers
 * that come and go would keep a class from ever becoming free.
 *
 * Each commit rewrites the parts of the map that changed; the map is pointed
 * to with checksums: root record -> index pages -> map pages.
 */
#ifndef WB_STORE_TREE_SPACE_H
#define WB_STORE_TREE_SPACE_H

#include "store/tree.h"

struct wb_tree_map {
    struct wb_tree_ref ref; /* where it was read from; page 0: not yet written */
    bool dirty;
    uint32_t placed;        /* where this commit writes it; 0: not yet known */
    char *page;             /* as on disk, header included; owned */
};

struct wb_tree_space {
    struct wb_tree_map *maps;
    size_t count;
    struct wb_tree_map index[WB_TREE_SPACE_MAX];
    uint32_t cursor;        /* no page before it is free */
    uint64_t oldest;        /* state that a reader holds, or the one that this transaction starts from */
};

struct wb_tree_out;

/* Reads what changed since the last time, and frees classes that no reader needs any more. */
int wb_tree_space_begin(struct wb_tree *tree);

/* A page to write to. */
int wb_tree_space_take(struct wb_tree *tree, uint32_t *page_out);

/* Gives a page up that transaction `born` wrote. */
int wb_tree_space_give(struct wb_tree *tree, uint32_t page, uint64_t born);

/* Writes the parts of the map that changed; nothing may be taken or given afterwards. */
int wb_tree_space_write(struct wb_tree *tree);

/* After a commit: what was written is what is on disk. After an abort: what was changed must be read again. */
void wb_tree_space_settle(struct wb_tree_space *space);
void wb_tree_space_forget(struct wb_tree_space *space);
void wb_tree_space_release(struct wb_tree_space *space);

/* For wb_tree_check(): reads the map of a state, calls each() with the pages that it lies in itself. */
int wb_tree_space_read(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_space *space,
                       int (*each)(void *context, uint32_t page), void *context);

/* The four bits of a page. */
unsigned wb_tree_space_of(const struct wb_tree_space *space, uint32_t page);

#endif
