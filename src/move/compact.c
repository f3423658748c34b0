/*
 * compact.c - frees the space of dead pages.
 *
 * A segment that has dead pages is copied without them into a new file, its next revision,
 * block by block and in order. Frames are copied as they are; nothing is compressed. Blocks
 * keep their logical offsets, so no entry of the catalog changes, only the segment's row.
 * The old file is deleted when no reader needs it any more (repo_recover.c).
 *
 *   1 lock the segment, hold a state of the catalog
 *   2 find out which pages are alive                 (segment_live.c)
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
 * that a writer has locked. Every damaged place is reported to the caller: all bytes that are
 * copied are compared with their checksums first, and those that do not match keep them, so
 * that whoever reads them later notices too.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "pagefile/hash_store.h"
#include "pagefile/hashed_log.h"
#include "move/compact.h"

#include <stdio.h>

/* ---- reporting damage ----------------------------------------------------------------------------------- */

/* Reports a damaged place of the current segment; stays says whether it is still there. */
static void tell(struct wb_compaction *c, bool stays, uint64_t offset, const char *message)
{
    char file[WB_SEGMENT_NAME_MAX];

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(message[0] != '\0');
    WB_CHECK(c->row.number > 0);
    c->result.damaged += stays;
    c->result.dropped += !stays;
    wb_segment_name(c->row.number, c->row.revision, file);
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){stays, file, offset, message});
}

/*
 * The past of pages cannot be read: reports it, so that everything else is compacted nevertheless. Versions whose
 * fate is not known stay.
 */
static int absorb_catalog(struct wb_compaction *c, int err)
{
    WB_CHECK(err <= 0);
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    if (err != WB_E_CORRUPT)
        return err;
    c->result.damaged++;
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){true, WB_CATALOG_NAME, 0, wb_error_message()});
    return 0;
}

/* Called when the segment is published. If it fails halfway, the failure is reported instead. */
static void tell_of_damages(struct wb_compaction *c)
{
    char message[WB_ERROR_MESSAGE_MAX];

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);
    for (size_t i = 0; i < c->live.damages.count; i++) {
        const struct wb_segment_damage *damage = &c->live.damages.items[i];
        unsigned long long bytes = (unsigned long long)(damage->end - damage->at);
        if (damage->pages)
            snprintf(message, sizeof message, "%s; %llu pages are in these %llu bytes, which were kept as they are",
                     damage->why, (unsigned long long)damage->pages, bytes);
        else
            snprintf(message, sizeof message, "%s; no page needs these %llu bytes, which were dropped", damage->why,
                     bytes);
        tell(c, damage->pages > 0, damage->at, message);
    }
    for (size_t i = 0; i < c->maimed.count; i++) {
        const struct wb_compact_maimed *block = &c->maimed.items[i];
        bool one = block->damage.frames == 1;
        snprintf(message, sizeof message,
                 "%u frame%s of a block %s; %u page%s in it cannot be read, and these bytes were kept as they are",
                 block->damage.frames, one ? "" : "s",
                 one ? "does not match its checksum" : "do not match their checksums", block->damage.pages,
                 block->damage.pages == 1 ? "" : "s");
        tell(c, true, block->at, message);
    }
    for (size_t i = 0; i < c->unscrubbed.count; i++) {
        const struct wb_compact_unscrubbed *block = &c->unscrubbed.items[i];
        snprintf(message, sizeof message, "%s; %s", block->why,
                 block->lost ? "what was left of that page was removed together with the pages that were taken down"
                             : "so bytes of pages that were taken down stay in this block");
        tell(c, true, block->at, message);
    }
}

/* ---- copying a segment ------------------------------------------------------------------------------- */

static int begin_reading(struct wb_compaction *c)
{
    WB_CHECK(c->row.number > 0);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);

    int err = wb_catalog_txn_read(c->repo->catalog, &c->txn);

    return err < 0 ? err : wb_catalog_segment_get(&c->txn, c->row.number, &c->row);
}

/*
 * Replaces the segment's row by the new one, and retires the old file, in one transaction.
 * What happened to the row while we copied is carried over. A new row with number 0 means
 * that nothing of the segment is left: its row is deleted.
 */
static int publish(struct wb_compaction *c, struct wb_catalog_segment *row_inout)
{
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);

    const struct wb_catalog_segment *before = &c->row;
    struct wb_catalog_segment now;
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(c->repo->catalog, &txn);

    if (err == 0)
        err = wb_catalog_segment_get(&txn, before->number, &now);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    if (err < 0)
        goto done;
    if (now.revision != before->revision || now.bytes != before->bytes || now.live > before->live ||
        now.bytes_dead < before->bytes_dead || now.removed < before->removed || now.returned < before->returned) {
        err = wb_catalog_corrupt(c->repo->catalog, WB_CATALOG_SEGMENTS, "a segment that changed under its lock");
        goto done;
    }
    if (row_inout->number) {
        WB_CHECK(row_inout->number == before->number);
        WB_CHECK(row_inout->revision == before->revision + 1);
        row_inout->live = now.live;
        row_inout->old = now.old;
        row_inout->bytes_dead = now.bytes_dead - before->bytes_dead;
        row_inout->removed = now.removed - before->removed;
        row_inout->touched = now.touched;
        row_inout->returned = now.returned - before->returned;
        err = wb_catalog_segment_put(&txn, row_inout);
    } else {
        err = wb_catalog_segment_delete(&txn, before->number);
    }
    if (err == 0)
        err = wb_catalog_retired_put(&txn, before->number, before->revision, before->node, wb_catalog_txn_id(&txn));
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
static int create_revision(struct wb_compaction *c)
{
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *node;
    int err = wb_repo_node(c->repo, c->row.node, &node);

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->to.file.node == NULL);
    wb_segment_name(c->row.number, c->row.revision + 1, name);
    if (err == 0)
        err = wb_node_remove(node, name);
    if (err < 0)
        return err;
    return wb_segment_create(node, c->repo->superblock.id, c->row.number, c->row.revision + 1, &c->to);
}

/*
 * Whether writers may append to the new file: it is small, so its neighbours need no files of their own. Otherwise each
 * compaction would leave a file to which nobody adds anything, and there would soon be as many as there were commits.
 * The names of blocks that are appended are only told apart by the number of their segment, so parts get none.
 */
static bool may_grow(const struct wb_compaction *c, const struct wb_catalog_segment *row)
{
    WB_CHECK(row->bytes >= WB_SEGMENT_HEADER_BYTES);
    return !row->split && !row->origin && row->bytes < wb_segment_limit(c->repo) / 2;
}

/* Writes the file of the next revision, complete and synced. If this fails, the caller removes the file. */
static int write_revision(struct wb_compaction *c, struct wb_catalog_segment *row_out)
{
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(c->row.live > 0);

    uint64_t map_bytes = 0;
    int err = create_revision(c);

    if (err < 0)
        return err;
    c->out_at = WB_SEGMENT_HEADER_BYTES;
    wb_vec_clear(&c->map);
    c->kept = c->lead_dead = c->old = 0;
    c->unflagged = false;
    c->judged = c->damages = 0;
    c->writing.error.code = 0;
    wb_buf_clear(&c->out);
    wb_compact_group_begin(c);
    err = wb_compact_copy(c);
    wb_compact_group_clear(c);
    if (err == 0)
        err = wb_segment_write_map(&c->to, c->out_at, c->map.items, c->map.count, &map_bytes);
    if (err == 0)
        err = wb_node_file_sync(&c->to.file);
    if (err == 0 && c->kept + c->live.nowhere != c->row.live)
        err = wb_fail(WB_E_CORRUPT,
                      "%s holds %llu live pages, the catalog knows of %llu: nothing was changed, run verify",
                      c->from.file.path, (unsigned long long)c->kept, (unsigned long long)c->row.live);
    *row_out = c->row;
    row_out->revision++;
    row_out->bytes = c->out_at + map_bytes;
    row_out->sealed = !may_grow(c, row_out);
    row_out->pages = c->row.live + c->moves.count;
    row_out->lead_dead = (uint32_t)c->lead_dead;
    row_out->old_known = c->old + c->moves.count;
    row_out->old_epoch = c->unflagged ? UINT64_MAX : c->live.epoch;
    row_out->map_at = c->out_at;
    row_out->map_count = c->map.count;
    return err;
}

/* Removes the unfinished file of the next revision. */
static void discard_revision(struct wb_compaction *c)
{
    struct wb_error_copy why;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);
    wb_error_save(WB_E_IO, &why);
    if (c->to.file.node)
        wb_node_file_remove(&c->to.file);
    wb_error_restore(&why);
}

/* Steps 2 to 4, for the current segment. */
static int compact_segment(struct wb_compaction *c)
{
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->row.number > 0);

    struct wb_catalog_segment row = {0}; /* the new row; number 0 if nothing is left */
    int err = begin_reading(c);

    if (err == 0 && c->row.live > 0) {
        err = wb_segment_live_read(&c->txn, &c->from, &c->row, &c->live);
        if (err == 0)
            err = write_revision(c, &row);
        if (err == 0)
            err = wb_node_sync_names(c->to.file.node);
    }
    wb_catalog_txn_abort(&c->txn);
    if (err == 0)
        err = publish(c, &row);
    if (err < 0) {
        if (!wb_catalog_uncertain(c->repo->catalog)) /* otherwise the new file may be the one that counts */
            discard_revision(c);
        return err;
    }
    tell_of_damages(c);
    err = wb_compact_group_relocate(c);
    if (err < 0)
        return err;
    c->result.files++;
    c->result.pages += row.pages;
    c->result.bytes_before += c->row.bytes;
    c->result.bytes_after += row.bytes;
    return 0;
}

/* Opens the segment. If all its pages are dead it will be deleted, so damage in its file does not matter. */
static int open_segment(struct wb_compaction *c, const struct wb_catalog_segment *row)
{
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->from.file.node == NULL);

    struct wb_node *node;
    int err = wb_nodes_find_to_write(&c->repo->nodes, row->node, &node);

    if (err < 0)
        return err;
    err = wb_segment_open(node, c->repo->superblock.id, row, true, &c->from);
    if (err != WB_E_CORRUPT || row->live > 0)
        return err;
    err = wb_segment_open_unread(node, row, &c->from);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* What makes it worthwhile to put versions that are not the latest into frames of their own: a part of the pages. */
enum { WORTH_A_COPY = 8 };

/* Whether there is something to free, to move next to newer versions, or to put apart. */
static bool needs_work(const struct wb_compaction *c, const struct wb_catalog_segment *row)
{
    bool apart = row->old > row->old_known && (row->old - row->old_known) * WORTH_A_COPY >= row->live;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(row->number > 0);
    /* Dead pages in leads count for nothing, because others need their bytes: unless all pages of a block are dead. */
    uint64_t part = c->repo->store.thrifty ? WB_STORE_WORTHWHILE : WORTH_A_COPY;
    bool many = row->pages > row->live && (row->pages - row->live) * part >= row->live;
    uint64_t least = c->repo->store.thrifty ? row->bytes / part + 1 : 1;
    return row->pages > 0 && (wb_catalog_segment_dead(row) >= least || row->removed || row->live == 0 || apart ||
                              many || (c->grouping && wb_compact_group_wants(c, row)));
}

/*
 * A node is down, or its disk fails or is full: the segment stays as it is, and the others are compacted. Errors of the
 * catalog are not of this kind: they would meet every segment.
 */
static int leave_out(struct wb_compaction *c, int err)
{
    char file[WB_SEGMENT_NAME_MAX];

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(err < 0);
    if (!wb_repo_node_failed(c->repo, err) || wb_catalog_uncertain(c->repo->catalog))
        return err;
    c->done += c->row.bytes;
    c->result.skipped++;
    wb_segment_name(c->row.number, c->row.revision, file);
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){false, file, 0, wb_error_message()});
    return 0;
}

/* Compacts a segment, unless there is nothing to do, its node is down, or another process has locked it. */
static int consider_segment(struct wb_compaction *c, const struct wb_catalog_segment *row)
{
    int err;

    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(row->number > 0);
    WB_CHECK(row->live <= row->pages);
    if (!needs_work(c, row))
        return 0;
    c->row = *row;
    wb_vec_clear(&c->unscrubbed);
    wb_vec_clear(&c->maimed);
    err = open_segment(c, row);
    if (err == 0 && c->from.file.node)
        err = wb_node_file_claim(&c->from.file);
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
    if (err < 0)
        err = leave_out(c, err);
    wb_segment_live_release(&c->live);
    wb_segment_close(&c->to);
    wb_segment_close(&c->from);
    return err;
}

/* ---- segments in which nothing is alive ------------------------------------------------------------------- */

enum { DEAD_AT_ONCE = 64 }; /* so many files are open at a time */

/* Such segments, which we have locked. */
struct dead_segments {
    struct wb_catalog_segment rows[DEAD_AT_ONCE];
    struct wb_segment files[DEAD_AT_ONCE];
    size_t count;
};

static bool is_dead(const struct wb_catalog_segment *row)
{
    WB_CHECK(row->live <= row->pages);
    return row->pages > 0 && row->live == 0;
}

/* Deletes their rows and retires their files, all in one transaction. One that is alive by now stays. */
static int publish_dead(struct wb_compaction *c, struct dead_segments *dead)
{
    struct wb_catalog_summary summary;
    struct wb_catalog_segment now;
    struct wb_catalog_txn txn;
    uint64_t files = 0, bytes = 0;
    int err = wb_catalog_txn_write(c->repo->catalog, &txn);

    WB_CHECK(dead->count > 0);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    for (size_t i = 0; i < dead->count && err == 0; i++) {
        err = wb_catalog_segment_get(&txn, dead->rows[i].number, &now);
        if (err < 0 || !is_dead(&now) || now.revision != dead->rows[i].revision)
            continue;
        err = wb_catalog_segment_delete(&txn, now.number);
        if (err == 0)
            err = wb_catalog_retired_put(&txn, now.number, now.revision, now.node, wb_catalog_txn_id(&txn));
        files++;
        bytes += now.bytes;
    }
    summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&txn, &summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&txn);
    wb_catalog_txn_abort(&txn);
    c->result.files += err == 0 ? files : 0;
    c->result.bytes_before += err == 0 ? bytes : 0;
    return absorb_catalog(c, err);
}

/* Locks a dead segment, unless its node is down or another process has locked it. */
static int claim_dead(struct wb_compaction *c, const struct wb_catalog_segment *row, struct dead_segments *dead)
{
    int err;

    WB_CHECK(dead->count < DEAD_AT_ONCE);
    c->row = *row;
    err = open_segment(c, row);
    if (err == 0 && c->from.file.node)
        err = wb_node_file_claim(&c->from.file);
    if (err == 0) {
        dead->rows[dead->count] = *row;
        dead->files[dead->count++] = c->from;
        c->from = WB_SEGMENT_INIT;
        return 0;
    }
    wb_segment_close(&c->from);
    c->result.skipped += err == WB_E_BUSY;
    if (err == WB_E_CORRUPT) /* the others can still be removed */
        tell(c, true, 0, wb_error_message());
    return err == WB_E_BUSY || err == WB_E_CORRUPT ? 0 : leave_out(c, err);
}

/* Removes all segments in which nothing is alive. They are not read, and cost few transactions. */
static int remove_dead(struct wb_compaction *c, const struct wb_catalog_rows *rows)
{
    struct dead_segments *dead = wb_alloc_zero(1, sizeof *dead);
    int err = dead ? 0 : WB_E_NOMEM;

    WB_CHECK(!c->grouping);
    for (size_t i = 0; i < rows->count && err == 0; i++) {
        if (is_dead(&rows->items[i]))
            err = claim_dead(c, &rows->items[i], dead);
        if (err == 0 && dead->count && (dead->count == DEAD_AT_ONCE || i + 1 == rows->count)) {
            err = publish_dead(c, dead);
            while (dead->count)
                wb_segment_close(&dead->files[--dead->count]);
        }
    }
    while (dead && dead->count)
        wb_segment_close(&dead->files[--dead->count]);
    wb_free(dead);
    return err;
}

/* ---- the command ------------------------------------------------------------------------------------------ */

static int compact_all(struct wb_compaction *c)
{
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);

    struct wb_repo_overview o = {0};
    int err = wb_repo_overview(c->repo, &o);

    for (size_t i = 0; i < o.rows.count; i++)
        if (needs_work(c, &o.rows.items[i]) && (!c->grouping || wb_compact_group_wants(c, &o.rows.items[i])))
            c->total += o.rows.items[i].bytes;
    if (err == 0 && !c->grouping)
        err = remove_dead(c, &o.rows);
    for (size_t i = 0; i < o.rows.count && err == 0; i++)
        if (c->grouping ? wb_compact_group_wants(c, &o.rows.items[i]) : !is_dead(&o.rows.items[i]))
            err = consider_segment(c, &o.rows.items[i]);
    wb_catalog_rows_release(&o.rows);
    return err;
}

/* First moves old versions next to newer ones, then frees what they left behind and everything else that is dead. */
static int compact_twice(struct wb_compaction *c)
{
    int err = absorb_catalog(c, wb_compact_group_plan(c));

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(!c->grouping);
    c->grouping = c->plan.count > 0;
    if (err == 0 && c->grouping)
        err = compact_all(c);
    c->grouping = false;
    return err < 0 ? err : compact_all(c);
}

/* Gives up the segment that this handle appends to, so that it can be compacted too. */
static int release_tails(struct wb_repo *repo)
{
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);

    struct wb_store_commit_counts counts = {0};
    int err = wb_repo_commit(&repo->store, &counts);

    wb_tails_release(repo);
    WB_CHECK(repo->writer->tails.count == 0);
    return err;
}

int wb_compact_lock(const struct wb_repo *repo, struct wb_file *lock_out)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(lock_out->fd < 0);

    char *path = wb_path_join(repo->dir, WB_COMPACT_LOCK);
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, lock_out) : WB_E_NOMEM;

    if (err == 0) {
        err = wb_file_lock(lock_out, false);
        if (err == WB_E_BUSY)
            err = wb_fail(WB_E_BUSY, "another compaction of %s is running, or its pages are being moved between nodes",
                          repo->dir);
    }
    wb_free(path);
    return err;
}

static bool was_stopped(void *context)
{
    struct wb_compaction *c = context;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    return c->progress && !c->progress(c->progress_context, c->total, c->total);
}

/* A log that is to be divided is damaged. Compaction has told of it already if it had something to do there. */
static void cannot_divide(void *context, const struct wb_catalog_segment *row)
{
    struct wb_compaction *c = context;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    if (c->result.damaged)
        return;
    c->row = *row;
    tell(c, true, 0, wb_error_message());
}

int wb_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
               void *found_context, struct wb_store_compact_counts *counts_out)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct wb_compaction c = {
        .magic = WB_COMPACTION_MAGIC,
        .repo = repo,
        .from = WB_SEGMENT_INIT,
        .to = WB_SEGMENT_INIT,
        .progress = progress,
        .progress_context = progress_context,
        .found = found,
        .found_context = found_context,
    };
    struct wb_file lock = WB_FILE_INIT;
    int err = wb_compact_lock(repo, &lock);

    if (err == 0)
        err = release_tails(repo);
    if (err == 0)
        err = absorb_catalog(&c, wb_repo_forget(repo, &c.result.versions));
    if (err == 0)
        err = wb_block_builder_new(&c.builder);
    if (err == 0)
        err = wb_block_reader_new(&c.zstd);
    if (err == 0)
        err = wb_pool_new(1, &c.pool);
    if (err == 0)
        err = repo->hash ? wb_hash_compact(repo, progress, progress_context, found, found_context, &c.result)
                         : compact_twice(&c);
    repo->compacting = true; /* the lock is held */
    if (err == 0 && wb_hashed_log_is(repo))
        err = wb_hashed_log_split(repo, was_stopped, cannot_divide, &c, &c.result);
    repo->compacting = false;
    if (err == 0)
        err = wb_repo_purge(repo);
    wb_repo_decide(repo);
    *counts_out = c.result;
    wb_block_builder_free(c.builder);
    wb_block_reader_free(c.zstd);
    wb_pool_free(c.pool);
    wb_buf_release(&c.out);
    wb_buf_release(&c.writing.bytes);
    wb_vec_release(&c.unscrubbed);
    wb_vec_release(&c.maimed);
    wb_vec_release(&c.map);
    wb_compact_group_clear(&c);
    wb_vec_release(&c.extras);
    wb_vec_release(&c.extra_records);
    wb_vec_release(&c.moves);
    wb_vec_release(&c.plan);
    wb_vec_release(&c.held);
    wb_pageview_release(&c.view);
    wb_file_close(&lock);
    return err;
}
