/*
 * disk_gone.c - the second phase of a scan: pages that have no latest version, but a past. They are
 * returned in the order of their ids, each in its newest version as of the epoch of the scan. What the history policy
 * and the snapshots keep at this moment is what can be read.
 */
#include "base/check.h"
#include "os/clock.h"
#include "store/scan/disk_scan.h"

enum { GONE_AT_ONCE = 256 };

struct gone_search {
    struct wb_disk_scan *scan;
    WB_VEC(struct wb_pageid) ids;
};

/* Returns 1 when enough ids were found. */
static int find_gone(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct gone_search *search = context;
    struct wb_disk_scan *scan = search->scan;

    WB_CHECK(search->ids.count <= GONE_AT_ONCE);
    WB_CHECK(scan->txn.kind >= WB_CATALOG_TXN_AWAKE);
    if (search->ids.count == GONE_AT_ONCE) {
        scan->gone_next = id;
        return 1;
    }
    uint64_t site;
    int err = wb_history_decode(bytes, &scan->view.history, &site);
    if (err == WB_E_CORRUPT) {
        (void)wb_catalog_corrupt(scan->catalog, WB_CATALOG_HISTORY, "a row that is not a history");
        return wb_disk_scan_note(scan);
    }
    if (err < 0)
        return err;
    bool mine = scan->shares <= 1 || id.hi % scan->shares == scan->share - 1;
    const struct wb_history_version *latest = wb_history_latest(&scan->view.history);
    if ((latest && latest->arrived <= scan->epoch) || (scan->site && site != scan->site_hash) || !mine)
        return 0;
    return wb_vec_push(&search->ids, id);
}

/* A damaged place of the table: the pages in it cannot be found, those behind it can. */
static int pass_damage(void *context)
{
    return wb_disk_scan_note(((struct gone_search *)context)->scan);
}

/* Finds the next pages that are gone. */
static int find_more(struct wb_disk_scan *scan)
{
    struct gone_search search = {.scan = scan};
    int err = wb_catalog_txn_read(scan->catalog, &scan->txn);

    WB_CHECK(!scan->gone_done);
    WB_CHECK(scan->gone_ids.count == 0);
    if (scan->told_gone && scan->gone_next.hi == 0 && scan->gone_next.lo == 0)
        scan->gone_next = scan->told_id;
    if (err == 0)
        err = wb_catalog_history_each_sound(&scan->txn, scan->gone_next, find_gone, pass_damage, &search);
    wb_catalog_txn_abort(&scan->txn);
    scan->gone_done = err == 0;
    wb_vec_clear(&scan->gone_ids);
    for (size_t i = search.ids.count; i > 0 && err >= 0; i--) {
        struct wb_pageid id = search.ids.items[i - 1];
        if (scan->told_gone && wb_pageid_equal(id, scan->told_id))
            continue;
        int pushed = wb_vec_push(&scan->gone_ids, id);
        err = pushed < 0 ? pushed : err;
    }
    wb_vec_release(&search.ids);
    return err < 0 ? err : 0;
}

/* Reads the newest version of a page that is gone. Returns 1, or 0 if there is nothing to read any more. */
static int read_gone(struct wb_disk_scan *scan, struct wb_pageid id, struct wb_page *page_out)
{
    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_catalog_segment row;
    struct wb_epochs held = {0};
    int err = wb_catalog_txn_read(scan->catalog, &scan->txn);

    if (err == 0)
        err = wb_catalog_summary_get(&scan->txn, &scan->summary);
    if (err == 0)
        err = wb_pageview_load(&scan->txn, true, id, &scan->view);
    if (err == 0)
        err = wb_epochs_held(&scan->txn, wb_clock_wall_ms(), &held);
    struct wb_history_rule rule = {scan->summary.history, held.items, held.count, wb_clock_wall_ms()};
    if (err == 0)
        wb_history_trim(&scan->view.history, &rule);
    if (err == 0) /* what the first phase has shown has a latest version then */
        err = wb_history_rewind(&scan->view.history, scan->epoch);
    const struct wb_history_version *version = err == 0 ? wb_history_at(&scan->view.history, INT64_MAX) : NULL;
    bool there = version && !wb_history_latest(&scan->view.history) && version->arrived > scan->since;
    if (there)
        err = wb_parts_row_of(&scan->txn, &scan->known_parts, version->place.segment, id, &row);
    if (err == 0 && there)
        err = wb_disk_scan_open_file(scan, &row, &segment);
    wb_catalog_txn_abort(&scan->txn);
    if (err == 0 && there)
        err = wb_segment_read_record(&segment, &scan->reader, &version->place, id, &scan->text);
    struct wb_catalog_entry entry = {0};
    if (err == 0 && there) {
        entry.ended = true;
        entry.epoch = version->arrived;
        entry.time_ms = wb_history_last_ms(&scan->view.history, version);
        err = wb_pagefile_page(wb_buf_slice(&scan->text), id, &entry, page_out);
    }
    wb_segment_close(&segment);
    wb_vec_release(&held);
    return err < 0 ? err : there;
}

int wb_disk_scan_gone(struct wb_disk_scan *scan, struct wb_page *page_out)
{
    WB_CHECK(scan->gone_phase);
    WB_CHECK(scan->shares <= 1 || scan->share <= scan->shares);
    for (;;) {
        while (scan->gone_ids.count) {
            struct wb_pageid id = wb_vec_pop(&scan->gone_ids);
            scan->told_id = id;
            scan->told_gone = true;
            int got = read_gone(scan, id, page_out);
            if (got > 0 && scan->facts)
                page_out->body = WB_SLICE_EMPTY;
            if (got != 0)
                return got;
        }
        int err = wb_disk_scan_late(scan);
        if (err == 0 && scan->gone_done)
            return 0;
        if (err == 0)
            err = wb_error_break(find_more(scan));
        if (err < 0)
            return err;
    }
}
