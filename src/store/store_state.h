/*
 * store_state.h - a door of store for those who carry a whole repository elsewhere (room vault): one state of it, held
 * while others write, as files and rows; and the way back, a repository made of files and rows.
 *
 * A held state consists of
 *   parts   catalogs: one, or in a batch design two, the second being that of the update nodes
 *   files   of pages, on all nodes, named as they will be in the copy: "pages/00000001.seg", "node2/pages/...",
 *           "update/pages/..."; the catalog says how many bytes of each belong to the state
 *   rows    of the catalogs' tables
 *
 * Nothing that belongs to a held state changes or disappears before it is let go. Writers go on. Files that only grow
 * (segments) are read where they are. Bucket files change in place, so the changed buckets are copied aside when the
 * state is taken: everything that does not change during that is copied before, so that writers wait only for the rest.
 *
 * A *mark* is how rows between two states are found although the process that held the first one has long ended: the
 * tree keeps the pages of a marked state (tree.h), until the mark is dropped or gives way. What it keeps is at most the
 * size of the catalog at that time. Marks do not keep files.
 *
 * A handle belongs to one thread, except wb_store_state_read(), which any number of threads may call.
 */
#ifndef WB_STORE_STORE_STATE_H
#define WB_STORE_STORE_STATE_H

#include "base/buf.h"
#include "base/slice.h"

/* ---- holding a state ----------------------------------------------------------------------------------------- */

struct wb_store_state;

/*
 * Takes the newest state. If `since` is not NULL (the stamps of an earlier state, wb_store_state_stamps()), only
 * buckets that changed after it are copied aside. WB_E_DOWN names a node that cannot be read. In a batch design it
 * waits for a transfer that is under way (WB_E_STOPPED if the process is asked to stop meanwhile). A design with
 * buckets must be open for writing: a commit that is under way is waited for, and what a killed writer left is repaired
 * first.
 */
int wb_store_state_hold(const char *dir, const struct wb_buf *since, struct wb_store_state **state_out);
void wb_store_state_let_go(struct wb_store_state *state);

struct wb_store_state_facts {
    uint64_t pages;          /* as stat counts them */
    uint64_t commit, epoch;  /* of the (read nodes') catalog */
    uint64_t takedowns;      /* pages that were ever removed from everywhere; grows only. Both parts together */
    uint64_t takedowns_open; /* ... since the last compaction: their bytes may still be in files of this state */
    size_t parts;            /* catalogs */
};
void wb_store_state_facts(const struct wb_store_state *state, struct wb_store_state_facts *facts_out);

/* Whether a generation's snapshot is there: so that the index that is carried along fits. */
bool wb_store_state_has_snapshot(struct wb_store_state *state, uint32_t number);

/* The contents of webbase.repo in the copy's directory, and in those of its parts and nodes: small files with names. */
typedef int (*wb_store_each_small)(void *context, const char *name, struct wb_slice bytes);
int wb_store_state_each_small(struct wb_store_state *state, wb_store_each_small each, void *context);

/* A file of pages. */
struct wb_store_state_file {
    const char *name; /* in the copy */
    uint64_t bytes;   /* that belong to the state */
    bool in_place;    /* buckets: bytes that were carried before may have changed; see `changed` below. Otherwise the
                         bytes that another state had of a file of this name are the first ones of this file */
};
typedef int (*wb_store_each_file)(void *context, const struct wb_store_state_file *file);
int wb_store_state_each_file(struct wb_store_state *state, wb_store_each_file each, void *context);

/*
 * Of a file that changes in place: the ranges that differ from what an earlier state (since) had, ascending, each at
 * most 64 MiB: the header, each bucket by itself, and what was appended behind them. A range that comes again in a
 * later state has the same offsets there. If nothing is known of an earlier state of the file, all of it; then what was
 * carried of it before counts no more, because what was appended may be divided into other ranges.
 */
typedef int (*wb_store_each_range)(void *context, uint64_t offset, uint64_t len);
int wb_store_state_each_changed(struct wb_store_state *state, const char *name, wb_store_each_range each,
                                void *context);

/*
 * Reads exactly len bytes of a file, as they are in this state. By any thread. WB_E_INVALID for bytes behind the end,
 * and for buckets that have not changed since.
 */
int wb_store_state_read(struct wb_store_state *state, const char *name, uint64_t offset, size_t len, void *bytes_out);

/*
 * What identifies the state for a later hold of the same directory, not of a copy that has gone its own way: opaque,
 * small (a few bytes for each bucket file).
 */
int wb_store_state_stamps(struct wb_store_state *state, struct wb_buf *stamps_out);

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/*
 * Calls each() for the rows of a part in the order of tables and keys: all of them, or, with a mark or an older held
 * state, those that differ from it; value.ptr is NULL for a row that is not there any more. Rows that mean nothing in a
 * copy (replaced files that wait for readers) are left out, and the directories of nodes are those of the copy; so the
 * row of a node may come although a copy sees no difference. WB_E_NOTFOUND, without a message, if the mark has given
 * way: then all rows are needed, and those that came before do not count. A non-zero return of each() ends the walk and
 * is returned.
 */
typedef int (*wb_store_each_row)(void *context, unsigned table, struct wb_slice key, struct wb_slice value);
int wb_store_state_rows(struct wb_store_state *state, size_t part, wb_store_each_row each, void *context);
int wb_store_state_rows_since_mark(struct wb_store_state *state, size_t part, struct wb_slice mark,
                                   wb_store_each_row each, void *context);
int wb_store_state_rows_since(struct wb_store_state *state, size_t part, struct wb_store_state *older,
                              wb_store_each_row each, void *context);

/*
 * Marks this state durably; *mark_out is what the caller keeps to find it again (one for all parts, a few hundred
 * bytes). Costs a commit of each catalog. There are at most eight marks; the oldest one gives way to a ninth.
 */
int wb_store_state_mark(struct wb_store_state *state, struct wb_buf *mark_out);

/* Drops a mark. One that is not there, or of another repository, is no error. */
int wb_store_unmark(const char *dir, struct wb_slice mark);

/* ---- the way back -------------------------------------------------------------------------------------------- */

/*
 * Makes a repository of files and rows. Files are written by the caller, under their names in dir, and synced. Until
 * finish, dir is an unfinished copy (webbase.unfinished) that no command opens, and that the next loader or `convert`
 * empties first. A directory with anything else in it is refused: WB_E_INVALID.
 */
struct wb_store_loader;
int wb_store_loader_open(const char *dir, struct wb_store_loader **loader_out);

/* A small file, as wb_store_state_each_small() gave it. webbase.repo becomes visible at finish. WB_E_CORRUPT. */
int wb_store_loader_small(struct wb_store_loader *loader, const char *name, struct wb_slice bytes);

/* A row of a part, in ascending order of parts, tables and keys. Foreign bytes: WB_E_CORRUPT. */
int wb_store_loader_row(struct wb_store_loader *loader, size_t part, unsigned table, struct wb_slice key,
                        struct wb_slice value);

/*
 * Everything is there, and synced: makes the repository visible. WB_E_CORRUPT if something is missing that the rows
 * speak of. Whether the files have the right bytes is not checked here.
 */
int wb_store_loader_finish(struct wb_store_loader *loader);

/*
 * Closes it. Without finish, removes everything that a repository can have in dir, also what the caller has put there;
 * dir itself if the loader made it.
 */
void wb_store_loader_close(struct wb_store_loader *loader);

#endif
