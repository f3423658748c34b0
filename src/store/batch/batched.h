/*
 * batched.h - batch designs: update nodes take what is put, read nodes serve, and a transfer brings everything from one
 * to the other (docs/design/0043-batch.md).
 *
 * A repository of a batch design consists of two stores of other organisations. The one that readers see is in the
 * repository's directory, the one that waits in REPO/update. Each has its own catalog. This organisation
 * passes every call on to one of them or to both:
 *
 *   REPO/            read       get, scan, timeline, snapshots, history; takedowns
 *   REPO/update/     update     put, touch, remove, revisits, commit;    takedowns
 *   REPO/transfer.gate          locks: who is reading, and whether a transfer wants to begin (batched_gate.c)
 *
 *   batched.c          creating, opening, closing, verifying; calls that are passed on
 *   batched_write.c    puts, touches, removals, revisits, takedowns, commit
 *   batched_read.c     reading: single pages, scans
 *   batched_nodes.c    the nodes of both parts
 *   batched_gate.c     keeps a transfer and scans apart
 *   transfer.c       the transfer: its steps, and what it does with each page
 *   transfer_plan.c  ... which pages wait, and which of them readers have already
 *   transfer_nodes.c ... which nodes cannot be used, so that their pages go on waiting
 *   transfer_empty.c ... takes away from the update nodes what was transferred
 */
#ifndef WB_STORE_BATCHED_H
#define WB_STORE_BATCHED_H

#include "store/repo.h"

enum { WB_BATCHED_MAGIC = 0x57424241 };

/* What is found on the update nodes is reported with the name of their folder before that of the file. */
struct wb_batched_found {
    wb_store_found found;
    void *context;
};
void wb_batched_pass_update(void *context, const struct wb_store_finding *finding);

/* An open repository of a batch design. */
struct wb_batched {
    struct wb_store store; /* must be the first member */
    uint32_t magic;
    char *dir;
    struct wb_superblock superblock;
    struct wb_store *read;
    struct wb_store *update; /* of a reader: NULL until it is needed */
};

/* Whether the store is of a batch design. */
bool wb_batched_is(const struct wb_store *store);
struct wb_batched *wb_batched_of(struct wb_store *store);

/* The two parts as logs. A reader opens its update part when it is first asked for. */
struct wb_repo *wb_batched_read_log(struct wb_batched *batch);
struct wb_repo *wb_batched_update_log(struct wb_batched *batch);
int wb_batched_open_update(struct wb_batched *batch);

/* ---- writing (batched_write.c) ----------------------------------------------------------------------------- */

int wb_batched_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);
int wb_batched_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms);
int wb_batched_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms,
                      bool everywhere);
int wb_batched_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                           enum wb_store_outcome *outcome_out);
int wb_batched_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout);
int wb_batched_bar(struct wb_store *store, const struct wb_store_bar *bar);
int wb_batched_allow(struct wb_store *store, const struct wb_store_bar *bar);

/* ---- reading (batched_read.c) ------------------------------------------------------------------------------ */

int wb_batched_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when,
                   struct wb_page *page_out, struct wb_buf *mem_out);
int wb_batched_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);
int wb_batched_timeline(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                        struct wb_store_timeline *timeline_out);
int wb_batched_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                         size_t *count_out);
int wb_batched_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);
int wb_batched_waiting_each(struct wb_store *store, struct wb_pageid original,
                            int (*each)(void *context, const struct wb_store_revisit *revisit), void *context);
int wb_batched_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                         struct wb_store_scan **scan_out);
int wb_batched_scan_next(struct wb_store_scan *scan, struct wb_page *page_out);
int wb_batched_scan_parcel(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out);
void wb_batched_scan_tell(const struct wb_store_scan *scan, struct wb_store_position *position_out);
int wb_batched_scan_holds(struct wb_store_scan *scan, struct wb_store_scan_holds *holds_out);
void wb_batched_scan_close(struct wb_store_scan *scan);
int wb_batched_scan_ready(struct wb_store *store);

/* ---- nodes (batched_nodes.c) ---------------------------------------------------------------------------- */

enum { WB_BATCHED_FIRST_NODE = 101 }; /* of the update nodes */

int wb_batched_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                         void *context);
/* Bytes on update nodes that are not in the repository's directory. */
int wb_batched_outside_bytes(struct wb_batched *batch, uint64_t *bytes_out);

/* ---- the gate (batched_gate.c) ----------------------------------------------------------------------------- */

/*
 * Scans of all processes go through the gate, and stay until they end. A transfer first keeps new ones out, then waits
 * until all have left. A process that ends, however that happens, has left.
 */
struct wb_batched_gate {
    struct wb_file file;
    char *entered; /* a scan: the path by which its process knows that it has entered; otherwise NULL */
};
#define WB_BATCHED_GATE_INIT ((struct wb_batched_gate){WB_FILE_INIT, NULL})

/* Makes the file. */
int wb_batched_gate_create(const char *dir);

/*
 * For a scan: waits while a transfer is under way. WB_E_STOPPED if the process was asked to stop meanwhile. at_once:
 * WB_E_BUSY instead of waiting.
 */
int wb_batched_gate_enter(const char *dir, bool at_once, struct wb_batched_gate *gate_out);

/*
 * Whether a transfer is under way, or waits for scans to end: 0, or WB_E_BUSY. Asked before work that needs scans is
 * taken on: a server that has always some under way would otherwise keep a transfer waiting for ever.
 */
int wb_batched_gate_look(const char *dir);

/* For a transfer: lets no new scan begin. WB_E_BUSY if another transfer is under way. */
int wb_batched_gate_shut(const char *dir, struct wb_batched_gate *gate_out);

/* Then: waits until all scans have ended. Asks progress, which may be NULL, whether to go on: WB_E_STOPPED if not. */
int wb_batched_gate_clear(struct wb_batched_gate *gate, wb_store_progress progress, void *context);
void wb_batched_gate_leave(struct wb_batched_gate *gate);

#endif
