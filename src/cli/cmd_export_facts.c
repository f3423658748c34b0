/*
 * cmd_export_facts.c - webbase export --facts: writes what the index knows about pages to a file (facts/facts.h).
 */
#include "cli/cmd_export_facts.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/select_args.h"
#include "facts/facts.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

struct facts_export {
    struct wb_facts_options options;
    struct wb_selection selection;
    struct wb_facts_counts counts;
    struct wb_progress progress;
};

static int step(void *context, uint64_t done, uint64_t total, const struct wb_facts_counts *counts)
{
    struct facts_export *e = context;
    char text[80];

    if (wb_stop_requested())
        return wb_fail(WB_E_STOPPED, "stopped by a signal; %s was not written", e->options.path);
    if (wb_progress_due(&e->progress)) {
        snprintf(text, sizeof text, "export: looked at %" PRIu64 " of %" PRIu64 " pages, wrote %" PRIu64, done, total,
                 counts->pages);
        wb_progress_show(&e->progress, text);
    }
    return 0;
}

static int read_options(struct facts_export *e, const struct wb_options *options)
{
    e->options = (struct wb_facts_options){.path = wb_options_text(options, "facts"),
                                           .force = wb_options_flag(options, "force"),
                                           .selection = &e->selection,
                                           .step = step,
                                           .context = e};
    int err = wb_facts_format_of_name(e->options.path, &e->options.format);
    if (err == WB_E_INVALID)
        return wb_options_usage("%s", wb_error_message());
    return err < 0 ? err : wb_select_args(options, &e->selection);
}

static int write_file(struct facts_export *e, const char *dir)
{
    wb_progress_init(&e->progress, "export");
    int err = wb_facts_write(dir, &e->options, &e->counts);
    wb_progress_clear();
    return err;
}

static int show(const struct facts_export *e, const struct wb_options *options)
{
    uint64_t pages = e->counts.pages, links = e->counts.links;
    struct wb_json j;

    if (!options->json && e->options.format != WB_FACTS_SQLITE)
        return wb_output_printf("wrote the facts of %" PRIu64 " page%s to %s\n", pages, wb_output_plural(pages),
                                e->options.path);
    if (!options->json)
        return wb_output_printf("wrote the facts of %" PRIu64 " page%s and %" PRIu64 " link%s to %s\n", pages,
                                wb_output_plural(pages), links, wb_output_plural(links), e->options.path);
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "records", pages);
    wb_json_field_u64(&j, "pages", pages);
    wb_json_field_u64(&j, "links", links);
    return wb_output_object_end(&j);
}

int wb_cmd_export_facts(const struct wb_options *options)
{
    struct facts_export e = {.selection = WB_SELECTION_INIT};
    int err = read_options(&e, options);

    if (err == 0)
        err = write_file(&e, options->dir);
    wb_selection_release(&e.selection);
    return err < 0 ? err : show(&e, options);
}
