/*
 * log_scan.c - returns all pages of one state in the order of the disk, each exactly once.
 *
 * The state is an epoch: that of a snapshot, or the newest one when the scan begins. The scan pins it (below), so that
 * every version that is visible in it stays until the scan ends. So the catalog's transaction can be renewed with
 * every block: places of visible versions never change, and nothing else that happens concerns the scan. A scan that
 * waits for its reader holds no state of the catalog, and only the one file that it has open.
 *
 *   next block ---> which of its pages are visible? (catalog) ---> its pages, one by one (memory only)
 *
 * If a segment's row says that all its pages are visible and unchanged (is_plain), the
 * catalog is not asked about each, and the scan runs as fast as zstd decompresses.
 *
 * A position names a block and a slot in it. Compaction keeps both, and their order.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/log.h"
#include "store/log_scan.h"
#include "store/sorted_scan.h"

#include <stdlib.h>

enum { NEAR_NS = 10 * 1000 * 1000 }; /* for so long after it was read, the row of a segment is good enough */

_Static_assert(offsetof(struct wb_log_scan, scan) == 0, "a wb_store_scan of this organisation is a wb_log_scan");

static struct wb_log_scan *scan_of(struct wb_store_scan *base)
{
    struct wb_log_scan *scan = (struct wb_log_scan *)base;

    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(scan->index <= WB_BLOCK_PAGES_MAX);
    return scan;
}

void wb_log_scan_close(struct wb_store_scan *base)
{
    struct wb_log_scan *scan = scan_of(base);

    WB_CHECK(scan->walking || !scan->block);
    if (scan->walking)
        wb_segment_walk_release(&scan->walk);
    wb_segment_close(&scan->segment);
    wb_catalog_txn_abort(&scan->txn);
    wb_catalog_close(scan->catalog); /* which ends the pin */
    wb_log_rows_release(&scan->rows);
    wb_log_view_release(&scan->view);
    wb_vec_release(&scan->gone_ids);
    wb_segment_reader_release(&scan->reader);
    wb_block_reader_free(scan->zstd);
    wb_block_reader_free(scan->zstd_old);
    wb_log_scan_parcel_release(scan);
    wb_vec_release(&scan->order);
    wb_buf_release(&scan->text);
    wb_vec_release(&scan->known);
    wb_free(scan->site);
    wb_store_scan_release(&scan->scan);
    wb_free(scan);
}

/* Takes up the newest state of the catalog. */
static int begin(struct wb_log_scan *scan)
{
    uint64_t before = scan->state;

    WB_CHECK(scan->scan.magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    int err = wb_catalog_txn_read(scan->catalog, &scan->txn);
    if (err < 0)
        return err;
    scan->state = wb_catalog_txn_id(&scan->txn);
    scan->renewed_ms = wb_clock_wall_ms();
    scan->renewed_ns = wb_clock_mono_ns();
    if (scan->state == before)
        return 0;
    wb_log_rows_release(&scan->rows);
    err = wb_catalog_summary_get(&scan->txn, &scan->summary);
    return err < 0 ? err : wb_log_rows_read(&scan->txn, &scan->rows);
}

/* Lets go of the state, until the next block. */
static void end(struct wb_log_scan *scan)
{
    wb_catalog_txn_abort(&scan->txn);
}

/* Whether the current block is behind the place where the scan is to stop. */
static bool is_behind(const struct wb_log_scan *scan)
{
    WB_CHECK(scan->row.number > 0);
    if (scan->until.segment == 0 || scan->row.number < scan->until.segment)
        return false;
    return scan->row.number > scan->until.segment || scan->head.logical > scan->until.logical;
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static int prepare(struct wb_log_scan *scan, const struct wb_store_scan_options *options)
{
    int err = 0;

    WB_CHECK(!scan->site);
    WB_CHECK(!scan->zstd);
    if (options->site.len) {
        scan->site_hash = wb_hash64(options->site.ptr, options->site.len);
        scan->site = wb_strndup(options->site.ptr, options->site.len);
        err = scan->site ? 0 : WB_E_NOMEM;
    }
    if (err == 0)
        err = wb_block_reader_new(&scan->zstd);
    if (err == 0)
        err = wb_block_reader_new(&scan->zstd_old);
    if (err == 0)
        err = wb_segment_reader_init(&scan->reader);
    return err;
}

int wb_log_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                     struct wb_store_scan **scan_out)
{
    WB_CHECK(options->parts == 0 || (options->part >= 1 && options->part <= options->parts));
    if (wb_log_of(store)->superblock.design.read.organisation == WB_ORGANISATION_HASHED_LOG)
        return wb_sorted_scan_open(wb_log_of(store), &wb_sorted_log, options, scan_out);

    struct wb_log_scan *scan = wb_alloc_zero(1, sizeof *scan);

    *scan_out = NULL;
    if (!scan)
        return WB_E_NOMEM;
    wb_store_scan_init(&scan->scan, store);
    scan->log = wb_log_of(store);
    scan->part = options->part;
    scan->parts = options->parts;
    scan->since = options->since;
    scan->facts = options->facts;
    scan->gone = options->gone;
    scan->segment = WB_SEGMENT_INIT;
    int err = prepare(scan, options);
    if (err == 0 && options->after)
        err = wb_log_scan_take(scan, options->after);
    if (err == 0 && options->until)
        err = wb_log_scan_take_until(scan, options->until);
    if (err == 0)
        err = wb_catalog_open(scan->log->dir, WB_TREE_READ, &scan->catalog);
    if (err == 0)
        err = wb_log_pin_epoch(scan->catalog, options->snapshot, &scan->epoch);
    if (err < 0) {
        wb_log_scan_close(&scan->scan);
        return err;
    }
    *scan_out = &scan->scan;
    return 0;
}

int wb_log_scan_holds(struct wb_store_scan *base, struct wb_store_scan_holds *holds_out)
{
    struct wb_log_scan *scan = scan_of(base);
    struct wb_catalog_segment row;
    bool current = false;
    int err = scan->walking ? begin(scan) : 0;

    WB_CHECK(scan->epoch > 0);
    if (err == 0 && scan->walking) {
        err = wb_catalog_segment_get(&scan->txn, scan->row.number, &row);
        current = err == 0 && row.revision == scan->segment.revision;
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    end(scan);
    *holds_out = (struct wb_store_scan_holds){
        .epoch = scan->epoch,
        .since_ms = scan->renewed_ms,
        .bytes_held = scan->walking && !current ? scan->row.bytes : 0,
    };
    return err;
}

/* ---- from block to block ------------------------------------------------------------------------ */

/*
 * Whether no record is visible that a compaction has flagged as old. It ceased to be the latest version before that
 * compaction looked, so a scan of this epoch or a later one shows it only if it has become the latest once more.
 */
static bool flags_hold(const struct wb_log_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    return row->old_epoch <= scan->epoch && row->returned == 0;
}

/*
 * Whether all records of the segment are visible, with the times with which they were stored. In format 2, a row
 * does not say how many of its live pages only the old snapshot has.
 */
static bool is_plain(const struct wb_log_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    WB_CHECK(row->live <= row->pages);
    return row->live == row->pages && row->old == 0 && flags_hold(scan, row) && row->touched == 0 &&
           row->epoch_max <= scan->epoch && !scan->facts && scan->since == 0 && !scan->summary.old_format;
}

/* Closes the current segment. */
static void leave_segment(struct wb_log_scan *scan)
{
    WB_CHECK(scan->walking || !scan->block);
    if (scan->walking)
        wb_segment_walk_release(&scan->walk);
    scan->walking = false;
    scan->block = NULL;
    wb_segment_close(&scan->segment);
}

/* Moves the walk to the first block that is not before `logical`. */
static void seek(struct wb_log_scan *scan, uint64_t logical)
{
    const struct wb_segment *segment = &scan->segment;
    size_t low = 0, high = segment->map_count;

    WB_CHECK(scan->walk.next <= scan->walk.end);
    WB_CHECK(scan->told.segment == scan->row.number);
    if (segment->revision == 0) { /* names are positions */
        if (logical > scan->walk.next)
            scan->walk.next = logical < scan->walk.end ? logical : scan->walk.end;
        return;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (segment->map[middle].logical < logical)
            low = middle + 1;
        else
            high = middle;
    }
    scan->walk.next = low < segment->map_count ? segment->map[low].physical : scan->walk.end;
}

/* Opens a segment, at the place where the scan is. */
static int open_segment(struct wb_log_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(!scan->walking);
    WB_CHECK(row->number > 0);
    scan->row = *row;
    int err = wb_segment_open(scan->log->dir, scan->log->superblock.id, row, false, &scan->segment);
    if (err < 0)
        return err;
    wb_segment_walk_init(&scan->walk, &scan->segment, wb_log_blocks_end(row));
    scan->walking = true;
    if (scan->told.segment == row->number)
        seek(scan, scan->told.logical);
    return 0;
}

/*
 * Makes sure that a segment is open: the current one in its newest revision, or the next one. Returns 1,
 * or 0 if there is none left.
 */
static int choose_segment(struct wb_log_scan *scan)
{
    WB_CHECK(!scan->gone_phase);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    if (scan->walking && !scan->segment_done) {
        struct wb_catalog_segment row;
        int err = wb_catalog_segment_get(&scan->txn, scan->row.number, &row);
        if (err == 0 && row.revision == scan->segment.revision) {
            scan->walk.end = wb_log_blocks_end(&row);
            scan->row = row;
            return 1;
        }
        if (err < 0 && err != WB_E_NOTFOUND)
            return err;
        leave_segment(scan);
        if (err == 0 && row.live) { /* it was compacted in the meantime */
            err = open_segment(scan, &row);
            return err < 0 ? err : 1;
        }
    }
    leave_segment(scan);
    scan->segment_done = false;
    for (size_t i = 0; i < scan->rows.count; i++) {
        const struct wb_catalog_segment *row = &scan->rows.items[i];
        bool passed = scan->row.number ? row->number <= scan->row.number : row->number < scan->told.segment;
        if (passed || row->live == 0)
            continue;
        int err = open_segment(scan, row);
        return err < 0 ? err : 1;
    }
    return 0;
}

/* Whether the scan wants this block: of its part, and possibly with pages of its site. */
static bool is_ours(const struct wb_log_scan *scan, const struct wb_block_head *head)
{
    char name[12];

    WB_CHECK(scan->parts == 0 || scan->part >= 1);
    WB_CHECK(scan->row.number > 0);
    WB_CHECK(head->count > 0);
    if (scan->site && head->site && head->site != scan->site_hash)
        return false;
    if (scan->parts <= 1)
        return true;
    wb_put32(name, scan->row.number);
    wb_put64(name + 4, head->logical);
    return wb_hash64(name, sizeof name) % scan->parts == scan->part - 1;
}

/* Finds the version that is stored at this place, if the state shows it, and what the catalog knows about it. */
static int look_up(struct wb_log_scan *scan, const struct wb_block_entry *block_entry,
                   struct wb_catalog_entry *entry_out, bool *visible_out)
{
    struct wb_catalog_place place = {scan->row.number, block_entry->slot, scan->head.logical};
    int err = wb_catalog_entry_get(&scan->txn, WB_CATALOG_PAGES, block_entry->id, entry_out);

    WB_CHECK(scan->walking);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    *visible_out = false;
    if (err == 0 &&
        entry_out->epoch <= scan->epoch) { /* the latest version is the one to be shown: no need for its past */
        *visible_out = wb_catalog_place_equal(&entry_out->place, &place) && entry_out->epoch > scan->since;
        return 0;
    }
    if (err == 0 || err == WB_E_NOTFOUND)
        err = wb_log_view_load(&scan->txn, scan->summary.gone > 0, block_entry->id, &scan->view);
    if (err < 0)
        return err;
    const struct wb_history *history = &scan->view.history;
    const struct wb_history_version *version = wb_history_in(history, scan->epoch);
    if (!version || !wb_catalog_place_equal(&version->place, &place) || version->arrived <= scan->since)
        return 0;
    *visible_out = true;
    *entry_out = (struct wb_catalog_entry){
        .place = place,
        .time_ms = wb_history_last_ms(history, version),
        .epoch = version->arrived,
        .status = version->status,
        .lifetime = scan->view.lifetime,
        .lifetime_count = version->ceased == 0 ? scan->view.lifetime_count : 0,
        .ended = version->ceased != 0,
    };
    return 0;
}

/* All pages of a block were committed together. So one that is the latest version tells in which epoch they arrived. */
static int look_up_epoch(struct wb_log_scan *scan)
{
    struct wb_catalog_entry entry;

    WB_CHECK(scan->plain);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(scan->head.count <= scan->walk.index.entries.count);
    for (size_t i = 0; i < scan->head.count; i++) {
        const struct wb_block_entry *first = &scan->walk.index.entries.items[i];
        if (first->flags & (WB_BLOCK_ENTRY_DEAD | WB_BLOCK_ENTRY_OLD))
            continue;
        int err = wb_catalog_entry_get(&scan->txn, WB_CATALOG_PAGES, first->id, &entry);
        scan->block_epoch = entry.epoch;
        return err == WB_E_NOTFOUND ? wb_catalog_corrupt(scan->catalog, WB_CATALOG_PAGES, "a missing entry") : err;
    }
    return 0;
}

/* Finds out which pages of the block are visible, while the catalog's state is held. */
static int judge_block(struct wb_log_scan *scan)
{
    int err = 0;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(scan->block != NULL);
    scan->plain = is_plain(scan, &scan->row);
    scan->plain_commit = scan->head.commit;
    if (scan->plain)
        return look_up_epoch(scan);
    uint16_t skipped = WB_BLOCK_ENTRY_DEAD | (flags_hold(scan, &scan->row) ? WB_BLOCK_ENTRY_OLD : 0);
    err = wb_vec_reserve(&scan->known, scan->head.count);
    for (size_t i = 0; i < scan->head.count && err == 0; i++) {
        const struct wb_block_entry *entry = &scan->walk.index.entries.items[i];
        scan->known.items[i].visible = false;
        if (!(entry->flags & skipped))
            err = look_up(scan, entry, &scan->known.items[i].entry, &scan->known.items[i].visible);
    }
    return err;
}

/* Finds the next block that is ours. Returns 1, or 0 if there is none left. */
static int find_block(struct wb_log_scan *scan)
{
    uint64_t at;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(!scan->gone_phase);
    for (;;) {
        int err = choose_segment(scan);
        if (err <= 0)
            return err;
        scan->block = NULL;
        err = wb_segment_walk_next(&scan->walk, &scan->head, &scan->block, &at);
        if (err < 0)
            return err;
        if (err > 0 && is_behind(scan))
            return 0;
        if (err == 0)
            scan->segment_done = true;
        else if (is_ours(scan, &scan->head) &&
                 !(scan->told.segment == scan->row.number && scan->head.logical < scan->told.logical))
            return 1;
    }
}

/*
 * Finds the next block without asking the catalog. That is enough if the segment is plain, its row is not older than
 * a moment, and the block was committed together with the one before: blocks of a segment that name the same commit
 * were. Returns 1, 0 if the catalog must be asked, or an error.
 */
static int find_near_block(struct wb_log_scan *scan)
{
    uint64_t at = 0;
    int err = 1;

    if (!scan->walking || scan->segment_done || !scan->plain || wb_clock_mono_ns() - scan->renewed_ns > NEAR_NS)
        return 0;
    do
        err = wb_segment_walk_next(&scan->walk, &scan->head, &scan->block, &at);
    while (err > 0 && !is_ours(scan, &scan->head));
    if (err == 0 || (err > 0 && is_behind(scan)))
        scan->segment_done = true;
    else if (err > 0 && scan->head.commit == scan->plain_commit)
        return 1;
    else if (err > 0)
        scan->walk.next = at; /* once more, with the catalog */
    scan->block = NULL;
    return err < 0 ? err : 0;
}

static int compare_slots(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Finds the order of slots, in which a scan passes the entries. */
static int order_block(struct wb_log_scan *scan)
{
    const struct wb_block_index *index = &scan->walk.index;

    WB_CHECK(index->entries.count <= WB_BLOCK_PAGES_MAX);
    wb_vec_clear(&scan->order);
    if (index->sorted)
        return 0;
    int err = wb_vec_reserve(&scan->order, index->entries.count);
    for (uint32_t i = 0; i < index->entries.count && err == 0; i++)
        scan->order.items[scan->order.count++] = (uint32_t)index->entries.items[i].slot << 16 | i;
    if (err == 0)
        qsort(scan->order.items, scan->order.count, sizeof *scan->order.items, compare_slots);
    return err;
}

int wb_log_scan_block(struct wb_log_scan *scan)
{
    int err = find_near_block(scan);

    WB_CHECK(!scan->block || scan->index == scan->head.count || err > 0);
    if (err == 0) {
        err = begin(scan);
        if (err == 0)
            err = find_block(scan);
        if (err > 0) {
            int judged = judge_block(scan);
            err = judged < 0 ? judged : 1;
        }
        end(scan);
    }
    scan->index = 0;
    if (err > 0 && order_block(scan) < 0)
        err = WB_E_NOMEM;
    if (err <= 0) {
        scan->block = NULL;
        scan->gone_phase = err == 0;
    }
    if (err == 0)
        leave_segment(scan);
    if (err <= 0)
        return err;
    wb_block_reader_open_bytes(scan->zstd, &scan->walk.index, scan->block);
    wb_block_reader_open_bytes(scan->zstd_old, &scan->walk.index, scan->block);
    return 1;
}

/* ---- from page to page ------------------------------------------------------------------------------ */

/* Whether a place is in the current block. */
static bool is_here(const struct wb_log_scan *scan, const struct wb_catalog_place *place)
{
    WB_CHECK(scan->block != NULL);
    return place->segment == scan->row.number && place->logical == scan->head.logical;
}

size_t wb_log_scan_entry(const struct wb_log_scan *scan, size_t number, bool *outside_out, bool *hidden_out)
{
    WB_CHECK(scan->block != NULL);
    WB_CHECK(number < scan->head.count);

    size_t at = scan->walk.index.sorted ? number : scan->order.items[number] & 0xffff;
    const struct wb_block_entry *entry = &scan->walk.index.entries.items[at];
    *outside_out = (is_here(scan, &scan->told) && entry->slot <= scan->told.slot) ||
                   (is_here(scan, &scan->until) && entry->slot > scan->until.slot);
    *hidden_out = entry->flags & WB_BLOCK_ENTRY_DEAD ||
                  (scan->plain ? entry->flags & WB_BLOCK_ENTRY_OLD : !scan->known.items[at].visible);
    return at;
}

/* Reads the page of the block's next entry. Returns 1, or 0 if the view or the selection does not include it. */
static int next_entry(struct wb_log_scan *scan, struct wb_page *page_out)
{
    WB_CHECK(scan->block != NULL);
    WB_CHECK(scan->index < scan->head.count);

    bool outside, hidden;
    size_t at = wb_log_scan_entry(scan, scan->index++, &outside, &hidden);
    const struct wb_block_entry *entry = &scan->walk.index.entries.items[at];
    if (outside || hidden)
        return 0;
    struct wb_block_reader *zstd = entry->flags & WB_BLOCK_ENTRY_OLD ? scan->zstd_old : scan->zstd;
    int err = (scan->facts ? wb_block_read_facts : wb_block_read_page)(zstd, at, page_out);
    if (err == 0)
        err = wb_log_page_identify(page_out, entry->id, scan->plain ? NULL : &scan->known.items[at].entry);
    if (err < 0)
        return err;
    if (scan->plain)
        page_out->epoch = scan->block_epoch;
    if (scan->site && !wb_slice_equal(wb_key_site(page_out->key), wb_slice_str(scan->site)))
        return 0;
    scan->told = (struct wb_catalog_place){scan->row.number, entry->slot, scan->head.logical};
    return 1;
}

int wb_log_scan_name(const struct wb_log_scan *scan)
{
    char why[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(scan->walking);
    strcpy(why, wb_error_message());
    return wb_fail(WB_E_CORRUPT, "%s: block %llu: %s", scan->segment.file.path,
                   (unsigned long long)scan->head.logical, why);
}

int wb_log_scan_next(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct wb_log_scan *scan = scan_of(base);

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(scan->epoch > 0);
    while (!scan->gone_phase) {
        if (!scan->block || scan->index == scan->head.count) {
            int err = wb_log_scan_block(scan);
            if (err < 0)
                return err;
            if (err == 0)
                break;
        }
        int err = next_entry(scan, page_out);
        if (err == WB_E_CORRUPT)
            return wb_log_scan_name(scan);
        if (err != 0)
            return err;
    }
    return scan->gone ? wb_log_scan_gone(scan, page_out) : 0;
}
