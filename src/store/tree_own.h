/*
 * tree_own.h - the struct of a tree, shared by its files.
 *
 *   tree.c         opening, the root record, holding a state
 *   tree_node.c    pages in memory: checked when they are read, kept, forgotten
 *   tree_read.c    getting and walking
 *   tree_write.c   a transaction: putting and deleting
 *   tree_commit.c  from changed pages in memory to a commit
 *   tree_space.c   which pages of the file are free
 *   tree_check.c   everything against everything
 */
#ifndef WB_STORE_TREE_OWN_H
#define WB_STORE_TREE_OWN_H

#include "os/file.h"
#include "store/tree.h"
#include "store/tree_space.h"

#include <sys/types.h>

enum {
    WB_TREE_MAGIC = 0x57425452,
    WB_TREE_NODES_MAX = 8192,    /* pages kept in memory: 32 MB */
    WB_TREE_BUCKETS = 8192,
    WB_TREE_DIRTY_MAX = 4096,    /* changed pages in memory before they are written ahead of the commit: 16 MB */
    WB_TREE_OUT_PAGES = 64,      /* neighbours are written together */
    WB_TREE_QUICK_BYTES = 32,    /* beginning of the root record, checksum included */
    WB_TREE_ROOT_BYTES = 1024,
};

/* The page number of a pointer to a changed page, which has no place yet: the checksum is the address of its node. */
#define WB_TREE_IN_MEMORY UINT32_MAX

/* A page in memory. */
struct wb_tree_node {
    struct wb_tree_ref ref;
    struct wb_tree_node *chain;        /* of the bucket; of changed pages: the next one */
    struct wb_tree_node *before;       /* of changed pages: the one before */
    unsigned pins;                     /* > 0: in use, stays in memory */
    bool dirty, recent;
    bool bounded;                      /* its keys were found to lie within the bounds of the page above */
    char page[WB_TREE_PAGE_BYTES];
};

/* Pages that were read and are sound. They are known by their checksum, so they never become wrong. */
struct wb_tree_nodes {
    struct wb_tree_node *buckets[WB_TREE_BUCKETS];
    struct wb_tree_node *ring[WB_TREE_NODES_MAX];
    unsigned count, hand;
};

/* Neighbouring pages on their way to the file. */
struct wb_tree_out {
    char *bytes;
    uint32_t first, count;
};

struct wb_tree_held {
    uint64_t txn;
    unsigned count;
};

struct wb_tree {
    uint32_t magic;
    struct wb_file file;
    bool writable;
    pid_t pid;
    struct wb_tree_nodes nodes;
    struct wb_tree_state newest;       /* as last read */
    bool quick;                        /* the beginning of the root record tells whether it is still the newest: */
    char quick_bytes[WB_TREE_QUICK_BYTES];
    struct wb_tree_held *held;         /* by this tree */
    size_t held_count, held_cap;

    /* ---- a transaction ---- */
    bool writing;
    bool failed;                       /* out of step: it cannot be committed any more */
    bool uncertain;
    struct wb_tree_state next;
    struct wb_tree_node *changed;      /* all changed pages */
    size_t changed_count;
    uint64_t changes;
    struct wb_tree_space space;
    struct wb_tree_out out;
};

/* ---- tree.c ---- */

/* What the two copies of the root record hold. */
struct wb_tree_roots {
    char bytes[2][WB_TREE_ROOT_BYTES];
    bool sound[2];
};

/* The newest state that the file holds; roots_out may be NULL. */
int wb_tree_roots_read(struct wb_tree *tree, struct wb_tree_state *state_out, struct wb_tree_roots *roots_out);
int wb_tree_root_write(struct wb_tree *tree, unsigned copy, const struct wb_tree_state *state);

/* Takes a state that was just committed as the newest. */
void wb_tree_adopt(struct wb_tree *tree, const struct wb_tree_state *state);
int wb_tree_usable(const struct wb_tree *tree);

/* Whether a reader of any process holds a state in [from, to): 1, 0 or an error. */
int wb_tree_held_between(struct wb_tree *tree, uint64_t from, uint64_t to);
int wb_tree_lock_writer(struct wb_tree *tree);
void wb_tree_unlock_writer(struct wb_tree *tree);

/* Whether another open file has the writer's lock: 1, 0 or an error. */
int wb_tree_writer_busy(struct wb_tree *tree);

int wb_tree_damaged(const struct wb_tree *tree, uint32_t page, const char *what);

/* ---- tree_node.c ---- */

/* Reads a page of the file and checks that it is the one pointed to, without knowing what it holds. */
int wb_tree_page_read(struct wb_tree *tree, struct wb_tree_ref ref, char *page_out);

/* A page of a table, pinned. */
int wb_tree_node_load(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, unsigned level, struct wb_tree_node **node_out);
void wb_tree_node_unpin(struct wb_tree_node *node);

/* A changed page: a copy of a page, or (from NULL) one to be filled. */
int wb_tree_node_new(struct wb_tree *tree, const char *from, struct wb_tree_node **node_out);

/* Forgets a changed page. */
void wb_tree_node_drop(struct wb_tree *tree, struct wb_tree_node *node);

/* A changed page was written to ref: it is kept like one that was read. */
void wb_tree_node_written(struct wb_tree *tree, struct wb_tree_node *node, struct wb_tree_ref ref);
void wb_tree_nodes_release(struct wb_tree *tree);

static inline struct wb_tree_ref wb_tree_node_ref(struct wb_tree_node *node)
{
    return node->dirty ? (struct wb_tree_ref){WB_TREE_IN_MEMORY, (uint64_t)(uintptr_t)node} : node->ref;
}

/* ---- tree_read.c ---- */

/* The pages from the root (at [depth - 1]) down to the leaf (at [0]) of a key, and which cell led on. All pinned. */
struct wb_tree_path {
    struct wb_tree_node *nodes[WB_TREE_LEVELS_MAX];
    unsigned index[WB_TREE_LEVELS_MAX];
    unsigned depth;
};

int wb_tree_descend(struct wb_tree *tree, const struct wb_tree_root *root, unsigned table, struct wb_slice key, struct wb_tree_path *path_out);
void wb_tree_path_release(struct wb_tree_path *path);

/* NULL, or what is wrong with a page whose keys must lie in [low, high); high.ptr NULL: without end. */
const char *wb_tree_bounds_check(const char *page, struct wb_slice low, struct wb_slice high);

/* The bounds of what lies below cell i of a branch that has bounds itself. */
void wb_tree_bounds_below(const char *page, unsigned i, struct wb_slice *low, struct wb_slice *high);

/* ---- tree_commit.c ---- */

/* Writes a page on its way to the file; it may stay in memory until wb_tree_out_flush(). */
int wb_tree_out_write(struct wb_tree *tree, uint32_t number, const char *page);
int wb_tree_out_flush(struct wb_tree *tree);

/* Writes all changed pages, so that they need no memory. */
int wb_tree_write_changed(struct wb_tree *tree);

#endif
