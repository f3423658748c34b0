/*
 * cmd_history.c - webbase history: shows or sets which old versions of pages are kept.
 *
 *   newest
 *   {"history":"newest"}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "store/store.h"

static int show(const struct wb_options *options, const struct wb_store_history *history)
{
    char text[WB_STORE_HISTORY_TEXT_MAX];
    struct wb_json j;

    wb_store_history_format(history, text);
    if (!options->json)
        return wb_output_printf("%s\n", text);
    wb_output_object_begin(&j, NULL);
    wb_json_field_str(&j, "history", text);
    return wb_output_object_end(&j);
}

int wb_cmd_history(const struct wb_options *options)
{
    bool set = options->arg_count > 0;
    struct wb_store *store = NULL;
    struct wb_store_history history;
    int err = 0;

    if (set && wb_store_history_parse(wb_slice_str(options->args[0]), &history) < 0)
        return wb_options_usage("history: %s", wb_error_message());
    err = wb_store_open(options->dir, set ? WB_STORE_WRITE : WB_STORE_READ, &store);
    if (err == 0 && set)
        err = wb_store_set_history(store, &history);
    if (err == 0)
        err = wb_store_history(store, &history);
    if (err == 0)
        err = show(options, &history);
    wb_store_close(store);
    return err;
}
