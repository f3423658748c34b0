/* selection.h - which pages a command is about: --site, --suffix, --since, --until, --type. */
#ifndef WB_CLI_SELECTION_H
#define WB_CLI_SELECTION_H

#include "base/buf.h"
#include "cli/options.h"
#include "page/page.h"

struct wb_selection {
    struct wb_buf site;   /* as in keys; empty: any */
    struct wb_buf suffix; /* labels without a leading dot; empty: any */
    struct wb_buf type;   /* lower case; empty: any */
    int64_t since_ms, until_ms;
};

/* WB_USAGE naming the option where a host is none. Release it in any case. */
int wb_selection_init(struct wb_selection *selection, const struct wb_options *options);
void wb_selection_release(struct wb_selection *selection);
bool wb_selection_matches(const struct wb_selection *selection, const struct wb_page *page);

/* A host as people write it, with its port where it has one, in the spelling that keys have. WB_USAGE naming the option where it is none. */
int wb_selection_host(const char *option, const char *text, struct wb_buf *host_out);

#endif
