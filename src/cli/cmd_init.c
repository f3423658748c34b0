/*
 * cmd_init.c - webbase init: creates an empty repository.
 *
 *   created an empty repository in DIR (Incr[hash,log], history newest)
 *   {"event":"done","repository":"DIR","design":"Incr[hash,log]","history":"newest"}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/design_args.h"
#include "cli/output.h"

int wb_cmd_init(const struct wb_options *options)
{
    char history[WB_STORE_HISTORY_TEXT_MAX], design[WB_DESIGN_TEXT_MAX];
    struct wb_design_args args;
    struct wb_json j;
    const char *policy = wb_options_text(options, "history");
    int err = wb_design_args_read(options, &args);

    if (err == 0 && policy && wb_store_history_parse(wb_slice_str(policy), &args.store.history) < 0) {
        err = wb_options_usage("--history: %s", wb_error_message());
        wb_design_args_release(&args);
    }
    if (err < 0)
        return err;
    wb_store_history_format(&args.store.history, history);
    wb_design_format(&args.store.design, design);
    err = wb_store_create(options->dir, &args.store);
    wb_design_args_release(&args);
    if (err < 0)
        return err;
    if (!options->json)
        return wb_output_printf("created an empty repository in %s (%s, history %s)\n", options->dir, design, history);
    wb_output_object_begin(&j, "done");
    wb_json_field_str(&j, "repository", options->dir);
    wb_json_field_str(&j, "design", design);
    wb_json_field_str(&j, "history", history);
    return wb_output_object_end(&j);
}
