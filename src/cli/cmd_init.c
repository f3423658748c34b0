/*
 * cmd_init.c - webbase init: creates an empty repository.
 *
 *   created an empty repository in DIR (log, incremental, history newest)
 *   {"event":"done","repository":"DIR","organisation":"log","update":"incremental","history":"newest"}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "store/store.h"

int wb_cmd_init(const struct wb_options *options)
{
    struct wb_store_options wanted = {.organisation = wb_options_text(options, "organisation"),
                                      .update = wb_options_text(options, "update")};
    const char *policy = wb_options_text(options, "history");
    char history[WB_STORE_HISTORY_TEXT_MAX];
    struct wb_json j;

    if (!wanted.organisation)
        wanted.organisation = "log";
    if (!wanted.update)
        wanted.update = "incremental";
    if (strcmp(wanted.organisation, "log") != 0)
        return wb_fail(WB_E_INVALID, "%s: this version cannot create a repository with organisation %s, only with log",
                       options->dir, wanted.organisation);
    if (strcmp(wanted.update, "incremental") != 0)
        return wb_fail(WB_E_INVALID,
                       "%s: this version cannot create a repository with update %s, only with incremental",
                       options->dir, wanted.update);
    if (policy && wb_store_history_parse(wb_slice_str(policy), &wanted.history) < 0)
        return wb_options_usage("--history: %s", wb_error_message());
    wb_store_history_format(&wanted.history, history);
    int err = wb_store_create(options->dir, &wanted);
    if (err < 0)
        return err;
    if (!options->json)
        return wb_output_printf("created an empty repository in %s (%s, %s, history %s)\n", options->dir,
                                wanted.organisation, wanted.update, history);
    wb_output_object_begin(&j, "done");
    wb_json_field_str(&j, "repository", options->dir);
    wb_json_field_str(&j, "organisation", wanted.organisation);
    wb_json_field_str(&j, "update", wanted.update);
    wb_json_field_str(&j, "history", history);
    return wb_output_object_end(&j);
}
