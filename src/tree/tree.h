/*
 * tree.h - the door of tree: a small B-tree in one file. The catalog of the store is one.
 *
 * The file has up to 16 tables of keys and values. One process at a time writes; any number
 * of processes read at the same time. A commit is either completely there or not at all. The
 * tree does not know what the keys and values mean.
 *
 *   root record -> root page of a table -> branches -> leaves
 *
 * Each arrow is a pointer: a page number and the checksum of that page. So whatever we
 * find, and also whatever we do not find, comes from pages that are exactly as they were
 * written. Damage gives WB_E_CORRUPT: never a wrong answer, and never a missing row.
 *
 * Pages are never changed in place. A commit writes new pages where no reader looks, syncs
 * them, then writes the root record, which is the moment of the commit, and syncs again.
 *
 * Lifetime of a state. A state is what one commit left: all tables, at one moment. It is
 * identified by the number of its transaction.
 *   1 newest   the root record describes it
 *   2 held     newer states exist, but a reader has locked its number (wb_tree_hold), or it
 *              is marked (wb_tree_mark), so its pages are kept
 *   3 gone     it is not the newest and nobody holds it: its pages are reused
 * A reader may also just look at a state without holding it (wb_tree_look). If the state
 * goes while it is being read, its pages fail their checksums, and wb_tree_moved() tells
 * that from damage.
 *
 * A tree handle belongs to one thread. Other threads, and processes after fork(), open
 * their own.
 *
 * docs/formats/catalog.md has the bytes, docs/design/0017-catalog-tree.md the reasons.
 */
#ifndef WB_TREE_TREE_H
#define WB_TREE_TREE_H

#include "tree/tree_page.h"

enum {
    WB_TREE_TABLES_MAX = 16,
    WB_TREE_SPACE_MAX = 32, /* index pages of the free-space map, enough for a file of 353 GB */
    WB_TREE_CLASSES = 4,    /* classes of pages that wait until no reader needs them (tree_space.h) */
    WB_TREE_MARKS_MAX = 8,
    WB_TREE_MARK_BYTES_MAX = 17 + 22 * WB_TREE_TABLES_MAX,
};

/* The root of one table. */
struct wb_tree_root {
    struct wb_tree_ref ref; /* page 0 if the table is empty */
    uint32_t level;         /* of the root page; leaves have level 0 */
    uint64_t rows;
};

/* Pages that were given up, but that readers of the states from, from + 1, ..., to - 1 may still need. */
struct wb_tree_class {
    uint64_t from, to;
    uint64_t pages;
};

/* A state that is kept although nobody holds it. All zero: none. */
struct wb_tree_mark {
    uint64_t txn;
    uint32_t token; /* random, not 0 */
};

/* A state, as the root record describes it. */
struct wb_tree_state {
    uint64_t txn;   /* the transaction that wrote it */
    uint32_t pages; /* length of the file, in pages */
    struct wb_tree_root roots[WB_TREE_TABLES_MAX];
    struct wb_tree_ref space[WB_TREE_SPACE_MAX]; /* the free-space map */
    struct wb_tree_class classes[WB_TREE_CLASSES];
    uint64_t free;  /* pages that the next transaction may write to */
    struct wb_tree_mark marks[WB_TREE_MARKS_MAX];
};

struct wb_tree;

enum wb_tree_mode { WB_TREE_READ, WB_TREE_WRITE, WB_TREE_CREATE };

/* WB_TREE_CREATE replaces whatever is there. WB_E_CORRUPT, naming the file, if it is missing or not a tree. */
int wb_tree_open(const char *path, enum wb_tree_mode mode, struct wb_tree **tree_out);

/* tree may be NULL. There must not be a transaction. */
void wb_tree_close(struct wb_tree *tree);
const char *wb_tree_path(const struct wb_tree *tree);

/* ---- reading ------------------------------------------------------------------ */

/* The newest state, without holding it: it may go while it is being read. */
int wb_tree_look(struct wb_tree *tree, struct wb_tree_state *state_out);

/* Returns true if there is a newer state than txn by now. Keeps the current error message. */
bool wb_tree_moved(struct wb_tree *tree, uint64_t txn);

/* The newest state, which stays available until it is let go. May be called several times for one state. */
int wb_tree_hold(struct wb_tree *tree, struct wb_tree_state *state_out);
void wb_tree_let_go(struct wb_tree *tree, uint64_t txn);

/* The oldest state that a reader in any process holds; UINT64_MAX if none is held. */
int wb_tree_oldest(struct wb_tree *tree, uint64_t *txn_out);

/* Reads a value. WB_E_NOTFOUND; WB_E_CORRUPT, also if the value is longer than cap. */
int wb_tree_get(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, struct wb_slice key,
                char *value_out, size_t cap, size_t *len_out);

/*
 * Calls each() for all rows in the order of their keys. A non-zero return of each() ends
 * the walk and is returned. each() must not change the tree.
 */
typedef int (*wb_tree_each_row)(void *context, struct wb_slice key, struct wb_slice value);
int wb_tree_each(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, wb_tree_each_row each,
                 void *context);

/*
 * The same from a key on: rows with smaller keys are left out, and pages that contain only such rows are not read. If
 * damaged is not NULL, a damaged page does not end the walk: damaged() is called instead, while the error's message
 * names the page, and the walk goes on behind all rows of that page. A non-zero return of damaged() ends the walk and
 * is returned. With damaged(), only for states that are held: pages of others may be gone without being damaged.
 */
typedef int (*wb_tree_passed)(void *context);
int wb_tree_each_sound(struct wb_tree *tree, const struct wb_tree_state *state, unsigned table, struct wb_slice from,
                       wb_tree_each_row each, wb_tree_passed damaged, void *context);

/*
 * Calls each() for the rows of a table in which two states differ, in the order of their keys: with the value that the
 * second one has, or value.ptr NULL if it has no such row. What the states have in common is not read. Both must be
 * held or marked. A non-zero return of each() ends the walk and is returned. Not in a transaction.
 */
typedef wb_tree_each_row wb_tree_each_change;
int wb_tree_diff(struct wb_tree *tree, const struct wb_tree_state *old, const struct wb_tree_state *new, unsigned table,
                 wb_tree_each_change each, void *context);

/* ---- pins ----------------------------------------------------------------------- */

/*
 * A reader can pin a number, which means whatever the tree's user wants it to mean. Every later
 * transaction can ask which numbers are pinned. A pin ends with unpin, with the handle, or with its
 * process, however that ends. Works on a file that is open for reading only. A handle pins a number
 * at most once.
 */
int wb_tree_pin(struct wb_tree *tree, uint64_t number);
void wb_tree_unpin(struct wb_tree *tree, uint64_t number);

/* Finds the lowest number from `from` on that another handle has pinned. Returns 1, or 0 if there is none. */
int wb_tree_pinned(struct wb_tree *tree, uint64_t from, uint64_t *number_out);

/*
 * Waits until every transaction that might not have seen our pins has ended. Returns 0 when the newest
 * state of the tree was committed, and will stay the newest, until a transaction begins that sees them.
 */
int wb_tree_pins_settle(struct wb_tree *tree);

/* ---- writing ------------------------------------------------------------------ */

/* Starts a transaction; waits until no other process is writing. */
int wb_tree_begin(struct wb_tree *tree);

/* The state that the transaction is changing. It can be read like any other. */
const struct wb_tree_state *wb_tree_next(const struct wb_tree *tree);

/*
 * Change a row. WB_E_LIMIT if the key or the value is too long. After WB_E_CORRUPT nothing
 * was changed, and the transaction can continue.
 */
int wb_tree_put(struct wb_tree *tree, unsigned table, struct wb_slice key, struct wb_slice value);
int wb_tree_delete(struct wb_tree *tree, unsigned table, struct wb_slice key);

/* Deletes all rows of a table. */
int wb_tree_clear(struct wb_tree *tree, unsigned table);

/*
 * Ends the transaction, whether it succeeds or not. On error nothing was committed, unless
 * wb_tree_uncertain() is true: then the root record may or may not have reached the disk.
 * Such a tree refuses every call. Opening the file again decides by what is there.
 */
int wb_tree_commit(struct wb_tree *tree);
bool wb_tree_uncertain(const struct wb_tree *tree);

/* Ends the transaction without changing anything. Does nothing if there is none. */
void wb_tree_abort(struct wb_tree *tree);

/* ---- marks ---------------------------------------------------------------------- */

/*
 * A mark keeps a state available, until it is dropped, or gives way to a ninth one. What it costs are the pages of
 * that state that newer ones do not have. The file does not say where these are: the caller keeps the mark, as bytes,
 * and can read the state with it, also in other processes, and with handles that do not write.
 */
struct wb_tree_marked {
    uint32_t token;
    struct wb_tree_state state; /* only its roots are known */
};
size_t wb_tree_mark_encode(const struct wb_tree_marked *mark, char bytes_out[WB_TREE_MARK_BYTES_MAX]);

/* Returns false if the bytes are not a mark. */
bool wb_tree_mark_decode(struct wb_slice bytes, struct wb_tree_marked *mark_out);

/* In a transaction: marks a state that somebody holds; WB_E_INVALID if nobody does. */
int wb_tree_mark(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_marked *mark_out);

/* In a transaction: drops a mark. Returns false if there is none. */
bool wb_tree_unmark(struct wb_tree *tree, const struct wb_tree_marked *mark);

/* Whether the newest state has this mark. */
int wb_tree_is_marked(struct wb_tree *tree, const struct wb_tree_marked *mark, bool *marked_out);

/* ---- the whole ------------------------------------------------------------------ */

/*
 * Reads and checks every page of a state. Calls found() for each damaged page (problem) and
 * for what an interrupted commit left (no problem). Returns only errors that are not
 * damage.
 */
typedef void (*wb_tree_found)(void *context, bool problem, uint64_t offset, const char *message);
int wb_tree_check(struct wb_tree *tree, const struct wb_tree_state *state, wb_tree_found found, void *context);

#endif
