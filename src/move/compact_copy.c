/*
 * compact_copy.c - copies the blocks of a segment for compaction, without their dead pages. A
 * block is copied in the cheapest way that is allowed:
 *
 *   all pages alive                       as it is
 *   some pages dead or newly replaced     frame by frame, as wb_block_rewrite() decides (block.h)
 *   some pages dead, after a takedown     the same, but no byte of a dead page may stay ("scrubbed")
 *   some frames damaged                   the same; damaged frames stay as they are
 *   damaged, with live pages              byte by byte, as it is
 *   no page alive                         not at all
 *
 * A second thread writes to the file while this one fills the next buffer. Nothing here
 * changes the catalog: which pages are alive was found out before (segment_live.c).
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/compact.h"

#include <stdio.h>

enum {
    WRITE_BYTES = 512 << 10, /* small, so that the bytes are still in the processor's cache when they are written */
};

/* ---- copying a block ---------------------------------------------------------------------------- */

/* Records a block that could not be scrubbed, or only by losing a page that nobody could read anyway. */
static int add_unscrubbed(struct wb_compaction *c, const struct wb_block_head *head, bool lost)
{
    struct wb_compact_unscrubbed block = {.at = head->logical, .lost = lost};

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->row.removed > 0);
    snprintf(block.why, sizeof block.why, "%s", wb_error_message());
    wb_segment_locate(&c->from, head->logical, &block.at);
    return wb_vec_push(&c->unscrubbed, block);
}

static int add_to_map(struct wb_compaction *c, uint64_t logical, uint64_t physical)
{
    WB_CHECK(c->map.count == 0 || c->map.items[c->map.count - 1].logical < logical);
    WB_CHECK(c->map.count == 0 || c->map.items[c->map.count - 1].physical < physical);
    return wb_vec_push(&c->map, (struct wb_segment_map_entry){logical, physical});
}

/* Runs in the writing thread. */
static void write_bytes(void *context)
{
    struct wb_compact_write *w = context;
    int err = wb_node_file_write_at(w->file, w->at, w->bytes.ptr, w->bytes.len);

    WB_CHECK(w->file->node != NULL);
    WB_CHECK(w->at >= WB_SEGMENT_HEADER_BYTES);
    wb_error_save(err, &w->error);
    /* lets the disk start while we copy the next blocks */
    wb_node_file_hint(w->file, WB_NODE_WRITE_BACK, w->at, w->bytes.len);
}

/* Waits until everything that was handed over is in the file. */
static int wait_for_writing(struct wb_compaction *c)
{
    WB_CHECK(c->pool != NULL);
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    wb_pool_wait(c->pool);
    return c->writing.error.code < 0 ? wb_error_restore(&c->writing.error) : 0;
}

/* Hands the collected blocks to the writing thread. */
static int write_out(struct wb_compaction *c)
{
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->out_at >= WB_SEGMENT_HEADER_BYTES);

    struct wb_compact_write *w = &c->writing;
    int err = wait_for_writing(c);

    if (err < 0)
        return err;
    struct wb_buf filled = c->out;
    c->out = w->bytes;
    wb_buf_clear(&c->out);
    *w = (struct wb_compact_write){.file = &c->to.file, .bytes = filled, .at = c->out_at};
    c->out_at += filled.len;
    return wb_pool_submit(c->pool, write_bytes, w);
}

/* Copies a damaged part that contains live pages, byte by byte; drops one that does not. */
static int copy_damage(struct wb_compaction *c, uint64_t at, uint64_t end)
{
    const struct wb_segment_damage *damage =
        c->damages < c->live.damages.count ? &c->live.damages.items[c->damages++] : NULL;
    int err = 0;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(at < end);
    if (!damage || damage->at != at || damage->end != end)
        return wb_fail(WB_E_CORRUPT, "%s at %llu: read twice, with different results", c->from.file.path,
                       (unsigned long long)at);
    if (damage->pages == 0)
        return 0;
    c->kept += damage->pages;
    c->unflagged = true;
    uint64_t start = c->out_at + c->out.len;
    for (size_t i = damage->first; i < damage->first + damage->count && err == 0; i++)
        err = add_to_map(c, c->live.blocks.items[i].logical, start + (c->live.blocks.items[i].physical - at));
    while (at < end && err == 0) {
        size_t bytes = end - at < WRITE_BYTES ? (size_t)(end - at) : WRITE_BYTES, got = 0;
        err = wb_buf_reserve(&c->out, bytes);
        if (err == 0)
            err = wb_node_file_read_at(&c->from.file, at, c->out.ptr + c->out.len, bytes, &got);
        if (err == 0 && got == 0)
            break; /* the file is shorter than it should be */
        c->out.len += got;
        at += got;
        if (err == 0 && c->out.len >= WRITE_BYTES)
            err = write_out(c);
    }
    return err;
}

/*
 * Copies a block of which something must change. If it cannot be scrubbed because a base
 * cannot be read, it keeps its dead bytes. If a base would have to be compressed again and
 * cannot be read, the block stays as it is.
 */
static int change_block(struct wb_compaction *c, const struct wb_block_index *index, const char *block,
                        const bool *dead, const bool *old)
{
    struct wb_block_change change = {
        .dead = dead,
        .old = old,
        .scrub = c->row.removed > 0,
        .extra = c->extras.items,
        .extra_count = c->extras.count,
    };

    WB_CHECK(c->builder != NULL);
    WB_CHECK(c->zstd != NULL);
    int err = wb_block_rewrite(c->builder, c->zstd, index, block, &change, &c->out);
    if (err == WB_E_CORRUPT && change.extra_count) { /* nothing can be added to a block that cannot be read */
        wb_compact_group_forget(c);
        change.extra_count = 0;
        err = wb_block_rewrite(c->builder, c->zstd, index, block, &change, &c->out);
    }
    if (err == 0 && change.lost)
        err = add_unscrubbed(c, &index->head, true);
    if (err == WB_E_CORRUPT && change.scrub) {
        err = add_unscrubbed(c, &index->head, false);
        change.scrub = false;
        if (err == 0)
            err = wb_block_rewrite(c->builder, c->zstd, index, block, &change, &c->out);
    }
    if (err == WB_E_CORRUPT) {
        for (size_t i = 0; i < index->entries.count; i++)
            change.kept_dead += dead[i];
        c->unflagged = true;
        err = wb_buf_append(&c->out, block, (size_t)index->head.bytes);
    }
    if (err == 0)
        wb_compact_group_place(c, index->head.logical);
    c->lead_dead += change.kept_dead;
    return err;
}

/*
 * Compares the frames of a block with their checksums, before they are copied, and remembers what is wrong. at: where
 * the block is in the old file.
 */
static int check_frames(struct wb_compaction *c, const struct wb_block_index *index, const char *block,
                        const bool *dead, uint64_t at)
{
    struct wb_compact_maimed maimed;
    int sound = wb_block_check(index, block, dead, &maimed.damage);

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(at >= WB_SEGMENT_HEADER_BYTES);
    maimed.at = at + maimed.damage.at;
    return sound != 0 ? (sound < 0 ? sound : 0) : wb_vec_push(&c->maimed, maimed);
}

/* Copies what is alive of a block, and adds old versions of its pages from elsewhere (compact_group.c). */
static int copy_block(struct wb_compaction *c, const struct wb_block_index *index, const char *block, uint64_t at)
{
    const struct wb_block_head *head = &index->head;
    const bool *dead = c->live.dead + c->judged, *old = c->live.old + c->judged;
    size_t live = 0, wrong = 0;
    int err;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->judged <= c->live.count);
    WB_CHECK(head->count <= c->live.count - c->judged);
    c->judged += head->count;
    for (size_t i = 0; i < head->count; i++)
        live += !dead[i];
    for (size_t i = 0; i < head->count; i++) {
        wrong += old[i] != ((index->entries.items[i].flags & WB_BLOCK_ENTRY_OLD) != 0);
        c->old += old[i];
    }
    if (live == 0)
        return 0;
    err = add_to_map(c, head->logical, c->out_at + c->out.len);
    if (err < 0)
        return err;
    c->kept += live;
    size_t unscrubbed = c->unscrubbed.count, maimed = c->maimed.count;
    err = check_frames(c, index, block, dead, at);
    if (err == 0)
        err = wb_compact_group_block(c, index);
    if (err < 0)
        return err;
    if (live < head->count || wrong || c->extras.count)
        err = change_block(c, index, block, dead, old);
    else
        err = wb_buf_append(&c->out, block, (size_t)head->bytes);
    if (c->unscrubbed.count > unscrubbed) /* that says more about the same damage */
        c->maimed.count = maimed;
    if (err == 0 && c->out.len >= WRITE_BYTES)
        err = write_out(c);
    return err;
}

/* ---- all blocks -------------------------------------------------------------------------------------- */

int wb_compact_copy(struct wb_compaction *c)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, before = c->done;
    int err;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->judged == 0);
    WB_CHECK(c->map.count == 0);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(c->to.file.node != NULL);
    wb_segment_walk_init(&walk, &c->from, wb_segment_blocks_end(&c->row));
    while ((err = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        if (err == WB_E_CORRUPT)
            err = copy_damage(c, walk.error_at, walk.next);
        else if (err > 0)
            err = copy_block(c, &walk.index, block, at);
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
