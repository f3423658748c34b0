/*
 * cmd_convert.c - webbase convert: copies everything into a new repository of another design.
 *
 *   copied 37 pages with 52 versions to TARGET (Incr[hash,hashed-log]) in 0.2 s
 *   not copied: indexes, streams and the state of crawls; 'webbase -r TARGET index' builds an index
 *   {"event":"lost","url":"http://...","id":"...","time":"...","latest":true,"message":"..."}   for each lost version
 *   {"event":"done","pages":37,"versions":52,"bytes":90112,"lost":0,"lost_pages":0,"ms":210}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/design_args.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cycle/cycle.h"
#include "move/move.h"
#include "os/clock.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

#define LOST_SHOWN 100 /* one bit can damage a lot */

struct convert_show {
    struct wb_progress progress;
    bool json;
    uint64_t lost; /* versions */
    int err; /* of writing to standard output */
};

static bool on_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    struct convert_show *show = context;
    char text[80];

    if (wb_progress_due(&show->progress)) {
        unsigned percent = total ? (unsigned)(100.0 * (double)done / (double)total) : 0;
        snprintf(text, sizeof text, "%s: %u %%", step, percent > 100 ? 100 : percent);
        wb_progress_show(&show->progress, text);
    }
    return !wb_stop_requested();
}

static void on_lost(void *context, struct wb_slice url, const struct wb_move_lost *lost)
{
    struct convert_show *show = context;
    char id[WB_PAGEID_HEX + 1], time[WB_DATE_TEXT_MAX];
    struct wb_json j;

    wb_progress_clear();
    wb_pageid_hex(lost->id, id);
    wb_date_format(lost->time_ms, time);
    if (!show->json && show->lost++ >= LOST_SHOWN) {
        if (show->lost == LOST_SHOWN + 1)
            wb_report("further lost versions are only counted; --json lists all of them");
        return;
    }
    if (!show->json) {
        wb_report("lost: %s%.*s, %s version of %s: %s", url.len ? "" : "the page with the id ",
                  WB_SLICE_ARG(url.len ? url : wb_slice_str(id)), lost->latest ? "the latest" : "an old", time,
                  lost->message);
        return;
    }
    wb_output_object_begin(&j, "lost");
    wb_json_field_text(&j, "url", url);
    wb_json_field_str(&j, "id", id);
    wb_json_field_time(&j, "time", lost->time_ms);
    wb_json_field_bool(&j, "latest", lost->latest);
    wb_json_field_str(&j, "message", lost->message);
    int err = wb_output_object_end(&j);
    show->err = show->err < 0 ? show->err : err;
}

static int say(const struct wb_options *options, const struct wb_design *design,
               const struct wb_move_convert_counts *counts, int64_t ms)
{
    char text[WB_DESIGN_TEXT_MAX];
    struct wb_json j;

    wb_design_format(design, text);
    if (!options->json)
        return wb_output_printf("copied %" PRIu64 " page%s with %" PRIu64 " version%s to %s (%s) in %.1f s\n"
                                "not copied: indexes, streams and the state of crawls; 'webbase -r %s index' builds an "
                                "index\n",
                                counts->pages, wb_output_plural(counts->pages), counts->versions,
                                wb_output_plural(counts->versions), options->args[0], text, (double)ms / 1000,
                                options->args[0]);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "pages", counts->pages);
    wb_json_field_u64(&j, "versions", counts->versions);
    wb_json_field_u64(&j, "bytes", counts->bytes);
    wb_json_field_u64(&j, "lost", counts->lost);
    wb_json_field_u64(&j, "lost_pages", counts->lost_pages);
    wb_json_field_u64(&j, "ms", (uint64_t)ms);
    return wb_output_object_end(&j);
}

int wb_cmd_convert(const struct wb_options *options)
{
    struct wb_move_convert_counts counts;
    struct wb_design_args args;
    struct convert_show show = {.json = options->json};
    struct wb_cycle_sink sink = {.progress = on_progress, .context = &show};
    int err = wb_design_args_read(options, &args);

    if (err < 0)
        return err;
    wb_stop_on_signals();
    wb_progress_init(&show.progress, "convert");
    int64_t start_ns = wb_clock_mono_ns();
    err = wb_convert(options->dir, options->args[0], &args.store, &sink, on_lost, &counts);
    wb_progress_clear();
    int64_t ms = (wb_clock_mono_ns() - start_ns) / 1000000;
    if (err == 0)
        err = show.err;
    if (err == 0)
        err = say(options, &args.store.design, &counts, ms);
    if (err == 0 && counts.lost)
        err = wb_fail(WB_E_CORRUPT,
                      "%" PRIu64 " version%s of %" PRIu64 " page%s could not be read and %s not in %s; "
                      "everything else was copied",
                      counts.lost, wb_output_plural(counts.lost), counts.lost_pages,
                      wb_output_plural(counts.lost_pages), counts.lost == 1 ? "is" : "are", options->args[0]);
    wb_design_args_release(&args);
    return err;
}
