/*
 * design_args.h - the options that describe a new repository, shared by init and convert: --design or its parts,
 * --nodes and --update-nodes.
 */
#ifndef WB_CLI_DESIGN_ARGS_H
#define WB_CLI_DESIGN_ARGS_H

#include "cli/options.h"
#include "store/store.h"

struct wb_design_args {
    struct wb_store_options store;
    char *lists[2];                              /* copies of the lists of directories, cut at their commas ... */
    const char *dirs[2][WB_DESIGN_NODES_MAX];    /* ... to which these point */
};

/* Usage errors name the option. The options borrow from args, which the caller releases. */
int wb_design_args_read(const struct wb_options *options, struct wb_design_args *args_out);
void wb_design_args_release(struct wb_design_args *args);

#endif
