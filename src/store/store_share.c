/*
 * store_share.c - what the implementations of the door (organisation.h) share.
 */
#include "base/check.h"
#include "base/error.h"
#include "store/organisation.h"

void wb_store_init(struct wb_store *store, enum wb_store_mode mode, const struct wb_store_ops *ops)
{
    WB_CHECK(mode == WB_STORE_READ || mode == WB_STORE_WRITE);
    WB_CHECK(ops->close);
    WB_CHECK(ops->put);
    WB_CHECK(ops->touch);
    WB_CHECK(ops->remove);
    WB_CHECK(ops->put_revisit);
    WB_CHECK(ops->get_revisit);
    WB_CHECK(ops->waiting_each);
    WB_CHECK(ops->bar);
    WB_CHECK(ops->allow);
    WB_CHECK(ops->barred);
    WB_CHECK(ops->bar_each);
    WB_CHECK(ops->bar_version);
    WB_CHECK(ops->list_site);
    WB_CHECK(ops->commit);
    WB_CHECK(ops->seal);
    WB_CHECK(ops->drop);
    WB_CHECK(ops->hold);
    WB_CHECK(ops->let_go);
    WB_CHECK(ops->snapshot_each);
    WB_CHECK(ops->history);
    WB_CHECK(ops->set_history);
    WB_CHECK(ops->timeline);
    WB_CHECK(ops->get);
    WB_CHECK(ops->get_many);
    WB_CHECK(ops->time);
    WB_CHECK(ops->stat);
    WB_CHECK(ops->scan_open);
    WB_CHECK(ops->scan_next);
    WB_CHECK(ops->scan_parcel);
    WB_CHECK(ops->scan_tell);
    WB_CHECK(ops->position_compare);
    WB_CHECK(ops->scan_holds);
    WB_CHECK(ops->scan_close);
    *store = (struct wb_store){.magic = WB_STORE_MAGIC, .mode = mode, .ops = ops};
}

void wb_store_release(struct wb_store *store)
{
    WB_CHECK(store->ops != NULL);
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    store->magic = 0;
}

void wb_store_scan_init(struct wb_store_scan *scan, const struct wb_store *store)
{
    WB_CHECK(store->ops != NULL);
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    *scan = (struct wb_store_scan){WB_STORE_SCAN_MAGIC, store->ops};
}

void wb_store_scan_release(struct wb_store_scan *scan)
{
    WB_CHECK(scan->ops != NULL);
    WB_CHECK(scan->magic == WB_STORE_SCAN_MAGIC);
    scan->magic = 0;
}

void wb_store_counts_add(struct wb_store_commit_counts *sum_inout, const struct wb_store_commit_counts *counts)
{
    WB_CHECK(sum_inout != counts);
    sum_inout->added += counts->added;
    sum_inout->replaced += counts->replaced;
    sum_inout->past += counts->past;
    sum_inout->captures += counts->captures;
    sum_inout->older += counts->older;
    sum_inout->barred += counts->barred;
    sum_inout->removed += counts->removed;
    sum_inout->damaged += counts->damaged;
}

int wb_store_not_found(void)
{
    return wb_fail(WB_E_NOTFOUND, "not in the repository");
}
