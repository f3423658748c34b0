/*
 * log_commit.c - makes the ops of a writer durable, all of them or none:
 *
 *   1 append what is still in memory to the segments      (log_flush.c)
 *   2 sync the segments
 *   3 one transaction of the catalog: entries, segment rows, sites, the summary
 *
 * The catalog's commit in step 3 is the moment at which the pages exist. Before it, the
 * catalog knows nothing about the new bytes, and the next writer cuts them off.
 *
 * Step 3 decides about each op again, because other processes may have committed newer
 * pages or set bars since the op was taken. A page that was taken down in the meantime
 * is left out; the next compaction removes its bytes.
 *
 * A version that ceases to be the latest is either *retired* (kept in table old, because
 * the snapshot contains it) or *buried* (nobody can see it any more: it is dead).
 *
 * This file never compresses or appends anything.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/log.h"

#include <stdlib.h>

/* A transaction in progress. Changed segment rows and the summary are kept here, and written at the end. */
struct catalog_edit {
    struct wb_log *log;
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    struct wb_catalog_segment *rows; /* by segment number; a row with number 0 has not been read yet */
    bool *dirty;                     /* by segment number: the row must be written */
    size_t row_count;
    struct wb_store_commit_counts counts;
    int64_t now_ms;
    bool taken_down;                 /* a page was removed on request, so its bytes must really disappear */
    uint32_t *order;                 /* the ops, sorted by page id, then in the order in which they came */
};

static void edit_release(struct catalog_edit *edit)
{
    WB_CHECK(edit->log->magic == WB_LOG_MAGIC);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_CLOSED);
    wb_free(edit->rows);
    wb_free(edit->dirty);
    wb_free(edit->order);
}

static int edit_begin(struct catalog_edit *edit)
{
    WB_CHECK(edit->log->magic == WB_LOG_MAGIC);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(!edit->rows);

    int err = wb_catalog_txn_write(edit->log->catalog, &edit->txn);

    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&edit->txn, &edit->summary);
    if (err < 0)
        return err;
    edit->now_ms = wb_clock_wall_ms();
    edit->row_count = edit->summary.next_segment;
    edit->rows = wb_alloc_zero(edit->row_count, sizeof *edit->rows);
    edit->dirty = wb_alloc_zero(edit->row_count, sizeof *edit->dirty);
    return edit->rows && edit->dirty ? 0 : WB_E_NOMEM;
}

/* Returns the row of a segment, to be changed by the caller. */
static int edit_row(struct catalog_edit *edit, uint32_t number, struct wb_catalog_segment **row_out)
{
    WB_CHECK(edit->rows != NULL);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    *row_out = NULL;
    if (number == 0 || number >= edit->row_count)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment number that was never given");
    if (edit->rows[number].number == 0) {
        int err = wb_catalog_segment_get(&edit->txn, number, &edit->rows[number]);
        if (err < 0)
            return err == WB_E_NOTFOUND
                       ? wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment without a row")
                       : err;
    }
    WB_CHECK(edit->rows[number].number == number);
    edit->dirty[number] = true;
    *row_out = &edit->rows[number];
    return 0;
}

/*
 * Marks a segment that has dead pages, so that the next compaction removes all dead
 * bytes from it, even those in leads. `seen` is only used for its number.
 */
static int mark_for_scrubbing(void *context, const struct wb_catalog_segment *seen)
{
    struct catalog_edit *edit = context;
    struct wb_catalog_segment *row;
    int err = edit_row(edit, seen->number, &row);

    WB_CHECK(edit->taken_down);
    WB_CHECK(seen->number > 0);
    if (err == 0 && row->pages + row->lead_dead > row->live)
        row->removed++;
    return err;
}

/* Writes everything that was changed, and commits. */
static int edit_end(struct catalog_edit *edit)
{
    struct wb_log_writer *writer = edit->log->writer;
    int err = 0;

    WB_CHECK(edit->summary.epoch > 0);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    /* Older versions of a page that was taken down may be dead in any segment, and nothing remembers in which. */
    if (edit->taken_down)
        err = wb_catalog_segment_each(&edit->txn, mark_for_scrubbing, edit);

    for (size_t i = 0; i < edit->row_count && err == 0; i++)
        if (edit->dirty[i])
            err = wb_catalog_segment_put(&edit->txn, &edit->rows[i]);
    for (size_t i = 0; i < writer->sites.count && err == 0; i++) {
        const struct wb_log_site *site = &writer->sites.items[i];
        if (site->delta)
            err = wb_catalog_site_add(&edit->txn, wb_slice(site->name, site->len), site->delta, &edit->summary);
    }
    edit->summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&edit->txn, &edit->summary);
    return err < 0 ? err : wb_catalog_txn_commit(&edit->txn);
}

/* ---- a version that is no longer the latest ------------------------------------------------------ */

/* Nobody can see the version any more: it is dead. on_request means a takedown. */
static int bury(struct catalog_edit *edit, const struct wb_catalog_entry *entry, bool on_request)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(entry->place.segment > 0);

    struct wb_catalog_segment *row;
    int err = edit_row(edit, entry->place.segment, &row);

    if (err < 0)
        return err;
    if (row->live == 0)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment with fewer pages than entries");
    row->live--;
    row->bytes_dead += entry->stored_bytes;
    edit->taken_down = edit->taken_down || on_request;
    return 0;
}

/* Keeps the version as class A if the snapshot contains it; otherwise buries it. */
static int retire(struct catalog_edit *edit, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    WB_CHECK(entry->place.segment > 0);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    if (edit->summary.snapshot == 0 || entry->epoch > edit->summary.snapshot_epoch)
        return bury(edit, entry, false);
    edit->summary.old++;
    return wb_catalog_entry_put(&edit->txn, WB_CATALOG_OLD, id, entry);
}

/* ---- the ops ----------------------------------------------------------------------------------------- */

static int is_barred(struct catalog_edit *edit, const struct wb_log_op *op, bool *barred_out)
{
    const struct wb_log_site *site = &edit->log->writer->sites.items[op->site];

    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(op->site < edit->log->writer->sites.count);
    *barred_out = false;
    return edit->summary.bars ? wb_log_bar_holds(&edit->txn, op->id, wb_slice(site->name, site->len), barred_out) : 0;
}

static int apply_put(struct catalog_edit *edit, const struct wb_log_op *op)
{
    WB_CHECK(op->kind == WB_LOG_OP_PUT);
    WB_CHECK(op->appended);
    WB_CHECK(op->entry.place.segment > 0);
    WB_CHECK(op->entry.place.logical > 0);

    struct wb_catalog_entry before, entry = op->entry;
    struct wb_catalog_segment *row;
    bool barred = false, known = false;
    int err = edit_row(edit, entry.place.segment, &row);

    if (err == 0)
        err = is_barred(edit, op, &barred);
    if (err == 0 && !barred) {
        err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_PAGES, op->id, &before);
        known = err == 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    if (err < 0)
        return err;
    if (barred || (known && !wb_store_time_replaces(entry.time_ms, before.time_ms, edit->now_ms))) {
        row->bytes_dead += entry.stored_bytes; /* another process was faster: our bytes are dead from the start */
        edit->counts.barred += barred;
        edit->counts.older += !barred;
        edit->taken_down = edit->taken_down || barred; /* the bytes must not stay in a lead either */
        return 0;
    }
    if (known) {
        err = retire(edit, op->id, &before);
        if (err < 0)
            return err;
        edit->summary.bytes_pages -= before.body_bytes;
        edit->counts.replaced++;
    } else {
        edit->summary.pages++;
        edit->log->writer->sites.items[op->site].delta++;
        edit->counts.added++;
    }
    entry.epoch = edit->summary.epoch;
    edit->summary.bytes_pages += entry.body_bytes;
    if (row->live == 0 || row->epoch_min > entry.epoch)
        row->epoch_min = entry.epoch;
    if (row->live == 0 || row->epoch_max < entry.epoch)
        row->epoch_max = entry.epoch;
    row->live++;
    WB_CHECK(row->live <= row->pages);
    row->touched += entry.lifetime_count != entry.lifetime; /* the record does not contain lifetime_count */
    return wb_catalog_entry_put(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);
}

static int apply_touch(struct catalog_edit *edit, const struct wb_log_op *op)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(op->kind == WB_LOG_OP_TOUCH);

    struct wb_catalog_segment *row;
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);

    if (err == WB_E_NOTFOUND) /* another process has removed it */
        return 0;
    if (err < 0)
        return err;
    edit->counts.touched++;
    bool moves = wb_store_time_replaces(op->time_ms, entry.time_ms, edit->now_ms);
    if (!moves && entry.lifetime_count == entry.lifetime)
        return 0;
    if (moves)
        entry.time_ms = op->time_ms;
    entry.lifetime_count = entry.lifetime;
    err = edit_row(edit, entry.place.segment, &row);
    if (err < 0)
        return err;
    row->touched++;
    return wb_catalog_entry_put(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);
}

/* Removes the snapshot's version of a page, if it has one of its own. */
static int take_down(struct catalog_edit *edit, struct wb_pageid id, uint64_t *removed)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);

    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_OLD, id, &entry);

    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    if (edit->summary.old == 0)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_OLD, "more rows than counted");
    edit->summary.old--;
    (*removed)++;
    err = bury(edit, &entry, true);
    return err < 0 ? err : wb_catalog_entry_delete(&edit->txn, WB_CATALOG_OLD, id);
}

static int apply_remove(struct catalog_edit *edit, const struct wb_log_op *op)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(op->kind == WB_LOG_OP_REMOVE || op->kind == WB_LOG_OP_REMOVE_EVERYWHERE);
    WB_CHECK(op->site < edit->log->writer->sites.count);

    bool everywhere = op->kind == WB_LOG_OP_REMOVE_EVERYWHERE;
    uint64_t ignored = 0; /* the page counts as one removal, even if two versions go */
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    if (err == 0 && entry.site != edit->log->writer->sites.items[op->site].hash)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_PAGES, "a page of another site");
    if (err == 0 && edit->summary.pages == 0)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_PAGES, "more rows than counted");
    if (err == 0) {
        err = everywhere ? bury(edit, &entry, true) : retire(edit, op->id, &entry);
        if (err == 0)
            err = wb_catalog_entry_delete(&edit->txn, WB_CATALOG_PAGES, op->id);
        if (err < 0)
            return err;
        edit->summary.pages--;
        edit->summary.bytes_pages -= entry.body_bytes;
        edit->log->writer->sites.items[op->site].delta--;
        edit->counts.removed++;
    }
    return everywhere ? take_down(edit, op->id, &ignored) : 0;
}

static int apply_revisit(struct catalog_edit *edit, const struct wb_log_op *op)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);

    struct wb_store_revisit known;
    bool barred;
    int err = is_barred(edit, op, &barred);

    WB_CHECK(op->kind == WB_LOG_OP_REVISIT);
    if (err < 0 || barred) {
        edit->counts.barred += err == 0;
        return err;
    }
    err = wb_catalog_revisit_get(&edit->txn, op->id, &known);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    if (err == 0 && known.time_ms >= op->revisit.time_ms)
        return 0;
    edit->summary.revisits += err == WB_E_NOTFOUND;
    return wb_catalog_revisit_put(&edit->txn, op->id, edit->log->writer->sites.items[op->site].hash, &op->revisit);
}

static int apply_op(struct catalog_edit *edit, const struct wb_log_op *op)
{
    WB_CHECK(op->kind <= WB_LOG_OP_REVISIT);
    switch (op->kind) {
    case WB_LOG_OP_PUT:
        return apply_put(edit, op);
    case WB_LOG_OP_TOUCH:
        return apply_touch(edit, op);
    case WB_LOG_OP_REMOVE:
    case WB_LOG_OP_REMOVE_EVERYWHERE:
        return apply_remove(edit, op);
    case WB_LOG_OP_REMOVE_OLD:
        return take_down(edit, op->id, &edit->counts.removed);
    case WB_LOG_OP_REVISIT:
        return apply_revisit(edit, op);
    }
    return 0;
}

/* Updates the rows of the segments that this writer has appended to. */
static int apply_tails(struct catalog_edit *edit)
{
    struct wb_log_writer *writer = edit->log->writer;

    WB_CHECK(edit->log->writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_log_tail *tail = &writer->tails.items[i];
        struct wb_catalog_segment *row;
        int err = edit_row(edit, tail->segment.number, &row);
        if (err < 0)
            return err;
        if (row->bytes != tail->bytes_committed || row->sealed) /* nobody else may append while we hold the lock */
            return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment that changed under its lock");
        WB_CHECK(tail->bytes >= tail->bytes_committed);
        WB_CHECK(row->revision == 0);
        row->bytes = row->logical_end = tail->bytes;
        row->pages += tail->pages_appended;
        row->sealed = tail->bytes >= wb_log_sizes.segment_bytes;
    }
    return 0;
}

static int compare_ops(const void *a, const void *b, void *context)
{
    const struct wb_log_op *ops = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = wb_pageid_compare(ops[x].id, ops[y].id);

    return order ? order : x < y ? -1 : x > y;
}

static int apply(struct catalog_edit *edit)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(edit->order != NULL);

    struct wb_log_writer *writer = edit->log->writer;
    int err = edit_begin(edit);

    if (err == 0)
        err = apply_tails(edit);
    /* In the order of ids, so that rows that are neighbours in the tree are changed one after the other. */
    for (size_t i = 0; i < writer->ops.count && err == 0; i++)
        err = apply_op(edit, &writer->ops.items[edit->order[i]]);
    if (err == 0)
        err = edit_end(edit);
    wb_catalog_txn_abort(&edit->txn);
    return err;
}

/* ---- before and after the transaction --------------------------------------------------------------------- */

static int sync_tails(struct wb_log_writer *writer)
{
    int err = 0;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(writer->flight == NULL);
    for (size_t i = 0; i < writer->tails.count && err == 0; i++)
        if (writer->tails.items[i].bytes > writer->tails.items[i].bytes_committed)
            err = wb_file_sync(&writer->tails.items[i].segment.file);
    return err;
}

/* Closes segments that are full. The others stay open for more blocks: the current one, or more after a roll-back. */
static void close_full_tails(struct wb_log_writer *writer)
{
    size_t kept = 0;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(writer->failed.code == 0);
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_log_tail *tail = &writer->tails.items[i];
        tail->bytes_committed = tail->bytes;
        tail->pages_appended = 0;
        if (tail->bytes < wb_log_sizes.segment_bytes)
            writer->tails.items[kept++] = *tail;
        else
            wb_segment_close(&tail->segment);
    }
    WB_CHECK(kept <= writer->tails.count);
    writer->tails.count = kept;
}

/* After a failed commit: removes the bytes that were appended, and forgets the ops. */
static void roll_back(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;

    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(!wb_catalog_uncertain(log->catalog));
    wb_log_flush_drop(log);
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_log_tail *tail = &writer->tails.items[i];
        /* If this fails, the bytes are overwritten by the next block, or cut off by the next writer. */
        wb_file_truncate(&tail->segment.file, tail->bytes_committed);
        tail->bytes = tail->bytes_committed;
        tail->pages_appended = 0;
    }
    wb_block_cache_release(&log->source.cache); /* other blocks will take the places of those we have just dropped */
    wb_log_ops_clear(writer);
}

void wb_log_decide(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;
    struct wb_error_copy why;

    WB_CHECK(log->magic == WB_LOG_MAGIC);
    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    if (!wb_catalog_uncertain(log->catalog))
        return;
    wb_error_save(WB_E_IO, &why);
    wb_log_flush_drop(log);
    for (size_t i = 0; i < writer->tails.count; i++)
        wb_segment_close(&writer->tails.items[i].segment);
    wb_vec_clear(&writer->tails);
    wb_block_cache_release(&log->source.cache);
    wb_log_ops_clear(writer);
    (void)wb_log_open_catalog(log); /* if this fails, the old handle stays, and every call on it says what is wrong */
    wb_error_restore(&why);
}

/* The three steps of a commit. */
static int commit_ops(struct wb_log *log, struct wb_store_commit_counts *counts_out)
{
    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);

    struct wb_log_writer *writer = log->writer;
    struct catalog_edit edit = {.log = log};
    int err = writer->failed.code < 0 ? wb_error_restore(&writer->failed) : wb_log_flush_all(log);

    if (err == 0)
        err = sync_tails(writer);
    if (err < 0)
        return err;
    WB_CHECK(!writer->flight);
    WB_CHECK(writer->group_at == writer->ops.count);
    WB_CHECK(writer->failed.code == 0);
    edit.order = wb_alloc((writer->ops.count + 1) * sizeof *edit.order);
    if (!edit.order)
        return WB_E_NOMEM;
    for (size_t i = 0; i < writer->ops.count; i++)
        edit.order[i] = (uint32_t)i;
    qsort_r(edit.order, writer->ops.count, sizeof *edit.order, compare_ops, writer->ops.items);
    err = apply(&edit);
    if (err == 0) {
        writer->commit = edit.summary.commit;
        *counts_out = edit.counts;
    }
    edit_release(&edit);
    return err;
}

int wb_log_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct wb_log_writer *writer = log->writer;
    struct wb_store_commit_counts counts = {0};
    int err;

    bool nothing = writer->ops.count == 0 && writer->failed.code == 0;
    err = nothing ? 0 : commit_ops(log, &counts);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        if (wb_catalog_uncertain(log->catalog))
            wb_log_decide(log);
        else
            roll_back(log);
        return wb_error_restore(&why);
    }
    counts.older += writer->older;
    counts.barred += writer->barred;
    wb_store_counts_add(counts_inout, &counts);
    if (!nothing)
        close_full_tails(writer);
    wb_log_ops_clear(writer);
    WB_CHECK(writer->ops.count == 0);
    WB_CHECK(writer->flight == NULL);
    return 0;
}

/* ---- snapshot --------------------------------------------------------------------------------------------- */

/* The class A versions of the previous snapshot die. */
static int bury_old(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    WB_CHECK(entry->place.segment > 0);
    (void)id;
    return bury(context, entry, false);
}

static int take_snapshot(struct catalog_edit *edit)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(edit->log->writer->ops.count == 0);

    int err = edit_begin(edit);

    if (err == 0)
        err = wb_catalog_entry_each(&edit->txn, WB_CATALOG_OLD, bury_old, edit);
    if (err == 0)
        err = wb_catalog_clear(&edit->txn, WB_CATALOG_OLD);
    if (err == 0) {
        edit->summary.old = 0;
        edit->summary.snapshot++;
        edit->summary.snapshot_epoch = edit->summary.epoch++; /* the sealed epoch; a new one begins */
        err = edit_end(edit);
    }
    wb_catalog_txn_abort(&edit->txn);
    return err;
}

int wb_log_snapshot(struct wb_store *store, uint32_t *snapshot_out)
{
    struct wb_log *log = wb_log_of_writer(store);
    struct wb_store_commit_counts counts = {0};
    struct catalog_edit edit = {.log = log};
    int err = wb_log_commit(store, &counts);

    if (err == 0)
        err = take_snapshot(&edit);
    if (err == 0) {
        WB_CHECK(edit.summary.snapshot_epoch + 1 == edit.summary.epoch);
        log->writer->commit = edit.summary.commit;
        *snapshot_out = edit.summary.snapshot;
    }
    edit_release(&edit);
    wb_log_decide(log);
    return err;
}
