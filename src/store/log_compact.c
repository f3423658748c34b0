/*
 * log_compact.c - frees the space of dead pages.
 *
 * A segment that has dead pages is copied without them into a new file, its next revision,
 * block by block and in order. Frames are copied as they are; nothing is compressed. Blocks
 * keep their logical offsets, so no entry of the catalog changes, only the segment's row.
 * The old file is deleted when no reader needs it any more (log_recover.c).
 *
 *   1 lock the segment, hold a state of the catalog
 *   2 find out which pages are alive                 (log_live.c)
 *   3 copy the blocks into the next revision, write the map, sync
 *   4 publish: one transaction changes the row and retires the old file
 *
 * After a takedown the bytes of the page must really disappear, even if they are part of
 * a lead that other pages need. Blocks with dead pages in their lead are then rebuilt:
 * decompressed, and compressed again without them. This is called scrubbing.
 *
 * Damage does not stop compaction. A damaged part of a segment is dropped if all its pages
 * are dead. If some are alive, it is copied byte by byte, so that nothing that could be
 * read or repaired is lost. A segment that cannot be opened is left alone, and so is one
 * that a writer has locked. Every damaged place is reported to the caller.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/log.h"

#include <stdio.h>

#define COMPACT_LOCK_NAME "compact.lock"

enum {
    COMPACTION_MAGIC = 0x57424350,
    WRITE_BYTES = 512 << 10, /* small, so that the bytes are still in the processor's cache when they are written */
};

/* Blocks that another thread is writing to the file, while we fill the next buffer. */
struct compact_write {
    const struct wb_file *file;
    struct wb_buf bytes;
    uint64_t at;
    struct wb_error_copy error;
};

/* A block that should have been scrubbed, but a live page in it cannot be read. */
struct unscrubbed_block {
    uint64_t at;
    bool lost; /* true: it was scrubbed, and the unreadable page is lost; false: it was left as it is */
    char why[160];
};

struct compaction {
    uint32_t magic;
    struct wb_log *log;

    /* ---- the current segment ---- */
    struct wb_catalog_txn txn;     /* the state in which its pages are judged; held until it is copied */
    struct wb_catalog_segment row;
    struct wb_segment from, to;
    struct wb_log_live live;       /* which of its pages are alive, in the order of the file */
    size_t judged;                 /* entries of live that belong to blocks that were already copied */
    size_t damages;                /* damaged parts that were already passed */
    WB_VEC(struct wb_segment_map_entry) map;
    WB_VEC(struct unscrubbed_block) unscrubbed;
    struct wb_buf out;             /* blocks that were not yet handed to the writing thread ... */
    uint64_t out_at;               /* ... and where in the file they will be */
    uint64_t kept;                 /* live pages that were copied */
    uint64_t lead_dead;            /* dead pages that were copied because other pages need their bytes in the lead */

    /* ---- for all segments ---- */
    struct compact_write writing;
    struct wb_pool *pool;          /* the writing thread */
    struct wb_block_builder *builder;
    struct wb_block_reader *zstd;
    wb_store_progress progress;
    void *progress_context;
    wb_store_found found;
    void *found_context;
    uint64_t done, total;
    struct wb_store_compact_counts result;
};

/* ---- reporting damage ----------------------------------------------------------------------------------- */

/* Reports a damaged place of the current segment; stays says whether it is still there. */
static void tell(struct compaction *c, bool stays, uint64_t offset, const char *message)
{
    char file[WB_SEGMENT_NAME_MAX];

    WB_CHECK(c->magic == COMPACTION_MAGIC && c->row.number > 0);
    c->result.damaged += stays;
    c->result.dropped += !stays;
    wb_segment_name(c->row.number, c->row.revision, file);
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){stays, file, offset, message});
}

/* Called when the segment is published. If it fails halfway, the failure is reported instead. */
static void tell_of_damages(struct compaction *c)
{
    char message[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(c->magic == COMPACTION_MAGIC);
    for (size_t i = 0; i < c->live.damages.count; i++) {
        const struct wb_log_damage *damage = &c->live.damages.items[i];
        unsigned long long bytes = (unsigned long long)(damage->end - damage->at);
        if (damage->pages)
            snprintf(message, sizeof message, "%s; %llu pages are in these %llu bytes, which were kept as they are",
                     damage->why, (unsigned long long)damage->pages, bytes);
        else
            snprintf(message, sizeof message, "%s; no page needs these %llu bytes, which were dropped", damage->why,
                     bytes);
        tell(c, damage->pages > 0, damage->at, message);
    }
    for (size_t i = 0; i < c->unscrubbed.count; i++) {
        const struct unscrubbed_block *block = &c->unscrubbed.items[i];
        snprintf(message, sizeof message, "%s; %s", block->why,
                 block->lost ? "what was left of that page was removed together with the pages that were taken down"
                             : "so bytes of pages that were taken down stay in this block");
        tell(c, true, block->at, message);
    }
}

/* ---- copying a block ---------------------------------------------------------------------------- */

/* Records a block that could not be scrubbed, or only by losing a page that nobody could read anyway. */
static int add_unscrubbed(struct compaction *c, const struct wb_block_head *head, bool lost)
{
    struct unscrubbed_block block = {.at = head->logical, .lost = lost};

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
static int rebuild(struct compaction *c, const struct wb_block_head *head, const char *block, const bool *dead,
                   size_t live)
{
    WB_CHECK(c->magic == COMPACTION_MAGIC && live > 0 && live < head->count);

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

    WB_CHECK(head->count > 0);
    for (size_t i = 0; i < head->count; i++)
        count += dead[i] && wb_block_entry_read(directory, i).flags & WB_BLOCK_ENTRY_LEAD;
    return count;
}

static int add_to_map(struct compaction *c, uint64_t logical, uint64_t physical)
{
    WB_CHECK(c->map.count == 0 || c->map.items[c->map.count - 1].physical < physical);
    return wb_vec_push(&c->map, (struct wb_segment_map_entry){logical, physical});
}

/* Runs in the writing thread. */
static void write_bytes(void *context)
{
    struct compact_write *w = context;
    int err = wb_file_write_at(w->file, w->at, w->bytes.ptr, w->bytes.len);

    WB_CHECK(w->file->fd >= 0 && w->at >= WB_SEGMENT_HEADER_BYTES);
    wb_error_save(err, &w->error);
    wb_file_write_back(w->file, w->at, w->bytes.len); /* lets the disk start while we copy the next blocks */
}

/* Waits until everything that was handed over is in the file. */
static int wait_for_writing(struct compaction *c)
{
    WB_CHECK(c->magic == COMPACTION_MAGIC);
    wb_pool_wait(c->pool);
    return c->writing.error.code < 0 ? wb_error_restore(&c->writing.error) : 0;
}

/* Hands the collected blocks to the writing thread. */
static int write_out(struct compaction *c)
{
    WB_CHECK(c->out_at >= WB_SEGMENT_HEADER_BYTES);

    struct compact_write *w = &c->writing;
    int err = wait_for_writing(c);

    if (err < 0)
        return err;
    struct wb_buf filled = c->out;
    c->out = w->bytes;
    wb_buf_clear(&c->out);
    *w = (struct compact_write){.file = &c->to.file, .bytes = filled, .at = c->out_at};
    c->out_at += filled.len;
    return wb_pool_submit(c->pool, write_bytes, w);
}

/* Copies a damaged part that contains live pages, byte by byte; drops one that does not. */
static int copy_damage(struct compaction *c, uint64_t at, uint64_t end)
{
    const struct wb_log_damage *damage =
        c->damages < c->live.damages.count ? &c->live.damages.items[c->damages++] : NULL;
    int err = 0;

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
static int copy_block(struct compaction *c, const struct wb_block_head *head, const char *block)
{
    const bool *dead = c->live.dead + c->judged;
    size_t live = 0;
    int err;

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

/* ---- copying a segment ------------------------------------------------------------------------------- */

static int begin_reading(struct compaction *c)
{
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);

    int err = wb_catalog_txn_read(c->log->catalog, &c->txn);

    return err < 0 ? err : wb_catalog_segment_get(&c->txn, c->row.number, &c->row);
}

/* Copies all blocks, and waits until they are in the file. */
static int copy_blocks(struct compaction *c)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, before = c->done;
    int err;

    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_HELD && c->to.file.fd >= 0);
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

/*
 * Replaces the segment's row by the new one, and retires the old file, in one transaction.
 * What happened to the row while we copied is carried over. A new row with number 0 means
 * that nothing of the segment is left: its row is deleted.
 */
static int publish(struct compaction *c, struct wb_catalog_segment *row_inout)
{
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);

    const struct wb_catalog_segment *before = &c->row;
    struct wb_catalog_segment now;
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(c->log->catalog, &txn);

    if (err == 0)
        err = wb_catalog_segment_get(&txn, before->number, &now);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    if (err < 0)
        goto done;
    if (now.revision != before->revision || now.bytes != before->bytes || now.live > before->live ||
        now.bytes_dead < before->bytes_dead || now.removed < before->removed) {
        err = wb_catalog_corrupt(c->log->catalog, WB_CATALOG_SEGMENTS, "a segment that changed under its lock");
        goto done;
    }
    if (row_inout->number) {
        WB_CHECK(row_inout->number == before->number && row_inout->revision == before->revision + 1);
        row_inout->live = now.live;
        row_inout->bytes_dead = now.bytes_dead - before->bytes_dead;
        row_inout->removed = now.removed - before->removed;
        row_inout->touched = now.touched;
        err = wb_catalog_segment_put(&txn, row_inout);
    } else {
        err = wb_catalog_segment_delete(&txn, before->number);
    }
    if (err == 0)
        err = wb_catalog_retired_put(&txn, before->number, before->revision, wb_catalog_txn_id(&txn));
    summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&txn, &summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&txn);
done:
    wb_catalog_txn_abort(&txn);
    return err;
}

/*
 * Creates the file of the next revision. If it exists, a compaction that died has left it:
 * a running one would have the lock that we have.
 */
static int create_revision(struct compaction *c)
{
    char name[WB_SEGMENT_NAME_MAX];
    int err;

    WB_CHECK(c->to.file.fd < 0);
    wb_segment_name(c->row.number, c->row.revision + 1, name);
    char *path = wb_path_join(c->log->dir, name);
    err = path ? wb_path_unlink(path) : WB_E_NOMEM;
    wb_free(path);
    if (err < 0)
        return err;
    return wb_segment_create(c->log->dir, c->log->superblock.id, c->row.number, c->row.revision + 1, &c->to);
}

/* Writes the file of the next revision, complete and synced. If this fails, the caller removes the file. */
static int write_revision(struct compaction *c, struct wb_catalog_segment *row_out)
{
    WB_CHECK(c->row.live > 0);

    uint64_t map_bytes = 0;
    int err = create_revision(c);

    if (err < 0)
        return err;
    c->out_at = WB_SEGMENT_HEADER_BYTES;
    wb_vec_clear(&c->map);
    c->kept = c->lead_dead = 0;
    c->judged = c->damages = 0;
    c->writing.error.code = 0;
    wb_buf_clear(&c->out);
    err = copy_blocks(c);
    if (err == 0)
        err = wb_segment_write_map(&c->to, c->out_at, c->map.items, c->map.count, &map_bytes);
    if (err == 0)
        err = wb_file_sync(&c->to.file);
    if (err == 0 && c->kept + c->live.nowhere != c->row.live)
        err = wb_fail(WB_E_CORRUPT,
                      "%s holds %llu live pages, the catalog knows of %llu: nothing was changed, run verify",
                      c->from.file.path, (unsigned long long)c->kept, (unsigned long long)c->row.live);
    *row_out = c->row;
    row_out->revision++;
    row_out->sealed = true;
    row_out->bytes = c->out_at + map_bytes;
    row_out->pages = c->row.live;
    row_out->lead_dead = (uint32_t)c->lead_dead;
    row_out->map_at = c->out_at;
    row_out->map_count = c->map.count;
    return err;
}

/* Removes the unfinished file of the next revision. */
static void discard_revision(struct compaction *c)
{
    struct wb_error_copy why;

    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);
    wb_error_save(WB_E_IO, &why);
    if (c->to.file.path)
        wb_path_unlink(c->to.file.path);
    wb_error_restore(&why);
}

static int sync_pages_dir(struct wb_log *log)
{
    char *pages = wb_path_join(log->dir, WB_SEGMENT_DIR);
    int err = pages ? wb_path_sync_dir(pages) : WB_E_NOMEM;

    wb_free(pages);
    return err;
}

/* Steps 2 to 4, for the current segment. */
static int compact_segment(struct compaction *c)
{
    WB_CHECK(c->magic == COMPACTION_MAGIC && c->row.number > 0);

    struct wb_catalog_segment row = {0}; /* the new row; number 0 if nothing is left */
    int err = begin_reading(c);

    if (err == 0 && c->row.live > 0) {
        err = wb_log_live_read(&c->txn, &c->from, &c->row, &c->live);
        if (err == 0)
            err = write_revision(c, &row);
        if (err == 0)
            err = sync_pages_dir(c->log);
    }
    wb_catalog_txn_abort(&c->txn);
    if (err == 0)
        err = publish(c, &row);
    if (err < 0) {
        if (!wb_catalog_uncertain(c->log->catalog)) /* otherwise the new file may be the one that counts */
            discard_revision(c);
        return err;
    }
    tell_of_damages(c);
    c->result.segments++;
    c->result.pages += row.pages;
    c->result.bytes_before += c->row.bytes;
    c->result.bytes_after += row.bytes;
    return 0;
}

/* Opens the segment. If all its pages are dead it will be deleted, so damage in its file does not matter. */
static int open_segment(struct compaction *c, const struct wb_catalog_segment *row)
{
    WB_CHECK(c->from.file.fd < 0);

    int err = wb_segment_open(c->log->dir, c->log->superblock.id, row, true, &c->from);

    if (err != WB_E_CORRUPT || row->live > 0)
        return err;
    err = wb_segment_open_unread(c->log->dir, row, &c->from);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Compacts a segment, unless there is nothing to free, or another process has locked it. */
static int consider_segment(struct compaction *c, const struct wb_catalog_segment *row)
{
    int err;

    WB_CHECK(row->number > 0 && row->live <= row->pages);
    if (row->pages == 0 || (row->bytes_dead == 0 && row->removed == 0 && row->live > 0))
        return 0;
    c->row = *row;
    wb_vec_clear(&c->unscrubbed);
    err = open_segment(c, row);
    if (err == 0 && c->from.file.fd >= 0)
        err = wb_file_lock(&c->from.file, false);
    if (err == WB_E_BUSY) {
        c->result.skipped++;
        err = 0;
    } else if (err == 0) {
        err = compact_segment(c);
    }
    if (err == WB_E_CORRUPT) { /* the others can still be compacted */
        tell(c, true, 0, wb_error_message());
        c->done += row->bytes;
        err = 0;
    }
    wb_log_live_release(&c->live);
    wb_segment_close(&c->to);
    wb_segment_close(&c->from);
    return err;
}

/* ---- the command ------------------------------------------------------------------------------------------ */

static int compact_all(struct compaction *c)
{
    WB_CHECK(c->total == 0 && c->done == 0);

    struct wb_log_overview o = {0};
    int err = wb_log_overview(c->log, &o);

    for (size_t i = 0; i < o.rows.count; i++)
        if (o.rows.items[i].bytes_dead || o.rows.items[i].removed || !o.rows.items[i].live)
            c->total += o.rows.items[i].bytes;
    for (size_t i = 0; i < o.rows.count && err == 0; i++)
        err = consider_segment(c, &o.rows.items[i]);
    wb_log_rows_release(&o.rows);
    return err;
}

/* Gives up the segment that this handle appends to, so that it can be compacted too. */
static int release_tails(struct wb_log *log)
{
    struct wb_store_commit_counts counts = {0};
    int err = wb_log_commit(&log->store, &counts);

    wb_log_tails_release(log);
    return err;
}

/* Makes sure that no other process compacts the same repository. */
static int lock_compaction(const struct wb_log *log, struct wb_file *lock_out)
{
    char *path = wb_path_join(log->dir, COMPACT_LOCK_NAME);
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, lock_out) : WB_E_NOMEM;

    if (err == 0) {
        err = wb_file_lock(lock_out, false);
        if (err == WB_E_BUSY)
            err = wb_fail(WB_E_BUSY, "another compaction of %s is running", log->dir);
    }
    wb_free(path);
    return err;
}

int wb_log_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                   void *found_context, struct wb_store_compact_counts *counts_out)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct compaction c = {
        .magic = COMPACTION_MAGIC,
        .log = log,
        .from = WB_SEGMENT_INIT,
        .to = WB_SEGMENT_INIT,
        .progress = progress,
        .progress_context = progress_context,
        .found = found,
        .found_context = found_context,
    };
    struct wb_file lock = WB_FILE_INIT;
    int err = lock_compaction(log, &lock);

    if (err == 0)
        err = release_tails(log);
    if (err == 0)
        err = wb_block_builder_new(&c.builder);
    if (err == 0)
        err = wb_block_reader_new(&c.zstd);
    if (err == 0)
        err = wb_pool_new(1, &c.pool);
    if (err == 0)
        err = compact_all(&c);
    if (err == 0)
        err = wb_log_purge(log);
    wb_log_decide(log);
    *counts_out = c.result;
    wb_block_builder_free(c.builder);
    wb_block_reader_free(c.zstd);
    wb_pool_free(c.pool);
    wb_buf_release(&c.out);
    wb_buf_release(&c.writing.bytes);
    wb_vec_release(&c.unscrubbed);
    wb_vec_release(&c.map);
    wb_file_close(&lock);
    return err;
}
