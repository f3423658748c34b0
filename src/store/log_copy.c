/*
 * log_copy.c - copies the blocks of a segment for compaction, without their dead pages. A
 * block is copied in the cheapest way that is allowed:
 *
 *   all pages alive                       as it is
 *   some pages dead                       thinned: the frames of dead pages are left out (block.h)
 *   some dead in the lead, after a        rebuilt ("scrubbed"): decompressed, and compressed
 *   takedown                              again without the dead pages
 *   damaged, with live pages              byte by byte, as it is
 *   no page alive                         not at all
 *
 * A second thread writes to the file while this one fills the next buffer. Nothing here
 * touches the catalog: which pages are alive was found out before (log_live.c).
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/log_compact.h"

#include <stdio.h>

enum {
    WRITE_BYTES = 512 << 10, /* small, so that the bytes are still in the processor's cache when they are written */
};

/* ---- copying a block ---------------------------------------------------------------------------- */

/* Records a block that could not be scrubbed, or only by losing a page that nobody could read anyway. */
static int add_unscrubbed(struct wb_log_compaction *c, const struct wb_block_head *head, bool lost)
{
    struct wb_log_unscrubbed block = {.at = head->logical, .lost = lost};

    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    WB_CHECK(c->row.removed > 0);
    snprintf(block.why, sizeof block.why, "%s", wb_error_message());
    wb_segment_locate(&c->from, head->logical, &block.at);
    return wb_vec_push(&c->unscrubbed, block);
}

/* What replaces a record that cannot be read: the digests from the directory, and "lost" (docs/formats/segment.md). */
static int put_lost(const struct wb_block_entry *entry, struct wb_buf *record_out)
{
    WB_CHECK(entry->digests != NULL);
    wb_buf_clear(record_out);
    int err = wb_buf_append(record_out, entry->digests, WB_RECORD_DIGEST_BYTES);
    return err < 0 ? err : wb_buf_append_str(record_out, "lost");
}

/*
 * Scrubs a block: decompresses its live pages and compresses them as a new block, with the
 * same slots. If a page outside the lead cannot be read, it becomes a record without
 * content, because it must not keep the bytes of a takedown on disk. If the lead cannot be
 * read, no page of the block can be: WB_E_CORRUPT.
 */
static int rebuild(struct wb_log_compaction *c, const struct wb_block_head *head, const char *block, const bool *dead,
                   size_t live)
{
    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    WB_CHECK(c->builder != NULL);
    WB_CHECK(c->zstd != NULL);
    WB_CHECK(live > 0);
    WB_CHECK(live < head->count);

    const char *directory = block + WB_BLOCK_HEADER_BYTES;
    struct wb_block_page *pages = wb_alloc_zero(live, sizeof *pages);
    struct wb_buf *records = wb_alloc_zero(live, sizeof *records), lead = WB_BUF_INIT;
    uint64_t frame_at = wb_block_directory_end(head) + head->lead_stored_bytes;
    size_t n = 0, lead_at = 0, start = c->out.len;
    int err = pages && records ? 0 : WB_E_NOMEM;

    if (err == 0 && head->lead_count)
        err = wb_block_read_lead(c->zstd, head, block + wb_block_directory_end(head), &lead);
    for (size_t i = 0; i < head->count && err == 0; i++) {
        struct wb_block_entry entry = wb_block_entry_read(directory, i);
        bool in_lead = entry.flags & WB_BLOCK_ENTRY_LEAD;
        if (!dead[i]) {
            if (in_lead)
                err = wb_block_lead_record(&entry, wb_buf_slice(&lead), lead_at, &records[n]);
            else
                err = wb_block_read_frame(c->zstd, &entry, block + frame_at, wb_buf_slice(&lead), &records[n]);
            if (err == WB_E_CORRUPT && !in_lead) {
                err = add_unscrubbed(c, head, true);
                if (err == 0)
                    err = put_lost(&entry, &records[n]);
            }
            pages[n] = (struct wb_block_page){
                .id = entry.id, .record = wb_buf_slice(&records[n]), .site = head->site, .slot = entry.slot};
            n++;
        }
        lead_at += in_lead ? entry.raw_bytes : 0;
        frame_at += entry.stored_bytes;
    }
    WB_CHECK(err < 0 || n == live);
    if (err == 0)
        err = wb_block_build(c->builder, pages, n, true, &c->out);
    if (err == 0)
        wb_block_stamp(c->out.ptr + start, head->logical, head->commit);
    for (size_t i = 0; records && i < live; i++)
        wb_buf_release(&records[i]);
    wb_buf_release(&lead);
    wb_free(records);
    wb_free(pages);
    return err;
}

/* The number of dead pages in the lead. */
static uint64_t count_lead_dead(const struct wb_block_head *head, const char *directory, const bool *dead)
{
    uint64_t count = 0;

    WB_CHECK(head->count <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(head->count > 0);
    for (size_t i = 0; i < head->count; i++)
        count += dead[i] && wb_block_entry_read(directory, i).flags & WB_BLOCK_ENTRY_LEAD;
    return count;
}

static int add_to_map(struct wb_log_compaction *c, uint64_t logical, uint64_t physical)
{
    WB_CHECK(c->map.count == 0 || c->map.items[c->map.count - 1].logical < logical);
    WB_CHECK(c->map.count == 0 || c->map.items[c->map.count - 1].physical < physical);
    return wb_vec_push(&c->map, (struct wb_segment_map_entry){logical, physical});
}

/* Runs in the writing thread. */
static void write_bytes(void *context)
{
    struct wb_log_compact_write *w = context;
    int err = wb_file_write_at(w->file, w->at, w->bytes.ptr, w->bytes.len);

    WB_CHECK(w->file->fd >= 0);
    WB_CHECK(w->at >= WB_SEGMENT_HEADER_BYTES);
    wb_error_save(err, &w->error);
    wb_file_write_back(w->file, w->at, w->bytes.len); /* lets the disk start while we copy the next blocks */
}

/* Waits until everything that was handed over is in the file. */
static int wait_for_writing(struct wb_log_compaction *c)
{
    WB_CHECK(c->pool != NULL);
    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    wb_pool_wait(c->pool);
    return c->writing.error.code < 0 ? wb_error_restore(&c->writing.error) : 0;
}

/* Hands the collected blocks to the writing thread. */
static int write_out(struct wb_log_compaction *c)
{
    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    WB_CHECK(c->out_at >= WB_SEGMENT_HEADER_BYTES);

    struct wb_log_compact_write *w = &c->writing;
    int err = wait_for_writing(c);

    if (err < 0)
        return err;
    struct wb_buf filled = c->out;
    c->out = w->bytes;
    wb_buf_clear(&c->out);
    *w = (struct wb_log_compact_write){.file = &c->to.file, .bytes = filled, .at = c->out_at};
    c->out_at += filled.len;
    return wb_pool_submit(c->pool, write_bytes, w);
}

/* Copies a damaged part that contains live pages, byte by byte; drops one that does not. */
static int copy_damage(struct wb_log_compaction *c, uint64_t at, uint64_t end)
{
    const struct wb_log_damage *damage =
        c->damages < c->live.damages.count ? &c->live.damages.items[c->damages++] : NULL;
    int err = 0;

    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    WB_CHECK(at < end);
    if (!damage || damage->at != at || damage->end != end)
        return wb_fail(WB_E_CORRUPT, "%s at %llu: read twice, with different results", c->from.file.path,
                       (unsigned long long)at);
    if (damage->pages == 0)
        return 0;
    c->kept += damage->pages;
    uint64_t start = c->out_at + c->out.len;
    for (size_t i = damage->first; i < damage->first + damage->count && err == 0; i++)
        err = add_to_map(c, c->live.blocks.items[i].logical, start + (c->live.blocks.items[i].physical - at));
    while (at < end && err == 0) {
        size_t bytes = end - at < WRITE_BYTES ? (size_t)(end - at) : WRITE_BYTES, got = 0;
        err = wb_buf_reserve(&c->out, bytes);
        if (err == 0)
            err = wb_file_read_at(&c->from.file, at, c->out.ptr + c->out.len, bytes, &got);
        if (err == 0 && got == 0)
            break; /* the file is shorter than it should be */
        c->out.len += got;
        at += got;
        if (err == 0 && c->out.len >= WRITE_BYTES)
            err = write_out(c);
    }
    return err;
}

/* Copies what is alive of a block, in the cheapest way that is allowed: as it is, thinned, or rebuilt. */
static int copy_block(struct wb_log_compaction *c, const struct wb_block_head *head, const char *block)
{
    const bool *dead = c->live.dead + c->judged;
    size_t live = 0;
    int err;

    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    WB_CHECK(c->judged <= c->live.count);
    WB_CHECK(head->count <= c->live.count - c->judged);
    c->judged += head->count;
    for (size_t i = 0; i < head->count; i++)
        live += !dead[i];
    if (live == 0)
        return 0;
    err = add_to_map(c, head->logical, c->out_at + c->out.len);
    if (err < 0)
        return err;
    uint64_t lead_dead = count_lead_dead(head, block + WB_BLOCK_HEADER_BYTES, dead);
    c->kept += live;
    bool scrub = c->row.removed && lead_dead;
    if (live == head->count) {
        err = wb_buf_append(&c->out, block, (size_t)head->bytes);
    } else if (scrub) {
        size_t start = c->out.len;
        err = rebuild(c, head, block, dead, live);
        if (err == WB_E_CORRUPT) { /* a live page cannot be read, so the block keeps its dead bytes */
            c->out.len = start;
            scrub = false;
            err = add_unscrubbed(c, head, false);
        }
    }
    if (err == 0 && live < head->count && !scrub) {
        err = wb_block_thin(head, block, dead, &c->out);
        c->lead_dead += lead_dead;
    }
    if (err == 0 && c->out.len >= WRITE_BYTES)
        err = write_out(c);
    return err;
}

/* ---- all blocks -------------------------------------------------------------------------------------- */

int wb_log_copy_blocks(struct wb_log_compaction *c)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, before = c->done;
    int err;

    WB_CHECK(c->magic == WB_LOG_COMPACTION_MAGIC);
    WB_CHECK(c->judged == 0);
    WB_CHECK(c->map.count == 0);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(c->to.file.fd >= 0);
    wb_segment_walk_init(&walk, &c->from, wb_log_blocks_end(&c->row));
    while ((err = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        if (err == WB_E_CORRUPT)
            err = copy_damage(c, walk.error_at, walk.next);
        else if (err > 0)
            err = copy_block(c, &head, block);
        if (err < 0)
            break;
        c->done = before + walk.next;
        if (c->progress && !c->progress(c->progress_context, c->done, c->total)) {
            err = wb_fail(WB_E_STOPPED, "compaction was stopped");
            break;
        }
    }
    wb_segment_walk_release(&walk);
    c->done = before + c->row.bytes;
    if (err == 0)
        err = write_out(c);
    int written = wait_for_writing(c);
    return err < 0 ? err : written;
}
