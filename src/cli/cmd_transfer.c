/*
 * cmd_transfer.c - webbase transfer: shows what wb_move_transfer() does to bring waiting pages to the read nodes.
 *
 *   isolate        12 ms
 *   transfer      340 ms   1000 pages
 *   added 900 pages, replaced 100
 *   12 pages wait for node 102
 *   {"event":"stage","stage":"transfer","ms":340,"pages":1000}
 *   {"event":"waiting","node":102,"pages":12,"revisits":0}   for each node that cannot be used
 *   {"event":"done","added":900,"replaced":100,"waiting":12,"ms":412}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "move/move.h"
#include "os/clock.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

struct transfer_show {
    struct wb_progress progress;
    bool json;
    bool isolated; /* the first stage has ended */
    int err;       /* of writing to standard output */
};

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    struct transfer_show *show = context;
    char text[100];

    if (wb_progress_due(&show->progress)) {
        if (show->isolated)
            snprintf(text, sizeof text, "transfer: %" PRIu64 " of %" PRIu64, done, total);
        else
            snprintf(text, sizeof text, "transfer: waiting for exports and streams that are under way");
        wb_progress_show(&show->progress, text);
    }
    return !wb_stop_requested();
}

static void on_stage(void *context, const struct wb_move_stage *stage)
{
    struct transfer_show *show = context;
    struct wb_json j;
    int err;

    wb_progress_clear();
    show->isolated = true;
    if (show->json) {
        wb_output_object_begin(&j, "stage");
        wb_json_field_str(&j, "stage", stage->name);
        wb_json_field_u64(&j, "ms", (uint64_t)stage->ms);
        wb_json_field_u64(&j, "pages", stage->pages);
        wb_json_field_u64(&j, "bytes", stage->bytes);
        err = wb_output_object_end(&j);
    } else {
        err = wb_output_printf("%-13s %8" PRId64 " ms", stage->name, stage->ms);
        if (err == 0 && stage->pages)
            err = wb_output_printf("  %8" PRIu64 " page%s", stage->pages, wb_output_plural(stage->pages));
        if (err == 0)
            err = wb_output_printf("\n");
    }
    show->err = show->err < 0 ? show->err : err;
}

/* What waits for a node that cannot be used. */
static int write_wait(bool json, const struct wb_move_transfer_wait *wait)
{
    struct wb_json j;

    if (!json)
        return wb_output_printf("%" PRIu64 " page%s for node %" PRIu32 "\n", wait->pages,
                                wait->pages == 1 ? " waits" : "s wait", wait->node);
    wb_output_object_begin(&j, "waiting");
    wb_json_field_u64(&j, "node", wait->node);
    wb_json_field_u64(&j, "pages", wait->pages);
    wb_json_field_u64(&j, "revisits", wait->revisits);
    return wb_output_object_end(&j);
}

static int write_result(bool json, const struct wb_move_transfer_counts *counts)
{
    struct wb_json j;
    int err = 0;

    if (!json)
        err = wb_output_printf("added %" PRIu64 " page%s, replaced %" PRIu64 "\n", counts->added,
                               wb_output_plural(counts->added), counts->replaced);
    for (size_t i = 0; i < counts->wait_count && err == 0; i++)
        err = write_wait(json, &counts->waits[i]);
    if (!json || err < 0)
        return err;
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "added", counts->added);
    wb_json_field_u64(&j, "replaced", counts->replaced);
    wb_json_field_u64(&j, "waiting", counts->waiting);
    wb_json_field_u64(&j, "ms", (uint64_t)counts->ms);
    return wb_output_object_end(&j);
}

int wb_cmd_transfer(const struct wb_options *options)
{
    struct transfer_show show = {.json = options->json};
    struct wb_move_transfer_counts counts;
    struct wb_store *store = NULL;
    struct wb_error_copy why;

    wb_stop_on_signals();
    int err = wb_store_open(options->dir, WB_STORE_WRITE, &store);
    if (err < 0)
        return err;
    wb_progress_init(&show.progress, "transfer");
    err = wb_move_transfer(store, on_stage, &show, on_progress, &show, &counts);
    wb_progress_clear();
    wb_error_save(err, &why);
    if (err == 0 || counts.finished) {
        int shown = show.err < 0 ? show.err : write_result(options->json, &counts);
        if (shown < 0)
            wb_error_save(shown, &why);
    }
    wb_store_close(store);
    return why.code < 0 ? wb_error_restore(&why) : 0;
}
