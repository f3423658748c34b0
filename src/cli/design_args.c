/*
 * design_args.c - reads the options of a new repository (design_args.h).
 */
#include "cli/design_args.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* --design, or the parts of one. */
static int read_design(const struct wb_options *options, struct wb_design *design)
{
    const char *text = wb_options_text(options, "design");
    const char *organisation = wb_options_text(options, "organisation");
    const char *update = wb_options_text(options, "update");
    const char *distribution = wb_options_text(options, "distribution");
    struct wb_design_part part = {0};

    if (text && (organisation || update || distribution))
        return wb_options_usage("--design says everything: leave out --%s", organisation ? "organisation"
                                                                          : update       ? "update"
                                                                                         : "distribution");
    if (text) {
        int err = wb_design_parse(wb_slice_str(text), design);
        return err < 0 ? wb_options_usage("--design: %s", wb_error_message()) : 0;
    }
    if (distribution)
        (void)wb_distribution_parse(wb_slice_str(distribution), &part.distribution); /* one of its choices */
    if (organisation)
        (void)wb_organisation_parse(wb_slice_str(organisation), &part.organisation);
    *design = (struct wb_design){.batch = update && strcmp(update, "batch") == 0, .read = part};
    if (design->batch)
        design->update = part;
    return 0;
}

/* -1, +3, 1.5, 0x3 or blanks: somebody meant a number. A directory of such a name is ./-1. */
static bool looks_like_number(const char *text)
{
    char *end;

    strtod(text, &end);
    return text[strspn(text, " \t")] == '\0' || (end != text && *end == '\0');
}

/* A number, or directories with commas between them. */
static int read_nodes(const struct wb_options *options, const char *name, unsigned which, struct wb_design_args *args,
                      struct wb_store_node_list *list)
{
    const char *text = wb_options_text(options, name);
    uint64_t number;

    if (!text)
        return 0;
    if (wb_slice_to_u64(wb_slice_str(text), &number)) {
        if (number == 0 || number > WB_DESIGN_NODES_MAX)
            return wb_options_usage("--%s %s: between 1 and %d nodes", name, text, WB_DESIGN_NODES_MAX);
        list->count = (size_t)number;
        return 0;
    }
    if (looks_like_number(text))
        return wb_options_usage("--%s %s: between 1 and %d nodes", name, text, WB_DESIGN_NODES_MAX);
    char *rest = args->lists[which] = wb_strdup(text);
    if (!rest)
        return WB_E_NOMEM;
    list->dirs = args->dirs[which];
    while (rest) {
        char *comma = strchr(rest, ',');
        if (comma)
            *comma = '\0';
        if (*rest == '\0' || list->count == WB_DESIGN_NODES_MAX)
            return wb_options_usage("--%s %s: a number, or up to %d directories with commas between them", name, text,
                                    WB_DESIGN_NODES_MAX);
        args->dirs[which][list->count++] = rest;
        rest = comma ? comma + 1 : NULL;
    }
    return 0;
}

int wb_design_args_read(const struct wb_options *options, struct wb_design_args *args_out)
{
    *args_out = (struct wb_design_args){0};
    int err = read_design(options, &args_out->store.design);
    if (err == 0)
        err = read_nodes(options, "nodes", 0, args_out, &args_out->store.nodes);
    if (err == 0)
        err = read_nodes(options, "update-nodes", 1, args_out, &args_out->store.update_nodes);
    if (err == 0 && args_out->store.update_nodes.count && !args_out->store.design.batch)
        err = wb_options_usage("--update-nodes: only a batch design has update nodes");
    if (err < 0)
        wb_design_args_release(args_out);
    return err;
}

void wb_design_args_release(struct wb_design_args *args)
{
    for (unsigned i = 0; i < 2; i++)
        wb_free(args->lists[i]);
    *args = (struct wb_design_args){0};
}
