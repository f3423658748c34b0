/*
 * compact.c - frees the space of dead pages: replaces each file that is worth it by one without them (mover.h).
 *
 *   1 forget   versions that nobody keeps any more are given up
 *   2 group    old versions are put next to newer ones of the same page             (mover_group.c)
 *   3 drop     segments in which nothing is alive are deleted, without reading them
 *   4 copy     the others are replaced
 *   5 divide   segments of ranges that have become too large are divided            (hashed_log.h)
 *
 * Damage does not stop it. Each damaged place is reported, and everything else is compacted. A file that cannot be
 * opened is left alone, and so is one that a writer has locked, or whose node is down.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/move.h"
#include "pagefile/pagefile.h"
#include "move/mover.h"

struct compaction {
    struct wb_mover mover;
    struct wb_mover_group group;
    wb_store_found found;
    void *found_context;
};

/* ---- reporting ---------------------------------------------------------------------------------------------- */

/* Reports a damaged place; stays: it is still there. */
static void tell(struct compaction *c, bool stays, const char *file, uint64_t at, const char *message)
{
    c->mover.counts.damaged += stays;
    c->mover.counts.dropped += !stays;
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){stays, file, at, message});
}

static void tell_all(struct compaction *c)
{
    for (size_t i = 0; i < c->mover.findings.count; i++) {
        const struct wb_move_finding *finding = &c->mover.findings.items[i];
        tell(c, finding->problem, finding->file, finding->at, finding->message);
    }
    wb_vec_clear(&c->mover.findings);
}

/*
 * The past of pages cannot be read: reports it, so that everything else is compacted nevertheless. Versions whose
 * fate is not known stay.
 */
static int absorb_catalog(struct compaction *c, int err)
{
    if (err == WB_E_CORRUPT)
        tell(c, true, WB_CATALOG_NAME, 0, wb_error_message());
    return err == WB_E_CORRUPT ? 0 : err;
}

/*
 * A file is damaged or locked, its node is down, or its disk fails or is full: it stays as it is, and the others are
 * compacted. Errors of the catalog are not of this kind: they would meet every file.
 */
static int leave_out(struct compaction *c, const struct wb_catalog_segment *row, int err)
{
    struct wb_repo *repo = c->mover.repo;
    char file[WB_SEGMENT_NAME_MAX];

    WB_CHECK(err < 0);
    c->mover.counts.skipped += err == WB_E_BUSY;
    if (err == WB_E_BUSY)
        return 0;
    if (wb_catalog_uncertain(repo->catalog) || (err != WB_E_CORRUPT && !wb_nodes_failed(&repo->nodes, err)))
        return err;
    c->mover.repo->files.kind->name(row->number, row->revision, file);
    if (err == WB_E_CORRUPT) {
        tell(c, true, file, 0, wb_error_message());
        return 0;
    }
    c->mover.counts.skipped++;
    if (c->found)
        c->found(c->found_context, &(struct wb_store_finding){false, file, 0, wb_error_message()});
    return 0;
}

/* ---- segments in which nothing is alive ------------------------------------------------------------------- */

enum { DEAD_AT_ONCE = 64 }; /* so many files are open at a time */

static bool is_dead(const struct wb_catalog_segment *row)
{
    return row->pages > 0 && row->live == 0;
}

/* Removes the segments that were collected. */
static int drop_dead(struct compaction *c, struct wb_move_hold *holds, size_t *count)
{
    int err = *count ? absorb_catalog(c, wb_move_drop(&c->mover, holds, *count)) : 0;

    while (*count)
        wb_move_hold_close(&holds[--*count]);
    return err;
}

/* Removes all segments in which nothing is alive. They are not read, and cost few transactions. */
static int remove_dead(struct compaction *c, const struct wb_catalog_rows *rows)
{
    struct wb_move_hold *holds = wb_alloc_zero(DEAD_AT_ONCE, sizeof *holds);
    size_t count = 0;
    int err = holds ? 0 : WB_E_NOMEM;

    for (size_t i = 0; i < rows->count && err == 0; i++) {
        if (!is_dead(&rows->items[i]))
            continue;
        err = wb_move_hold_open(&c->mover, rows->items[i].number, &holds[count]);
        if (err == 0) {
            wb_catalog_txn_abort(&holds[count].txn);
            count++;
        } else {
            err = leave_out(c, &rows->items[i], err);
        }
        if (err == 0 && count == DEAD_AT_ONCE)
            err = drop_dead(c, holds, &count);
    }
    int dropped = holds ? drop_dead(c, holds, &count) : 0;
    wb_free(holds);
    return err < 0 ? err : dropped;
}

/* ---- all files ------------------------------------------------------------------------------------------------ */

static bool wants(const struct compaction *c, const struct wb_catalog_segment *row)
{
    const struct wb_mover *mover = &c->mover;

    return mover->group && wb_mover_group_wants(mover->group, mover->repo, row);
}

/* Replaces the files that are worth it; grouping: only those that take old versions. */
static int replace_all(struct compaction *c, bool grouping)
{
    struct wb_mover *mover = &c->mover;
    struct wb_overview o = {0};
    int err = wb_pagefile_overview(&mover->repo->files, &o);

    for (size_t i = 0; i < o.rows.count; i++)
        if (grouping ? wants(c, &o.rows.items[i]) : mover->ops->needs_work(mover, &o.rows.items[i]))
            mover->total += o.rows.items[i].bytes;
    if (err == 0)
        err = wb_mover_report(mover);
    if (err == 0 && !grouping && mover->ops->blocks)
        err = remove_dead(c, &o.rows);
    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &o.rows.items[i];
        const struct wb_bin bin = {row->node, row->range};
        uint64_t before = mover->done;
        if (grouping ? !wants(c, row) : (is_dead(row) && mover->ops->blocks) || !mover->ops->needs_work(mover, row))
            continue;
        err = wb_move_replace(mover, row, &bin, 1, WB_MOVE_KEEP);
        tell_all(c);
        err = err < 0 ? leave_out(c, row, err) : 0;
        mover->done = before + row->bytes;
        if (err == 0)
            err = wb_mover_report(mover);
    }
    wb_catalog_rows_release(&o.rows);
    return err;
}

/* First moves old versions next to newer ones, then frees what they left behind and everything else that is dead. */
static int replace_twice(struct compaction *c)
{
    int err = c->mover.ops->blocks ? absorb_catalog(c, wb_mover_group_plan(&c->group, c->mover.repo)) : 0;

    c->mover.group = c->group.plan.count ? &c->group : NULL;
    if (err == 0 && c->mover.group)
        err = replace_all(c, true);
    return err < 0 ? err : replace_all(c, false);
}

/* Divides a file. What is damaged there was reported if it had work to do. */
static int divide(void *context, const struct wb_catalog_segment *row, const struct wb_bin *bins, size_t count)
{
    struct compaction *c = context;
    struct wb_mover *mover = &c->mover;
    int err = wb_mover_report(mover);

    if (err == 0)
        err = wb_move_replace(mover, row, bins, count, WB_MOVE_REFUSE);
    if (err == WB_E_CORRUPT && !mover->counts.damaged)
        err = leave_out(c, row, err);
    /* Otherwise it stays as it is. */
    return err == WB_E_BUSY || err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err;
}

/* Divides files whose ranges of ids have become too large. */
static int divide_all(struct compaction *c)
{
    struct wb_pagefile *files = &c->mover.repo->files;
    struct wb_overview o = {0};
    int err = wb_pagefile_overview(files, &o);

    c->mover.group = NULL;
    c->mover.done = c->mover.total;
    if (err == 0)
        err = files->kind->splits(&o.rows, divide, c);
    wb_catalog_rows_release(&o.rows);
    return err;
}

/* Gives up the segment that this handle appends to, so that it can be compacted too. */
static int release_tails(struct wb_repo *repo)
{
    struct wb_store_commit_counts counts = {0};
    int err = wb_repo_commit(&repo->store, &counts);

    wb_tails_release(&repo->files);
    return err;
}

int wb_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
               void *found_context, struct wb_move_compact_counts *counts_out)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct compaction c = {.found = found, .found_context = found_context};
    struct wb_mover *mover = &c.mover;
    repo->files.thrifty = repo->store.thrifty;
    int err = wb_mover_init(mover, repo, progress, progress_context, "compaction was stopped");

    if (err == 0)
        err = wb_mover_lock(mover);
    if (err == 0)
        err = release_tails(repo);
    if (err == 0)
        err = absorb_catalog(&c, wb_repo_forget(repo, &mover->counts.versions));
    if (err == 0)
        err = replace_twice(&c);
    if (err == 0 && repo->files.kind->splits)
        err = divide_all(&c);
    if (err == 0)
        err = wb_pagefile_purge(&repo->files);
    wb_repo_decide(repo);
    *counts_out = mover->counts;
    wb_mover_group_release(&c.group);
    wb_mover_release(mover);
    return err;
}
