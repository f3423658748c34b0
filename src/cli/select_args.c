/* select_args.c - hands the values of options to the parsers of room stream, which HTTP parameters use too. */
#include "cli/select_args.h"
#include "base/error.h"

/* How values get to where they belong. */
struct select_target {
    struct wb_selection *selection;
    struct wb_stream_spec *spec; /* NULL: only a selection is read */
};

static int set(const struct select_target *target, const char *name, const char *value)
{
    struct wb_slice text = wb_slice_str(value);
    int err = target->spec ? wb_stream_spec_set(target->spec, name, text, true)
                           : wb_selection_set(target->selection, name, text, true);

    return err == WB_E_INVALID ? wb_options_usage("--%s", wb_error_message()) : err;
}

static int set_all(const struct select_target *target, const struct wb_options *options, const char *const *names,
                   size_t name_count)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < name_count; i++) {
        const char *value = wb_options_text(options, names[i]);
        if (value)
            err = set(target, names[i], value);
    }
    return err;
}

static int set_list(const struct select_target *target, const struct wb_options *options, const char *name)
{
    size_t count;
    const char *const *list = wb_options_list(options, name, &count);
    int err = 0;

    for (size_t i = 0; err == 0 && i < count; i++)
        err = set(target, name, list[i]);
    return err;
}

static int set_selection(const struct select_target *target, const struct wb_options *options)
{
    static const char *const names[] = {"sites", "since", "until", "type", "lang", "status", "query"};
    int err = set_list(target, options, "site");

    if (err == 0)
        err = set_list(target, options, "suffix");
    return err == 0 ? set_all(target, options, names, sizeof names / sizeof *names) : err;
}

int wb_select_args(const struct wb_options *options, struct wb_selection *selection_out)
{
    struct select_target target = {.selection = selection_out};

    *selection_out = WB_SELECTION_INIT;
    return set_selection(&target, options);
}

int wb_stream_args(const struct wb_options *options, struct wb_stream_spec *spec_out)
{
    static const char *const names[] = {"order",    "limit",    "partition", "resume", "latest",
                                        "snapshot", "versions", "name",      "join"};
    struct select_target target = {.selection = &spec_out->selection, .spec = spec_out};

    *spec_out = WB_STREAM_SPEC_INIT;
    int err = set_selection(&target, options);
    return err == 0 ? set_all(&target, options, names, sizeof names / sizeof *names) : err;
}
