/*
 * tree.h - a small B-tree in one file, for the catalog. Several tables of keys and
 * values; one writer at a time, any number of readers in any process; a commit is
 * whole or not there; every page is checked. docs/formats/catalog.md has the bytes,
 * docs/design/0017-catalog-tree.md the reasons.
 *
 *   root record -> root page of a table -> branches -> leaves
 *
 * Each arrow is a page number and the checksum of that page. So whatever is found,
 * and whatever is not found, was told by pages that are all as the writer wrote
 * them: damage is WB_E_CORRUPT, never a wrong answer and never a missing row.
 *
 * Pages are never changed in place. A commit writes new pages where no reader
 * looks, syncs, then writes the root record, which is the commit, and syncs again.
 *
 * Lifetimes. A state is what one commit left, named by its transaction number:
 *   1 newest   the root record holds it
 *   2 held     a reader has locked its number (wb_tree_hold); its pages stay
 *   3 gone     it is not the newest and nobody holds it: its pages are used again
 * A state that was only looked at (wb_tree_look) may go while it is read. Its
 * pages then fail their checksums, and wb_tree_moved() tells this from damage.
 *
 * A tree belongs to one thread. Threads, and processes after fork(), open their own.
 */
#ifndef WB_STORE_TREE_H
#define WB_STORE_TREE_H

#include "store/tree_page.h"

enum {
    WB_TREE_TABLES_MAX = 16,
    WB_TREE_SPACE_MAX = 32,  /* index pages of the free-space map: 353 GB of catalog */
    WB_TREE_CLASSES = 4,     /* of pages that wait until no reader needs them: tree_space.h */
};

struct wb_tree_root {
    struct wb_tree_ref ref; /* page 0: the table is empty */
    uint32_t level;         /* of the root page; leaves are at level 0 */
    uint64_t rows;
};

/* Pages that were given up, and that readers of the states from `from` up to, not including, `to` may need. */
struct wb_tree_class {
    uint64_t from, to;
    uint64_t pages;
};

/* What the root record says. */
struct wb_tree_state {
    uint64_t txn;
    uint32_t pages; /* of the file */
    struct wb_tree_root roots[WB_TREE_TABLES_MAX];
    struct wb_tree_ref space[WB_TREE_SPACE_MAX];
    struct wb_tree_class classes[WB_TREE_CLASSES];
    uint64_t free;  /* pages that may be written to */
};

struct wb_tree;

enum wb_tree_mode { WB_TREE_READ, WB_TREE_WRITE, WB_TREE_CREATE };

/* WB_E_CORRUPT naming the file if it is missing or no tree; WB_E_NEWER. CREATE replaces what is there. */
int wb_tree_open(const char *path, enum wb_tree_mode mode, struct wb_tree **tree_out);
void wb_tree_close(struct wb_tree *tree);
const char *wb_tree_path(const struct wb_tree *tree);

/* ---- reading ------------------------------------------------------------------ */

/* The newest state, which nothing keeps from going while it is read. */
int wb_tree_look(struct wb_tree *tree, struct wb_tree_state *state_out);

/* Whether there is a newer state by now. */
bool wb_tree_moved(struct wb_tree *tree, uint64_t txn);

/* The newest state, which stays until it is let go. */
int wb_tree_hold(struct wb_tree *tree, struct wb_tree_state *state_out);
void wb_tree_let_go(struct wb_tree *tree, uint64_t txn);

/* The oldest state that a reader in any process holds; UINT64_MAX: none is held. */
int wb_tree_oldest(struct wb_tree *tree, uint64_t *txn_out);

/* A value of at most cap bytes; WB_E_NOTFOUND; WB_E_CORRUPT, also if it is longer. */
int wb_tree_get(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, struct wb_slice key, char *value_out, size_t cap,
                size_t *len_out);

/* All rows in order of their keys; each() ends the walk with a non-zero return, which is returned. It must change nothing. */
typedef int (*wb_tree_each_row)(void *context, struct wb_slice key, struct wb_slice value);
int wb_tree_each(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, wb_tree_each_row each, void *context);

/* ---- writing ------------------------------------------------------------------ */

/* Waits for other writers. The state that changes is wb_tree_next(). */
int wb_tree_begin(struct wb_tree *tree);
const struct wb_tree_state *wb_tree_next(const struct wb_tree *tree);

/* WB_E_LIMIT: key or value is too long. After WB_E_CORRUPT nothing was changed and the transaction can go on. */
int wb_tree_put(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_slice value);
int wb_tree_delete(struct wb_tree *tree, unsigned table, struct wb_slice key);
int wb_tree_clear(struct wb_tree *tree, unsigned table);

/*
 * Ends the transaction in either case. On an error nothing was committed, unless
 * wb_tree_uncertain(): then the root record may or may not have reached the disk.
 * Such a tree answers nothing any more; opening the file again decides.
 */
int wb_tree_commit(struct wb_tree *tree);
bool wb_tree_uncertain(const struct wb_tree *tree);

/* Ends the transaction with nothing changed. */
void wb_tree_abort(struct wb_tree *tree);

/* ---- the whole ------------------------------------------------------------------ */

/* Reads every page of a state and reports damage (problem), and what an interrupted commit left, with the place in the file. Returns other errors only. */
typedef void (*wb_tree_found)(void *context, bool problem, uint64_t offset, const char *message);
int wb_tree_check(struct wb_tree *tree, const struct wb_tree_state *state, wb_tree_found found, void *context);

#endif
