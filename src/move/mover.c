/*
 * mover.c - a run of the mover (mover.h), and how a segment is replaced: taking hold of it, making the files of its
 * bins, and publishing them.
 *
 * Blocks keep their names, and pages their slots, so all places stay what they are:
 *
 *   segment 7, ids 0...   ---->  segment 7, its next revision, ids 00...
 *                                segment 12, whose origin is 7, ids 01...
 *
 * While we copy, commits of other processes may replace or remove pages of the segment. What happened to its row is
 * carried over to the new ones when they are published. If there are several, the pages of each are counted again then.
 */
#include "move/mover.h"
#include "pagefile/pagefile.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"

#include <stdio.h>

/* ---- a run ---------------------------------------------------------------------------------------------------- */

int wb_mover_init(struct wb_mover *mover, struct wb_repo *repo, wb_store_progress progress, void *progress_context,
                  const char *stopped)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    *mover = (struct wb_mover){
        .magic = WB_MOVER_MAGIC,
        .repo = repo,
        .ops = repo->files.kind->rewrite ? &wb_move_rewritten : &wb_move_copied,
        .lock = WB_FILE_INIT,
        .progress = progress,
        .progress_context = progress_context,
        .stopped = stopped,
    };
    int err = wb_block_builder_new(&mover->builder);
    if (err == 0)
        err = wb_block_reader_new(&mover->zstd);
    return err < 0 ? err : wb_pool_new(1, &mover->pool);
}

void wb_mover_release(struct wb_mover *mover)
{
    wb_block_builder_free(mover->builder);
    wb_block_reader_free(mover->zstd);
    wb_pool_free(mover->pool);
    wb_vec_release(&mover->findings);
    wb_file_close(&mover->lock);
    mover->magic = 0;
}

static int lock(const struct wb_repo *repo, struct wb_file *lock_out)
{
    int err = wb_file_open_locked(repo->dir, WB_MOVE_LOCK, lock_out);

    if (err != WB_E_BUSY)
        return err;
    return wb_fail(WB_E_BUSY, "another compaction of %s is running, or its pages are being moved between nodes",
                   repo->dir);
}

int wb_mover_lock(struct wb_mover *mover)
{
    WB_CHECK(mover->magic == WB_MOVER_MAGIC);
    WB_CHECK(mover->lock.fd < 0);
    return lock(mover->repo, &mover->lock);
}

int wb_mover_report(struct wb_mover *mover)
{
    WB_CHECK(mover->magic == WB_MOVER_MAGIC);
    if (mover->done > mover->total)
        mover->total = mover->done;
    if (mover->progress && !mover->progress(mover->progress_context, mover->done, mover->total ? mover->total : 1))
        return wb_fail(WB_E_STOPPED, "%s", mover->stopped);
    return 0;
}

int wb_mover_find(struct wb_mover *mover, const struct wb_store_finding *finding)
{
    struct wb_move_finding *added = wb_vec_add(&mover->findings);

    if (!added)
        return WB_E_NOMEM;
    added->problem = finding->problem;
    added->at = finding->offset;
    snprintf(added->file, sizeof added->file, "%s", finding->file);
    snprintf(added->message, sizeof added->message, "%s", finding->message);
    return 0;
}

int wb_move_replace(struct wb_mover *mover, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                    size_t count, enum wb_move_damage damage)
{
    uint32_t first = bins[0].node, last = bins[0].node;

    WB_CHECK(count > 0 && count <= WB_BINS_MAX);
    for (size_t i = 1; i < count; i++) {
        first = bins[i].node < first ? bins[i].node : first;
        last = bins[i].node > last ? bins[i].node : last;
    }
    struct wb_busy_mark busy = wb_busy_begin(&mover->repo->busy, WB_BUSY_PUT, first, last);
    int err = mover->ops->replace(mover, row, bins, count, damage);
    wb_busy_end(&mover->repo->busy, &busy);
    return err;
}

int wb_move_file(struct wb_repo *repo, const struct wb_catalog_segment *row, const struct wb_bin *bins, size_t count,
                 enum wb_move_damage damage)
{
    struct wb_mover mover;
    int err = wb_mover_init(&mover, repo, NULL, NULL, "");

    if (err == 0)
        err = wb_move_replace(&mover, row, bins, count, damage);
    wb_mover_release(&mover);
    return err;
}

/* ---- taking hold of a segment ----------------------------------------------------------------------------------- */

void wb_move_hold_close(struct wb_move_hold *hold)
{
    wb_catalog_txn_abort(&hold->txn);
    wb_segment_close(&hold->from);
    wb_file_close(&hold->lock);
}

static int read_row(struct wb_mover *mover, uint32_t number, struct wb_move_hold *hold)
{
    wb_catalog_txn_abort(&hold->txn);
    int err = wb_catalog_txn_read(mover->repo->catalog, &hold->txn);
    return err < 0 ? err : wb_catalog_segment_get(&hold->txn, number, &hold->row);
}

/* Opens the file and claims it. If all its pages are dead, damage does not matter, nor that the file is gone. */
static int claim(struct wb_mover *mover, struct wb_move_hold *hold)
{
    struct wb_node *node;
    int err = wb_nodes_find_to_write(&mover->repo->nodes, hold->row.node, &node);

    if (err < 0)
        return err;
    err = wb_segment_open(node, mover->repo->superblock.id, &hold->row, true, &hold->from);
    if (err == WB_E_CORRUPT && hold->row.live == 0) {
        err = wb_segment_open_unread(node, &hold->row, &hold->from);
        if (err == WB_E_NOTFOUND)
            return 0;
    }
    return err < 0 ? err : wb_node_file_claim(&hold->from.file);
}

int wb_move_hold_open(struct wb_mover *mover, uint32_t number, struct wb_move_hold *hold_out)
{
    struct wb_move_hold *hold = hold_out;

    WB_CHECK(mover->magic == WB_MOVER_MAGIC);
    WB_CHECK(number > 0);
    *hold = (struct wb_move_hold){.lock = WB_FILE_INIT, .from = WB_SEGMENT_INIT};
    int err = mover->lock.fd < 0 ? lock(mover->repo, &hold->lock) : 0;
    if (err == 0)
        err = read_row(mover, number, hold);
    uint32_t revision = hold->row.revision;
    if (err == 0)
        err = claim(mover, hold);
    /* A writer may have let go of it since: what counts is how it is under the lock. */
    if (err == 0)
        err = read_row(mover, number, hold);
    WB_CHECK(err < 0 || hold->row.revision == revision); /* only who has compact.lock changes that */
    if (err < 0)
        wb_move_hold_close(hold);
    return err;
}

/* Reads the row of a held segment once more, in the transaction that replaces it. */
static int read_again(struct wb_repo *repo, const struct wb_move_hold *hold, struct wb_catalog_txn *txn,
                      struct wb_catalog_segment *now_out)
{
    const struct wb_catalog_segment *before = &hold->row;
    int err = wb_catalog_segment_get(txn, before->number, now_out);

    if (err < 0)
        return err;
    if (now_out->revision != before->revision || now_out->bytes != before->bytes || now_out->live > before->live ||
        now_out->bytes_dead < before->bytes_dead || now_out->removed < before->removed ||
        now_out->returned < before->returned)
        return wb_catalog_corrupt(repo->catalog, WB_CATALOG_SEGMENTS, "a segment that changed under its lock");
    return 0;
}

static int retire(struct wb_catalog_txn *txn, const struct wb_catalog_segment *row)
{
    return wb_catalog_retired_put(txn, row->number, row->revision, row->node, wb_catalog_txn_id(txn));
}

/* Counts the commit, and commits. */
static int commit(struct wb_catalog_txn *txn)
{
    struct wb_catalog_summary summary = {0};
    int err = wb_catalog_summary_get(txn, &summary);

    summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(txn, &summary);
    return err < 0 ? err : wb_catalog_txn_commit(txn);
}

int wb_move_drop(struct wb_mover *mover, const struct wb_move_hold *holds, size_t count)
{
    struct wb_catalog_segment now;
    struct wb_catalog_txn txn;
    uint64_t files = 0, bytes = 0;
    int err = wb_catalog_txn_write(mover->repo->catalog, &txn);

    WB_CHECK(count > 0);
    for (size_t i = 0; i < count && err == 0; i++) {
        err = read_again(mover->repo, &holds[i], &txn, &now);
        if (err < 0 || now.live > 0)
            continue;
        err = wb_catalog_segment_delete(&txn, now.number);
        if (err == 0)
            err = retire(&txn, &now);
        files++;
        bytes += now.bytes;
    }
    if (err == 0)
        err = commit(&txn);
    wb_catalog_txn_abort(&txn);
    mover->counts.files += err == 0 ? files : 0;
    mover->counts.bytes_before += err == 0 ? bytes : 0;
    return err;
}

/* ---- new files ----------------------------------------------------------------------------------------- */

/* Takes new segment numbers. Files cannot claim them, because the bins may be on several nodes. */
static int take_numbers(struct wb_repo *repo, uint32_t count, uint32_t *first_out)
{
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(repo->catalog, &txn);

    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    if (err == 0) {
        *first_out = summary.next_segment;
        summary.next_segment += count;
        err = wb_catalog_summary_put(&txn, &summary);
    }
    if (err == 0)
        err = commit(&txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Creates a file. One of this name without a row was left by a process that died: a running one has the lock. */
static int create_file(struct wb_repo *repo, struct wb_move_target *file)
{
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *node;
    int err = wb_nodes_find(&repo->nodes, file->row.node, &node);

    WB_CHECK(file->to.file.node == NULL);
    wb_segment_name(file->row.number, file->row.revision, name);
    file->out_at = WB_SEGMENT_HEADER_BYTES;
    if (err == 0)
        err = wb_node_remove(node, name);
    return err < 0 ? err
                   : wb_segment_create(node, repo->superblock.id, file->row.number, file->row.revision, &file->to);
}

/* Creates the files. The first bin takes the number of the segment. */
static int create_files(struct wb_move *m, const struct wb_bin *bins)
{
    const struct wb_catalog_segment *row = &m->hold.row;
    uint32_t next = 0;
    int err = m->count > 1 ? take_numbers(m->mover->repo, (uint32_t)m->count - 1, &next) : 0;

    WB_CHECK(row->live > 0);
    for (size_t i = 0; i < m->count && err == 0; i++) {
        struct wb_move_target *file = &m->files[i];
        file->row = *row;
        file->row.node = bins[i].node;
        file->row.range = bins[i].range;
        file->row.number = i == 0 ? row->number : next++;
        file->row.revision = i == 0 ? row->revision + 1 : 1;
        file->row.origin = i == 0 ? row->origin : wb_catalog_segment_origin(row);
        file->row.split = i == 0 && !row->origin && (row->split || m->count > 1);
        err = create_file(m->mover->repo, file);
    }
    return err;
}

/*
 * Whether writers may append to the new file: it is small, so its neighbours need no files of their own. Otherwise each
 * compaction would leave a file to which nobody adds anything, and there would soon be as many as there were commits.
 * The names of blocks that are appended are only told apart by the number of their segment, so parts get none.
 */
static bool may_grow(const struct wb_move *m, const struct wb_catalog_segment *row)
{
    return !row->split && !row->origin && row->node == m->hold.row.node &&
           row->bytes < wb_segment_limit(&m->mover->repo->files) / 2;
}

/* Writes the map of a file, makes it durable, and completes its row. One without pages is not needed. */
static int finish_file(struct wb_move *m, struct wb_move_target *file)
{
    const struct wb_mover_group *group = m->mover->group;
    uint64_t map_bytes, added = group ? group->moves.count : 0;

    WB_CHECK(file->out.len == 0);
    if (m->count > 1 && file->live == 0)
        return 0;
    int err = wb_segment_write_map(&file->to, file->out_at, file->map.items, file->map.count, &map_bytes);
    if (err == 0)
        err = wb_node_file_sync(&file->to.file);
    if (err == 0)
        err = wb_node_sync_names(file->to.file.node);
    if (err < 0)
        return err;
    file->row.bytes = file->out_at + map_bytes;
    file->row.sealed = !may_grow(m, &file->row);
    file->row.pages = (m->count > 1 ? file->live : m->hold.row.live) + added;
    file->row.map_at = file->out_at;
    file->row.map_count = file->map.count;
    file->row.lead_dead = (uint32_t)file->lead_dead;
    file->row.old_known = file->old + added;
    file->row.old_epoch = file->unflagged ? UINT64_MAX : m->walk.live.epoch;
    return 0;
}

/* The new files together must have what the catalog says that the segment has. */
static int check_sums(const struct wb_move *m, const struct wb_catalog_segment *row)
{
    uint64_t live = m->walk.live.nowhere, old = 0;

    for (size_t i = 0; i < m->count; i++) {
        live += m->files[i].live;
        old += m->files[i].old;
    }
    /* Nobody knows which pages in damaged parts are old. */
    if (m->damage == WB_MOVE_CARRY || (live == row->live && (old == row->old || m->count == 1)))
        return 0;
    return wb_fail(WB_E_CORRUPT, "%s holds %llu live pages, the catalog knows of %llu: nothing was changed, run verify",
                   m->hold.from.file.path, (unsigned long long)live, (unsigned long long)row->live);
}

static int write_files(struct wb_move *m)
{
    int err = wb_move_copy(m);

    if (err == 0)
        err = check_sums(m, &m->hold.row);
    for (size_t i = 0; i < m->count && err == 0; i++)
        err = finish_file(m, &m->files[i]);
    return err;
}

/* ---- publishing ---------------------------------------------------------------------------------------- */

/* Counts again which pages of the files are alive: of several, if something has happened to the segment since. */
static int count_again(struct wb_move *m, struct wb_catalog_txn *txn, const struct wb_catalog_segment *now)
{
    const struct wb_catalog_segment *before = &m->hold.row;
    struct wb_catalog_summary summary;
    struct wb_catalog_entry entry;
    bool live, latest;
    int err = wb_catalog_summary_get(txn, &summary);

    if (err < 0 || m->count == 1 ||
        (now->live == before->live && now->old == before->old && now->returned == before->returned))
        return err;
    m->judge.txn = txn;
    m->judge.any_gone = summary.gone > 0;
    for (size_t i = 0; i < m->count && err == 0; i++) {
        struct wb_move_target *file = &m->files[i];
        file->live = file->old = 0;
        for (size_t k = 0; k < file->pages.count && err == 0; k++) {
            const struct wb_move_page *page = &file->pages.items[k];
            struct wb_catalog_place place = {m->hold.from.origin, page->slot, page->logical};
            int got = wb_catalog_entry_get(txn, page->id, &entry);
            err = got == 0 || got == WB_E_NOTFOUND
                      ? wb_pageview_ask(&m->judge, page->id, got == 0 ? &entry : NULL, &place, &live, &latest)
                      : got;
            if (err < 0)
                break;
            file->live += live;
            file->old += live && !latest;
        }
    }
    return err < 0 ? err : check_sums(m, now);
}

/* Completes the row of a file by what happened to the segment while it was copied. */
static void carry_over(const struct wb_move *m, struct wb_move_target *file, const struct wb_catalog_segment *now)
{
    const struct wb_catalog_segment *before = &m->hold.row;
    uint64_t died = file->pages.count - file->live, all = before->live - now->live;
    uint64_t bytes = now->bytes_dead - before->bytes_dead;

    file->row.touched = now->touched;
    file->row.removed = now->removed - before->removed;
    file->row.returned = now->returned - before->returned;
    file->row.epoch_min = now->epoch_min;
    file->row.epoch_max = now->epoch_max;
    file->row.live = now->live;
    file->row.old = now->old;
    file->row.bytes_dead = bytes;
    if (m->count == 1)
        return;
    WB_CHECK(file->live <= file->pages.count);
    WB_CHECK(died <= all);
    file->row.live = file->live;
    file->row.old = file->old;
    /* Nobody knows how many bytes each page had that died since. */
    file->row.bytes_dead = died ? (uint64_t)((double)bytes * (double)died / (double)all) + 1 : 0;
}

static int publish(struct wb_move *m)
{
    struct wb_catalog_segment now;
    struct wb_catalog_txn txn;
    bool heir = false;

    wb_catalog_txn_abort(&m->hold.txn);
    int err = wb_catalog_txn_write(m->mover->repo->catalog, &txn);
    if (err == 0)
        err = read_again(m->mover->repo, &m->hold, &txn, &now);
    if (err == 0)
        err = count_again(m, &txn, &now);
    for (size_t i = 0; i < m->count && err == 0; i++) {
        if (m->files[i].map.count == 0 && m->count > 1)
            continue;
        carry_over(m, &m->files[i], &now);
        heir = heir || i == 0;
        err = wb_catalog_segment_put(&txn, &m->files[i].row);
    }
    if (err == 0 && !heir)
        err = wb_catalog_segment_delete(&txn, now.number);
    if (err == 0)
        err = retire(&txn, &m->hold.row);
    if (err == 0)
        err = commit(&txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Removes files that are not needed: those without pages, or after an error all, unless they may be those that count.
 */
static void discard_files(struct wb_move *m, int err)
{
    struct wb_error_copy why;

    if (err < 0 && wb_catalog_uncertain(m->mover->repo->catalog))
        return;
    wb_error_save(WB_E_IO, &why);
    for (size_t i = 0; i < m->count; i++)
        if (m->files[i].to.file.path && (err < 0 || (m->count > 1 && m->files[i].map.count == 0)))
            wb_node_file_remove(&m->files[i].to.file);
    wb_error_restore(&why);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static int replace_held(struct wb_move *m, const struct wb_bin *bins)
{
    struct wb_mover *mover = m->mover;
    int err = wb_segment_live_begin(&m->walk, &m->hold.txn, &m->hold.from, &m->hold.row);

    if (err == 0)
        err = create_files(m, bins);
    if (err == 0)
        err = write_files(m);
    if (err == 0)
        err = publish(m);
    discard_files(m, err);
    if (err < 0) { /* nothing was changed, and that is what is reported */
        wb_vec_clear(&mover->findings);
        return err;
    }
    mover->counts.files++;
    for (size_t i = 0; i < m->count; i++)
        mover->counts.pages += m->count > 1 ? m->files[i].live : m->files[i].row.pages;
    if (m->count == 1) { /* what is divided frees nothing */
        mover->counts.bytes_before += m->hold.row.bytes;
        mover->counts.bytes_after += m->files[0].row.bytes;
    }
    return mover->group ? wb_mover_group_relocate(mover->group, mover->repo, &mover->counts.moved) : 0;
}

static void release(struct wb_move *m)
{
    for (size_t i = 0; i < m->count; i++) {
        wb_segment_close(&m->files[i].to);
        wb_buf_release(&m->files[i].out);
        wb_vec_release(&m->files[i].map);
        wb_vec_release(&m->files[i].pages);
    }
    wb_free(m->files);
    wb_buf_release(&m->writing.bytes);
    wb_vec_release(&m->dead);
    wb_pageview_release(&m->judge.view);
    wb_segment_live_release(&m->walk);
    wb_move_hold_close(&m->hold);
}

static int replace_segment(struct wb_mover *mover, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                           size_t count, enum wb_move_damage damage)
{
    struct wb_move m = {.mover = mover, .damage = damage};
    int err = wb_move_hold_open(mover, row->number, &m.hold);
    const struct wb_catalog_segment *now = &m.hold.row;

    WB_CHECK(count > 0 && count <= WB_BINS_MAX);
    WB_CHECK(count == 1 || damage == WB_MOVE_REFUSE);
    wb_vec_clear(&mover->findings);
    if (err < 0)
        return err;
    if (now->node != row->node || !wb_catalog_range_equal(&now->range, &row->range)) {
        err = wb_fail(WB_E_BUSY, "%s belongs to another bin by now", m.hold.from.file.path);
    } else if (now->live == 0) {
        wb_catalog_txn_abort(&m.hold.txn);
        err = wb_move_drop(mover, &m.hold, 1);
    } else {
        m.files = wb_alloc_zero(count, sizeof *m.files);
        m.count = m.files ? count : 0;
        for (size_t i = 0; i < m.count; i++)
            m.files[i].to = WB_SEGMENT_INIT;
        err = m.files ? replace_held(&m, bins) : WB_E_NOMEM;
    }
    release(&m);
    return err;
}

/* What makes it worthwhile to put versions that are not the latest into frames of their own: a part of the pages. */
enum { WORTH_A_COPY = 8 };

/* Whether there is something to free, to move next to newer versions, or to put apart. */
static bool needs_work(const struct wb_mover *mover, const struct wb_catalog_segment *row)
{
    bool thrifty = mover->repo->store.thrifty;
    bool apart = row->old > row->old_known && (row->old - row->old_known) * WORTH_A_COPY >= row->live;
    /* Dead pages in leads count for nothing, because others need their bytes: unless all pages of a block are dead. */
    uint64_t part = thrifty ? WB_PAGEFILE_WORTHWHILE : WORTH_A_COPY;
    bool many = row->pages > row->live && (row->pages - row->live) * part >= row->live;
    uint64_t least = thrifty ? row->bytes / part + 1 : 1;

    WB_CHECK(row->number > 0);
    return row->pages > 0 &&
           (wb_catalog_segment_dead(row) >= least || row->removed || row->live == 0 || apart || many);
}

const struct wb_move_ops wb_move_copied = {true, needs_work, replace_segment};
