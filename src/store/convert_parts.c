/*
 * convert_parts.c - copies the parts of a design (convert.h). A batch design has read nodes and update nodes, each with
 * a catalog of its own; any other design has read nodes only.
 *
 *   from          to            read nodes           update nodes
 *   incremental   incremental   copied
 *   incremental   batch         copied               empty, but with the bars
 *   batch         batch         copied               copied: what waits still waits
 *   batch         incremental   copied, and then what waits is brought to them, as a transfer does
 *
 * While a batch design is copied, no transfer can begin, as with a scan: what waits must not move from one part to the
 * other between the moments at which they are copied.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/convert.h"
#include "store/transfer.h"

/* Copies one part. The counts of the whole copy are those of its read nodes, except for the bytes. */
static int copy_part(struct wb_convert *convert, struct wb_convert_source *source, struct wb_log *target)
{
    convert->source = source;
    convert->target = target;
    convert->latest = convert->gone = 0;
    WB_CHECK(target->writer != NULL);
    int err = wb_convert_rows(convert);
    if (err < 0)
        return err;
    return target->hash ? wb_convert_sorted_pages(convert) : wb_convert_pages(convert);
}

/* Passes the progress of a transfer on. */
static bool on_transfer(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return wb_convert_progress(context, 0) == 0;
}

/* Brings what waits on update nodes to a copy that has none. */
static int bring_waiting(struct wb_convert *convert, struct wb_convert_source *update, struct wb_store *target)
{
    struct wb_batched both = {.magic = WB_BATCHED_MAGIC, .read = target};
    struct wb_transfer t = {
        .batch = &both, .to = convert->target, .progress = on_transfer, .progress_context = convert};
    int err = wb_store_open(update->dir, WB_STORE_READ, &both.update);

    WB_CHECK(convert->target->writer != NULL);
    if (err == 0) {
        t.from = wb_batched_update_log(&both);
        err = wb_catalog_open(update->dir, WB_TREE_READ, &t.catalog);
    }
    if (err == 0)
        err = wb_catalog_txn_read(t.catalog, &t.waiting);
    if (err == 0)
        err = wb_transfer_list(&t);
    if (err == 0)
        err = wb_transfer_intersect(&t);
    /* No block can be copied as it is: hashes of contents differ between repositories. */
    for (size_t i = 0; i < t.pages.count; i++)
        t.pages.items[i].certain = false;
    t.to->writer->thorough = true;
    if (err == 0)
        err = wb_transfer_bring(&t);
    t.to->writer->thorough = false;
    wb_catalog_txn_abort(&t.waiting);
    wb_catalog_close(t.catalog);
    wb_vec_release(&t.pages);
    wb_store_close(both.update);
    convert->counts.bytes += t.bytes_done;
    return err;
}

static int count(struct wb_convert *convert, struct wb_log *read)
{
    struct wb_catalog_summary summary;
    int err = wb_log_summary(read, &summary);

    convert->counts.pages = summary.pages;
    convert->counts.versions = summary.versions;
    return err;
}

static int copy_parts(struct wb_convert *convert, struct wb_convert_source *read, struct wb_convert_source *update,
                      struct wb_store *target)
{
    struct wb_batched *batch = wb_batched_is(target) ? wb_batched_of(target) : NULL;
    struct wb_log *log = batch ? wb_batched_read_log(batch) : wb_log_of_writer(target);
    const struct wb_convert_source *sources[] = {read, update};

    for (size_t i = 0; i < 2; i++)
        if (sources[i])
            convert->total += sources[i]->summary.versions * 2;
    int err = copy_part(convert, read, log);
    if (err == 0 && update && batch)
        err = copy_part(convert, update, wb_batched_update_log(batch));
    else if (err == 0 && update)
        err = bring_waiting(convert, update, target);
    else if (err == 0 && batch) {
        convert->target = wb_batched_update_log(batch);
        err = wb_convert_bars(convert);
    }
    return err < 0 ? err : count(convert, log);
}

int wb_convert_parts(struct wb_convert *convert, struct wb_convert_source *read, struct wb_store *target)
{
    struct wb_convert_source update = {0};
    bool batch = read->superblock.design.batch;
    char *path = batch ? wb_path_join(read->dir, WB_BATCHED_UPDATE_DIR) : NULL;
    int err = batch && !path ? WB_E_NOMEM : 0;

    WB_CHECK(read->txn.kind == WB_CATALOG_TXN_HELD);
    if (err == 0 && batch)
        err = wb_convert_source_open(path, &update);
    if (err == 0)
        err = copy_parts(convert, read, batch ? &update : NULL, target);
    wb_convert_source_close(&update);
    wb_free(path);
    return err;
}
