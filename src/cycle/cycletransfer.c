/* cycletransfer.c - in a batch design, readers see what was crawled after a transfer, and an index is a reader. */
#include "cycle/cycletransfer.h"
#include "move/move.h"
#include "os/stop.h"
#include "store/store.h"

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    const struct wb_cycle_sink *sink = context;

    if (wb_stop_requested())
        return false;
    return !sink->progress || sink->progress(sink->context, "transferring", done, total);
}

int wb_cycle_transfer(const char *dir, const struct wb_cycle_sink *sink, bool *partly_out)
{
    struct wb_move_transfer_counts counts = {0};
    struct wb_store *store = NULL;
    struct wb_store_stat stat = {0};
    struct wb_error_copy why;
    int err = wb_store_open(dir, WB_STORE_WRITE, &store);

    if (err == 0)
        err = wb_store_stat(store, &stat);
    if (err == 0 && stat.design.batch)
        err = wb_move_transfer(store, NULL, NULL, on_progress, (void *)(uintptr_t)sink, &counts);
    *partly_out = err == WB_E_DOWN && counts.finished;
    wb_error_save(err, &why);
    wb_store_close(store);
    return err < 0 ? wb_error_restore(&why) : 0;
}
