/*
 * log_commit.c - makes the ops of a writer durable, all or nothing:
 *
 *   1 append what is still in memory        (log_flush.c)
 *   2 fdatasync the segments appended to
 *   3 one transaction of the catalog: entries, segment rows, sites, state
 *
 * The catalog's commit in 3 is the moment. Before it the catalog knows nothing of the
 * new bytes and the next writer cuts them off. In 3 each op is judged again, against
 * what other processes have committed since: newer pages, and bars. A page that was taken down while
 * it waited here is left out, and its bytes go with the next compaction.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/log.h"

#include <stdlib.h>

/* A transaction under way: the state and the segment rows it changes, written back at the end. */
struct catalog_edit {
    struct wb_log *log;
    struct wb_catalog_txn txn;
    struct wb_catalog_summary state;
    struct wb_catalog_segment *rows; /* by segment number; number 0: not loaded */
    bool *dirty;
    size_t row_count;
    struct wb_store_commit_counts counts;
    uint32_t snapshot;
    int64_t now_ms;
    bool taken_down;             /* a page was removed on request */
    uint32_t *order;             /* ops sorted by page id, then as they came */
};

static void edit_release(struct catalog_edit *edit)
{
    wb_free(edit->rows);
    wb_free(edit->dirty);
    wb_free(edit->order);
}

static int edit_begin(struct catalog_edit *edit)
{
    int err = wb_catalog_txn_write(edit->log->catalog, &edit->txn);

    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&edit->txn, &edit->state);
    if (err < 0)
        return err;
    edit->now_ms = wb_clock_wall_ms();
    edit->row_count = edit->state.next_segment;
    edit->rows = wb_alloc_zero(edit->row_count, sizeof *edit->rows);
    edit->dirty = wb_alloc_zero(edit->row_count, sizeof *edit->dirty);
    return edit->rows && edit->dirty ? 0 : WB_E_NOMEM;
}

/* The row of a segment, to be changed. */
static int edit_row(struct catalog_edit *edit, uint32_t number, struct wb_catalog_segment **row_out)
{
    *row_out = NULL;
    if (number == 0 || number >= edit->row_count)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment number that was never given");
    if (edit->rows[number].number == 0) {
        int err = wb_catalog_segment_get(&edit->txn, number, &edit->rows[number]);
        if (err < 0)
            return err == WB_E_NOTFOUND ? wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment without a row") : err;
    }
    edit->dirty[number] = true;
    *row_out = &edit->rows[number];
    return 0;
}

static int mark_for_scrubbing(void *context, const struct wb_catalog_segment *seen)
{
    struct catalog_edit *edit = context;
    struct wb_catalog_segment *row;
    int err = edit_row(edit, seen->number, &row);

    if (err == 0 && row->pages + row->lead_dead > row->live)
        row->removed++;
    return err;
}

static int edit_end(struct catalog_edit *edit)
{
    struct wb_log_writer *writer = edit->log->writer;
    int err = 0;

    /* Versions that were replaced before the takedown may lie dead in any segment: the next compaction takes them all out. */
    if (edit->taken_down)
        err = wb_catalog_segment_each(&edit->txn, mark_for_scrubbing, edit);

    for (size_t i = 0; i < edit->row_count && err == 0; i++)
        if (edit->dirty[i])
            err = wb_catalog_segment_put(&edit->txn, &edit->rows[i]);
    for (size_t i = 0; i < writer->site_count && err == 0; i++) {
        const struct wb_log_site *site = &writer->sites[i];
        if (site->delta)
            err = wb_catalog_site_add(&edit->txn, wb_slice(site->name, site->len), site->delta, &edit->state);
    }
    edit->state.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&edit->txn, &edit->state);
    return err < 0 ? err : wb_catalog_txn_commit(&edit->txn);
}

/* ---- what happens to a version that is no longer the latest ------------------------------------ */

/* No reader of any view sees it any more. */
static int bury(struct catalog_edit *edit, const struct wb_catalog_entry *entry, bool on_request)
{
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

/* It stays as class A where the snapshot has it, else it is buried. */
static int retire(struct catalog_edit *edit, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    if (edit->state.snapshot == 0 || entry->epoch > edit->state.snapshot_epoch)
        return bury(edit, entry, false);
    edit->state.old++;
    return wb_catalog_entry_put(&edit->txn, WB_CATALOG_OLD, id, entry);
}

/* ---- the ops ----------------------------------------------------------------------------------------- */

static int is_barred(struct catalog_edit *edit, const struct wb_log_op *op, bool *barred_out)
{
    const struct wb_log_site *site = &edit->log->writer->sites[op->site];

    *barred_out = false;
    return edit->state.bars ? wb_log_bar_holds(&edit->txn, op->id, wb_slice(site->name, site->len), barred_out) : 0;
}

static int apply_put(struct catalog_edit *edit, const struct wb_log_op *op)
{
    struct wb_catalog_entry before, entry = op->entry;
    struct wb_catalog_segment *row;
    bool barred, known = false;
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
        row->bytes_dead += entry.stored_bytes; /* another process was faster: our bytes are born dead */
        edit->counts.barred += barred;
        edit->counts.older += !barred;
        edit->taken_down = edit->taken_down || barred; /* they must not stay in a lead either */
        return 0;
    }
    if (known) {
        err = retire(edit, op->id, &before);
        if (err < 0)
            return err;
        edit->state.bytes_pages -= before.body_bytes;
        edit->counts.replaced++;
    } else {
        edit->state.pages++;
        edit->log->writer->sites[op->site].delta++;
        edit->counts.added++;
    }
    entry.epoch = edit->state.epoch;
    edit->state.bytes_pages += entry.body_bytes;
    if (row->live == 0 || row->epoch_min > entry.epoch)
        row->epoch_min = entry.epoch;
    if (row->live == 0 || row->epoch_max < entry.epoch)
        row->epoch_max = entry.epoch;
    row->live++;
    row->touched += entry.lifetime_count != entry.lifetime; /* which the record does not say */
    return wb_catalog_entry_put(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);
}

static int apply_touch(struct catalog_edit *edit, const struct wb_log_op *op)
{
    struct wb_catalog_segment *row;
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);

    if (err == WB_E_NOTFOUND) /* removed by another process meanwhile */
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

/* The snapshot's version goes at once. */
static int take_down(struct catalog_edit *edit, struct wb_pageid id, uint64_t *removed)
{
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_OLD, id, &entry);

    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    edit->state.old--;
    (*removed)++;
    err = bury(edit, &entry, true);
    return err < 0 ? err : wb_catalog_entry_delete(&edit->txn, WB_CATALOG_OLD, id);
}

static int apply_remove(struct catalog_edit *edit, const struct wb_log_op *op)
{
    bool everywhere = op->kind == WB_LOG_OP_REMOVE_EVERYWHERE;
    uint64_t with_it = 0;
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&edit->txn, WB_CATALOG_PAGES, op->id, &entry);

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    if (err == 0 && entry.site != edit->log->writer->sites[op->site].hash)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_PAGES, "a page of another site");
    if (err == 0) {
        err = everywhere ? bury(edit, &entry, true) : retire(edit, op->id, &entry);
        if (err == 0)
            err = wb_catalog_entry_delete(&edit->txn, WB_CATALOG_PAGES, op->id);
        if (err < 0)
            return err;
        edit->state.pages--;
        edit->state.bytes_pages -= entry.body_bytes;
        edit->log->writer->sites[op->site].delta--;
        edit->counts.removed++;
    }
    return everywhere ? take_down(edit, op->id, &with_it) : 0;
}

static int apply_revisit(struct catalog_edit *edit, const struct wb_log_op *op)
{
    struct wb_store_revisit known;
    bool barred;
    int err = is_barred(edit, op, &barred);

    if (err < 0 || barred) {
        edit->counts.barred += err == 0;
        return err;
    }
    err = wb_catalog_revisit_get(&edit->txn, op->id, &known);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    if (err == 0 && known.time_ms >= op->revisit.time_ms)
        return 0;
    edit->state.revisits += err == WB_E_NOTFOUND;
    return wb_catalog_revisit_put(&edit->txn, op->id, edit->log->writer->sites[op->site].hash, &op->revisit);
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

/* What appending did to the rows of our own segments. */
static int apply_tails(struct catalog_edit *edit)
{
    struct wb_log_writer *writer = edit->log->writer;

    for (size_t i = 0; i < writer->tail_count; i++) {
        struct wb_log_tail *tail = &writer->tails[i];
        struct wb_catalog_segment *row;
        int err = edit_row(edit, tail->segment.number, &row);
        if (err < 0)
            return err;
        WB_CHECK(row->bytes == tail->bytes_committed && !row->sealed);
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
    struct wb_log_writer *writer = edit->log->writer;
    int err = edit_begin(edit);

    if (err == 0)
        err = apply_tails(edit);
    /* In order of id: neighbours in the tree are changed together. */
    for (size_t i = 0; i < writer->op_count && err == 0; i++) {
        err = apply_op(edit, &writer->ops[edit->order[i]]);
    }
    if (err == 0)
        err = edit_end(edit);
    wb_catalog_txn_abort(&edit->txn);
    return err;
}

/* ---- around it ------------------------------------------------------------------------------------------ */

static int sync_tails(struct wb_log_writer *writer)
{
    int err = 0;

    for (size_t i = 0; i < writer->tail_count && err == 0; i++)
        if (writer->tails[i].bytes > writer->tails[i].bytes_committed)
            err = wb_file_sync(&writer->tails[i].segment.file);
    return err;
}

/* The current segment stays open for the next blocks; full ones are done with. */
static void close_full_tails(struct wb_log_writer *writer)
{
    size_t kept = 0;

    for (size_t i = 0; i < writer->tail_count; i++) {
        struct wb_log_tail *tail = &writer->tails[i];
        tail->bytes_committed = tail->bytes;
        tail->pages_appended = 0;
        if (tail->bytes < wb_log_sizes.segment_bytes)
            writer->tails[kept++] = *tail;
        else
            wb_segment_close(&tail->segment);
    }
    writer->tail_count = kept;
}

/* Nothing of the ops was committed: their bytes go, the last state stays. */
static void roll_back(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;

    wb_log_flush_drop(log);
    for (size_t i = 0; i < writer->tail_count; i++) {
        struct wb_log_tail *tail = &writer->tails[i];
        wb_file_truncate(&tail->segment.file, tail->bytes_committed); /* failing, it is overwritten or cut off later */
        tail->bytes = tail->bytes_committed;
        tail->pages_appended = 0;
    }
    wb_block_cache_release(&log->source.cache); /* other blocks will lie where those did that were read meanwhile */
    wb_log_ops_clear(writer);
}

void wb_log_decide(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;
    struct wb_error_copy why;

    if (!wb_catalog_uncertain(log->catalog))
        return;
    wb_error_save(WB_E_IO, &why);
    wb_log_flush_drop(log);
    for (size_t i = 0; i < writer->tail_count; i++)
        wb_segment_close(&writer->tails[i].segment);
    writer->tail_count = 0;
    wb_block_cache_release(&log->source.cache);
    wb_log_ops_clear(writer);
    (void)wb_log_open_catalog(log); /* if this fails the catalog stays unusable and says so */
    wb_error_restore(&why);
}

static int commit_ops(struct wb_log *log, struct wb_store_commit_counts *counts_out)
{
    struct wb_log_writer *writer = log->writer;
    struct catalog_edit edit = {.log = log};
    int err = writer->failed.code < 0 ? wb_error_restore(&writer->failed) : wb_log_flush_all(log);

    if (err == 0)
        err = sync_tails(writer);
    if (err < 0)
        return err;
    edit.order = wb_alloc((writer->op_count + 1) * sizeof *edit.order);
    if (!edit.order)
        return WB_E_NOMEM;
    for (size_t i = 0; i < writer->op_count; i++)
        edit.order[i] = (uint32_t)i;
    qsort_r(edit.order, writer->op_count, sizeof *edit.order, compare_ops, writer->ops);
    err = apply(&edit);
    if (err == 0) {
        writer->commit = edit.state.commit;
        *counts_out = edit.counts;
    }
    edit_release(&edit);
    return err;
}

int wb_log_commit(struct wb_store *store, struct wb_store_commit_counts *commit_inout)
{
    struct wb_log *log = wb_log_of(store);
    struct wb_log_writer *writer = log->writer;
    struct wb_store_commit_counts counts = {0};
    int err;

    if (writer->op_count == 0 && writer->failed.code == 0) {
        commit_inout->older += writer->older;
        commit_inout->barred += writer->barred;
        writer->older = writer->barred = 0;
        return 0;
    }
    err = commit_ops(log, &counts);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        if (wb_catalog_uncertain(log->catalog))
            wb_log_decide(log);
        else
            roll_back(log);
        return wb_error_restore(&why);
    }
    commit_inout->added += counts.added;
    commit_inout->replaced += counts.replaced;
    commit_inout->older += counts.older + writer->older;
    commit_inout->barred += counts.barred + writer->barred;
    commit_inout->touched += counts.touched;
    commit_inout->removed += counts.removed;
    close_full_tails(writer);
    wb_log_ops_clear(writer);
    return 0;
}

/* ---- snapshot --------------------------------------------------------------------------------------------- */

static int bury_old(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    (void)id;
    return bury(context, entry, false);
}

static int take_snapshot(struct catalog_edit *edit)
{
    int err = edit_begin(edit);

    if (err == 0)
        err = wb_catalog_entry_each(&edit->txn, WB_CATALOG_OLD, bury_old, edit);
    if (err == 0)
        err = wb_catalog_clear(&edit->txn, WB_CATALOG_OLD);
    if (err == 0) {
        edit->state.old = 0;
        edit->state.snapshot++;
        edit->state.snapshot_epoch = edit->state.epoch++;
        edit->snapshot = edit->state.snapshot;
        err = edit_end(edit);
    }
    wb_catalog_txn_abort(&edit->txn);
    return err;
}

int wb_log_snapshot(struct wb_store *store, uint32_t *snapshot_out)
{
    struct wb_log *log = wb_log_of(store);
    struct wb_store_commit_counts counts = {0};
    struct catalog_edit edit = {.log = log};
    int err = wb_log_commit(store, &counts);

    if (err == 0)
        err = take_snapshot(&edit);
    if (err == 0) {
        log->writer->commit = edit.state.commit;
        *snapshot_out = edit.snapshot;
    }
    edit_release(&edit);
    wb_log_decide(log);
    return err;
}
