/*
 * cmd_transfer.c - webbase transfer: shows what wb_store_transfer() does to bring waiting pages to the read nodes.
 *
 *   isolate        12 ms
 *   transfer      340 ms   1000 pages
 *   added 900 pages, replaced 100
 *   {"event":"stage","stage":"transfer","ms":340,"pages":1000}
 *   {"event":"done","added":900,"replaced":100,"ms":412}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
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

static void on_stage(void *context, const struct wb_store_stage *stage)
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

static int write_result(bool json, const struct wb_store_transfer_counts *counts)
{
    struct wb_json j;

    if (!json)
        return wb_output_printf("added %" PRIu64 " page%s, replaced %" PRIu64 "\n", counts->added,
                                wb_output_plural(counts->added), counts->replaced);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "added", counts->added);
    wb_json_field_u64(&j, "replaced", counts->replaced);
    wb_json_field_u64(&j, "ms", (uint64_t)counts->ms);
    return wb_output_object_end(&j);
}

int wb_cmd_transfer(const struct wb_options *options)
{
    struct transfer_show show = {.json = options->json};
    struct wb_store_transfer_counts counts;
    struct wb_store *store = NULL;

    wb_stop_on_signals();
    int err = wb_store_open(options->dir, WB_STORE_WRITE, &store);
    if (err < 0)
        return err;
    wb_progress_init(&show.progress, "transfer");
    err = wb_store_transfer(store, on_stage, &show, on_progress, &show, &counts);
    wb_progress_clear();
    if (err == 0)
        err = show.err;
    if (err == 0)
        err = write_result(options->json, &counts);
    wb_store_close(store);
    return err;
}
