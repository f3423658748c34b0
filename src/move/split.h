/*
 * split.h - dividing segments by page ids, and moving them to other nodes:
 *
 *   split.c   divides a segment: some of its pages go to other segments, which may be on other nodes
 *   segment_hold.c    moves a whole segment to another node; what both share
 *
 * Neither changes the place of a page. docs/design/0040-splits.md says why.
 */
#ifndef WB_MOVE_SPLIT_H
#define WB_MOVE_SPLIT_H

#include "store/repo.h"

/* What becomes of a segment: the pages whose ids are in a range go to a node. */
struct wb_split_child {
    struct wb_catalog_range range;
    uint32_t node;
};

enum { WB_SPLIT_CHILDREN_MAX = 64 };

/* ---- the segment that is replaced (segment_hold.c) ----------------------------------------------------------- */

/* A segment that nobody else can change or replace, until it is closed. */
struct wb_hold {
    struct wb_repo *repo;
    struct wb_file lock;           /* compact.lock */
    struct wb_catalog_txn txn;     /* the state in which its pages are judged */
    struct wb_catalog_segment row; /* as of that state */
    struct wb_segment from;        /* its file; its lock keeps writers away */
};

/*
 * WB_E_BUSY: a writer appends to it, or another process compacts. WB_E_NOTFOUND: it is gone. Waits for no one.
 */
int wb_hold_open(struct wb_repo *repo, uint32_t number, struct wb_hold *hold_out);
void wb_hold_close(struct wb_hold *hold);

/* Starts the transaction that replaces the segment, and reads its row once more. */
int wb_hold_begin(struct wb_hold *hold, struct wb_catalog_txn *txn_out, struct wb_catalog_segment *now_out);

/* Retires its old file, counts the commit, and commits. */
int wb_hold_commit(struct wb_hold *hold, struct wb_catalog_txn *txn);

/* Gives up a segment that has no live page. */
int wb_hold_drop(struct wb_hold *hold);

/* Creates a file on a node. One of this name without a row was left by a process that died: it is replaced. */
int wb_hold_create_file(struct wb_repo *repo, uint32_t node, uint32_t number, uint32_t revision,
                        struct wb_segment *segment_out);

/* wb_block_check() for the block at `at` that the walk has found. WB_E_CORRUPT names the first damaged frame. */
int wb_hold_check_block(const struct wb_segment_walk *walk, const char *block, const bool *dead, uint64_t at);

/* Makes a file and its name durable. */
int wb_append_sync_file(struct wb_segment *segment);

/* ---- dividing and moving -------------------------------------------------------------------------------------- */

/*
 * Divides a segment: one child takes its number, with the next revision of its file; each of the others becomes a new
 * segment whose origin it is. Children without pages are left out. The ranges of the children are disjoint, and
 * together they are that of the segment. It all happens in one commit; before it, there are only files that nobody
 * knows.
 *
 * WB_E_BUSY, WB_E_NOTFOUND as above. WB_E_CORRUPT: something in it cannot be read, so nothing was changed:
 * wb_compact_move() can still move it as a whole.
 */
int wb_split(struct wb_repo *repo, uint32_t number, const struct wb_split_child *children, size_t count);

/*
 * Moves a segment to another node, byte by byte, after everything in it was compared with its checksums. WB_E_BUSY,
 * WB_E_NOTFOUND as above. WB_E_CORRUPT: something in it is damaged, so it stays where it is. With anyway, it is moved
 * nevertheless, damage included: then the message names the first damaged place, and 1 is returned.
 */
int wb_compact_move(struct wb_repo *repo, uint32_t number, uint32_t node, bool anyway);

#endif
