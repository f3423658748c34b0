/*
 * batched_write.c - what a writer does to a repository of a batch design. It goes to the update nodes, which know what
 * a page is there or on the read nodes (repo_base.c), and so decide as an incremental design does.
 *
 * Takedowns reach both parts at once. Bars are set on both before anything is removed, so that nothing that is barred
 * can be transferred, whatever happens in between.
 */
#include "base/check.h"
#include "store/batch/batched.h"

int wb_batched_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return wb_store_put(wb_batched_of(store)->update, page, outcome_out);
}

int wb_batched_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return wb_store_touch(wb_batched_of(store)->update, id, time_ms);
}

int wb_batched_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                           enum wb_store_outcome *outcome_out)
{
    WB_CHECK(store->mode == WB_STORE_WRITE);
    return wb_store_put_revisit(wb_batched_of(store)->update, revisit, outcome_out);
}

int wb_batched_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms,
                      bool everywhere)
{
    struct wb_batched *batch = wb_batched_of(store);
    int there = wb_store_remove(batch->update, id, site, time_ms, everywhere);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (!everywhere || (there < 0 && there != WB_E_NOTFOUND))
        return there;
    int err = wb_store_remove(batch->read, id, site, time_ms, true);
    return err == WB_E_NOTFOUND && there == 0 ? 0 : err;
}

int wb_batched_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(store, &ignored);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err == 0)
        err = wb_store_bar(batch->update, bar);
    return err < 0 ? err : wb_store_bar(batch->read, bar);
}

int wb_batched_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(store, &ignored);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    /* The update nodes first: if this is interrupted, the read nodes still know the bar, and it can be repeated. */
    int there = err == 0 ? wb_store_allow(batch->update, bar) : err;
    if (there < 0 && there != WB_E_NOTFOUND)
        return there;
    err = wb_store_allow(batch->read, bar);
    return err == WB_E_NOTFOUND && there == 0 ? 0 : err;
}

int wb_batched_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts there = {0}, here = {0};
    int err = wb_store_commit(batch->update, &there);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    /* Only takedowns go to the read nodes. They come second, so that nothing waits any more that was taken down. */
    if (err == 0)
        err = wb_store_commit(batch->read, &here);
    if (err == 0)
        wb_store_counts_add(counts_inout, &there);
    else
        wb_ops_clear(wb_batched_read_log(batch)); /* nothing of it is stored */
    return err;
}
