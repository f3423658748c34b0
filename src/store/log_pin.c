/*
 * log_pin.c - keeps the versions of one epoch from disappearing while somebody reads them.
 *
 * A pin is a lock of the kernel on the epoch's number (tree_pin.c). Every commit, and the
 * beginning of a compaction, treats pinned epochs like those of snapshots. Two things make this hold:
 *
 *   - A transaction that was under way when we pinned may not have seen the pin. So we wait for it.
 *   - It may have begun a new epoch meanwhile. So we pin the newest epoch and the one after it, and
 *     then see which of the two it is.
 */
#include "base/check.h"
#include "base/error.h"
#include "store/log_scan.h"

enum { PIN_TRIES = 100 };

/* Reads, in a transaction of its own, which epoch is meant. */
static int read_epoch(struct wb_catalog *catalog, uint32_t snapshot, uint64_t *epoch_out)
{
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_read(catalog, &txn);

    if (err < 0)
        return err;
    if (snapshot) {
        err = wb_log_snapshot_epoch(&txn, snapshot, epoch_out);
    } else {
        err = wb_catalog_summary_get(&txn, &summary);
        *epoch_out = summary.epoch;
    }
    wb_catalog_txn_abort(&txn);
    return err;
}

int wb_log_pin(struct wb_catalog *catalog, uint32_t snapshot, uint64_t *epoch_out)
{
    uint64_t seen, now = 0;
    int err = read_epoch(catalog, snapshot, &seen);

    *epoch_out = 0;
    for (unsigned i = 0; i < PIN_TRIES && err == 0; i++) {
        err = wb_catalog_pin(catalog, seen);
        if (err == 0)
            err = wb_catalog_pin(catalog, seen + 1);
        if (err == 0)
            err = wb_tree_pins_settle(wb_catalog_tree(catalog));
        if (err == 0)
            err = read_epoch(catalog, snapshot, &now);
        for (uint64_t pinned = seen; pinned <= seen + 1; pinned++)
            if (err < 0 || pinned != now)
                wb_catalog_unpin(catalog, pinned);
        if (err == 0 && (now == seen || now == seen + 1)) {
            *epoch_out = now;
            return 0;
        }
        seen = now;
    }
    return err < 0 ? err : wb_fail(WB_E_BUSY, "%s changes too fast to be read", wb_catalog_path(catalog));
}
