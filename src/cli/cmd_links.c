/*
 * cmd_links.c - webbase links: the links to a URL, or from it, as the index has them.
 *
 *   https://example.org/a       the text of the link
 *   {"url":"https://example.org/a","anchor":"the text of the link"}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "query/query.h"

static int write_json(const struct wb_link_row *row)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_json_field_slice(&j, "url", row->url);
    wb_json_field_slice(&j, "anchor", row->anchor);
    return wb_output_object_queue(&j);
}

static int write_words(const struct wb_link_row *row)
{
    int err = wb_output_text(row->url);

    if (err == 0 && row->anchor.len)
        err = wb_output_printf("\t");
    if (err == 0 && row->anchor.len)
        err = wb_output_text(row->anchor);
    return err < 0 ? err : wb_output_printf("\n");
}

static int each_link(void *context, const struct wb_link_row *row)
{
    const struct wb_options *options = context;

    return options->json ? write_json(row) : write_words(row);
}

int wb_cmd_links(const struct wb_options *options)
{
    bool in = wb_options_flag(options, "in"), out = wb_options_flag(options, "out");
    struct wb_options copy = *options;
    struct wb_searcher *searcher = NULL;

    if (in == out)
        return wb_options_usage("links needs either --in, the links to the URL, or --out, those from it");
    int err = wb_searcher_open(options->dir, &searcher);
    if (err == 0)
        err = wb_links(searcher, wb_slice_str(options->args[0]), in ? WB_ARCS_IN : WB_ARCS_OUT, each_link, &copy);
    wb_searcher_close(searcher);
    return err;
}
