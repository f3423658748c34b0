/*
 * warcsalvage.c - what can be kept of a record that is not whole.
 *
 *   the file ends in the record        everything up to there
 *   the next record starts inside it   everything up to that record
 *   the block's length is wrong        everything up to the next record, or up to the end
 *                                      of its unit, if that is near; else the announced length
 *
 * The next record is the first header behind this one that can be read. It is looked for
 * only in units that may hold several records: a member of its own ends where it ends, and
 * what looks like a header inside is part of a page. Damaged bytes are never kept: if
 * decompression failed, other than by the end of the file, the record is lost.
 */
#include "base/error.h"
#include "warc/resync.h"

/* A length that is short by more than this is not believed to be: garbage follows the block. */
#define SHORT_MAX ((uint64_t)64 << 10)

/* Up to four bytes between block and next record are its line ends, or were before they were damaged. */
#define TRAILER_MAX 4

const char *wb_broken_words(enum wb_broken broken)
{
    static const char *const words[] = {
        [WB_BROKEN_NOT] = "",
        [WB_BROKEN_FILE_ENDS] = "the file ends in the middle of the record",
        [WB_BROKEN_NEXT_STARTS] = "the next record starts before the end of the record",
        [WB_BROKEN_WRONG_END] = "the block does not end where its length says",
    };
    return words[broken];
}

/* The bytes without the two line ends that close a record. */
static size_t without_line_ends(struct wb_slice bytes)
{
    size_t len = bytes.len;

    for (int i = 0; i < 2 && len > 0 && bytes.ptr[len - 1] == '\n'; i++) {
        len--;
        len -= len > 0 && bytes.ptr[len - 1] == '\r';
    }
    return len;
}

/* The record goes on for `end` bytes in memory, and `dropped` bytes of its block are there no more. */
static void end_at(struct wb_warc_reader *r, struct wb_extent *e, size_t end, uint64_t dropped)
{
    struct wb_slice block = wb_source_after(&r->source, e->head);
    uint64_t all = end - e->head + dropped;

    WB_CHECK(end >= e->head && end - e->head <= block.len);
    block.len = end - e->head;
    bool announced = r->broken == WB_BROKEN_WRONG_END && e->length <= all &&
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

/* Nothing ends the record but the end of what there is: the announced length stays. */
static void end_with_file(struct wb_warc_reader *r, struct wb_extent *e)
{
    size_t have = wb_source_bytes(&r->source).len - e->head;

    e->keep = e->length < r->block_max ? (size_t)e->length : r->block_max;
    if (e->keep > have)
        e->keep = have;
    e->taken = e->head + have;
    r->lost = r->source.damaged;
}

/* Garbage follows the block, for longer than is looked at: the announced block, and the next record has to be searched for. */
static void end_as_announced(struct wb_warc_reader *r, struct wb_extent *e, size_t looked_at)
{
    e->keep = e->length < r->block_max ? (size_t)e->length : r->block_max;
    e->taken = e->head + e->keep;
    if (looked_at > e->taken)
        e->taken = looked_at - 1; /* the search starts behind the first byte */
    r->lost = true;
}

/* A unit that may hold several records: 1 if the record's end was found in it. */
static int search_end(struct wb_warc_reader *r, struct wb_extent *e)
{
    struct wb_source *s = &r->source;
    struct wb_scan scan = {.at = e->head, .keep = e->head + r->block_max, .line_start = true};
    bool wrong_end = r->broken == WB_BROKEN_WRONG_END;
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

/* The unit holds this record only: 1 if it ends soon enough behind the announced length. */
static int find_unit_end(struct wb_warc_reader *r, struct wb_extent *e)
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

int wb_salvage_block(struct wb_warc_reader *r, struct wb_extent *extent)
{
    struct wb_source *s = &r->source;
    struct wb_extent *e = extent;
    int found = 1;

    if (s->cut_off)
        r->broken = WB_BROKEN_FILE_ENDS;
    else if (s->damaged || r->broken == WB_BROKEN_NOT)
        return WB_E_CORRUPT;
    e->sure = false;
    e->problem = wb_broken_words(r->broken);
    bool one_unit = s->unit_at <= s->mark || s->kind == WB_SOURCE_PLAIN;
    if (r->broken == WB_BROKEN_NEXT_STARTS)
        end_at(r, e, s->unit_at - s->mark, e->dropped);
    else if (wb_reader_holds_several(r) && one_unit && e->dropped == 0)
        found = search_end(r, e);
    else if (r->broken == WB_BROKEN_WRONG_END)
        found = find_unit_end(r, e);
    else
        found = 0;
    if (found == 0)
        end_with_file(r, e);
    return found < 0 ? found : 0;
}
