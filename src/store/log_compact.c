/*
 * log_compact.c - gives back the space of dead pages.
 *
 * A segment with dead pages is copied without them into a file of the next
 * revision, block by block and in order; frames are copied as they are. Blocks keep
 * their logical offsets, so no entry of the catalog changes: one row does. The old
 * file goes when the last reader that might need it has left (log_recover.c).
 *
 * Segments that a writer holds are left alone. Where pages were removed on request
 * their bytes must really go: a block whose lead holds such a page is compressed
 * again.
 *
 * Damage does not stop compaction. A damaged part of a segment (log_live.c) is dropped if all its pages are dead; if some are
 * live, it is copied byte by byte, so that nothing that could still be read or repaired is lost. A segment that cannot be opened is
 * left alone. Each damaged place is reported to the caller.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/log.h"

#include <stdio.h>

#define COMPACT_LOCK_NAME "compact.lock"

enum { WRITE_BYTES = 512 << 10 }; /* what is gathered stays in the processor's cache until the kernel takes it */

/* Blocks on their way to the file: another thread writes them while we fill the next. */
struct compact_write {
    const struct wb_file *file;
    struct wb_buf bytes;
    uint64_t at;
    struct wb_error_copy error;
};

/* A block from which dead bytes should go, but a live page of it cannot be read. */
struct unscrubbed_block {
    uint64_t at;
    bool lost; /* it went nevertheless, and with it what was left of that page */
    char why[160];
};

struct compaction {
    struct wb_log *log;
    struct wb_catalog_txn txn; /* what was live when a segment's copying began */
    struct wb_catalog_segment row; /* of the segment being copied */
    struct wb_segment from, to;
    struct wb_log_live live; /* which pages of it are, in the order of the file */
    size_t judged;           /* how many of them the blocks copied so far had */
    size_t damages;          /* how many damaged parts were passed */
    struct wb_segment_map_entry *map;
    size_t map_count, map_cap;
    struct wb_buf stuck;    /* struct unscrubbed_block: blocks that could not be scrubbed */
    struct wb_buf out;      /* blocks not yet handed to the writing thread */
    uint64_t out_at;        /* where they will lie */
    struct compact_write writing;
    struct wb_pool *pool;
    uint64_t kept;          /* pages copied */
    uint64_t lead_dead;     /* dead pages copied because the lead needs their bytes */
    struct wb_block_builder *builder;
    struct wb_block_reader *zstd;
    wb_store_progress progress;
    void *progress_context;
    wb_store_found found;
    void *found_context;
    uint64_t done, total;
    struct wb_store_compact_counts result;
};

/* ---- telling of damage ---------------------------------------------------------------------------------- */

/* What a segment's compaction found is told when it is done: a segment that fails halfway is told of as a whole. */
static void tell(struct compaction *c, bool stays, uint64_t offset, const char *message)
{
    char file[WB_SEGMENT_NAME_MAX];

    c->result.damaged += stays;
    c->result.dropped += !stays;
    wb_segment_name(c->row.number, c->row.revision, file);
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){stays, file, offset, message});
}

static void tell_of_damages(struct compaction *c)
{
    char message[WB_ERROR_MESSAGE_MAX];

    for (size_t i = 0; i < c->live.damage_count; i++) {
        const struct wb_log_damage *damage = &c->live.damages[i];
        unsigned long long bytes = (unsigned long long)(damage->end - damage->at);
        if (damage->pages)
            snprintf(message, sizeof message, "%s; %llu pages lie in these %llu bytes, which were kept as they are", damage->why,
                     (unsigned long long)damage->pages, bytes);
        else
            snprintf(message, sizeof message, "%s; no page needs these %llu bytes, which were dropped", damage->why, bytes);
        tell(c, damage->pages > 0, damage->at, message);
    }
    for (size_t i = 0; i < c->stuck.len; i += sizeof(struct unscrubbed_block)) {
        const struct unscrubbed_block *stuck = (const void *)(c->stuck.ptr + i);
        snprintf(message, sizeof message, "%s; %s", stuck->why,
                 stuck->lost ? "what was left of that page went with the bytes of pages that were taken down"
                             : "so bytes of pages that were taken down stay in this block");
        tell(c, true, stuck->at, message);
    }
}

/* ---- copying a block ---------------------------------------------------------------------------- */

/* A block that could not be scrubbed, or only at the cost of a page that nobody can read: told with the other damage. */
static int add_stuck(struct compaction *c, const struct wb_block_head *head, bool lost)
{
    struct unscrubbed_block stuck = {.at = head->logical, .lost = lost};

    snprintf(stuck.why, sizeof stuck.why, "%s", wb_error_message());
    wb_segment_locate(&c->from, head->logical, &stuck.at);
    return wb_buf_append(&c->stuck, &stuck, sizeof stuck);
}

/* In place of a record that cannot be read: its digests, which the directory has, and no page record (docs/formats/segment.md). */
static int put_lost(const struct wb_block_entry *entry, struct wb_buf *record_out)
{
    wb_buf_clear(record_out);
    int err = wb_buf_append(record_out, entry->digests, WB_RECORD_DIGEST_BYTES);
    return err < 0 ? err : wb_buf_append_str(record_out, "lost");
}

/*
 * Decompresses the live pages of a block and compresses them as a new one with the same slots. A page outside the lead that cannot be
 * read does not keep the bytes of a takedown on disk: it stays a damaged page. Where the lead cannot be read, nothing of the block
 * can: WB_E_CORRUPT.
 */
static int rebuild(struct compaction *c, const struct wb_block_head *head, const char *block, const bool *dead, size_t live)
{
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
                err = add_stuck(c, head, true);
                if (err == 0)
                    err = put_lost(&entry, &records[n]);
            }
            pages[n] = (struct wb_block_page){.id = entry.id, .record = wb_buf_slice(&records[n]), .site = head->site, .slot = entry.slot};
            n++;
        }
        lead_at += in_lead ? entry.raw_bytes : 0;
        frame_at += entry.stored_bytes;
    }
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

static uint64_t count_lead_dead(const struct wb_block_head *head, const char *directory, const bool *dead)
{
    uint64_t count = 0;

    for (size_t i = 0; i < head->count; i++)
        count += dead[i] && wb_block_entry_read(directory, i).flags & WB_BLOCK_ENTRY_LEAD;
    return count;
}

static int add_to_map(struct compaction *c, uint64_t logical, uint64_t physical)
{
    if (c->map_count == c->map_cap) {
        size_t cap = c->map_cap ? c->map_cap * 2 : 256;
        struct wb_segment_map_entry *grown = wb_realloc(c->map, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        c->map = grown;
        c->map_cap = cap;
    }
    c->map[c->map_count++] = (struct wb_segment_map_entry){logical, physical};
    return 0;
}

static void write_bytes(void *context)
{
    struct compact_write *w = context;
    int err = wb_file_write_at(w->file, w->at, w->bytes.ptr, w->bytes.len);

    wb_error_save(err, &w->error);
    wb_file_write_back(w->file, w->at, w->bytes.len); /* the disk works while we copy on */
}

/* What was handed over is in the file, or the error is told. */
static int wait_for_writing(struct compaction *c)
{
    wb_pool_wait(c->pool);
    return c->writing.error.code < 0 ? wb_error_restore(&c->writing.error) : 0;
}

static int write_out(struct compaction *c)
{
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

/* A damaged part that the catalog says has live pages, byte by byte. */
static int copy_damage(struct compaction *c, uint64_t at, uint64_t end)
{
    const struct wb_log_damage *damage = c->damages < c->live.damage_count ? &c->live.damages[c->damages++] : NULL;
    int err = 0;

    if (!damage || damage->at != at || damage->end != end)
        return wb_fail(WB_E_CORRUPT, "%s at %llu: read twice, with different results", c->from.file.path, (unsigned long long)at);
    if (damage->pages == 0) /* nobody needs it */
        return 0;
    c->kept += damage->pages;
    uint64_t start = c->out_at + c->out.len;
    for (size_t i = damage->first; i < damage->first + damage->count && err == 0; i++)
        err = add_to_map(c, c->live.blocks[i].logical, start + (c->live.blocks[i].physical - at));
    while (at < end && err == 0) {
        size_t bytes = end - at < WRITE_BYTES ? (size_t)(end - at) : WRITE_BYTES, got = 0;
        err = wb_buf_reserve(&c->out, bytes);
        if (err == 0)
            err = wb_file_read_at(&c->from.file, at, c->out.ptr + c->out.len, bytes, &got);
        if (err == 0 && got == 0)
            break; /* the file ends early: there is nothing more of it */
        c->out.len += got;
        at += got;
        if (err == 0 && c->out.len >= WRITE_BYTES)
            err = write_out(c);
    }
    return err;
}

static int copy_block(struct compaction *c, const struct wb_block_head *head, const char *block)
{
    const bool *dead = c->live.dead + c->judged;
    size_t live = 0;
    int err;

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
        if (err == WB_E_CORRUPT) { /* a live page of it cannot be read: the block stays as it is, dead bytes and all */
            c->out.len = start;
            scrub = false;
            err = add_stuck(c, head, false);
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
    int err = wb_catalog_txn_read(c->log->catalog, &c->txn);

    return err < 0 ? err : wb_catalog_segment_get(&c->txn, c->row.number, &c->row);
}

static int copy_blocks(struct compaction *c)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at, before = c->done;
    int err;

    wb_segment_walk_init(&walk, &c->from, c->row.revision ? c->row.map_at : c->row.bytes);
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

struct publication {
    struct compaction *c;
    struct wb_catalog_txn txn;
    struct wb_catalog_segment row; /* the new one; number 0: the segment goes altogether */
};

/* The new row, with what died while we copied; the old file is retired in the same transaction. */
static int publish(struct publication *p)
{
    const struct wb_catalog_segment *before = &p->c->row;
    struct wb_catalog_segment now;
    struct wb_catalog_summary state;
    int err = wb_catalog_txn_write(p->c->log->catalog, &p->txn);

    if (err == 0)
        err = wb_catalog_segment_get(&p->txn, before->number, &now);
    if (err == 0)
        err = wb_catalog_summary_get(&p->txn, &state);
    if (err < 0)
        goto done;
    WB_CHECK(now.revision == before->revision && now.bytes == before->bytes);
    if (p->row.number) {
        p->row.live = now.live;
        p->row.bytes_dead = now.bytes_dead - before->bytes_dead;
        p->row.removed = now.removed - before->removed;
        p->row.touched = now.touched;
        err = wb_catalog_segment_put(&p->txn, &p->row);
    } else {
        err = wb_catalog_segment_delete(&p->txn, before->number);
    }
    if (err == 0)
        err = wb_catalog_retired_put(&p->txn, before->number, before->revision, wb_catalog_txn_id(&p->txn));
    state.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&p->txn, &state);
    if (err == 0)
        err = wb_catalog_txn_commit(&p->txn);
done:
    wb_catalog_txn_abort(&p->txn);
    return err;
}

/* Makes the file of the next revision. One that is there was left by a compaction that died: we hold the lock of the living. */
static int create_revision(struct compaction *c)
{
    char name[WB_SEGMENT_NAME_MAX];
    int err;

    wb_segment_name(c->row.number, c->row.revision + 1, name);
    char *path = wb_path_join(c->log->dir, name);
    err = path ? wb_path_unlink(path) : WB_E_NOMEM;
    wb_free(path);
    return err < 0 ? err : wb_segment_create(c->log->dir, c->log->superblock.id, c->row.number, c->row.revision + 1, &c->to);
}

/* The file of the next revision, whole and synced; on failure it is removed again. */
static int write_revision(struct compaction *c, struct wb_catalog_segment *row_out)
{
    uint64_t map_bytes = 0;
    int err = create_revision(c);

    if (err < 0)
        return err;
    c->out_at = WB_SEGMENT_HEADER_BYTES;
    c->map_count = 0;
    c->kept = c->lead_dead = 0;
    c->judged = c->damages = 0;
    c->writing.error.code = 0;
    wb_buf_clear(&c->out);
    err = copy_blocks(c);
    if (err == 0)
        err = wb_segment_write_map(&c->to, c->out_at, c->map, c->map_count, &map_bytes);
    if (err == 0)
        err = wb_file_sync(&c->to.file);
    if (err == 0 && c->kept + c->live.nowhere != c->row.live)
        err = wb_fail(WB_E_CORRUPT, "%s holds %llu live pages, the catalog knows of %llu: nothing was changed, run verify",
                      c->from.file.path, (unsigned long long)c->kept, (unsigned long long)c->row.live);
    *row_out = c->row;
    row_out->revision++;
    row_out->sealed = true;
    row_out->bytes = c->out_at + map_bytes;
    row_out->pages = c->row.live;
    row_out->lead_dead = (uint32_t)c->lead_dead;
    row_out->map_at = c->out_at;
    row_out->map_count = c->map_count;
    return err;
}

/* Removes the unfinished file of the next revision. */
static void discard_revision(struct compaction *c)
{
    struct wb_error_copy why;

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

static int compact_segment(struct compaction *c)
{
    struct publication p = {.c = c};
    int err = begin_reading(c);

    if (err == 0 && c->row.live > 0) {
        err = wb_log_live_read(&c->txn, &c->from, &c->row, &c->live);
        if (err == 0)
            err = write_revision(c, &p.row);
        if (err == 0)
            err = sync_pages_dir(c->log);
    }
    wb_catalog_txn_abort(&c->txn);
    if (err == 0)
        err = publish(&p);
    if (err < 0) {
        if (!wb_catalog_uncertain(c->log->catalog)) /* else the new file may be the one that counts */
            discard_revision(c);
        return err;
    }
    tell_of_damages(c);
    c->result.segments++;
    c->result.pages += p.row.number ? p.row.pages : 0;
    c->result.bytes_before += c->row.bytes;
    c->result.bytes_after += p.row.number ? p.row.bytes : 0;
    return 0;
}

/* A segment whose pages are all dead goes, whatever state its file is in. */
static int open_segment(struct compaction *c, const struct wb_catalog_segment *row)
{
    int err = wb_segment_open(c->log->dir, c->log->superblock.id, row, true, &c->from);

    if (err != WB_E_CORRUPT || row->live > 0)
        return err;
    err = wb_segment_open_unread(c->log->dir, row, &c->from);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* A segment that a writer holds is skipped; so is one that has nothing to give. */
static int consider_segment(struct compaction *c, const struct wb_catalog_segment *row)
{
    int err;

    if (row->pages == 0 || (row->bytes_dead == 0 && row->removed == 0 && row->live > 0))
        return 0;
    c->row = *row;
    wb_buf_clear(&c->stuck);
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
    struct wb_log_overview list = {0};
    int err = wb_log_overview(c->log, &list);

    for (size_t i = 0; i < list.rows.count; i++)
        if (list.rows.rows[i].bytes_dead || list.rows.rows[i].removed || !list.rows.rows[i].live)
            c->total += list.rows.rows[i].bytes;
    for (size_t i = 0; i < list.rows.count && err == 0; i++)
        err = consider_segment(c, &list.rows.rows[i]);
    wb_log_rows_release(&list.rows);
    return err;
}

/* The segment that this very handle appends to is let go first, so that it can be compacted too. */
static int release_tails(struct wb_log *log)
{
    struct wb_store_commit_counts counts = {0};
    int err = wb_log_commit(&log->store, &counts);

    wb_log_tails_release(log);
    return err;
}

int wb_log_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found, void *found_context,
                   struct wb_store_compact_counts *compact_out)
{
    struct wb_log *log = wb_log_of(store);
    struct compaction c = {.log = log, .from = WB_SEGMENT_INIT, .to = WB_SEGMENT_INIT, .progress = progress,
                           .progress_context = progress_context, .found = found, .found_context = found_context};
    struct wb_file lock = WB_FILE_INIT;
    char *lock_path = wb_path_join(log->dir, COMPACT_LOCK_NAME);
    int err = lock_path ? wb_file_open(lock_path, WB_FILE_WRITE | WB_FILE_CREATE, &lock) : WB_E_NOMEM;

    if (err == 0) {
        err = wb_file_lock(&lock, false);
        if (err == WB_E_BUSY)
            err = wb_fail(WB_E_BUSY, "another compaction of %s is running", log->dir);
    }
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
    *compact_out = c.result;
    wb_block_builder_free(c.builder);
    wb_block_reader_free(c.zstd);
    wb_pool_free(c.pool);
    wb_buf_release(&c.out);
    wb_buf_release(&c.stuck);
    wb_buf_release(&c.writing.bytes);
    wb_free(c.map);
    wb_file_close(&lock);
    wb_free(lock_path);
    return err;
}
