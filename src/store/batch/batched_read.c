/*
 * batched_read.c - reading a repository of a batch design. Readers see the read nodes only. A writer sees single pages
 * as they will be after a transfer, because a writer must know what was put before: a crawl asks
 * for its validators, an import for the originals of revisits.
 *
 * Scans show the read nodes in any case, and keep transfers waiting until they end (batched_gate.c).
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/batch/batched.h"
#include "store/repo_base.h"

/* ---- single pages ------------------------------------------------------------------------------------------ */

/* Who knows single pages: for a writer, the update nodes, which go on from what the read nodes have (repo_base.c). */
static struct wb_store *knows_pages(struct wb_store *store)
{
    struct wb_batched *batch = wb_batched_of(store);

    return store->mode == WB_STORE_WRITE ? batch->update : batch->read;
}

int wb_batched_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when,
                   struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_batched *batch = wb_batched_of(store);

    WB_CHECK(when->kind <= WB_STORE_WHEN_CAPTURE);
    if (when->kind <= WB_STORE_WHEN_TIME)
        return wb_store_get_when(knows_pages(store), id, when, page_out, mem_out);
    int err = wb_store_get_when(batch->read, id, when, page_out, mem_out);
    if (err == WB_E_NOTFOUND && store->mode == WB_STORE_WRITE && when->kind == WB_STORE_WHEN_CAPTURE)
        err = wb_store_get_when(batch->update, id, when, page_out, mem_out); /* as the timeline */
    return err;
}

int wb_batched_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    WB_CHECK(time_ms_out != NULL);
    return wb_store_time(knows_pages(store), id, time_ms_out);
}

int wb_batched_timeline(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                        struct wb_store_timeline *timeline_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    int err = epoch ? wb_store_timeline_in(batch->read, id, epoch, timeline_out)
                    : wb_store_timeline(batch->read, id, timeline_out);

    WB_CHECK(err < 0 || timeline_out->count > 0);
    /* An import looks for originals of revisits in this way; an index asks only for pages that readers see. */
    if (err == WB_E_NOTFOUND && store->mode == WB_STORE_WRITE && epoch == 0)
        err = wb_store_timeline(batch->update, id, timeline_out);
    return err;
}

int wb_batched_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                         size_t *count_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    size_t waiting = 0, here = 0;
    bool waits;

    WB_CHECK(*count_out == 0);
    if (store->mode == WB_STORE_READ)
        return wb_store_list_site(batch->read, site, ids_out, max, count_out);
    int err = wb_store_list_site(batch->update, site, ids_out, max, &waiting);
    if (err == 0)
        err = wb_store_list_site(batch->read, site, ids_out + waiting, max - waiting, &here);
    *count_out = waiting;
    for (size_t i = waiting; i < waiting + here && err == 0; i++) { /* each page once */
        err = wb_repo_base_waits(wb_batched_update_log(batch), ids_out[i], &waits);
        if (err == 0 && !waits)
            ids_out[(*count_out)++] = ids_out[i];
    }
    return err;
}

int wb_batched_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    int err = wb_batched_open_update(wb_batched_of(store));

    WB_CHECK(revisit_out != NULL);
    return err < 0 ? err : wb_store_get_revisit(wb_batched_of(store)->update, id, revisit_out);
}

int wb_batched_waiting_each(struct wb_store *store, struct wb_pageid original,
                            int (*each)(void *context, const struct wb_store_revisit *revisit), void *context)
{
    int err = wb_batched_open_update(wb_batched_of(store));

    WB_CHECK(each != NULL);
    return err < 0 ? err : wb_store_waiting_each(wb_batched_of(store)->update, original, each, context);
}

/* ---- scans ------------------------------------------------------------------------------------------------- */

/* A scan of the read nodes, and its stay in the gate. */
struct wb_batched_scan {
    struct wb_store_scan scan; /* must be the first member */
    struct wb_store_scan *inner;
    struct wb_batched_gate gate;
};

static struct wb_store_scan *inner_of(const struct wb_store_scan *scan)
{
    const struct wb_batched_scan *batch_scan = (const struct wb_batched_scan *)scan;

    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(batch_scan->inner != NULL);
    return batch_scan->inner;
}

int wb_batched_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                         struct wb_store_scan **scan_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_batched_scan *scan = wb_alloc_zero(1, sizeof *scan);

    WB_CHECK(*scan_out == NULL);
    if (!scan)
        return WB_E_NOMEM;
    scan->gate = WB_BATCHED_GATE_INIT;
    int err = options->anytime ? 0 : wb_batched_gate_enter(batch->dir, options->at_once, &scan->gate);
    if (err == 0)
        err = wb_store_scan_open(batch->read, options, &scan->inner);
    if (err < 0) {
        wb_batched_gate_leave(&scan->gate);
        wb_free(scan);
        return err;
    }
    wb_store_scan_init(&scan->scan, store);
    *scan_out = &scan->scan;
    return 0;
}

int wb_batched_scan_ready(struct wb_store *store)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return wb_batched_gate_look(wb_batched_of(store)->dir);
}

int wb_batched_scan_next(struct wb_store_scan *scan, struct wb_page *page_out)
{
    return wb_store_scan_next(inner_of(scan), page_out);
}

int wb_batched_scan_parcel(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out)
{
    return wb_store_scan_parcel(inner_of(scan), parcel_out);
}

void wb_batched_scan_tell(const struct wb_store_scan *scan, struct wb_store_position *position_out)
{
    wb_store_scan_tell(inner_of(scan), position_out);
}

int wb_batched_scan_holds(struct wb_store_scan *scan, struct wb_store_scan_holds *holds_out)
{
    return wb_store_scan_holds(inner_of(scan), holds_out);
}

void wb_batched_scan_close(struct wb_store_scan *scan)
{
    struct wb_batched_scan *batch_scan = (struct wb_batched_scan *)scan;

    wb_store_scan_close(inner_of(scan));
    wb_batched_gate_leave(&batch_scan->gate);
    wb_store_scan_release(scan);
    wb_free(batch_scan);
}
