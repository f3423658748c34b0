/*
 * cmd_emulate.c - webbase emulate: adds the pages of another repository at a set rate, as a crawler would. What it
 * prints is that of import (import_show.h).
 */
#include "base/error.h"
#include "cli/import_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "os/stop.h"

#include <inttypes.h>

int wb_cmd_emulate(const struct wb_options *options)
{
    struct wb_emulate_options o = {
        .dir = options->dir,
        .source = options->args[0],
        .rate = wb_options_rate(options, "rate", 0),
        .pages = wb_options_number(options, "pages", 0),
    };
    struct wb_import_show show;
    struct wb_import import;

    if (!wb_options_text(options, "rate"))
        return wb_options_usage("emulate: needs --rate");
    if (o.rate <= 0)
        return wb_options_usage("--rate takes a number of more than 0, not '%s'", wb_options_text(options, "rate"));
    wb_stop_on_signals();
    struct wb_ingest_sink sink = wb_import_show_init(&show, options->json, "emulate");
    int err = wb_emulate(&o, &sink, &import);
    wb_progress_clear();
    if (err == 0)
        err = wb_import_show_end(&show, &import);
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal; pages kept: %" PRIu64, import.pages);
    if (err == 0 && import.errors)
        err = wb_fail(WB_E_CORRUPT, "%s: what is in %" PRIu64 " place%s could not be read or added", o.source,
                      import.errors, wb_output_plural(import.errors));
    return err;
}
