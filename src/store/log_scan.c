/*
 * log_scan.c - returns all pages of a view in the order of the disk, each exactly once.
 *
 * A scan holds one state of the catalog from start to end. So places stay valid, and no
 * file that the state needs is deleted. The scan walks through the segments block by block
 * and asks the catalog about each page: is this the version that the view shows?
 *
 * If a segment's row says that all its pages are visible and unchanged (is_plain), the
 * catalog is not asked at all, and the scan runs as fast as zstd decompresses.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/log.h"

struct log_scan {
    struct wb_store_scan scan;     /* must be the first member */
    struct wb_log *log;            /* only dir and superblock are used: they do not change */
    struct wb_catalog *catalog;    /* a handle of its own, because the scan may run in another thread than the store */
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    enum wb_store_view view;
    uint32_t part, parts;
    char *site;                    /* NULL if all sites are wanted */
    uint64_t site_hash;

    /* ---- where the scan is ---- */
    struct wb_log_rows rows;       /* all segments */
    size_t row_at;                 /* the segment after the current one */
    struct wb_catalog_segment row; /* the current segment */
    struct wb_segment segment;
    struct wb_segment_walk walk;
    bool walking;                  /* a segment is open */
    bool plain;                    /* all its pages are visible: no need to ask the catalog */
    struct wb_block_head head;
    const char *block;             /* the current block; NULL if the next one must be found */
    size_t index;                  /* of the next entry in the block */
    uint64_t frame_at;             /* where the frame of that entry starts in the block */
    size_t lead_at;                /* where the next text in the lead starts */
    bool lead_ready;               /* the lead of the block was decompressed */

    struct wb_block_reader *zstd;
    struct wb_buf lead, text;
};

_Static_assert(offsetof(struct log_scan, scan) == 0, "a wb_store_scan of this organisation is a log_scan");

static struct log_scan *scan_of(struct wb_store_scan *base)
{
    struct log_scan *scan = (struct log_scan *)base;

    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    WB_CHECK(scan->index <= WB_BLOCK_PAGES_MAX);
    return scan;
}

static int begin(struct log_scan *scan)
{
    WB_CHECK(scan->log->magic == WB_LOG_MAGIC);
    WB_CHECK(!scan->catalog);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);

    int err = wb_catalog_open(scan->log->dir, WB_TREE_READ, &scan->catalog);

    if (err == 0)
        err = wb_catalog_txn_read(scan->catalog, &scan->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&scan->txn, &scan->summary);
    return err < 0 ? err : wb_log_rows_read(&scan->txn, &scan->rows);
}

void wb_log_scan_close(struct wb_store_scan *base)
{
    struct log_scan *scan = scan_of(base);

    if (scan->walking)
        wb_segment_walk_release(&scan->walk);
    wb_segment_close(&scan->segment);
    wb_catalog_txn_abort(&scan->txn);
    wb_catalog_close(scan->catalog);
    wb_log_rows_release(&scan->rows);
    wb_block_reader_free(scan->zstd);
    wb_buf_release(&scan->lead);
    wb_buf_release(&scan->text);
    wb_free(scan->site);
    wb_store_scan_release(&scan->scan);
    wb_free(scan);
}

int wb_log_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                     struct wb_store_scan **scan_out)
{
    WB_CHECK(options->parts == 0 || (options->part >= 1 && options->part <= options->parts));

    struct log_scan *scan = wb_alloc_zero(1, sizeof *scan);
    int err = 0;

    *scan_out = NULL;
    if (!scan)
        return WB_E_NOMEM;
    wb_store_scan_init(&scan->scan, store);
    scan->log = wb_log_of(store);
    scan->view = options->view;
    scan->part = options->part;
    scan->parts = options->parts;
    scan->segment = WB_SEGMENT_INIT;
    if (options->site.len) {
        scan->site_hash = wb_hash64(options->site.ptr, options->site.len);
        scan->site = wb_strndup(options->site.ptr, options->site.len);
        err = scan->site ? 0 : WB_E_NOMEM;
    }
    if (err == 0)
        err = wb_block_reader_new(&scan->zstd);
    if (err == 0)
        err = begin(scan);
    if (err < 0) {
        wb_log_scan_close(&scan->scan);
        return err;
    }
    *scan_out = &scan->scan;
    return 0;
}

/* ---- from block to block ------------------------------------------------------------------------ */

/* Whether all records of the segment are visible, with the times and the epoch with which they were stored. */
static bool is_plain(const struct log_scan *scan, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    WB_CHECK(row->live > 0);
    WB_CHECK(row->live <= row->pages);
    if (row->live != row->pages || row->touched || row->epoch_min != row->epoch_max)
        return false;
    if (scan->view == WB_STORE_VIEW_SNAPSHOT)
        return row->epoch_max <= scan->summary.snapshot_epoch;
    return scan->summary.old == 0; /* row->live includes class A versions, which the latest view must not show */
}

/* Opens the next segment. Returns 1, or 0 if there is none left. */
static int next_segment(struct log_scan *scan)
{
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(scan->row_at <= scan->rows.count);
    if (scan->walking)
        wb_segment_walk_release(&scan->walk);
    scan->walking = false;
    wb_segment_close(&scan->segment);
    while (scan->row_at < scan->rows.count) {
        scan->row = scan->rows.items[scan->row_at++];
        if (scan->row.live == 0)
            continue;
        int err = wb_segment_open(scan->log->dir, scan->log->superblock.id, &scan->row, false, &scan->segment);
        if (err < 0)
            return err;
        wb_segment_walk_init(&scan->walk, &scan->segment, wb_log_blocks_end(&scan->row));
        scan->walking = true;
        scan->plain = is_plain(scan, &scan->row);
        return 1;
    }
    return 0;
}

/* Whether the scan wants this block: of its part, and possibly with pages of its site. */
static bool is_ours(const struct log_scan *scan, const struct wb_block_head *head)
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

/* Goes to the next block. Returns 1, or 0 if there is none left. */
static int next_block(struct log_scan *scan)
{
    uint64_t at;
    int err;

    WB_CHECK(scan->zstd != NULL);
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    scan->block = NULL;
    for (;;) {
        err = scan->walking ? wb_segment_walk_next(&scan->walk, &scan->head, &scan->block, &at) : 0;
        if (err < 0)
            return err;
        if (err == 0) {
            err = next_segment(scan);
            if (err <= 0)
                return err;
            continue;
        }
        if (is_ours(scan, &scan->head))
            break;
        scan->block = NULL;
    }
    scan->index = 0;
    scan->lead_at = 0;
    scan->lead_ready = false;
    scan->frame_at = wb_block_directory_end(&scan->head) + scan->head.lead_stored_bytes;
    return 1;
}

/* ---- from page to page ------------------------------------------------------------------------------ */

/* Asks the catalog whether the view shows the page, and what else it knows about the page. */
static int is_visible(struct log_scan *scan, const struct wb_block_entry *block_entry,
                      struct wb_catalog_entry *entry_out, bool *visible_out)
{
    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(scan->block != NULL);
    WB_CHECK(!scan->plain);

    struct wb_catalog_place place = {scan->row.number, block_entry->slot, scan->head.logical};
    bool snapshot = scan->view == WB_STORE_VIEW_SNAPSHOT;
    int err = wb_catalog_entry_get(&scan->txn, WB_CATALOG_PAGES, block_entry->id, entry_out);

    *visible_out = false;
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    if (err == 0 && wb_catalog_place_equal(&entry_out->place, &place)) {
        *visible_out = !snapshot || entry_out->epoch <= scan->summary.snapshot_epoch;
        return 0;
    }
    if (!snapshot)
        return 0;
    err = wb_catalog_entry_get(&scan->txn, WB_CATALOG_OLD, block_entry->id, entry_out);
    if (err == WB_E_NOTFOUND)
        return 0;
    *visible_out = err == 0 && wb_catalog_place_equal(&entry_out->place, &place);
    return err;
}

/* Decompresses the lead of the block, unless that was done before. */
static int read_lead(struct log_scan *scan)
{
    int err = 0;

    WB_CHECK(scan->zstd != NULL);
    WB_CHECK(scan->block != NULL);
    if (scan->lead_ready)
        return 0;
    wb_buf_clear(&scan->lead);
    if (scan->head.lead_count)
        err = wb_block_read_lead(scan->zstd, &scan->head, scan->block + wb_block_directory_end(&scan->head),
                                 &scan->lead);
    scan->lead_ready = err == 0;
    return err;
}

/* The text of an entry's record: from its frame at frame_at, or from the lead at lead_at. */
static int read_text(struct log_scan *scan, const struct wb_block_entry *entry, uint64_t frame_at, size_t lead_at,
                     struct wb_slice *text_out)
{
    WB_CHECK(scan->block != NULL);
    WB_CHECK(frame_at <= scan->head.bytes);

    int err = read_lead(scan);

    if (err == 0 && entry->flags & WB_BLOCK_ENTRY_LEAD) {
        *text_out = wb_block_lead_text(entry, wb_buf_slice(&scan->lead), lead_at);
    } else if (err == 0) {
        err = wb_block_read_text(scan->zstd, entry, scan->block + frame_at, wb_buf_slice(&scan->lead), &scan->text);
        *text_out = wb_buf_slice(&scan->text);
    }
    return err;
}

/* Reads the page of the block's next entry. Returns 1, or 0 if the view or the selection does not include it. */
static int next_entry(struct log_scan *scan, struct wb_page *page_out)
{
    WB_CHECK(scan->block != NULL);
    WB_CHECK(scan->index < scan->head.count);

    struct wb_block_entry entry = wb_block_entry_read(scan->block + WB_BLOCK_HEADER_BYTES, scan->index++);
    uint64_t frame_at = scan->frame_at;
    size_t lead_at = scan->lead_at;
    struct wb_catalog_entry known;
    struct wb_slice text;
    bool visible = true;
    int err = 0;

    scan->frame_at += entry.stored_bytes;
    if (entry.flags & WB_BLOCK_ENTRY_LEAD)
        scan->lead_at += entry.raw_bytes;
    if (entry.flags & WB_BLOCK_ENTRY_DEAD)
        return 0;
    if (!scan->plain)
        err = is_visible(scan, &entry, &known, &visible);
    if (err < 0 || !visible)
        return err;
    err = read_text(scan, &entry, frame_at, lead_at, &text);
    if (err == 0)
        err = wb_page_decode_parts(entry.digests, text, page_out);
    if (err == 0)
        err = wb_log_page_identify(page_out, entry.id, scan->plain ? NULL : &known);
    if (err < 0)
        return err;
    if (scan->plain)
        page_out->epoch = scan->row.epoch_max;
    return !scan->site || wb_slice_equal(wb_key_site(page_out->key), wb_slice_str(scan->site));
}

int wb_log_scan_next(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct log_scan *scan = scan_of(base);
    char why[WB_ERROR_MESSAGE_MAX];

    for (;;) {
        if (!scan->block || scan->index == scan->head.count) {
            int err = next_block(scan);
            if (err <= 0)
                return err;
        }
        int err = next_entry(scan, page_out);
        if (err == WB_E_CORRUPT) {
            strcpy(why, wb_error_message());
            return wb_fail(WB_E_CORRUPT, "%s: block %llu: %s", scan->segment.file.path,
                           (unsigned long long)scan->head.logical, why);
        }
        if (err != 0)
            return err;
    }
}
