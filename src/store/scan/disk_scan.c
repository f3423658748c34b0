/*
 * disk_scan.c - returns all pages of one state in the order of the disk, each exactly once.
 *
 * The state is an epoch: that of a snapshot, or the newest one when the scan begins. The scan pins it (below), so that
 * every version that is visible in it stays until the scan ends. So the catalog's transaction can be renewed with
 * every block: places of visible versions never change, and nothing else that happens concerns the scan. A scan that
 * waits for its reader holds no state of the catalog, and only the one file that it has open. With several nodes it
 * also has a few segments that were read ahead (scan_ahead.h).
 *
 *   next block ---> which of its pages are visible? (catalog) ---> its pages, one by one (memory only)
 *
 * If a segment's row says that all its pages are visible and unchanged (is_plain), the
 * catalog is not asked about each, and the scan runs as fast as zstd decompresses.
 *
 * A position names a block and a slot in it. Compaction keeps both, and their order.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/repo.h"
#include "store/scan/disk_scan.h"
#include "store/scan/sorted_scan.h"

#include <stdlib.h>

enum {
    NEAR_NS = 10 * 1000 * 1000, /* for so long after it was read, the row of a segment is good enough */
    LATE_MAX = 16,
};

_Static_assert(offsetof(struct wb_disk_scan, scan) == 0, "a wb_store_scan of this organisation is a wb_disk_scan");

static struct wb_disk_scan *scan_of(struct wb_store_scan *base)
{
    struct wb_disk_scan *scan = (struct wb_disk_scan *)base;

    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(scan->index <= scan->count);
    return scan;
}

void wb_disk_scan_close(struct wb_store_scan *base)
{
    struct wb_disk_scan *scan = scan_of(base);

    WB_CHECK(scan->open <= scan->parts.count);
    wb_disk_scan_parts_release(scan);
    wb_catalog_txn_abort(&scan->txn);
    wb_catalog_close(scan->catalog); /* which ends the pin */
    wb_catalog_rows_release(&scan->rows);
    wb_nodes_release(&scan->nodes);
    wb_pageview_release(&scan->view);
    wb_vec_release(&scan->gone_ids);
    wb_segment_reader_release(&scan->reader);
    wb_disk_scan_parcel_release(scan);
    wb_vec_release(&scan->order);
    wb_vec_release(&scan->late);
    wb_vec_release(&scan->reported);
    wb_buf_release(&scan->text);
    wb_vec_release(&scan->known_parts);
    wb_free(scan->site);
    wb_store_scan_release(&scan->scan);
    wb_free(scan);
}

/* Takes up the newest state of the catalog. If that is damaged here, there is no way to find any other page. */
static int begin(struct wb_disk_scan *scan)
{
    uint64_t before = scan->state;

    WB_CHECK(scan->scan.magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    int err = wb_catalog_txn_read(scan->catalog, &scan->txn);
    if (err < 0)
        return wb_error_break(err);
    scan->state = wb_catalog_txn_id(&scan->txn);
    scan->renewed_ns = wb_clock_mono_ns();
    if (scan->state == before)
        return 0;
    wb_catalog_rows_release(&scan->rows);
    err = wb_catalog_summary_get(&scan->txn, &scan->summary);
    if (err == 0)
        err = wb_catalog_rows_read(&scan->txn, &scan->rows);
    if (err == 0)
        wb_disk_scan_sort(&scan->rows);
    else
        scan->state = 0; /* the next try finds the same */
    return wb_error_break(err);
}

int wb_disk_scan_note(struct wb_disk_scan *scan)
{
    uint64_t hash = wb_hash64(wb_error_message(), strlen(wb_error_message()));
    struct wb_error_copy why;

    WB_CHECK(scan->scan.magic == WB_STORE_SCAN_MAGIC);
    if (scan->late.count == LATE_MAX) /* these tell enough */
        return 0;
    for (size_t i = 0; i < scan->reported.count; i++)
        if (scan->reported.items[i] == hash)
            return 0;
    wb_error_save(WB_E_CORRUPT, &why);
    int err = wb_vec_push(&scan->late, why);
    return err < 0 ? err : wb_vec_push(&scan->reported, hash);
}

int wb_disk_scan_late(struct wb_disk_scan *scan)
{
    WB_CHECK(scan->late.count <= LATE_MAX);
    if (scan->late.count == 0)
        return 0;
    struct wb_error_copy why = wb_vec_pop(&scan->late);
    return wb_error_restore(&why);
}

/* Whether there is a newer state than this one. */
static bool moved_on(struct wb_disk_scan *scan, int err, uint64_t state)
{
    struct wb_error_copy why;
    struct wb_catalog_txn txn;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    wb_error_save(err, &why);
    bool newer = wb_catalog_txn_read(scan->catalog, &txn) == 0 && wb_catalog_txn_id(&txn) != state;
    wb_catalog_txn_abort(&txn);
    wb_error_restore(&why);
    return newer;
}

/* Lets go of the state, until the next block. */
static void end(struct wb_disk_scan *scan)
{
    wb_catalog_txn_abort(&scan->txn);
}

/* Whether the current block is behind the place where the scan is to stop. */
static bool is_behind(const struct wb_disk_scan *scan)
{
    WB_CHECK(scan->origin > 0);
    if (scan->until.segment == 0 || scan->origin < scan->until.segment)
        return false;
    return scan->origin > scan->until.segment || scan->logical > scan->until.logical;
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static int prepare(struct wb_disk_scan *scan, const struct wb_store_scan_options *options)
{
    int err = 0;

    WB_CHECK(!scan->site);
    WB_CHECK(scan->parts.count == 0);
    if (options->site.len) {
        scan->site_hash = wb_hash64(options->site.ptr, options->site.len);
        scan->site = wb_strndup(options->site.ptr, options->site.len);
        err = scan->site ? 0 : WB_E_NOMEM;
    }
    if (err == 0)
        err = wb_disk_scan_add_part(scan);
    if (err == 0)
        err = wb_segment_reader_init(&scan->reader);
    return err;
}

/* A scan in the order of the disk. */
static int open_scan(struct wb_store *store, const struct wb_store_scan_options *options,
                     struct wb_store_scan **scan_out)
{
    struct wb_disk_scan *scan = wb_alloc_zero(1, sizeof *scan);

    WB_CHECK(wb_repo_of(store)->files.kind->whole_blocks);
    *scan_out = NULL;
    if (!scan)
        return WB_E_NOMEM;
    wb_store_scan_init(&scan->scan, store);
    scan->repo = wb_repo_of(store);
    scan->share = options->part;
    scan->shares = options->parts;
    scan->since = options->since;
    scan->facts = options->facts;
    scan->gone = options->gone;
    scan->without = options->without;
    scan->without_count = options->without_count;
    wb_nodes_init(&scan->nodes, scan->repo->dir, &scan->repo->superblock);
    int err = prepare(scan, options);
    if (err == 0 && options->after)
        err = wb_disk_scan_take(scan, options->after);
    if (err == 0 && options->until)
        err = wb_disk_scan_take_until(scan, options->until);
    if (err == 0)
        err = wb_catalog_open(scan->repo->dir, WB_TREE_READ, &scan->catalog);
    if (err == 0)
        err = wb_repo_pin_epoch(scan->catalog, options->snapshot, &scan->epoch);
    if (err < 0) {
        wb_disk_scan_close(&scan->scan);
        return err;
    }
    *scan_out = &scan->scan;
    return 0;
}

int wb_disk_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                      struct wb_store_scan **scan_out)
{
    WB_CHECK(options->parts == 0 || (options->part >= 1 && options->part <= options->parts));
    const struct wb_sorted_source *sorted = wb_repo_of(store)->files.kind->sorted;
    if (sorted)
        return wb_sorted_scan_open(wb_repo_of(store), sorted, options, scan_out);
    return open_scan(store, options, scan_out);
}

int wb_disk_scan_blocks(struct wb_store *store, const struct wb_store_scan_options *options,
                        struct wb_store_scan **scan_out)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(options->parts == 0);
    return open_scan(store, options, scan_out);
}

int wb_disk_scan_holds(struct wb_store_scan *base, struct wb_store_scan_holds *holds_out)
{
    struct wb_disk_scan *scan = scan_of(base);

    WB_CHECK(scan->epoch > 0);
    *holds_out = (struct wb_store_scan_holds){.epoch = scan->epoch};
    return 0;
}

/* ---- from block to block ------------------------------------------------------------------------ */

/*
 * Whether no record is visible that a compaction has flagged as old. It ceased to be the latest version before that
 * compaction looked, so a scan of this epoch or a later one shows it only if it has become the latest once more.
 */
static bool flags_hold(const struct wb_disk_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    return row->old_epoch <= scan->epoch && row->returned == 0;
}

/* Whether all records of the segment are visible, with the times with which they were stored. */
static bool is_plain(const struct wb_disk_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    WB_CHECK(row->live <= row->pages);
    return row->live == row->pages && row->old == 0 && flags_hold(scan, row) && row->touched == 0 &&
           row->epoch_max <= scan->epoch && !scan->facts && scan->since == 0;
}

/* Finds the version that is stored at this place, if the state shows it, and what the catalog knows about it. */
static int look_up(struct wb_disk_scan *scan, const struct wb_block_entry *block_entry,
                   struct wb_catalog_entry *entry_out, bool *visible_out)
{
    struct wb_catalog_place place = {scan->origin, block_entry->slot, scan->logical};
    int err = wb_catalog_entry_get(&scan->txn, block_entry->id, entry_out);

    WB_CHECK(scan->open > 0);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    *visible_out = false;
    /* The latest version is the one to be shown, and was not seen again later: no need for its past. */
    bool shown = err == 0 && entry_out->epoch <= scan->epoch;
    bool here = shown && wb_catalog_place_equal(&entry_out->place, &place) && entry_out->epoch > scan->since;
    if (shown && (!here || entry_out->seen_epoch <= scan->epoch)) {
        *visible_out = here;
        return 0;
    }
    if (err == 0 || err == WB_E_NOTFOUND)
        err = wb_pageview_load(&scan->txn, scan->summary.gone > 0, block_entry->id, &scan->view);
    if (err < 0)
        return err;
    const struct wb_history *history = &scan->view.history;
    const struct wb_history_version *version = wb_history_in(history, scan->epoch);
    if (!version || !wb_catalog_place_equal(&version->place, &place) || version->arrived <= scan->since)
        return 0;
    *visible_out = true;
    *entry_out = (struct wb_catalog_entry){
        .place = place,
        .time_ms = wb_history_last_in(history, version, scan->epoch),
        .epoch = version->arrived,
        .status = version->status,
        .lifetime = scan->view.lifetime,
        .lifetime_count = version->ceased == 0 ? scan->view.lifetime_count : 0,
        .ended = version->ceased != 0,
    };
    return 0;
}

/*
 * All pages of a block were committed together. So one that is the latest version tells in which epoch they arrived.
 * The rows of its pages are in different pages of the catalog, so if one of these is damaged, another one will do.
 */
static int look_up_epoch(struct wb_disk_scan *scan, struct wb_disk_scan_part *part)
{
    struct wb_catalog_entry entry;
    int err = 0;

    WB_CHECK(part->plain);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(part->head.count <= part->walk.index.entries.count);
    for (size_t i = 0; i < part->head.count; i++) {
        const struct wb_block_entry *first = &part->walk.index.entries.items[i];
        if (first->flags & (WB_BLOCK_ENTRY_DEAD | WB_BLOCK_ENTRY_OLD))
            continue;
        err = wb_catalog_entry_get(&scan->txn, first->id, &entry);
        part->block_epoch = entry.epoch;
        if (err == WB_E_NOTFOUND)
            return wb_catalog_corrupt(scan->catalog, WB_CATALOG_PAGES, "a missing entry");
        if (err != WB_E_CORRUPT)
            break;
    }
    return err;
}

/* Finds out which pages of a part of the block are visible, while the catalog's state is held. */
static int judge_part(struct wb_disk_scan *scan, struct wb_disk_scan_part *part)
{
    int err = 0;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(part->block != NULL);
    part->plain = is_plain(scan, &part->row);
    part->plain_commit = part->head.commit;
    if (part->plain)
        return look_up_epoch(scan, part);
    uint16_t skipped = WB_BLOCK_ENTRY_DEAD | (flags_hold(scan, &part->row) ? WB_BLOCK_ENTRY_OLD : 0);
    err = wb_vec_reserve(&part->known, part->head.count);
    for (size_t i = 0; i < part->head.count && err == 0; i++) {
        const struct wb_block_entry *entry = &part->walk.index.entries.items[i];
        part->known.items[i].visible = false;
        if (!(entry->flags & skipped))
            err = look_up(scan, entry, &part->known.items[i].entry, &part->known.items[i].visible);
        if (err == WB_E_CORRUPT) { /* nobody knows whether the state shows this page; the others are delivered */
            part->known.items[i].visible = false;
            err = wb_disk_scan_note(scan);
        }
    }
    return err;
}

static int judge_block(struct wb_disk_scan *scan)
{
    int err = 0;

    WB_CHECK(scan->here > 0);
    for (size_t i = 0; i < scan->here && err == 0; i++)
        err = judge_part(scan, scan->parts.items[i]);
    return err;
}

/* Finds the next block that is ours. Returns 1, or 0 if there is none left. */
static int find_block(struct wb_disk_scan *scan)
{
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(!scan->gone_phase);
    for (;;) {
        int err = wb_disk_scan_choose(scan);
        if (err <= 0)
            return err;
        err = wb_disk_scan_merge(scan);
        if (err < 0)
            return err;
        if (err > 0)
            return !is_behind(scan);
        scan->segment_done = true;
    }
}

/*
 * Finds the next block without asking the catalog. That is enough if the segment is plain and was not split, its row
 * is not older than a moment, and the block was committed together with the one before: blocks of a segment that name
 * the same commit were. Returns 1, 0 if the catalog must be asked, or an error.
 */
static int find_near_block(struct wb_disk_scan *scan)
{
    struct wb_disk_scan_part *part = scan->parts.items[0];
    uint64_t at = 0;
    int err = 1;

    WB_CHECK(scan->parts.count > 0);
    if (scan->open != 1 || scan->segment_done || !part->plain || wb_clock_mono_ns() - scan->renewed_ns > NEAR_NS)
        return 0;
    do
        err = wb_segment_walk_next(&part->walk, &part->head, &part->block, &at);
    while (err > 0 && !wb_disk_scan_wants(scan, &part->head));
    scan->logical = part->head.logical;
    scan->here = err > 0;
    if (err == 0 || (err > 0 && is_behind(scan)))
        scan->segment_done = true;
    else if (err > 0 && part->head.commit == part->plain_commit)
        return 1;
    else if (err > 0)
        part->walk.next = at; /* once more, with the catalog */
    part->block = NULL;
    scan->here = 0;
    return err < 0 ? err : 0;
}

/*
 * Finds the next block in the newest state of the catalog. A file can disappear only if a newer state does not need
 * it, for example because its node was removed: then that state knows where the pages are now.
 */
static int find_far_block(struct wb_disk_scan *scan)
{
    uint64_t state;
    int err;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    do {
        scan->failed = 0;
        err = begin(scan);
        state = scan->state;
        if (err == 0)
            err = find_block(scan);
        if (err > 0) {
            int judged = judge_block(scan);
            err = judged < 0 ? judged : 1;
        }
        end(scan);
    } while ((err == WB_E_CORRUPT || err == WB_E_DOWN) && scan->failed && moved_on(scan, err, state));
    if (err == WB_E_CORRUPT && scan->failed)
        scan->origin = scan->failed; /* a damaged segment is passed over; one that is out of reach is not */
    return err;
}

int wb_disk_scan_block(struct wb_disk_scan *scan)
{
    int err = find_near_block(scan);

    WB_CHECK(err > 0 || scan->here == 0 || scan->index == scan->count);
    if (err == 0)
        err = find_far_block(scan);
    if (err > 0 && wb_disk_scan_order(scan) < 0)
        err = WB_E_NOMEM;
    if (err <= 0) {
        for (size_t i = 0; i < scan->here; i++)
            scan->parts.items[i]->block = NULL;
        scan->index = scan->count = scan->here = 0;
        scan->gone_phase = err == 0;
    }
    if (err == 0)
        wb_disk_scan_leave(scan);
    for (size_t i = 0; i < scan->here; i++) {
        struct wb_disk_scan_part *part = scan->parts.items[i];
        wb_block_reader_open_bytes(part->zstd, &part->walk.index, part->block);
        wb_block_reader_open_bytes(part->zstd_old, &part->walk.index, part->block);
    }
    return err;
}

/* ---- from page to page ------------------------------------------------------------------------------ */

/* Whether a place is in the current block. */
static bool is_here(const struct wb_disk_scan *scan, const struct wb_catalog_place *place)
{
    WB_CHECK(scan->here > 0);
    return place->segment == scan->origin && place->logical == scan->logical;
}

size_t wb_disk_scan_entry(struct wb_disk_scan *scan, size_t number, bool *outside_out, bool *hidden_out)
{
    WB_CHECK(scan->here > 0);
    WB_CHECK(number < scan->count);

    uint64_t item = scan->order.count ? scan->order.items[number] : number;
    size_t at = item & 0xffff;
    scan->at = scan->parts.items[item >> 16 & 0xffffffff];
    const struct wb_block_entry *entry = &scan->at->walk.index.entries.items[at];
    *outside_out = (is_here(scan, &scan->told) && entry->slot <= scan->told.slot) ||
                   (is_here(scan, &scan->until) && entry->slot > scan->until.slot);
    *hidden_out = entry->flags & WB_BLOCK_ENTRY_DEAD ||
                  (scan->at->plain ? entry->flags & WB_BLOCK_ENTRY_OLD : !scan->at->known.items[at].visible);
    return at;
}

int wb_disk_scan_page(struct wb_disk_scan *scan, struct wb_page *page_out)
{
    WB_CHECK(scan->here > 0);
    WB_CHECK(scan->index < scan->count);

    bool outside, hidden;
    size_t at = wb_disk_scan_entry(scan, scan->index++, &outside, &hidden);
    const struct wb_disk_scan_part *part = scan->at;
    const struct wb_block_entry *entry = &part->walk.index.entries.items[at];
    if (outside || hidden)
        return 0;
    struct wb_block_reader *zstd = entry->flags & WB_BLOCK_ENTRY_OLD ? part->zstd_old : part->zstd;
    int err = (scan->facts ? wb_block_read_facts : wb_block_read_page)(zstd, at, page_out);
    if (err == 0)
        err = wb_pagefile_identify(page_out, entry->id, part->plain ? NULL : &part->known.items[at].entry);
    if (err < 0)
        return err;
    if (part->plain)
        page_out->epoch = part->block_epoch;
    if (scan->site && !wb_slice_equal(wb_key_site(page_out->key), wb_slice_str(scan->site)))
        return 0;
    scan->told = (struct wb_catalog_place){scan->origin, entry->slot, scan->logical};
    return 1;
}

int wb_disk_scan_name(const struct wb_disk_scan *scan)
{
    char why[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(scan->at != NULL);
    strcpy(why, wb_error_message());
    return wb_fail(WB_E_CORRUPT, "%s: block %llu: %s", scan->at->segment.file.path,
                   (unsigned long long)scan->logical, why);
}

int wb_disk_scan_next(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct wb_disk_scan *scan = scan_of(base);

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(scan->epoch > 0);
    int late = wb_disk_scan_late(scan);
    if (late < 0)
        return late;
    while (!scan->gone_phase) {
        if (scan->index == scan->count) {
            int err = wb_disk_scan_block(scan);
            if (err > 0 && scan->late.count)
                return wb_disk_scan_late(scan);
            if (err < 0)
                return err;
            if (err == 0)
                break;
        }
        int err = wb_disk_scan_page(scan, page_out);
        if (err == WB_E_CORRUPT)
            return wb_disk_scan_name(scan);
        if (err != 0)
            return err;
    }
    return scan->gone ? wb_disk_scan_gone(scan, page_out) : 0;
}
