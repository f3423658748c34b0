/*
 * move.c - the door of move: checks arguments, and finds out which parts of a repository are concerned (move.h).
 */
#include "move/move.h"
#include "base/check.h"
#include "move/compact.h"
#include "move/rebalance.h"
#include "store/batch/batched.h"
#include "store/inside.h"

/* ---- compaction ------------------------------------------------------------------------------------------- */

/* Both parts of a batch design. */
static int compact_both(struct wb_batched *batch, wb_store_progress progress, void *progress_context,
                        wb_store_found found, void *found_context, struct wb_move_compact_counts *counts_out)
{
    struct wb_batched_found update_found = {found, found_context};
    struct wb_move_compact_counts there = {0};
    int err;

    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    batch->read->thrifty = batch->update->thrifty = batch->store.thrifty;
    err = wb_compact(batch->read, progress, progress_context, found, found_context, counts_out);
    if (err == 0)
        err = wb_compact(batch->update, progress, progress_context, wb_batched_pass_update, &update_found, &there);
    batch->read->thrifty = batch->update->thrifty = false;
    counts_out->files += there.files;
    counts_out->pages += there.pages;
    counts_out->versions += there.versions;
    counts_out->moved += there.moved;
    counts_out->bytes_before += there.bytes_before;
    counts_out->bytes_after += there.bytes_after;
    counts_out->skipped += there.skipped;
    counts_out->damaged += there.damaged;
    counts_out->dropped += there.dropped;
    return err;
}

int wb_move_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                    void *found_context, struct wb_move_compact_counts *counts_out)
{
    struct wb_store_commit_counts ignored = {0};

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    *counts_out = (struct wb_move_compact_counts){0};
    if (wb_repo_is(store))
        return wb_compact(store, progress, progress_context, found, found_context, counts_out);
    int err = wb_store_commit(store, &ignored);
    if (err < 0 || !wb_batched_is(store)) /* a store in memory, in tests, frees space as it goes */
        return err;
    return compact_both(wb_batched_of(store), progress, progress_context, found, found_context, counts_out);
}

int wb_move_compact_worthwhile(struct wb_store *store, wb_store_progress progress, void *progress_context,
                               wb_store_found found, void *found_context, struct wb_move_compact_counts *counts_out)
{
    WB_CHECK(!store->thrifty);
    store->thrifty = true;
    int err = wb_move_compact(store, progress, progress_context, found, found_context, counts_out);
    store->thrifty = false;
    return err;
}

/* ---- nodes ------------------------------------------------------------------------------------------------ */

/* The part of a repository that a node is in, or will be: everything that was put is committed. */
static int choose_part(struct wb_store *store, bool update, struct wb_store **part_out)
{
    struct wb_store_commit_counts ignored = {0};

    *part_out = store;
    if (wb_repo_is(store))
        return 0;
    if (!wb_batched_is(store))
        return wb_fail(WB_E_INVALID, "this repository has no nodes");
    struct wb_batched *batch = wb_batched_of(store);
    *part_out = update ? batch->update : batch->read;
    return wb_store_commit(store, &ignored);
}

int wb_move_node_add(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                     uint32_t *number_out)
{
    struct wb_store *part;
    uint32_t ignored;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (!number_out)
        number_out = &ignored;
    *number_out = 0;
    if (dir[0] == '\0')
        return wb_fail(WB_E_INVALID, "the directory of a node has an empty name");
    bool batch = wb_batched_is(store);
    int err = choose_part(store, update, &part);
    return err < 0 ? err : wb_rebalance_add(part, dir, update && !batch, progress, context, number_out);
}

int wb_move_node_remove(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context)
{
    struct wb_store *part;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (number == 0)
        return wb_fail(WB_E_NOTFOUND, "there is no node 0");
    int err = choose_part(store, number >= WB_BATCHED_FIRST_NODE, &part);
    return err < 0 ? err : wb_rebalance_remove(part, number, progress, context);
}
