/*
 * organisation.h - what is behind the door must implement this.
 *
 * The door (store.c) finds out from the design in the superblock who carries it out, checks
 * arguments, clears output parameters, and calls through the two tables below. It knows
 * nothing about how pages are stored. There are three implementations:
 *
 *   repo.c      the engine behind all incremental designs, whatever their organisation
 *   batched.c   batch designs: two such stores in one
 *   twin.c      in tests: a store in plain memory, the shortest complete example. The traces of
 *              test_model.c compare the others with it, call by call
 *
 * Lifetime of a store:
 *   create()  once, in an empty directory; the door writes the superblock afterwards
 *   open()    any number of times, in any number of processes at once
 *   ops       calls of one thread; nothing survives a crash before commit() returns 0
 *   close()   drops uncommitted changes, frees the handle
 */
#ifndef WB_STORE_ORGANISATION_H
#define WB_STORE_ORGANISATION_H

#include "store/store.h"

/*
 * The operations of an open store. store.h describes each call from the caller's side;
 * the comments here add what the implementation has to provide and what it may rely on.
 *
 * Before a call, the door has checked that the handle is valid and, for calls that
 * write, that it was opened for writing; output parameters are zero. Pointers to output
 * parameters are never NULL.
 */
struct wb_store_ops {
    /* ---- required ---- */

    /* Frees the handle, and everything that was not committed. Scans were closed before. */
    void (*close)(struct wb_store *store);

    /*
     * Takes a copy of the page, at most WB_STORE_BODY_MAX bytes long, whose id matches
     * its key. Must compute the digests of a page that has none, at the latest when the
     * page is read back.
     */
    int (*put)(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);

    /* Adds a capture of the latest version, and renews the lifetime in any case. */
    int (*touch)(struct wb_store *store, struct wb_pageid id, int64_t time_ms);

    /* Must work without reading the page. A page that has only old versions can be removed everywhere. */
    int (*remove)(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms, bool everywhere);

    /* A barred one is counted as barred in the next commit. */
    int (*put_revisit)(struct wb_store *store, const struct wb_store_revisit *revisit,
                       enum wb_store_outcome *outcome_out);
    int (*get_revisit)(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);
    int (*waiting_each)(struct wb_store *store, struct wb_pageid original,
                        int (*each)(void *context, const struct wb_store_revisit *revisit), void *context);

    /* Both commit what was put before, and are durable when they return 0. */
    int (*bar)(struct wb_store *store, const struct wb_store_bar *bar);
    int (*allow)(struct wb_store *store, const struct wb_store_bar *bar);

    /* Returns 1, 0 or an error. Must see bars that other processes have committed. */
    int (*barred)(struct wb_store *store, struct wb_pageid id, struct wb_slice site);
    int (*bar_each)(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar),
                    void *context);
    int (*bar_version)(struct wb_store *store, uint64_t *version_out);

    /* Committed pages that have any version, each once, without reading them. */
    int (*list_site)(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                     size_t *count_out);

    /*
     * All or nothing, and durable. Must decide again, inside its transaction, what put()
     * decided early: other processes may have committed newer pages or set bars since.
     */
    int (*commit)(struct wb_store *store, struct wb_store_commit_counts *counts_inout);

    /* Commits, then seals; the name was checked. These are durable when they return 0, and take constant time. */
    int (*seal)(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                struct wb_store_snapshot *snapshot_out);
    int (*drop)(struct wb_store *store, uint32_t number);
    int (*hold)(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder);
    int (*let_go)(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder);

    /* Snapshots that have a holder whose time has not run out, in the order of their numbers. */
    int (*snapshot_each)(struct wb_store *store,
                         int (*each)(void *context, const struct wb_store_snapshot *snapshot), void *context);
    int (*history)(struct wb_store *store, struct wb_store_history *history_out);
    int (*set_history)(struct wb_store *store, const struct wb_store_history *history);

    /* As of an epoch; 0: now. */
    int (*timeline)(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                    struct wb_store_timeline *timeline_out);

    /*
     * Of the latest version: must include what the caller of this handle has put but not
     * committed. Must verify that the record belongs to the id, and give WB_E_CORRUPT if not.
     * Sets page_out->epoch, time_ms and lifetime_count, which the record does not contain.
     */
    int (*get)(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when, struct wb_page *page_out,
               struct wb_buf *mem_out);
    int (*get_many)(struct wb_store *store, const struct wb_pageid *ids, size_t count, const struct wb_store_when *when,
                    wb_store_each_page each, void *context);
    int (*time)(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);

    /*
     * A scan shows the committed state at the moment of opening, and must be usable in
     * another thread than the store. The struct it returns starts with a struct
     * wb_store_scan. scan_next() reports each damaged unit once and then goes on. If it cannot
     * go on behind damage, it must return WB_E_BROKEN (wb_error_break), never WB_E_CORRUPT.
     */
    int (*scan_open)(struct wb_store *store, const struct wb_store_scan_options *options,
                     struct wb_store_scan **scan_out);
    int (*scan_next)(struct wb_store_scan *scan, struct wb_page *page_out);

    /*
     * The pages that scan_next() would return, as they are stored: a block that wb_block_index_read() accepts, and
     * those of its pages that count. Must not contain bytes of pages that were taken down. An organisation that
     * stores pages in another way packs them (wb_store_packer_add).
     */
    int (*scan_parcel)(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out);
    void (*scan_tell)(const struct wb_store_scan *scan, struct wb_store_position *position_out);
    int (*position_compare)(const struct wb_store_position *a, const struct wb_store_position *b);
    int (*scan_holds)(struct wb_store_scan *scan, struct wb_store_scan_holds *holds_out);
    void (*scan_close)(struct wb_store_scan *scan);

    /* Fields that do not apply to the organisation stay 0. */
    int (*stat)(struct wb_store *store, struct wb_store_stat *stat_out);

    /* ---- optional: may be NULL ---- */

    /* WB_E_BUSY if scan_open() would have to wait. An organisation whose scans never wait leaves this out. */
    int (*scan_ready)(struct wb_store *store);
    int (*scan_check)(struct wb_store *store, const struct wb_store_scan_options *options);

    /*
     * Nodes (store_nodes.h). An organisation that knows only the repository's own directory leaves this out. It must
     * work while nodes are down.
     */
    int (*node_each)(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                     void *context);
};

enum { WB_STORE_MAGIC = 0x57425354, WB_STORE_SCAN_MAGIC = 0x57425343 };

/* The first member of every organisation's handle. */
struct wb_store {
    uint32_t magic;
    enum wb_store_mode mode;
    const struct wb_store_ops *ops;
    bool thrifty; /* during wb_move_compact_worthwhile() */
};

/* The first member of every organisation's scan. */
struct wb_store_scan {
    uint32_t magic;
    const struct wb_store_ops *ops;
};

/* Fills the common part of a handle that open() returns; release makes later calls fail at once. */
void wb_store_init(struct wb_store *store, enum wb_store_mode mode, const struct wb_store_ops *ops);
void wb_store_release(struct wb_store *store);
void wb_store_scan_init(struct wb_store_scan *scan, const struct wb_store *store);
void wb_store_scan_release(struct wb_store_scan *scan);

/* Adds the counts of one commit to a sum. */
void wb_store_counts_add(struct wb_store_commit_counts *sum_inout, const struct wb_store_commit_counts *counts);

/* The error of every call that names a page which is not there. */
int wb_store_not_found(void);

struct wb_superblock;

/* An organisation as the door knows it. All members are required. */
struct wb_organisation {
    const char *name; /* as in the superblock and in `init --organisation` */

    /*
     * The files and directories that create() makes, NULL at the end. An interrupted
     * creation may leave them behind, so creating a repository where nothing but these
     * exists is allowed; anything else in the directory belongs to somebody else.
     */
    const char *const *files;

    /* Creates everything except the superblock, durably, replacing what an interrupted creation left. */
    int (*create)(const char *dir, const struct wb_superblock *superblock, const struct wb_store_options *options);

    /* Opens the store; a writer also recovers from a crash. */
    int (*open)(const char *dir, const struct wb_superblock *superblock, enum wb_store_mode mode,
                struct wb_store **store_out);

    /* Reads and checks everything, without changing anything, while other processes read and write. */
    int (*verify)(const char *dir, const struct wb_superblock *superblock, wb_store_found found, void *found_context,
                  wb_store_progress progress, void *progress_context, struct wb_store_verify_counts *counts_out);
};

/* Of a batch design, in the repository: the part that waits, and what keeps transfers and scans apart. */
#define WB_BATCHED_UPDATE_DIR "update"
#define WB_BATCHED_GATE_NAME "transfer.gate"

extern const struct wb_organisation wb_organisation_log;
extern const struct wb_organisation wb_organisation_batch; /* two stores of other organisations (batched.h) */

/* Who implements a design. */
const struct wb_organisation *wb_organisation_find(const struct wb_design *design);

#endif
