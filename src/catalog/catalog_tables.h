/*
 * catalog_tables.h - the catalog of a store, whatever its organisation: where each page is stored, and what is
 * known about it without reading it. It combines the papers' catalog and B-tree.
 *
 * The catalog is one file, catalog.wbt, with these tables (docs/formats/catalog.md has
 * the bytes of each row):
 *
 *   pages      page id -> entry               the latest version of each page
 *   history    page id, part -> bytes         the past of a page, if there is more to it than its entry (history.h)
 *   snapshots  number -> snapshot             epochs that are held
 *   holders    snapshot, kind, name -> time   by whom, and until when
 *   segments   number -> segment row          the files that hold the pages
 *   sites      site -> number of pages
 *   revisits   page id, time -> revisit       revisits that wait for their original
 *   waiting    original, page id, time        those whose original is another page
 *   retired    number, revision -> transaction  replaced files, to be deleted when no reader needs them
 *   bars       page id or site -> bar         what was taken down and must not come back
 *   state      a single row, the summary      counters, the history policy, epoch, commit number
 *   nodes      number -> node                where the files are (nodes.c)
 *
 * Rows are read and changed in transactions (struct wb_catalog_txn). Underneath is a
 * copy-on-write B-tree (tree.h) that verifies every page it reads. So a damaged file gives
 * WB_E_CORRUPT, even when we look for a row that does not exist: damage never looks like
 * a missing row.
 *
 * Catalog functions take a transaction and report damage with the name of the file and the table.
 */
#ifndef WB_CATALOG_CATALOG_TABLES_H
#define WB_CATALOG_CATALOG_TABLES_H

#include "base/buf.h"
#include "base/vec.h"
#include "catalog/catalog_range.h"
#include "catalog/terms.h"
#include "tree/tree.h"

#define WB_CATALOG_NAME "catalog.wbt"

/* Every table: its name in C, its number in the file, its name in messages. A new table is one more line. */
#define WB_CATALOG_TABLES(X)                \
    X(WB_CATALOG_PAGES, 0, "pages")         \
    X(WB_CATALOG_SEGMENTS, 1, "segments")   \
    X(WB_CATALOG_SITES, 2, "sites")         \
    X(WB_CATALOG_REVISITS, 3, "revisits")   \
    X(WB_CATALOG_RETIRED, 4, "retired")     \
    X(WB_CATALOG_SUMMARY, 5, "state")       \
    X(WB_CATALOG_BARS, 6, "bars")           \
    X(WB_CATALOG_HISTORY, 7, "history")     \
    X(WB_CATALOG_SNAPSHOTS, 8, "snapshots") \
    X(WB_CATALOG_HOLDERS, 9, "holders")     \
    X(WB_CATALOG_WAITING, 10, "waiting")    \
    X(WB_CATALOG_NODES, 11, "nodes")

enum wb_catalog_table {
#define WB_CATALOG_TABLE_ENUM(name, number, words) name = number,
    WB_CATALOG_TABLES(WB_CATALOG_TABLE_ENUM)
#undef WB_CATALOG_TABLE_ENUM
};

/*
 * Where a page is stored. A place never changes, however often its segment is compacted,
 * because it names the block by its logical offset (segment.h) and not by its position.
 */
struct wb_catalog_place {
    uint32_t segment;
    uint16_t slot;    /* of the page in its block */
    uint64_t logical; /* logical offset of the block */
};

/*
 * The place of a version on the update nodes of a batch design whose bytes are on the read nodes: `logical` is its
 * content, by which it is found there.
 */
#define WB_CATALOG_BASE_SEGMENT (UINT32_MAX - 1)

static inline bool wb_catalog_place_equal(const struct wb_catalog_place *a, const struct wb_catalog_place *b)
{
    return a->segment == b->segment && a->logical == b->logical && a->slot == b->slot;
}

/* In which order two places are: negative, 0 or positive. */
static inline int wb_catalog_place_compare(const struct wb_catalog_place *a, const struct wb_catalog_place *b)
{
    if (a->segment != b->segment)
        return a->segment < b->segment ? -1 : 1;
    if (a->logical != b->logical)
        return a->logical < b->logical ? -1 : 1;
    return (int)a->slot - (int)b->slot;
}

/* What the catalog knows about the latest version of a page. */
struct wb_catalog_entry {
    struct wb_catalog_place place;
    int64_t time_ms;         /* of its newest capture */
    uint32_t body_bytes;
    uint32_t stored_bytes;   /* bytes that compaction frees when the page dies; 0 in a lead */
    uint64_t epoch;          /* in which it arrived */
    uint64_t seen_epoch;     /* in which its newest capture arrived: states before it show an older time */
    uint64_t content;        /* hash of status, type and body (wb_history_content), never 0 */
    bool history;            /* table history has rows of this page */
    int64_t floor_ms;        /* wb_history.floor_ms; INT64_MIN if nothing was forgotten */
    uint16_t status;         /* of the HTTP response */
    uint16_t lifetime;       /* in days */
    uint16_t lifetime_count; /* days left */
    uint64_t site;           /* hash of the site, so that an unreadable page can be taken down with its site */
    bool ended;              /* not in the row: describes an old version, which has no lifetime of its own any more */
};

/* What the catalog knows about one segment. */
struct wb_catalog_segment {
    uint32_t number;      /* from 1; numbers are never reused */
    uint32_t revision;    /* of the file: 0 as first written, then one more with each compaction */
    bool sealed;          /* nothing will be appended any more */
    uint64_t bytes;       /* length of the committed part of the file; anything after it is ignored */
    uint64_t logical_end; /* the logical offset after the last block */
    uint64_t pages;       /* records in the segment ... */
    uint64_t live;        /* ... and how many of them a version of a page needs */
    uint64_t old;         /* ... of which so many are not the latest version of their page */
    uint64_t bytes_dead;  /* what its dead pages took when they were first compressed */
    uint64_t touched;     /* entries whose time or lifetime differs from what their record says */
    uint64_t removed;     /* takedowns since the last compaction, which must remove all dead bytes, even from leads */
    uint64_t map_at;      /* in a compacted file: the offset of its map of blocks */
    uint64_t map_count;   /* ... and the number of entries in the map */
    uint64_t epoch_min, epoch_max; /* in which its pages arrived */
    union {
        uint32_t lead_dead; /* dead pages whose bytes the last compaction kept, as parts of leads */
        uint32_t unwritten; /* bucket files: commits with removals that could not be written to them */
    };
    uint64_t old_known;   /* entries that the last compaction has flagged as not the latest version (block.h) ... */
    uint64_t old_epoch;   /* ... and the epoch in which it looked; UINT64_MAX if it could not flag all of them */
    uint64_t returned;    /* versions that have become the latest once more since then */
    uint32_t node;        /* on which its file is */
    struct wb_catalog_range range; /* all its pages have ids in this range */
    uint32_t origin;      /* 0, or the segment from which it was split off: its places have that number */
    bool split;           /* parts were split off: places with its number may be in segments that have it as origin */
};

/*
 * What compaction would free: all of a segment without live pages, otherwise about what its dead pages take. bytes_dead
 * adds up what the entries of those say, and that can be more than the whole file. An entry says what the page took in
 * the block for which it was first compressed. It stays as it is if the block is compressed again, because the segment
 * is split or compacted: otherwise a split would have to change a row for each page. But pages that were in different
 * frames can be neighbours then, and those that have much in common take less together than they did apart.
 */
static inline uint64_t wb_catalog_segment_dead(const struct wb_catalog_segment *row)
{
    bool whole = (row->live == 0 && row->pages > 0) || row->bytes_dead > row->bytes;

    return whole ? row->bytes : row->bytes_dead;
}

/* The number that the places of a segment have. */
static inline uint32_t wb_catalog_segment_origin(const struct wb_catalog_segment *row)
{
    return row->origin ? row->origin : row->number;
}

/*
 * A node: a directory that holds files of pages. In a repository with the default of one node there is no row: it is
 * node 1, the repository's own directory.
 */
enum { WB_CATALOG_DIR_MAX = 512 };
struct wb_catalog_node {
    uint32_t number;   /* from 1; never given again (wb_catalog_summary.next_node) */
    bool inside;       /* dir is relative to the repository, so that a copied repository finds its own node */
    bool arriving;     /* `nodes add` has not finished: pages are still being moved to it */
    bool leaving;      /* `nodes remove` has begun: takes no new pages */
    uint8_t id[16];    /* random; the file webbase.node in its directory has the same (node.h) */
    char dir[WB_CATALOG_DIR_MAX + 1];
    struct wb_cells cells; /* hash distribution: those whose ids it takes; each cell belongs to one node */
};

/* The single row of table state: counters, and what the next commit starts from. */
struct wb_catalog_summary {
    uint64_t commit;         /* number of this commit */
    uint64_t pages;          /* that have a latest version: rows in table pages */
    uint64_t versions;       /* that are stored, the latest ones included */
    uint64_t captures;       /* of these versions */
    uint64_t gone;           /* pages that have versions, but no latest one */
    uint64_t sites;
    uint64_t revisits;       /* rows in table revisits */
    uint64_t bars;           /* rows in that table; as long as it is 0, nobody has to look there */
    uint64_t bytes_pages;    /* bodies of the latest versions */
    uint64_t epoch;          /* of the last commit that changed a page */
    uint32_t snapshot;       /* number of the newest snapshot ever sealed; 0 if there was none */
    uint32_t next_segment;   /* the next free segment number */
    uint32_t next_node;      /* above all numbers that removed nodes had; 0: none was removed since this is kept */
    uint64_t takedowns;      /* pages that were ever removed from everywhere, or refused for that; only grows */
    struct wb_store_history history;
};

struct wb_catalog;

/* A catalog belongs to one thread of one process; others open the file again. */
int wb_catalog_open(const char *dir, enum wb_tree_mode mode, struct wb_catalog **catalog_out);
void wb_catalog_close(struct wb_catalog *catalog);
const char *wb_catalog_path(const struct wb_catalog *catalog);

/* ---- transactions --------------------------------------------------------------- */

/*
 * A transaction sees one state of the catalog. There are three kinds:
 *
 *   held     wb_catalog_txn_read()   the state stays available until abort, however long that takes
 *   awake    wb_catalog_txn_wake()   quick, for single reads, but the state may disappear: see below
 *   writing  wb_catalog_txn_write()  changes, until commit or abort; one at a time in all processes
 *
 * Holding a state costs two system calls, more than a single read. So a get does not hold
 * its state but only looks at it, inside wb_catalog_call(). If a writer reuses a page of
 * that state at just this moment, the page fails its checksum. wb_catalog_call() notices
 * that the catalog has moved on, and repeats the read with a state that it holds.
 *
 *                   wake                          txn_read, txn_write
 *   init -> PARKED ------> AWAKE         CLOSED ---------------------> HELD, WRITING
 *              ^------------'               ^----------------------------'
 *                   park                           abort, commit
 */
struct wb_catalog_txn {
    struct wb_catalog *catalog; /* NULL if no transaction was ever started */
    enum {
        WB_CATALOG_TXN_CLOSED,
        WB_CATALOG_TXN_PARKED,
        WB_CATALOG_TXN_AWAKE,
        WB_CATALOG_TXN_HELD,
        WB_CATALOG_TXN_WRITING,
    } kind;
    struct wb_tree_state state; /* what a reader sees */
};

/* Starts reading the newest state. */
int wb_catalog_txn_read(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out);

/* For single reads: a parked transaction sees the newest state whenever it is woken. Only inside wb_catalog_call(). */
void wb_catalog_txn_init(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out);
int wb_catalog_txn_wake(struct wb_catalog_txn *txn);
void wb_catalog_txn_park(struct wb_catalog_txn *txn);

/* Calls function(context), and once more if it failed only because the catalog moved on. It must be repeatable. */
int wb_catalog_call(struct wb_catalog *catalog, int (*function)(void *context), void *context);

/* Starts writing; waits for the writers of other processes. */
int wb_catalog_txn_write(struct wb_catalog *catalog, struct wb_catalog_txn *txn_out);

/* Ends the transaction. On error nothing was committed, unless wb_catalog_uncertain() is true. */
int wb_catalog_txn_commit(struct wb_catalog_txn *txn);

/* Ends the transaction without a commit. Does nothing if it has already ended. */
void wb_catalog_txn_abort(struct wb_catalog_txn *txn);

/* The number of the transaction whose state is seen, or that is being written. */
uint64_t wb_catalog_txn_id(const struct wb_catalog_txn *txn);

/* Returns true if a commit failed so late that it may be on disk. Only opening the catalog again can tell. */
bool wb_catalog_uncertain(const struct wb_catalog *catalog);

/* The oldest transaction whose state a reader of any process holds; UINT64_MAX if none is held. */
int wb_catalog_oldest_reader(struct wb_catalog *catalog, uint64_t *txn_id_out);

/* Reads and checks every page of the file that belongs to the transaction's state. */
int wb_catalog_check(struct wb_catalog_txn *txn, wb_tree_found found, void *context);

/* ---- rows -------------------------------------------------------------------------- */

/*
 * get, put, delete and each of one table. get and delete give WB_E_NOTFOUND if there is
 * no such row. each() walks over all rows in the order of their keys; a non-zero return
 * of the callback ends the walk and is returned. A table must not be changed during a
 * walk.
 */

int wb_catalog_entry_get(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_catalog_entry *entry_out);
int wb_catalog_entry_put(struct wb_catalog_txn *txn, struct wb_pageid id, const struct wb_catalog_entry *entry);
int wb_catalog_entry_delete(struct wb_catalog_txn *txn, struct wb_pageid id);
typedef int (*wb_catalog_each_entry)(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry);
int wb_catalog_entry_each(struct wb_catalog_txn *txn, wb_catalog_each_entry each, void *context);

/* The same from an id on. */
int wb_catalog_entry_each_from(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_entry each,
                               void *context);

/* The same in a state that is held, but damage does not end the walk: it calls damaged() (wb_tree_each_sound). */
int wb_catalog_entry_each_sound(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_entry each,
                                wb_tree_passed damaged, void *context);

int wb_catalog_segment_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_catalog_segment *row_out);
int wb_catalog_segment_put(struct wb_catalog_txn *txn, const struct wb_catalog_segment *row);
int wb_catalog_segment_delete(struct wb_catalog_txn *txn, uint32_t number);
typedef int (*wb_catalog_each_segment)(void *context, const struct wb_catalog_segment *row);
int wb_catalog_segment_each(struct wb_catalog_txn *txn, wb_catalog_each_segment each, void *context);

/* All rows of one transaction, in the order of their numbers. On error there are none. */
struct wb_catalog_rows WB_VEC_OF(struct wb_catalog_segment);
int wb_catalog_rows_read(struct wb_catalog_txn *txn, struct wb_catalog_rows *rows_out);
void wb_catalog_rows_release(struct wb_catalog_rows *rows);

/* Nodes (catalog_nodes.c). get gives WB_E_NOTFOUND. */
int wb_catalog_node_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_catalog_node *row_out);
int wb_catalog_node_put(struct wb_catalog_txn *txn, const struct wb_catalog_node *row);
int wb_catalog_node_delete(struct wb_catalog_txn *txn, uint32_t number);
typedef int (*wb_catalog_each_node)(void *context, const struct wb_catalog_node *row);
int wb_catalog_node_each(struct wb_catalog_txn *txn, wb_catalog_each_node each, void *context);

/* A row of this table as bytes, for those who carry it elsewhere. WB_E_CORRUPT. encode() returns its length. */
int wb_catalog_node_decode(const struct wb_catalog *catalog, struct wb_slice key, struct wb_slice row,
                           struct wb_catalog_node *node_out);
size_t wb_catalog_node_encode(const struct wb_catalog_node *node, char row[WB_TREE_VALUE_MAX]);

/* Adds to the number of pages of a site; a site without pages has no row. Keeps summary->sites up to date. */
int wb_catalog_site_add(struct wb_catalog_txn *txn, struct wb_slice site, int64_t pages,
                        struct wb_catalog_summary *summary);
typedef int (*wb_catalog_each_site)(void *context, struct wb_slice site, uint64_t pages);
int wb_catalog_site_each(struct wb_catalog_txn *txn, wb_catalog_each_site each, void *context);

/* The hash that the entries of a site's pages have, by the name that each() gets: also of a site whose name is too long
 * for a row, and of pages without a site. */
uint64_t wb_catalog_site_hash(struct wb_slice name);

/* ---- history: any number of bytes for each page, in as many rows as they need ---- */

/* Replaces what bytes_out held. WB_E_NOTFOUND. */
int wb_catalog_history_get(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_buf *bytes_out);

/* Writes only the rows that differ from what is there. */
int wb_catalog_history_put(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_slice bytes);

/* Deletes all rows of the page, if there are any. */
int wb_catalog_history_delete(struct wb_catalog_txn *txn, struct wb_pageid id);

/* Calls each() for the pages that have rows, from `from` on, in the order of their ids. */
typedef int (*wb_catalog_each_history)(void *context, struct wb_pageid id, struct wb_slice bytes);
int wb_catalog_history_each(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_history each,
                            void *context);

/* The same in a state that is held, but damage does not end the walk: it calls damaged() (wb_tree_each_sound). */
int wb_catalog_history_each_sound(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_history each,
                                  wb_tree_passed damaged, void *context);

/* ---- snapshots and their holders (catalog_snapshots.c) ---- */

/* The holders of the snapshot are not part of its row; put ignores them, get and each leave them out. */
int wb_catalog_snapshot_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_store_snapshot *snapshot_out);
int wb_catalog_snapshot_put(struct wb_catalog_txn *txn, const struct wb_store_snapshot *snapshot);
int wb_catalog_snapshot_delete(struct wb_catalog_txn *txn, uint32_t number);
typedef int (*wb_catalog_each_snapshot)(void *context, const struct wb_store_snapshot *snapshot);
int wb_catalog_snapshot_each(struct wb_catalog_txn *txn, wb_catalog_each_snapshot each, void *context);

int wb_catalog_holder_put(struct wb_catalog_txn *txn, uint32_t number, const struct wb_store_holder *holder);
int wb_catalog_holder_delete(struct wb_catalog_txn *txn, uint32_t number, const struct wb_store_holder *holder);
typedef int (*wb_catalog_each_holder)(void *context, uint32_t number, const struct wb_store_holder *holder);

/* Calls each() for the holders of one snapshot. */
int wb_catalog_holder_each(struct wb_catalog_txn *txn, uint32_t number, wb_catalog_each_holder each, void *context);

/* The epochs that snapshots hold, and those that scans have pinned, in ascending order. */
struct wb_epochs WB_VEC_OF(uint64_t);
int wb_epochs_held(struct wb_catalog_txn *txn, int64_t now_ms, struct wb_epochs *epochs_out);

/* ---- revisits that wait for their original (catalog_sites.c) ---- */

/*
 * site is the hash of the page's site. A revisit whose original is another page also has a row in table
 * waiting, which put and delete keep up to date. each() passes revisits without their sites.
 */
int wb_catalog_revisit_put(struct wb_catalog_txn *txn, uint64_t site, const struct wb_store_revisit *revisit,
                           bool *new_out);
int wb_catalog_revisit_delete(struct wb_catalog_txn *txn, const struct wb_store_revisit *revisit);
typedef int (*wb_catalog_each_revisit)(void *context, const struct wb_store_revisit *revisit, uint64_t site);

/* The revisits of one page, the oldest first. */
int wb_catalog_revisit_of(struct wb_catalog_txn *txn, struct wb_pageid id, wb_catalog_each_revisit each,
                          void *context);

/* The revisits of other pages that wait for a content of this one. */
int wb_catalog_revisit_waiting(struct wb_catalog_txn *txn, struct wb_pageid original, wb_catalog_each_revisit each,
                               void *context);
int wb_catalog_revisit_each(struct wb_catalog_txn *txn, wb_catalog_each_revisit each, void *context);

/* A bar or an exception. A row of a page with `except` allows the page although its site is barred. */
struct wb_catalog_bar {
    bool except;
    int64_t time_ms;
    uint64_t site; /* hash of the site; for a page, of the site it belongs to */
};

/* A bar on a page is found by id, one on a site by its name; the other of the two parameters is ignored. */
int wb_catalog_bar_get(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id,
                       struct wb_slice site, struct wb_catalog_bar *row_out);
int wb_catalog_bar_put(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id,
                       struct wb_slice site, const struct wb_catalog_bar *row);
int wb_catalog_bar_delete(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id,
                          struct wb_slice site);

/* Pages come first, then sites. For a page, bar->site is empty, and row->site is the hash of its site. */
typedef int (*wb_catalog_each_bar)(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row);
int wb_catalog_bar_each(struct wb_catalog_txn *txn, wb_catalog_each_bar each, void *context);

/* Files that a compaction has replaced; txn_id is the transaction that replaced them. */
int wb_catalog_retired_put(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, uint32_t node,
                           uint64_t txn_id);
int wb_catalog_retired_delete(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision);
int wb_catalog_retired_has(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, bool *has_out);
typedef int (*wb_catalog_each_retired)(void *context, uint32_t number, uint32_t revision, uint32_t node,
                                       uint64_t txn_id);
int wb_catalog_retired_each(struct wb_catalog_txn *txn, wb_catalog_each_retired each, void *context);

/* WB_E_CORRUPT if there is no summary. */
int wb_catalog_summary_get(struct wb_catalog_txn *txn, struct wb_catalog_summary *summary_out);
int wb_catalog_summary_put(struct wb_catalog_txn *txn, const struct wb_catalog_summary *summary);

/* Deletes all rows of a table. */
int wb_catalog_clear(struct wb_catalog_txn *txn, enum wb_catalog_table table);

/* The number of rows in a table. */
uint64_t wb_catalog_count(const struct wb_catalog_txn *txn, enum wb_catalog_table table);

/*
 * A number that stands for the rows of a table: as long as it is the same, so are they. It is a checksum that covers
 * all of them, so that nothing but the root record is read. 0 if there are none.
 */
uint64_t wb_catalog_version(const struct wb_catalog_txn *txn, enum wb_catalog_table table);

/* Whether a table has the same rows in two transactions. Never true if one of them has changed it. */
bool wb_catalog_same(const struct wb_catalog_txn *a, const struct wb_catalog_txn *b, enum wb_catalog_table table);

/* Pins of other handles (wb_tree_pinned) are epochs that running scans still need. */
int wb_catalog_pin(struct wb_catalog *catalog, uint64_t epoch);
void wb_catalog_unpin(struct wb_catalog *catalog, uint64_t epoch);

/* ---- for the files that know rows, and for messages about damage --------------------------------- */

struct wb_tree *wb_catalog_tree(const struct wb_catalog *catalog);
const struct wb_tree_state *wb_catalog_txn_state(const struct wb_catalog_txn *txn);

/* Composes "FILE is damaged: WHAT in table TABLE" and returns WB_E_CORRUPT. */
int wb_catalog_corrupt(const struct wb_catalog *catalog, enum wb_catalog_table table, const char *what);

/* ---- rows as bytes: only for the files that know what the bytes of each table mean (catalog_*.c) ---- */

/* Reads a value of up to cap bytes. WB_E_NOTFOUND. */
int wb_catalog_row_read(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t cap,
                        char *out, size_t *len_out);

/* Reads a value that must have exactly len bytes. WB_E_NOTFOUND; WB_E_CORRUPT if it has not. */
int wb_catalog_row_get(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t len,
                       char *out);
int wb_catalog_row_put(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, const char *bytes,
                       size_t len);
int wb_catalog_row_delete(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key);

/*
 * Walks over a table in the order of its keys. Every key must have key_len bytes and every
 * value len bytes (0 means any length), otherwise WB_E_CORRUPT.
 */
int wb_catalog_row_each(struct wb_catalog_txn *txn, enum wb_catalog_table table, size_t key_len, size_t len,
                        wb_tree_each_row each, void *context);

/* The same for rows of any length, from a key on. */
int wb_catalog_row_each_from(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice from,
                             wb_tree_each_row each, void *context);

/* The same; damaged() is called for pages that are passed over (wb_tree_each_sound). NULL: damage ends the walk. */
int wb_catalog_row_each_sound(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice from,
                              wb_tree_each_row each, wb_tree_passed damaged, void *context);

#endif
