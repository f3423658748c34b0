/*
 * tree_own.h - the handle of a tree, and what the files that implement the tree share. The
 * tree's tests and its fuzzer include it too; nobody else does.
 *
 *   tree.c         opening the file, the root record, holding a state
 *   tree_page.c    the cells of one page (tree_page.h)
 *   tree_node.c    pages in memory: read and checked, kept, removed
 *   tree_read.c    finding a key, walking over a table
 *   tree_near.c    the leaf that a transaction used last
 *   tree_write.c   a transaction: putting and deleting rows
 *   tree_clear.c   deleting all rows of a table
 *   tree_commit.c  writes the changed pages and the root record
 *   tree_space.c   which pages of the file are free (tree_space.h)
 *   tree_pin.c     numbers that readers pin, for writers to see
 *   tree_diff.c    the rows in which two states differ
 *   tree_mark.c    states that are kept although nobody holds them
 *   tree_check.c   checks every page of a state
 */
#ifndef WB_TREE_TREE_OWN_H
#define WB_TREE_TREE_OWN_H

#include "base/check.h"
#include "base/vec.h"
#include "os/file.h"
#include "tree/tree.h"
#include "tree/tree_space.h"

#include <sys/types.h>

enum {
    WB_TREE_MAGIC = 0x57425452,
    WB_TREE_NODES_MAX = 8192,  /* pages kept in memory: 32 MB */
    WB_TREE_NODES_SPARE = 16,  /* so many more are kept than the file has: those of a way down the tree */
    WB_TREE_BUCKETS = 8192,    /* of the hash table that finds them */
    WB_TREE_DIRTY_MAX = 4096,  /* changed pages in memory before they are written ahead of the commit: 16 MB */
    WB_TREE_OUT_PAGES = 64,    /* neighbouring pages are written together, up to this many */
    WB_TREE_QUICK_BYTES = 32,  /* the beginning of the root record, which includes its checksum */
    WB_TREE_ROOT_BYTES = 1024, /* the root record */
    WB_TREE_FIRST_PAGE = 2,    /* pages 0 and 1 contain the root record */
};

/*
 * The page number of a pointer to a changed page, which does not have a place in the file
 * yet. The checksum of such a pointer is the address of the page's node.
 */
#define WB_TREE_IN_MEMORY UINT32_MAX

/* A page in memory. */
struct wb_tree_node {
    struct wb_tree_ref ref;      /* where it was read from; not used in a changed page */
    struct wb_tree_node *chain;  /* the next node in its bucket; of changed pages: the next changed page */
    struct wb_tree_node *before; /* of changed pages: the previous changed page */
    unsigned pins;               /* > 0: in use, so it stays in memory */
    bool dirty;                  /* a changed page */
    bool recent;                 /* used since the clock hand passed */
    bool bounded;                /* its keys were found to be within the bounds that the page above sets */
    char page[WB_TREE_PAGE_BYTES];
};

/*
 * Pages that were read and found valid. They are found by their checksum, so a kept page
 * can never be out of date, whatever other processes write.
 */
struct wb_tree_nodes {
    struct wb_tree_node *buckets[WB_TREE_BUCKETS];
    struct wb_tree_node *ring[WB_TREE_NODES_MAX]; /* all of them; a clock hand chooses which one is removed */
    unsigned count, hand;
    uint64_t pressed; /* for wb_kept_pressed() */
};

/* Neighbouring pages that will be written together. */
struct wb_tree_out {
    char *bytes;
    uint32_t first, count;
};

/* A state that this handle holds, and how often. */
struct wb_tree_held {
    uint64_t txn;
    unsigned count;
};

/* The leaf of a table that the transaction used last, and which keys belong in it (tree_near.c). */
struct wb_tree_near {
    struct wb_tree_node *leaf;  /* a changed page; NULL: none */
    uint16_t low_len, high_len; /* keys from low on, but before high; high_len 0: to the end of the table */
    char low[WB_TREE_KEY_MAX], high[WB_TREE_KEY_MAX];
};

struct wb_tree {
    uint32_t magic;
    struct wb_file file;
    bool writable;
    pid_t pid;                                /* the process that opened it: locks are not inherited by fork() */
    struct wb_tree_nodes nodes;
    struct wb_tree_state newest;              /* as last read */
    bool quick;                               /* quick_bytes is set: */
    char quick_bytes[WB_TREE_QUICK_BYTES];    /* if copy 0 of the root record starts like this, `newest` still is */
    WB_VEC(struct wb_tree_held) held;         /* by this handle */

    /* ---- a transaction ---- */
    bool writing;
    bool failed;                              /* an error left the pages in memory inconsistent: it must be aborted */
    bool uncertain;                           /* a commit failed, and it is not known whether it is on disk */
    struct wb_tree_state next;                /* what the transaction will commit */
    struct wb_tree_node *changed;             /* the list of all changed pages */
    size_t changed_count;
    struct wb_tree_near near[WB_TREE_TABLES_MAX];
    uint64_t changes;                         /* counts calls that change something, to catch changes during a walk */
    struct wb_tree_space space;
    struct wb_tree_out out;
};

/* ---- tree.c ---- */

/* The two copies of the root record. */
struct wb_tree_roots {
    char bytes[2][WB_TREE_ROOT_BYTES];
    bool sound[2];
};

/* Reads the newest state from the file; roots_out may be NULL. */
int wb_tree_roots_read(struct wb_tree *tree, struct wb_tree_state *state_out, struct wb_tree_roots *roots_out);
int wb_tree_root_write(struct wb_tree *tree, unsigned copy, const struct wb_tree_state *state);

/* Remembers a state that was just committed as the newest. */
void wb_tree_adopt(struct wb_tree *tree, const struct wb_tree_state *state);

/* Returns an error if the tree is uncertain. */
int wb_tree_usable(const struct wb_tree *tree);

/* Finds the lowest state in [from, to) that a reader in any process holds. Returns 1, or 0 if there is none. */
int wb_tree_first_held(struct wb_tree *tree, uint64_t from, uint64_t to, uint64_t *txn_out);
int wb_tree_lock_writer(struct wb_tree *tree);
void wb_tree_unlock_writer(struct wb_tree *tree);

/* Returns 1 if another handle has the writer's lock, 0 if not, or an error. */
int wb_tree_writer_busy(struct wb_tree *tree);

/* ---- tree_node.c ---- */

/* Composes "FILE is damaged: page N (at OFFSET): WHAT" and returns WB_E_CORRUPT. */
int wb_tree_damaged(const struct wb_tree *tree, uint32_t page, const char *what);

/* Reads a page from the file and checks that it is the one pointed to. Does not look at its contents. */
int wb_tree_page_read(struct wb_tree *tree, struct wb_tree_ref ref, char *page_out);

/* Returns a page of a table, checked and pinned: the caller must unpin it. */
int wb_tree_node_load(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, unsigned level,
                      struct wb_tree_node **node_out);
void wb_tree_node_unpin(struct wb_tree_node *node);

/*
 * The same for a leaf that is needed once: if it is not in memory, it is read into room, *node_out is NULL, and nothing
 * has to be unpinned.
 */
int wb_tree_node_peek(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, char room[WB_TREE_PAGE_BYTES],
                      struct wb_tree_node **node_out, const char **page_out);

/* Makes a changed page: a copy of `from`, or an empty one if `from` is NULL. It is not pinned. */
int wb_tree_node_new(struct wb_tree *tree, const char *from, struct wb_tree_node **node_out);

/* Removes a changed page from memory. */
void wb_tree_node_drop(struct wb_tree *tree, struct wb_tree_node *node);

/* A changed page was written to ref: keeps it like a page that was read from there. */
void wb_tree_node_written(struct wb_tree *tree, struct wb_tree_node *node, struct wb_tree_ref ref);
void wb_tree_nodes_release(struct wb_tree *tree);

/* The pointer to a node. */
static inline struct wb_tree_ref wb_tree_node_ref(struct wb_tree_node *node)
{
    return node->dirty ? (struct wb_tree_ref){WB_TREE_IN_MEMORY, (uint64_t)(uintptr_t)node} : node->ref;
}

/* ---- tree_read.c ---- */

/* The pages from the root, nodes[depth - 1], to the leaf of a key, nodes[0]. All of them are pinned. */
struct wb_tree_path {
    struct wb_tree_node *nodes[WB_TREE_LEVELS_MAX];
    unsigned index[WB_TREE_LEVELS_MAX]; /* of the cell that leads to the next page */
    unsigned depth;
};

int wb_tree_descend(struct wb_tree *tree, const struct wb_tree_root *root, unsigned table, struct wb_slice key,
                    struct wb_tree_path *path_out);
void wb_tree_path_release(struct wb_tree_path *path);

/* Returns NULL if all keys of the page are in [low, high), otherwise what is wrong. high.ptr NULL: no upper bound. */
const char *wb_tree_bounds_check(const char *page, struct wb_slice low, struct wb_slice high);

/* Narrows the bounds of a branch to those of the page below its cell i. */
void wb_tree_bounds_below(const char *page, unsigned i, struct wb_slice *low, struct wb_slice *high);

/* ---- tree_near.c ---- */

/* The leaf that was used last, if the key belongs in it; otherwise NULL. It is a changed page. */
struct wb_tree_node *wb_tree_near(struct wb_tree *tree, unsigned table, struct wb_slice key);

/* Remembers a leaf that the path to a key led to, and its bounds. high.ptr NULL: no upper bound. */
void wb_tree_near_set(struct wb_tree *tree, unsigned table, struct wb_tree_node *leaf, struct wb_slice low,
                      struct wb_slice high);
void wb_tree_near_forget(struct wb_tree *tree, unsigned table);

/* ---- tree_write.c ---- */

/* Every change calls this first. Writes changed pages ahead of the commit if there are too many. */
int wb_tree_begin_change(struct wb_tree *tree, unsigned table);

/* An error in the middle of a change leaves the pages in memory inconsistent: the transaction has failed. */
int wb_tree_spoil(struct wb_tree *tree, int err);

/* ---- tree_commit.c ---- */

/* Writes a page to its place in the file; it may wait in memory until wb_tree_write_changed() returns. */
int wb_tree_out_write(struct wb_tree *tree, uint32_t number, const char *page);

/* Gives every changed page a place and writes it. Afterwards there are no changed pages. */
int wb_tree_write_changed(struct wb_tree *tree);

#endif
