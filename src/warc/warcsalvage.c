/*
 * warcsalvage.c - decides how much of an incomplete record can be kept.
 *
 *   what is wrong                      what is kept
 *   the file ends inside the record    everything up to there
 *   the next record starts inside it   everything up to that record
 *   the block's length is wrong        everything up to the next record or the end of the
 *                                      unit, if that is near; otherwise the claimed length
 *
 * The next record is the first valid header after this one. It is searched for only in units
 * that may hold several records: a member with a single record ends where it ends, and what
 * looks like a header inside it is part of a page. Damaged bytes are never kept: if
 * decompression failed for any reason but the end of the file, the record is lost.
 */
#include "base/error.h"
#include "warc/resync.h"

/* If more than this follows the claimed length, the length was probably right and garbage follows the block. */
#define SHORT_MAX ((uint64_t)64 << 10)

/* Up to four bytes between the block and the next record are the line ends of the record, possibly damaged. */
#define TRAILER_MAX 4

const char *wb_warc_broken_words(enum wb_warc_broken broken)
{
    static const char *const words[] = {
        [WB_WARC_BROKEN_NOT] = "",
        [WB_WARC_BROKEN_FILE_ENDS] = "the file ends in the middle of the record",
        [WB_WARC_BROKEN_NEXT_STARTS] = "the next record starts before the end of the record",
        [WB_WARC_BROKEN_WRONG_END] = "the block does not end where its length says",
    };
    return words[broken];
}

/* The number of bytes without the two line ends that close a record. */
static size_t without_line_ends(struct wb_slice bytes)
{
    size_t len = bytes.len;

    for (int i = 0; i < 2 && len > 0 && bytes.ptr[len - 1] == '\n'; i++) {
        len--;
        len -= len > 0 && bytes.ptr[len - 1] == '\r';
    }
    return len;
}

/* The record ends after `end` bytes in memory; `dropped` more bytes of its block have been discarded. */
static void end_at(struct wb_warc_reader *r, struct wb_warc_extent *e, size_t end, uint64_t dropped)
{
    struct wb_slice block = wb_source_after(&r->source, e->head);
    uint64_t all = end - e->head + dropped;

    WB_CHECK(end >= e->head && end - e->head <= block.len);
    block.len = end - e->head;
    bool announced = r->broken == WB_WARC_BROKEN_WRONG_END && e->length <= all &&
                     (all - e->length <= TRAILER_MAX || all - e->length > SHORT_MAX);
    if (!announced && dropped == 0) {
        block.len = without_line_ends(block);
        e->length = block.len;
    } else if (!announced) {
        e->length = all;
    }
    e->keep = e->length < r->block_max ? (size_t)e->length : r->block_max;
    if (e->keep > end - e->head)
        e->keep = end - e->head;
    e->taken = end;
}

/* The record ends where the file (or the readable part of it) ends; its claimed length is kept. */
static void end_with_file(struct wb_warc_reader *r, struct wb_warc_extent *e)
{
    size_t have = wb_source_bytes(&r->source).len - e->head;

    e->keep = e->length < r->block_max ? (size_t)e->length : r->block_max;
    if (e->keep > have)
        e->keep = have;
    e->taken = e->head + have;
    r->lost = r->source.damaged;
}

/* More garbage follows the block than we search: keep the claimed block, and let the next call search for a record. */
static void end_as_announced(struct wb_warc_reader *r, struct wb_warc_extent *e, size_t looked_at)
{
    e->keep = e->length < r->block_max ? (size_t)e->length : r->block_max;
    e->taken = e->head + e->keep;
    if (looked_at > e->taken)
        e->taken = looked_at - 1; /* the search skips the first byte */
    r->lost = true;
}

/* In a unit that may hold several records: returns 1 if the end of this record was found in it. */
static int search_end(struct wb_warc_reader *r, struct wb_warc_extent *e)
{
    struct wb_source *s = &r->source;
    struct wb_resync scan = {.at = e->head, .keep = e->head + r->block_max, .line_start = true};
    bool wrong_end = r->broken == WB_WARC_BROKEN_WRONG_END;
    uint64_t limit = wrong_end ? e->head + e->length + SHORT_MAX + TRAILER_MAX : UINT64_MAX;

    int found = wb_resync_scan(r, &scan, limit);
    if (found == WB_E_CORRUPT && s->cut_off)
        found = 0;
    if (found < 0)
        return found;
    if (found > 0 || (wrong_end && !s->unit_open && !s->damaged))
        end_at(r, e, found > 0 ? scan.at : wb_source_bytes(s).len, scan.dropped);
    else if (wrong_end && !s->damaged)
        end_as_announced(r, e, scan.at);
    else
        return 0;
    return 1;
}

/* In a unit that holds only this record: returns 1 if the record's end is settled, 0 if the file ends first. */
static int find_unit_end(struct wb_warc_reader *r, struct wb_warc_extent *e)
{
    struct wb_source *s = &r->source;
    int err = wb_source_fill(s, e->head + e->keep + SHORT_MAX + TRAILER_MAX);

    if (err < 0)
        return err == WB_E_CORRUPT && s->cut_off ? 0 : err;
    if (s->unit_open)
        end_as_announced(r, e, 0);
    else
        end_at(r, e, wb_source_bytes(s).len, e->dropped);
    return 1;
}

int wb_warc_salvage_block(struct wb_warc_reader *r, struct wb_warc_extent *extent)
{
    struct wb_source *s = &r->source;
    struct wb_warc_extent *e = extent;
    int found = 1;

    if (s->cut_off)
        r->broken = WB_WARC_BROKEN_FILE_ENDS;
    else if (s->damaged || r->broken == WB_WARC_BROKEN_NOT)
        return WB_E_CORRUPT;
    e->sure = false;
    e->problem = wb_warc_broken_words(r->broken);
    bool one_unit = s->unit_at <= s->mark || s->kind == WB_SOURCE_PLAIN;
    if (r->broken == WB_WARC_BROKEN_NEXT_STARTS)
        end_at(r, e, s->unit_at - s->mark, e->dropped);
    else if (wb_warc_reader_holds_several(r) && one_unit && e->dropped == 0)
        found = search_end(r, e);
    else if (r->broken == WB_WARC_BROKEN_WRONG_END)
        found = find_unit_end(r, e);
    else
        found = 0;
    if (found == 0)
        end_with_file(r, e);
    WB_CHECK(found < 0 || (e->head + e->keep <= e->taken && e->taken <= wb_source_bytes(s).len));
    return found < 0 ? found : 0;
}
