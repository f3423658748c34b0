/*
 * catalog.h - the catalog of the log organisation: where each page lies and what
 * is true of it, in one file. It is the papers' catalog and B-tree in one.
 *
 * Tables (docs/formats/catalog.md):
 *   pages     page id -> entry        the latest version
 *   old       page id -> entry        class A: what the snapshot still refers to
 *   segments  number  -> segment row
 *   sites     site    -> pages
 *   revisits  page id -> revisit      of originals that we do not have
 *   retired   number, version -> transaction   files to delete when no reader is older
 *   bars      page id or site -> bar  what was taken down and must not come back
 *   state     one row: counters, epoch, snapshot, commit number
 *
 * Underneath is a tree (tree.h) that checks every page it reads: on a damaged file
 * the answer is WB_E_CORRUPT, also where a row would not have been found.
 */
#ifndef WB_STORE_CATALOG_H
#define WB_STORE_CATALOG_H

#include "base/buf.h"
#include "store/store.h"
#include "store/tree.h"

#define WB_CATALOG_NAME "catalog.wbt"

/* Every table: name, its number in the file, its name in messages. A new table is one more line. */
#define WB_CATALOG_TABLES(X)                    \
    X(WB_CATALOG_PAGES, 0, "pages")       \
    X(WB_CATALOG_OLD, 1, "old")           \
    X(WB_CATALOG_SEGMENTS, 2, "segments") \
    X(WB_CATALOG_SITES, 3, "sites")       \
    X(WB_CATALOG_REVISITS, 4, "revisits") \
    X(WB_CATALOG_RETIRED, 5, "retired")   \
    X(WB_CATALOG_SUMMARY, 6, "state")       \
    X(WB_CATALOG_BARS, 7, "bars")

enum wb_catalog_table {
#define WB_CATALOG_TABLE_ENUM(name, number, words) name = number,
    WB_CATALOG_TABLES(WB_CATALOG_TABLE_ENUM)
#undef WB_CATALOG_TABLE_ENUM
};

/* A page's place: for ever the same, however often its segment is compacted. */
struct wb_catalog_place {
    uint32_t segment;
    uint16_t slot;
    uint64_t logical; /* of the block, in the segment's logical order */
};

struct wb_catalog_entry {
    struct wb_catalog_place place;
    int64_t time_ms;
    uint32_t body_bytes;
    uint32_t stored_bytes;   /* bytes on disk that die with the page */
    uint32_t epoch;
    uint16_t status;
    uint16_t lifetime, lifetime_count;
    uint64_t site;     /* hash of it: a page that cannot be read can still be taken down with its site */
};

struct wb_catalog_segment {
    uint32_t number;
    uint32_t revision;       /* of the file: 0 as written, then one more with each compaction */
    bool sealed;            /* nothing more is appended */
    uint64_t bytes;         /* of the file that are committed */
    uint64_t logical_end;
    uint64_t pages, live;   /* records in it; of which are the latest or class A */
    uint64_t bytes_dead;    /* what thinning it out would give back */
    uint64_t touched;       /* catalog times or lifetimes that differ from the records' */
    uint64_t removed;       /* takedowns since it was compacted: bytes of dead pages must go, those in leads too */
    uint64_t map_at;        /* of a compacted file: where its map of blocks lies */
    uint64_t map_count;
    uint32_t epoch_min, epoch_max; /* of its pages */
    uint32_t lead_dead;     /* dead pages that compaction left in leads */
};

struct wb_catalog_summary {
    uint64_t commit;
    uint64_t pages, old, sites, revisits;
    uint64_t bars;             /* rows of that table: with none, nobody looks there */
    uint64_t bytes_pages;
    uint32_t epoch;            /* of pages committed now */
    uint32_t snapshot;       /* 0: no snapshot yet */
    uint32_t snapshot_epoch; /* pages up to this epoch belong to the snapshot */
    uint32_t next_segment;
};

struct wb_catalog;

/* A catalog belongs to one thread, and to one process; others open their own. */
int wb_catalog_open(const char *dir, enum wb_tree_mode mode, struct wb_catalog **catalog_out);
void wb_catalog_close(struct wb_catalog *catalog);
const char *wb_catalog_path(const struct wb_catalog *catalog);

/*
 * Runs a function that reads through transactions that were woken. Such a transaction
 * does not keep writers from using the pages of its state again. If that happened, so
 * that the function ended with WB_E_CORRUPT, it is run a second time with a state that
 * stays. So it must be a function that can be repeated.
 */
int wb_catalog_call(struct wb_catalog *catalog, int (*function)(void *context), void *context);

/* ---- transactions --------------------------------------------------------------- */

struct wb_catalog_txn {
    struct wb_catalog *catalog; /* NULL: none is open */
    enum { WB_CATALOG_TXN_CLOSED, WB_CATALOG_TXN_PARKED, WB_CATALOG_TXN_AWAKE, WB_CATALOG_TXN_HELD, WB_CATALOG_TXN_WRITING } kind;
    struct wb_tree_state state; /* of a reader */
};

/* The newest state, which stays as long as the transaction is open. */
int wb_catalog_txn_read(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out);

/* A transaction for single reads: parked until it is woken, which shows it the newest state. Only inside of wb_catalog_call(). */
void wb_catalog_txn_init(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out);
int wb_catalog_txn_wake(struct wb_catalog_txn *txn);
void wb_catalog_txn_park(struct wb_catalog_txn *txn);

int wb_catalog_txn_write(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out);

/* On an error nothing was committed, unless wb_catalog_uncertain(). */
int wb_catalog_txn_commit(struct wb_catalog_txn *txn);
void wb_catalog_txn_abort(struct wb_catalog_txn *txn);
uint64_t wb_catalog_txn_id(const struct wb_catalog_txn *txn);

/* Whether a commit failed so late that it may be on disk all the same. Only opening the catalog again can tell. */
bool wb_catalog_uncertain(const struct wb_catalog *catalog);

/* The oldest transaction that any living reader of any process still looks at; UINT64_MAX: none. */
int wb_catalog_oldest_reader(struct wb_catalog *catalog, uint64_t *txn_id_out);

/* Reads and checks every page of the state of a transaction. */
int wb_catalog_check(struct wb_catalog_txn *txn, wb_tree_found found, void *context);

/* ---- rows -------------------------------------------------------------------------- */

/* table: PAGES or OLD. WB_E_NOTFOUND; WB_E_CORRUPT if the catalog is damaged where the row is or would be. */
int wb_catalog_entry_get(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id, struct wb_catalog_entry *entry_out);
int wb_catalog_entry_put(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id, const struct wb_catalog_entry *entry);
int wb_catalog_entry_delete(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id);

/* All rows in order of id; each() ends the walk with a non-zero return, which is returned. */
int wb_catalog_entry_each(struct wb_catalog_txn *txn, enum wb_catalog_table table,
                  int (*each)(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry), void *context);

int wb_catalog_segment_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_catalog_segment *row_out);
int wb_catalog_segment_put(struct wb_catalog_txn *txn, const struct wb_catalog_segment *row);
int wb_catalog_segment_delete(struct wb_catalog_txn *txn, uint32_t number);
int wb_catalog_segment_each(struct wb_catalog_txn *txn, int (*each)(void *context, const struct wb_catalog_segment *row), void *context);

/* Adds to the number of pages of a site; the row goes with its last page. state.sites is kept in step. */
int wb_catalog_site_add(struct wb_catalog_txn *txn, struct wb_slice site, int64_t pages, struct wb_catalog_summary *state);
int wb_catalog_site_each(struct wb_catalog_txn *txn, int (*each)(void *context, struct wb_slice site, uint64_t pages), void *context);

/* site: the hash of the page's site. */
int wb_catalog_revisit_get(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_store_revisit *revisit_out);
int wb_catalog_revisit_put(struct wb_catalog_txn *txn, struct wb_pageid id, uint64_t site, const struct wb_store_revisit *revisit);
int wb_catalog_revisit_delete(struct wb_catalog_txn *txn, struct wb_pageid id);
int wb_catalog_revisit_each(struct wb_catalog_txn *txn, int (*each)(void *context, struct wb_pageid id, uint64_t site), void *context);

/*
 * A bar on a page (by id) or on a site (by name). The other of the two is ignored in keys, so callers may pass what they have.
 * A page's row with `except` lifts the bar on its site for this page.
 */
struct wb_catalog_bar {
    bool except;
    int64_t time_ms;
    uint64_t site; /* hash of the site, or of the page's site */
};
int wb_catalog_bar_get(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site, struct wb_catalog_bar *row_out);
int wb_catalog_bar_put(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site, const struct wb_catalog_bar *row);
int wb_catalog_bar_delete(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site);

/* Pages first, then sites. bar->site is empty for a page; row->site is its hash. */
int wb_catalog_bar_each(struct wb_catalog_txn *txn, int (*each)(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row), void *context);

int wb_catalog_retired_put(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, uint64_t txn_id);
int wb_catalog_retired_delete(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision);
int wb_catalog_retired_has(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, bool *has_out);
int wb_catalog_retired_each(struct wb_catalog_txn *txn, int (*each)(void *context, uint32_t number, uint32_t revision, uint64_t txn_id), void *context);

int wb_catalog_summary_get(struct wb_catalog_txn *txn, struct wb_catalog_summary *state_out);
int wb_catalog_summary_put(struct wb_catalog_txn *txn, const struct wb_catalog_summary *state);

int wb_catalog_clear(struct wb_catalog_txn *txn, enum wb_catalog_table table);

/* How many rows a table has. */
int wb_catalog_count(struct wb_catalog_txn *txn, enum wb_catalog_table table, uint64_t *rows_out);

/* Used by the rows' files. */
struct wb_tree *wb_catalog_tree(const struct wb_catalog *catalog);
const struct wb_tree_state *wb_catalog_txn_state(const struct wb_catalog_txn *txn);
int wb_catalog_corrupt(const struct wb_catalog *catalog, enum wb_catalog_table table, const char *what);

#endif
