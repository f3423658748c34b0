/*
 * store_nodes.h - the part of the door (store.h) that concerns nodes, batch updates and conversions.
 *
 * A *node* is a directory that holds pages, typically a disk of its own. In a batch design, update nodes take what is
 * put, and readers see the read nodes only; wb_store_transfer() brings the pages from one to the other.
 */
#ifndef WB_STORE_STORE_NODES_H
#define WB_STORE_STORE_NODES_H

#include "store/store.h"

/* ---- nodes ----------------------------------------------------------------------------------------------- */

enum wb_store_node_role { WB_STORE_NODE_BOTH, WB_STORE_NODE_UPDATE, WB_STORE_NODE_READ };
enum wb_store_node_state {
    WB_STORE_NODE_IDLE,
    WB_STORE_NODE_STREAMING, /* a scan of some process is reading from it */
    WB_STORE_NODE_STORING,   /* a writer of some process has pages for it that are not committed */
    WB_STORE_NODE_DOWN,      /* it cannot be used: see why */
};

/* A row of the paper's table of nodes (section 3). */
struct wb_store_node {
    uint32_t number;
    const char *dir; /* as it was given; relative to the repository if it is inside */
    enum wb_store_node_role role;
    enum wb_organisation_kind organisation;
    enum wb_store_node_state state;
    const char *why;                 /* of a node that is down, otherwise empty */
    uint64_t capacity, used, free;   /* bytes; used: by this repository. 0 if it is down */
    double fragmentation;            /* the part of `used` that compaction would free */
    uint64_t pages;                  /* latest versions that are on it; known even if it is down */
    uint64_t gets, puts, streams;    /* requests under way, of all processes */
    bool arriving, leaving;          /* it is being added, or removed, or that was interrupted */
};

/* "both", "update", "read"; "idle", "streaming", "storing", "down". */
const char *wb_store_node_role_word(enum wb_store_node_role role);
const char *wb_store_node_state_word(enum wb_store_node_state state);

/* Calls each() for all nodes in the order of their numbers. each() must not call the store. */
int wb_store_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                       void *context);

/*
 * Adds a node in a new or empty directory whose parent exists, and moves its share of the pages there (hash
 * distribution; with uniform it gets new pages only). Readers and writers of other processes go on meanwhile. Can be
 * interrupted at any moment and repeated. update: an update node of a batch design. WB_E_INVALID, by name: the
 * directory is missing, nested in or around another node, in use, or not empty. WB_E_BUSY: nodes are being added or
 * removed by another process.
 */
int wb_store_node_add(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                      uint32_t *number_out);

/* Moves all pages away from the node, then forgets it. WB_E_NOTFOUND; WB_E_INVALID: it is the last one of its role. */
int wb_store_node_remove(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context);

/* ---- batch updates ---------------------------------------------------------------------------------------- */

/* A stage of a transfer that has ended (section 3.3.1 of the paper). */
struct wb_store_stage {
    const char *name;
    int64_t ms;
    uint64_t pages, bytes; /* that it dealt with */
};
typedef void (*wb_store_each_stage)(void *context, const struct wb_store_stage *stage);

/* What a transfer could not bring, because it needs a node that cannot be used. It stays on the update nodes. */
struct wb_store_transfer_wait {
    uint32_t node;
    uint64_t pages;
    uint64_t revisits; /* whose original is not known */
};

struct wb_store_transfer_counts {
    uint64_t added, replaced; /* what readers see change */
    int64_t ms;
    bool finished;    /* it went through all stages, although something may wait */
    uint64_t waiting; /* pages that stay on the update nodes because of nodes ... */
    struct wb_store_transfer_wait waits[2 * WB_DESIGN_NODES_MAX]; /* ... which are these */
    size_t wait_count;
};

/*
 * Brings everything that waits on the update nodes to the read nodes: isolates (waits for scans that are under way,
 * lets no new one begin), transfers, restarts. After a crash in any step every page is old or new, and the next one
 * completes the work. WB_E_INVALID in an incremental design; WB_E_BUSY while another process transfers.
 *
 * A node that is down, or a read node that is read-only or full, does not keep back pages of others: those that need it
 * stay on the update nodes, and the next transfer brings them. Then it returns WB_E_DOWN, and counts_out says how many
 * wait for which node. In the same way damaged pages stay there: WB_E_CORRUPT.
 */
int wb_store_transfer(struct wb_store *store, wb_store_each_stage stage, void *stage_context,
                      wb_store_progress progress, void *progress_context, struct wb_store_transfer_counts *counts_out);

/* ---- conversion -------------------------------------------------------------------------------------------- */

struct wb_store_convert_counts {
    uint64_t pages, versions; /* that the copy has */
    uint64_t bytes;           /* of bodies that were copied */
    uint64_t lost;            /* versions that the copy does not have, because their bytes cannot be read ... */
    uint64_t lost_pages;      /* ... of so many pages */
};

/* A version that a copy does not have, because its bytes cannot be read. */
struct wb_store_lost {
    struct wb_pageid id;
    int64_t time_ms;     /* of its newest capture */
    bool latest;         /* it was the latest version: the copy has only older ones of this page, or none */
    const char *message; /* what is damaged: names the file */
};

/* What a conversion reports and asks for. Each function may be NULL. */
struct wb_store_convert_sink {
    wb_store_progress progress; /* with numbers of pages and versions instead of bytes */

    /* Copies what other rooms keep in the repository, before it becomes one, and before any page is copied. */
    int (*rest)(void *context, const char *from, const char *to);

    /* Called for each version that is lost. */
    void (*lost)(void *context, const struct wb_store_lost *lost);
    void *context;
};

/*
 * Copies the repository `from` into a new one of another design: pages with all versions, captures and epochs,
 * snapshots that a person holds (numbers, names, times), bars, revisits that wait, history policy, and what waits on
 * update nodes. The copy is of one moment; others may write to the source, which is not changed. Until the copy is
 * complete, the target cannot be opened; repeating the call starts it anew.
 * Versions whose bytes are damaged are left out and reported: the result is 0, and counts_out->lost says how many.
 * WB_E_DOWN if a node of the source is down, before anything is made; WB_E_CORRUPT if its catalog is damaged.
 * options->history is ignored: the policy is that of the source. WB_E_INVALID, by name: the target is in use, its
 * parent does not exist, or it is inside a repository. WB_E_BUSY: another process makes a repository there.
 */
int wb_store_convert(const char *from, const char *to, const struct wb_store_options *options,
                     const struct wb_store_convert_sink *sink, struct wb_store_convert_counts *counts_out);

#endif
