/*
 * cmd_convert.c - webbase convert: copies everything into a new repository of another design.
 *
 *   copied 37 pages with 52 versions to TARGET (Incr[hash,hashed-log]) in 0.2 s
 *   {"event":"done","pages":37,"versions":52,"bytes":90112,"ms":210}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/design_args.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cycle/cycle.h"
#include "os/clock.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

static bool on_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    char text[80];

    if (wb_progress_due(context)) {
        unsigned percent = total ? (unsigned)(100.0 * (double)done / (double)total) : 0;
        snprintf(text, sizeof text, "%s: %u %%", step, percent > 100 ? 100 : percent);
        wb_progress_show(context, text);
    }
    return !wb_stop_requested();
}

static int say(const struct wb_options *options, const struct wb_design *design,
               const struct wb_store_convert_counts *counts, int64_t ms)
{
    char text[WB_DESIGN_TEXT_MAX];
    struct wb_json j;

    wb_design_format(design, text);
    if (!options->json)
        return wb_output_printf("copied %" PRIu64 " page%s with %" PRIu64 " version%s to %s (%s) in %.1f s\n",
                                counts->pages, wb_output_plural(counts->pages), counts->versions,
                                wb_output_plural(counts->versions), options->args[0], text, (double)ms / 1000);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "pages", counts->pages);
    wb_json_field_u64(&j, "versions", counts->versions);
    wb_json_field_u64(&j, "bytes", counts->bytes);
    wb_json_field_u64(&j, "ms", (uint64_t)ms);
    return wb_output_object_end(&j);
}

int wb_cmd_convert(const struct wb_options *options)
{
    struct wb_store_convert_counts counts;
    struct wb_design_args args;
    struct wb_progress progress;
    struct wb_cycle_sink sink = {.progress = on_progress, .context = &progress};
    int err = wb_design_args_read(options, &args);

    if (err < 0)
        return err;
    wb_stop_on_signals();
    wb_progress_init(&progress, "convert");
    int64_t start_ns = wb_clock_mono_ns();
    err = wb_convert(options->dir, options->args[0], &args.store, &sink, &counts);
    wb_progress_clear();
    int64_t ms = (wb_clock_mono_ns() - start_ns) / 1000000;
    if (err == 0)
        err = say(options, &args.store.design, &counts, ms);
    wb_design_args_release(&args);
    return err;
}
