/*
 * transfer.c - wb_move_transfer(): the batch update of the WebBase paper (section 3.3.1), in its steps:
 *
 *   isolate        lets no new scan begin, and waits for those that are under way
 *   id lists       the ids of everything that waits
 *   intersection   which of them readers have already
 *   transfer       brings pages to the read nodes, in bounded commits
 *   index          ... the part of that time that the catalog of the read nodes took
 *   empty          takes away from the update nodes what has arrived
 *   compact        frees the space of what was replaced, and of the update nodes
 *   restart        lets scans begin again
 *
 * The paper deletes what will be replaced before it transfers. Here a commit that brings the new version of a page ends
 * the old one in the same transaction, so that a crash leaves every page either old or new. Nothing is taken away from
 * the update nodes before it is committed on the read nodes; a transfer that was interrupted is completed by the
 * next one, for which everything that has arrived already is known (KNOWN) and counts for nothing.
 *
 * Pages that need a node which cannot be used stay on the update nodes (transfer_nodes.c).
 */
#include "move/move.h"
#include "move/transfer.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"

/* Reports the stages. */
struct transfer_watch {
    wb_move_each_stage each;
    void *context;
    int64_t began_ns, stage_ns;
};

static void end_stage(struct transfer_watch *w, const char *name, int64_t less_ns, uint64_t pages, uint64_t bytes)
{
    WB_CHECK(less_ns >= 0);
    int64_t now_ns = wb_clock_mono_ns(), ns = now_ns - w->stage_ns - less_ns;

    WB_CHECK(name[0] != '\0');
    w->stage_ns = now_ns;
    if (w->each)
        w->each(w->context, &(struct wb_move_stage){name, ns > 0 ? ns / 1000000 : 0, pages, bytes});
}

int wb_transfer_progress(struct wb_transfer *t)
{
    uint64_t total = t->pages.count;

    WB_CHECK(t->batch->magic == WB_BATCHED_MAGIC);
    if (!t->progress || t->progress(t->progress_context, t->pages_done < total ? t->pages_done : total, total))
        return 0;
    return wb_fail(WB_E_STOPPED, "stopped; the next transfer completes this one");
}

/* Takes hold of the state that is transferred. */
static int hold_waiting(struct wb_transfer *t)
{
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(&t->batch->store, &ignored);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_CLOSED);
    if (err == 0)
        err = wb_catalog_open(t->from->dir, WB_TREE_READ, &t->catalog);
    if (err == 0)
        err = wb_catalog_txn_read(t->catalog, &t->waiting);
    return err;
}

/*
 * If another process compacts at this moment, or moves pages between nodes, it frees the space, or the next compaction
 * does. Everything was brought by now, so that is no reason to report a failure.
 */
static int compact_part(struct wb_transfer *t, struct wb_store *part, uint64_t *bytes_inout)
{
    struct wb_move_compact_counts counts = {0};
    int err = wb_move_compact(part, t->progress, t->progress_context, NULL, NULL, &counts);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_CLOSED); /* or the files would be kept for us */
    *bytes_inout += counts.bytes_before - counts.bytes_after;
    return err == WB_E_BUSY ? 0 : err;
}

static int compact(struct wb_transfer *t, uint64_t *bytes_out)
{
    int err = 0;

    WB_CHECK(*bytes_out == 0);
    if (t->counts.replaced || t->known) /* otherwise nothing has died there */
        err = compact_part(t, t->batch->read, bytes_out);
    return err < 0 ? err : compact_part(t, t->batch->update, bytes_out);
}

static void release(struct wb_transfer *t)
{
    WB_CHECK(t->batch->magic == WB_BATCHED_MAGIC);
    wb_catalog_txn_abort(&t->waiting);
    wb_catalog_close(t->catalog);
    t->catalog = NULL;
    t->waiting = (struct wb_catalog_txn){0};
    wb_vec_release(&t->pages);
    wb_vec_release(&t->starts);
    wb_site_names_release(&t->sites);
    wb_pageview_release(&t->view);
    wb_pageview_release(&t->other);
    wb_vec_release(&t->deltas);
    wb_vec_release(&t->fresh);
    wb_vec_release(&t->without);
    wb_vec_release(&t->from_parts);
}

/* The steps behind the gate. */
static int run(struct wb_transfer *t, struct transfer_watch *w)
{
    uint64_t freed = 0, waiting;
    int err = hold_waiting(t);

    WB_CHECK(w->began_ns > 0);
    if (err == 0)
        err = wb_transfer_look(t);
    if (err == 0)
        err = wb_transfer_list(t);
    if (err == 0)
        err = wb_transfer_mark(t);
    if (err < 0)
        return err;
    waiting = t->pages.count;
    end_stage(w, "id lists", 0, waiting, 0);
    end_stage(w, "intersection", 0, t->known, 0);
    t->to->writer->thorough = true;
    err = wb_transfer_bring_around(t);
    t->to->writer->thorough = false;
    if (err < 0)
        return err;
    wb_transfer_count_waiting(t);
    end_stage(w, "transfer", t->commit_ns, t->pages_done, t->bytes_done);
    if (w->each)
        w->each(w->context, &(struct wb_move_stage){"index", t->commit_ns / 1000000, t->pages_done, 0});
    release(t);
    end_stage(w, "empty", 0, waiting - t->counts.waiting, 0);
    err = compact(t, &freed);
    if (err == 0)
        end_stage(w, "compact", 0, 0, freed);
    return err;
}

static int refuse_design(struct wb_store *store)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    char design[WB_DESIGN_TEXT_MAX];
    struct wb_store_stat stat;
    int err = wb_store_stat(store, &stat);

    if (err < 0)
        return err;
    wb_design_format(&stat.design, design);
    return wb_fail(WB_E_INVALID, "transfer is for batch designs: the design of this repository is %s", design);
}

int wb_move_transfer(struct wb_store *store, wb_move_each_stage stage, void *stage_context, wb_store_progress progress,
                     void *progress_context, struct wb_move_transfer_counts *counts_out)
{
    struct transfer_watch w = {.each = stage, .context = stage_context, .began_ns = wb_clock_mono_ns()};
    struct wb_batched_gate gate = WB_BATCHED_GATE_INIT;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    *counts_out = (struct wb_move_transfer_counts){0};
    if (!wb_batched_is(store))
        return refuse_design(store);
    struct wb_transfer t = {.batch = wb_batched_of(store),
                            .progress = progress,
                            .progress_context = progress_context,
                            .began_ns = w.began_ns};
    t.from = wb_batched_update_log(t.batch);
    t.to = wb_batched_read_log(t.batch);
    w.stage_ns = w.began_ns;
    int err = wb_batched_gate_shut(t.batch->dir, &gate);
    if (err == 0)
        err = wb_batched_gate_clear(&gate, progress, progress_context);
    if (err == 0) {
        end_stage(&w, "isolate", 0, 0, 0);
        err = run(&t, &w);
    }
    release(&t);
    wb_batched_gate_leave(&gate);
    if (err == 0)
        end_stage(&w, "restart", 0, 0, 0);
    t.counts.finished = err == 0;
    if (err == 0)
        err = wb_transfer_report_waiting(&t);
    if (t.counts.finished && t.damage.code < 0)
        err =
            wb_fail(WB_E_CORRUPT, "pages that cannot be read stay on the update nodes; everything else was brought: %s",
                    t.damage.message);
    wb_vec_release(&t.out);
    *counts_out = t.counts;
    counts_out->ms = (wb_clock_mono_ns() - w.began_ns) / 1000000;
    return err;
}
