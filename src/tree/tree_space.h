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
 * A page goes to the class of the oldest reader that may need it: the class whose `from` is
 * that reader's state. So all pages of a class belong to one state, and a slow reader keeps
 * at most the pages of its own state, but not what was written and replaced since, no
 * matter what other readers hold. When the reader goes, its class takes no more pages, and
 * becomes free when the last reader that came before that has gone too.
 *
 * Most pages are needed by nobody, unless a reader takes the newest state while it is being
 * replaced. They must not wait together with others, because every commit gives up more of
 * them. So each transaction starts with an empty class for them: if there is none, it first
 * unites two neighbouring classes, those that have the fewest pages together. Then a page
 * may wait for a reader that does not need it; but a class can grow by this only as long
 * as it has fewer pages than the classes of the newest readers.
 *
 * A state that is marked (tree_mark.c) is treated like one that a reader holds.
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

enum { WB_TREE_SPACE_HELD_MAX = 256 }; /* each costs every transaction a question to the kernel */

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
    uint32_t cursor;                       /* no page before this one is free */
    uint64_t held[WB_TREE_SPACE_HELD_MAX]; /* states that were held or marked when it began, ascending ... */
    unsigned held_count;                   /* ... all of them; if there are too many, only the oldest */
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
void wb_tree_space_keep(struct wb_tree_space *space);

/* After an abort: parts that were changed must be read again. */
void wb_tree_space_forget(struct wb_tree_space *space);
void wb_tree_space_release(struct wb_tree_space *space);

/* For wb_tree_check(): reads the map of a state, and calls each() for the pages in which the map itself is stored. */
int wb_tree_space_read(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_space *space,
                       int (*each)(void *context, uint32_t page), void *context);

/* The four bits of a page. */
unsigned wb_tree_space_of(const struct wb_tree_space *space, uint32_t page);

#endif
