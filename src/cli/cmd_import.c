/*
 * cmd_import.c - webbase import: reads the options, and shows what wb_import() does, and its result.
 *
 *   2 pages of 3 records in 1 file; 1 error
 *   {"event":"error","file":"a.warc","offset":712,"message":"..."}     for each error
 *   {"event":"commit","pages":2}                                       what is durable so far
 *   {"event":"done","files":1,"records":3,"pages":2,...}
 */
#include "base/error.h"
#include "cli/import_show.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "ingest/ingest.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

/* ---- options ----------------------------------------------------------------------------------- */

static int read_tree(const struct wb_options *options, struct wb_import_options *o, struct wb_buf *url)
{
    const char *text = wb_options_text(options, "url");
    int err = wb_import_tree_url(text, url);

    if (err == WB_E_PROTO)
        return wb_options_usage("import: --url takes a URL without query and fragment, not '%s'", text);
    o->tree_url = wb_buf_slice(url);
    return err;
}

/* url: holds the URL that o borrows. */
static int read_options(const struct wb_options *options, struct wb_import_options *o, struct wb_buf *url)
{
    uint64_t max = wb_options_number(options, "max-bytes", WB_PAGE_MAX_BYTES);

    *o = (struct wb_import_options){
        .dir = options->dir,
        .files = options->args,
        .file_count = options->arg_count,
        .tree = wb_options_text(options, "dir"),
        .tree_url = WB_SLICE_EMPTY,
        .body_max = (size_t)max,
        .max_links = wb_options_number(options, "max-links", 0),
        .no_journal = wb_options_flag(options, "no-journal"),
    };
    if (max > WB_STORE_BODY_MAX)
        return wb_options_usage("import: --max-bytes can be at most %u", WB_STORE_BODY_MAX);
    if (!o->tree != !wb_options_text(options, "url"))
        return wb_options_usage("import: --dir and --url go together");
    if (o->tree && options->arg_count)
        return wb_options_usage("import: takes files or --dir, not both");
    if (!o->tree && options->arg_count == 0)
        return wb_options_usage("import: needs a file, or --dir and --url");
    return o->tree ? read_tree(options, o, url) : 0;
}

int wb_cmd_import(const struct wb_options *options)
{
    struct wb_import_show show;
    struct wb_ingest_sink sink = wb_import_show_init(&show, options->json, "import");
    struct wb_import_options o;
    struct wb_import import = {.files = 0};
    struct wb_buf url = WB_BUF_INIT;

    wb_stop_on_signals();
    int err = read_options(options, &o, &url);
    if (err == 0)
        err = wb_import(&o, &sink, &import);
    wb_progress_clear();
    if (err == 0)
        err = wb_import_show_end(&show, &import);
    if (err == 0 && import.damaged)
        wb_report("%s: %" PRIu64 " damaged place%s had to be rewritten; pages that were there are lost. "
                  "'webbase verify' shows all damage",
                  options->dir, import.damaged, wb_output_plural(import.damaged));
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal; pages kept: %" PRIu64, import.pages);
    if (err == 0 && import.unreadable)
        err = 1;
    wb_buf_release(&url);
    return err;
}
