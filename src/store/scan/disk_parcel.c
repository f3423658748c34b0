/*
 * disk_parcel.c - passes on whole blocks of a scan, and makes the positions of pages.
 *
 * A block is passed on in the cheapest way that is allowed:
 *
 *   every page counts                          as it is on disk; no frame is read or even looked at
 *   some do not count                          as it is, with a list of those that do ...
 *   ... but they fill more than half of it     without them, frame by frame, as wb_block_rewrite() decides (block.h)
 *   ... or may have been taken down            the same, but no byte of them may stay ("scrubbed")
 *
 * A page does not count if the state does not show it, if it belongs to another site than the one that was asked for,
 * or if it is outside the places between which the scan runs. Only pages of the first kind can have been taken down. A
 * takedown marks all segments that have dead pages (catalog.h, `removed`), and compaction, which scrubs a marked
 * segment, removes the mark. There is one exception: blocks that could not be scrubbed because they are damaged. So a
 * block also loses its hidden pages if one of the frames that these need does not match its checksum.
 *
 * Pages that are gone (disk_gone.c), and those of a block that was split (disk_parts.c), are packed into new blocks.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/scan/disk_scan.h"
#include "store/scan/sorted_scan.h"

/* ---- positions ------------------------------------------------------------------------------------- */

/* A position names a block and a slot in it; of a page that is gone, its id. Compaction keeps both, and their order. */
enum { POSITION_OF_LOG = 1, POSITION_AT_CHECK = WB_STORE_POSITION_BYTES - 8 };

static void put_position(const struct wb_disk_scan *scan, const struct wb_catalog_place *place,
                         struct wb_store_position *position_out)
{
    char *bytes = position_out->bytes;

    WB_CHECK(scan->repo->magic == WB_REPO_MAGIC);
    bytes[0] = POSITION_OF_LOG;
    bytes[1] = scan->told_gone;
    wb_put16(bytes + 2, place->slot);
    wb_put32(bytes + 4, place->segment);
    wb_put64(bytes + 8, place->logical);
    wb_pageid_put(scan->told_id, bytes + 16);
    wb_put64(bytes + POSITION_AT_CHECK, wb_hash64_seeded(bytes, POSITION_AT_CHECK, scan->repo->content_seed));
}

void wb_disk_scan_tell(const struct wb_store_scan *base, struct wb_store_position *position_out)
{
    const struct wb_disk_scan *scan = (const struct wb_disk_scan *)base;

    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    put_position(scan, &scan->told, position_out);
}

static int check_position(const struct wb_disk_scan *scan, const char *bytes)
{
    WB_CHECK(scan->repo->magic == WB_REPO_MAGIC);
    if (bytes[0] != POSITION_OF_LOG ||
        wb_get64(bytes + POSITION_AT_CHECK) != wb_hash64_seeded(bytes, POSITION_AT_CHECK, scan->repo->content_seed))
        return wb_fail(WB_E_INVALID, "this is not a position in a scan of %s", scan->repo->dir);
    return 0;
}

struct wb_catalog_place wb_disk_scan_place(const struct wb_store_position *position)
{
    const char *bytes = position->bytes;

    return (struct wb_catalog_place){
        .slot = wb_get16(bytes + 2), .segment = wb_get32(bytes + 4), .logical = wb_get64(bytes + 8)};
}

int wb_disk_scan_take(struct wb_disk_scan *scan, const struct wb_store_position *position)
{
    const char *bytes = position->bytes;
    int err = check_position(scan, bytes);

    WB_CHECK(scan->told.segment == 0);
    WB_CHECK(!scan->gone_phase);
    if (err < 0)
        return err;
    scan->told_gone = bytes[1];
    scan->told = wb_disk_scan_place(position);
    scan->told_id = wb_pageid_get(bytes + 16);
    scan->gone_phase = scan->told_gone;
    return 0;
}

int wb_disk_scan_take_until(struct wb_disk_scan *scan, const struct wb_store_position *position)
{
    int err = check_position(scan, position->bytes);

    WB_CHECK(!scan->gone);
    if (err == 0 && (position->bytes[1] || wb_get32(position->bytes + 4) == 0))
        err = wb_fail(WB_E_INVALID, "a scan of %s cannot end at this position", scan->repo->dir);
    if (err == 0)
        scan->until = wb_disk_scan_place(position);
    return err;
}

int wb_disk_scan_position_compare(const struct wb_store_position *a, const struct wb_store_position *b)
{
    struct wb_catalog_place x = wb_disk_scan_place(a), y = wb_disk_scan_place(b);

    if (wb_sorted_position_is(a))
        return wb_sorted_position_compare(a, b);
    WB_CHECK(a->bytes[0] == POSITION_OF_LOG && b->bytes[0] == POSITION_OF_LOG);
    if (a->bytes[1] != b->bytes[1])
        return a->bytes[1] < b->bytes[1] ? -1 : 1;
    if (a->bytes[1])
        return wb_pageid_compare(wb_pageid_get(a->bytes + 16), wb_pageid_get(b->bytes + 16));
    if (x.segment != y.segment)
        return x.segment < y.segment ? -1 : 1;
    if (x.logical != y.logical)
        return x.logical < y.logical ? -1 : 1;
    return (x.slot > y.slot) - (x.slot < y.slot);
}

/* ---- which pages count ------------------------------------------------------------------------------ */

void wb_disk_scan_parcel_release(struct wb_disk_scan *scan)
{
    WB_CHECK(scan->scan.magic == WB_STORE_SCAN_MAGIC);
    wb_vec_release(&scan->parcel_pages);
    wb_vec_release(&scan->dropped);
    wb_buf_release(&scan->rebuilt);
    wb_block_builder_free(scan->builder);
    wb_scan_pack_release(&scan->pack);
}

/* Adds a page to the list of those that count. */
static void add_page(struct wb_disk_scan *scan, size_t at)
{
    const struct wb_block_entry *entry = &scan->at->walk.index.entries.items[at];
    struct wb_catalog_place place = {scan->origin, entry->slot, scan->logical};
    struct wb_store_parcel_page *page = &scan->parcel_pages.items[scan->parcel_pages.count++];

    WB_CHECK(scan->parcel_pages.count <= scan->parcel_pages.cap);
    *page = (struct wb_store_parcel_page){.id = entry->id, .slot = entry->slot, .own_time = true, .own_lifetime = true};
    put_position(scan, &place, &page->position);
    scan->dropped.items[at] = false;
    if (scan->at->plain) {
        page->epoch = scan->at->block_epoch;
        return;
    }
    const struct wb_catalog_entry *known = &scan->at->known.items[at].entry;
    page->own_time = false;
    page->own_lifetime = known->ended;
    page->time_ms = known->time_ms;
    page->epoch = known->epoch;
    page->lifetime = known->lifetime;
    page->lifetime_count = known->lifetime_count;
}

/* Whether a visible page belongs to the site that was asked for. One that cannot be read does: it must be reported. */
static int is_of_site(struct wb_disk_scan *scan, size_t at, bool *mine_out)
{
    struct wb_page page;

    WB_CHECK(scan->here == 1);
    *mine_out = true;
    if (!scan->site || scan->at->head.site == scan->site_hash)
        return 0;
    int err = wb_block_read_facts(scan->at->zstd, at, &page);
    if (err == 0)
        *mine_out = wb_slice_equal(wb_key_site(page.key), wb_slice_str(scan->site));
    return err == WB_E_CORRUPT ? 0 : err;
}

/* Whether a frame and those below it match their checksums. */
static bool frames_match(const struct wb_disk_scan *scan, uint32_t number)
{
    const struct wb_block_frame *frames = scan->at->walk.index.frames.items;
    bool match = true;

    WB_CHECK(number < scan->at->walk.index.frames.count);
    for (int32_t f = (int32_t)number; f >= 0 && match; f = frames[f].base)
        match = wb_block_frame_is_sound(&scan->at->walk.index, scan->at->block, (uint32_t)f);
    return match;
}

/* Lists the pages of the block that count. *secret_out: bytes of the others may have been taken down. */
static int choose_pages(struct wb_disk_scan *scan, bool *secret_out)
{
    bool marked = scan->at->row.removed > 0, outside, hidden, mine;
    int64_t matched = -1; /* the frame that was checked last */
    int err = wb_vec_reserve(&scan->dropped, scan->at->head.count);

    WB_CHECK(scan->index < scan->at->head.count);
    *secret_out = false;
    wb_vec_clear(&scan->parcel_pages);
    if (err == 0)
        err = wb_vec_reserve(&scan->parcel_pages, scan->at->head.count);
    if (err == 0)
        memset(scan->dropped.items, true, scan->at->head.count * sizeof *scan->dropped.items);
    for (size_t i = 0; i < scan->at->head.count && err == 0; i++) {
        size_t at = wb_disk_scan_entry(scan, i, &outside, &hidden);
        uint32_t frame = scan->at->walk.index.entries.items[at].frame;
        if (hidden) {
            *secret_out = *secret_out || marked || (matched != frame && !frames_match(scan, frame));
            matched = frame;
        } else if (!outside && i >= scan->index) {
            err = is_of_site(scan, at, &mine);
            if (err == 0 && mine)
                add_page(scan, at);
        }
    }
    return err;
}

/* Whether more than half of the block is of no use to those who get it. */
static bool is_mostly_waste(const struct wb_disk_scan *scan)
{
    const struct wb_block_index *index = &scan->at->walk.index;
    double waste = 0, all = 0;

    WB_CHECK(scan->parcel_pages.count > 0);
    for (size_t i = 0; i < index->frames.count; i++) {
        const struct wb_block_frame *frame = &index->frames.items[i];
        double raw = 0;
        for (size_t j = frame->first; j < frame->first + frame->count; j++)
            if (scan->dropped.items[j])
                raw += (double)index->entries.items[j].head_bytes + index->entries.items[j].body_bytes;
        waste += raw * frame->stored_bytes / frame->raw_bytes;
        all += frame->stored_bytes;
    }
    return 2 * waste > all;
}

/* ---- a block without the pages that do not count ------------------------------------------------------- */

/* Gives up the pages that cannot be read. */
static int drop_unreadable(struct wb_disk_scan *scan)
{
    struct wb_page page;
    size_t kept = 0;
    int err = 0;

    WB_CHECK(scan->salvaging);
    wb_block_reader_open_bytes(scan->at->zstd, &scan->at->walk.index, scan->at->block);
    for (size_t i = 0; i < scan->parcel_pages.count && err == 0; i++) {
        size_t at;
        WB_CHECK(wb_block_find_slot(&scan->at->walk.index, scan->parcel_pages.items[i].slot, &at));
        err = wb_block_read_page(scan->at->zstd, at, &page);
        scan->dropped.items[at] = err < 0;
        if (err == 0)
            scan->parcel_pages.items[kept++] = scan->parcel_pages.items[i];
        err = err == WB_E_CORRUPT ? 0 : err;
    }
    scan->parcel_pages.count = kept;
    return err;
}

/* Copies the pages that count to a new block. WB_E_CORRUPT if some of them cannot be read. */
static int rebuild(struct wb_disk_scan *scan, bool scrub)
{
    struct wb_block_change change = {.dead = scan->dropped.items, .scrub = scrub};
    int err = scan->builder ? 0 : wb_block_builder_new(&scan->builder);

    WB_CHECK(scan->here == 1);
    if (err == 0 && scan->salvaging)
        err = drop_unreadable(scan);
    wb_buf_clear(&scan->rebuilt);
    if (err == 0 && scan->parcel_pages.count)
        err = wb_block_rewrite(scan->builder, scan->at->zstd, &scan->at->walk.index, scan->at->block, &change,
                               &scan->rebuilt);
    wb_block_reader_open_bytes(scan->at->zstd, &scan->at->walk.index, scan->at->block);
    return err;
}

/*
 * Makes a parcel of what is left of the block. Returns 1, or 0 if nothing of it counts. If it must be rebuilt, and a
 * frame that most of it needs is damaged, that is reported first, and the next call takes what can be read.
 */
static int pack_block(struct wb_disk_scan *scan, struct wb_store_parcel *parcel_out)
{
    bool secret;
    int err = choose_pages(scan, &secret);

    if (err < 0)
        return err;
    parcel_out->bytes = wb_slice(scan->at->block, (size_t)scan->at->head.bytes);
    if (scan->parcel_pages.count && (secret || is_mostly_waste(scan))) {
        err = rebuild(scan, secret || scan->salvaging);
        if (err == WB_E_CORRUPT && !scan->salvaging) {
            scan->salvaging = true;
            return err;
        }
        parcel_out->bytes = wb_buf_slice(&scan->rebuilt);
    }
    scan->salvaging = false;
    scan->index = scan->at->head.count;
    if (err < 0 || scan->parcel_pages.count == 0)
        return err;
    parcel_out->pages = scan->parcel_pages.items;
    parcel_out->count = scan->parcel_pages.count;
    uint16_t slot = parcel_out->pages[parcel_out->count - 1].slot;
    scan->told = (struct wb_catalog_place){scan->origin, slot, scan->logical};
    return 1;
}

/* ---- pages that are packed again ----------------------------------------------------------------------- */

/* The next page of a block that was split: they come from several files in turn. Returns 0 at its end. */
static int next_of_parts(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct wb_disk_scan *scan = (struct wb_disk_scan *)base;
    int got = 0;

    WB_CHECK(scan->here > 1);
    while (got == 0 && scan->index < scan->count)
        got = wb_disk_scan_page(scan, page_out);
    return got == WB_E_CORRUPT ? wb_disk_scan_name(scan) : got;
}

/* The next page that is gone. */
static int next_gone(struct wb_store_scan *base, struct wb_page *page_out)
{
    return wb_disk_scan_gone((struct wb_disk_scan *)base, page_out);
}

int wb_disk_scan_parcel(struct wb_store_scan *base, struct wb_store_parcel *parcel_out)
{
    struct wb_disk_scan *scan = (struct wb_disk_scan *)base;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(scan->epoch > 0);
    WB_CHECK(!scan->facts);
    int err = wb_scan_pack_late(&scan->pack);
    if (err == 0)
        err = wb_disk_scan_late(scan);
    if (err < 0)
        return err;
    while (!scan->gone_phase) {
        err = scan->index < scan->count ? 1 : wb_disk_scan_block(scan);
        if (err > 0 && scan->late.count)
            return wb_disk_scan_late(scan);
        if (err < 0)
            return err;
        if (err > 0)
            err = scan->here > 1 ? wb_scan_pack(&scan->pack, base, next_of_parts, parcel_out)
                                 : pack_block(scan, parcel_out);
        if (err == WB_E_CORRUPT && scan->here == 1)
            return wb_disk_scan_name(scan);
        if (err != 0)
            return err;
    }
    return scan->gone ? wb_scan_pack(&scan->pack, base, next_gone, parcel_out) : 0;
}
