/*
 * convert_parts.c - copies the parts of a design (convert.h). A batch design has read nodes and update nodes, each with
 * a catalog of its own; any other design has read nodes only.
 *
 *   from          to            read nodes           update nodes
 *   incremental   incremental   copied
 *   incremental   batch         copied               empty, but with the bars
 *   batch         batch         copied               copied: what waits still waits
 *   batch         incremental   as into a batch design; then a transfer, and its empty update nodes are removed
 *
 * While a batch design is copied, no transfer can begin, as with a scan: what waits must not move from one part to the
 * other between the moments at which they are copied.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/move.h"
#include "os/path.h"
#include "store/batch/batched.h"
#include "store/inside.h"
#include "move/convert.h"

/* Copies one part. The counts of the whole copy are those of its read nodes, except for the bytes. */
static int copy_part(struct wb_convert *convert, struct wb_convert_source *source, struct wb_repo *target)
{
    convert->source = source;
    convert->target = target;
    convert->latest = convert->gone = 0;
    wb_vec_clear(&convert->lost_sites);
    int err = wb_convert_rows(convert);
    return err < 0 ? err : wb_convert_pages(convert);
}

/* Passes the progress of a transfer on. */
static bool on_transfer(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    return wb_convert_progress(context, 0) == 0;
}

static int count(struct wb_convert *convert, struct wb_repo *read)
{
    struct wb_catalog_summary summary;
    int err = wb_repo_summary(read, &summary);

    convert->counts.pages = summary.pages;
    convert->counts.versions = summary.versions;
    return err;
}

static int copy_parts(struct wb_convert *convert, struct wb_convert_source *read, struct wb_convert_source *update,
                      struct wb_store *target, bool transfer)
{
    struct wb_move_transfer_counts counts;
    struct wb_batched *batch = wb_batched_is(target) ? wb_batched_of(target) : NULL;
    struct wb_repo *repo = batch ? wb_batched_read_log(batch) : wb_repo_of_writer(target);
    const struct wb_convert_source *sources[] = {read, update};

    WB_CHECK(!update || batch);
    WB_CHECK(!transfer || update);
    for (size_t i = 0; i < 2; i++)
        if (sources[i])
            convert->total += sources[i]->summary.versions * 2;
    convert->read = read;
    int err = copy_part(convert, read, repo);
    if (err == 0 && update)
        err = copy_part(convert, update, wb_batched_update_log(batch));
    else if (err == 0 && batch) {
        convert->target = wb_batched_update_log(batch);
        err = wb_convert_bars(convert);
    }
    for (size_t i = 0; i < 2 && err == 0; i++) { /* revisits wait on the update nodes, if there will be any */
        convert->source = i ? update : read;
        convert->target = batch && !transfer ? wb_batched_update_log(batch) : repo;
        err = convert->source ? wb_convert_revisits(convert) : 0;
    }
    if (err == 0 && transfer)
        err = wb_move_transfer(target, NULL, NULL, on_transfer, convert, &counts);
    return err < 0 ? err : count(convert, repo);
}

int wb_convert_parts(struct wb_convert *convert, struct wb_convert_source *read, struct wb_store *target, bool transfer)
{
    struct wb_convert_source update = {0};
    bool batch = read->superblock.design.batch;
    char *path = batch ? wb_path_join(read->dir, WB_BATCHED_UPDATE_DIR) : NULL;
    int err = batch && !path ? WB_E_NOMEM : 0;

    WB_CHECK(read->txn.kind == WB_CATALOG_TXN_HELD);
    if (err == 0 && batch)
        err = wb_convert_source_open(path, &update);
    if (err == 0)
        err = copy_parts(convert, read, batch ? &update : NULL, target, transfer);
    wb_convert_source_close(&update);
    wb_free(path);
    return err;
}
