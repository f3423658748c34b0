/* selection.h - selects pages by --site, --sites, --suffix, --since, --until, --type and --status. */
#ifndef WB_CLI_SELECTION_H
#define WB_CLI_SELECTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "cli/options.h"
#include "page/page.h"

struct wb_selection {
    WB_VEC(struct wb_slice) sites; /* in the spelling of keys, ascending; none: any */
    struct wb_arena texts;         /* of the sites */
    struct wb_buf suffix; /* labels without a leading dot; empty: any */
    struct wb_buf type;   /* in lower case; empty: any */
    int64_t since_ms;     /* fetched at this time or later... */
    int64_t until_ms;     /* ...and before this time */
    unsigned status_min, status_max; /* both 0: any */
};

/* WB_USAGE with a message that names the option if a host or status is invalid. Must be released even if this fails. */
int wb_selection_init(struct wb_selection *selection, const struct wb_options *options);
void wb_selection_release(struct wb_selection *selection);

/* All conditions at once, and each kind by itself. */
bool wb_selection_matches(const struct wb_selection *selection, const struct wb_page *page);
bool wb_selection_has_site(const struct wb_selection *selection, struct wb_slice key);
bool wb_selection_has_time(const struct wb_selection *selection, int64_t time_ms);
bool wb_selection_has_type(const struct wb_selection *selection, struct wb_slice type);
bool wb_selection_has_status(const struct wb_selection *selection, unsigned status);

/* The site, if pages of only one are selected; otherwise empty. */
struct wb_slice wb_selection_only_site(const struct wb_selection *selection);

/*
 * Turns a host as people write it, which may have a port, into the spelling of keys. WB_USAGE with a message that names
 * the option if it is not a host.
 */
int wb_selection_host(const char *option, const char *text, struct wb_buf *host_out);

#endif
