/*
 * batched_read.c - reading a repository of a batch design. Readers see the read nodes only. A writer sees single pages
 * as they will be after a transfer, because whoever puts pages must know what was put before: a crawl asks
 * for its validators, an import for the originals of revisits.
 *
 * Scans show the read nodes in any case, and keep transfers waiting until they end (batched_gate.c).
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/batch/batched.h"

/* ---- single pages ------------------------------------------------------------------------------------------ */

/* The newest capture at or before a time; INT64_MIN if there is none. */
static int64_t newest_until(const struct wb_history *history, int64_t time_ms)
{
    int64_t newest = INT64_MIN;

    WB_CHECK(history->ghosts <= history->versions.count);
    for (size_t i = 0; i < history->times.count; i++)
        if (history->times.items[i] <= time_ms && history->times.items[i] > newest)
            newest = history->times.items[i];
    return newest;
}

/* Which of the two parts has the version of a time that a writer means. */
static int part_of_time(struct wb_batched *batch, struct wb_pageid id, int64_t time_ms, struct wb_store **part_out)
{
    struct wb_pageview *here, *there;
    int err = wb_repo_view(wb_batched_read_log(batch), id, &here);

    if (err == 0)
        err = wb_repo_view(wb_batched_update_log(batch), id, &there);
    if (err < 0)
        return err;
    WB_CHECK(here != there);
    bool only_there = here->history.versions.count == 0 && there->history.versions.count > 0;
    bool newer = newest_until(&there->history, time_ms) > newest_until(&here->history, time_ms);
    *part_out = only_there || newer ? batch->update : batch->read;
    return 0;
}

/* Reads a content of a page from one part, where it may be the latest version or not: 1, 0 if it is not there. */
static int get_content(struct wb_store *part, struct wb_pageid id, uint64_t content, bool latest_only,
                       struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_pageview *view;
    int err = wb_repo_view(wb_repo_of(part), id, &view);

    WB_CHECK(content != 0);
    if (err < 0)
        return err;
    const struct wb_history_version *latest = wb_history_latest(&view->history);
    if (latest && latest->content == content) {
        err = wb_store_get(part, id, page_out, mem_out);
        return err < 0 ? err : 1;
    }
    const struct wb_history_version *found = latest_only ? NULL : wb_history_find(&view->history, content);
    if (!found)
        return 0;
    err = wb_repo_read_version(wb_repo_of(part), id, found, page_out, mem_out);
    return err < 0 ? err : 1;
}

/* The latest version will be one of a content that either part has, perhaps as an older version. */
static int get_latest(struct wb_batched *batch, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_store *parts[] = {batch->update, batch->read};
    int err = wb_batched_outlook(batch, id), got = 0;

    WB_CHECK(batch->store.mode == WB_STORE_WRITE);
    if (err < 0)
        return err;
    const struct wb_history_version *latest = wb_history_latest(&batch->outlook.history);
    if (!latest)
        return wb_store_not_found();
    int64_t time_ms = wb_history_last_ms(&batch->outlook.history, latest);
    uint64_t content = latest->content;
    for (size_t i = 0; i < 4 && got == 0; i++)
        got = get_content(parts[i % 2], id, content, i < 2, page_out, mem_out);
    if (got > 0)
        page_out->time_ms = time_ms;
    return got < 0 ? got : got == 0 ? wb_store_not_found() : 0;
}

int wb_batched_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when,
                   struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store *part = batch->read;

    WB_CHECK(when->kind <= WB_STORE_WHEN_CAPTURE);
    if (store->mode == WB_STORE_WRITE && when->kind == WB_STORE_WHEN_LATEST)
        return get_latest(batch, id, page_out, mem_out);
    if (store->mode == WB_STORE_WRITE && when->kind == WB_STORE_WHEN_TIME) {
        int err = part_of_time(batch, id, when->time_ms, &part);
        if (err < 0)
            return err;
    }
    int err = wb_store_get_when(part, id, when, page_out, mem_out);
    if (err == WB_E_NOTFOUND && store->mode == WB_STORE_WRITE && when->kind == WB_STORE_WHEN_CAPTURE)
        err = wb_store_get_when(batch->update, id, when, page_out, mem_out); /* as the timeline */
    return err;
}

int wb_batched_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    struct wb_batched *batch = wb_batched_of(store);

    WB_CHECK(time_ms_out != NULL);
    if (store->mode == WB_STORE_READ)
        return wb_store_time(batch->read, id, time_ms_out);
    int err = wb_batched_outlook(batch, id);
    if (err < 0)
        return err;
    const struct wb_history_version *latest = wb_history_latest(&batch->outlook.history);
    if (!latest)
        return wb_store_not_found();
    *time_ms_out = wb_history_last_ms(&batch->outlook.history, latest);
    return 0;
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
    struct wb_pageview *view;

    WB_CHECK(*count_out == 0);
    if (store->mode == WB_STORE_READ)
        return wb_store_list_site(batch->read, site, ids_out, max, count_out);
    int err = wb_store_list_site(batch->update, site, ids_out, max, &waiting);
    if (err == 0)
        err = wb_store_list_site(batch->read, site, ids_out + waiting, max - waiting, &here);
    *count_out = waiting;
    for (size_t i = waiting; i < waiting + here && err == 0; i++) { /* each page once */
        err = wb_repo_view(wb_batched_update_log(batch), ids_out[i], &view);
        if (err == 0 && view->history.versions.count == 0)
            ids_out[(*count_out)++] = ids_out[i];
    }
    return err;
}

int wb_batched_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    int err = WB_E_NOTFOUND;

    WB_CHECK(revisit_out != NULL);
    if (store->mode == WB_STORE_WRITE)
        err = wb_store_get_revisit(batch->update, id, revisit_out);
    return err == WB_E_NOTFOUND ? wb_store_get_revisit(batch->read, id, revisit_out) : err;
}

int wb_batched_waiting_each(struct wb_store *store, struct wb_pageid original,
                            int (*each)(void *context, const struct wb_store_revisit *revisit), void *context)
{
    struct wb_batched *batch = wb_batched_of(store);
    int err = 0;

    WB_CHECK(each != NULL);
    if (store->mode == WB_STORE_WRITE)
        err = wb_store_waiting_each(batch->update, original, each, context);
    return err ? err : wb_store_waiting_each(batch->read, original, each, context);
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
