/*
 * cmd_import.c - webbase import: reads the options, and shows what wb_import() does, and its result.
 *
 *   2 pages of 3 records in 1 file; 1 error
 *   {"event":"error","file":"a.warc","offset":712,"message":"..."}     for each error
 *   {"event":"commit","pages":2}                                       what is durable so far
 *   {"event":"done","files":1,"records":3,"pages":2,...}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "ingest/ingest.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

/* Where events are shown. */
struct import_show {
    bool json;
    struct wb_progress progress;
};

/* ---- events ------------------------------------------------------------------------------------ */

static int show_commit(void *context, uint64_t pages)
{
    struct import_show *show = context;
    struct wb_json j;

    if (!show->json)
        return 0;
    wb_output_object_begin(&j, "commit");
    wb_json_field_u64(&j, "pages", pages);
    return wb_output_object_end(&j);
}

/* Standard error shows every error; with --json every error is an object, and only fatal ones are shown there too. */
static int show_error(void *context, const struct wb_ingest_error *error)
{
    struct import_show *show = context;
    struct wb_json j;
    int err = error->fatal || !show->json ? wb_report_ingest(error) : 0;

    if (err < 0 || !show->json)
        return err;
    wb_output_object_begin(&j, "error");
    wb_json_field_str(&j, "file", error->file);
    wb_json_field_u64(&j, "offset", error->offset);
    wb_json_field_str(&j, "message", error->message);
    return wb_output_object_end(&j);
}

static void show_progress(void *context, const struct wb_ingest_progress *progress)
{
    struct import_show *show = context;

    wb_progress_update(&show->progress, progress->bytes_done, progress->bytes_total, progress->count);
}

/* ---- the end ----------------------------------------------------------------------------------- */

static int write_words(const struct wb_import *im)
{
    int err = wb_output_printf("%" PRIu64 " page%s of %" PRIu64 " record%s in %" PRIu64 " file%s", im->pages,
                               wb_output_plural(im->pages), im->records, wb_output_plural(im->records), im->files,
                               wb_output_plural(im->files));

    if (err == 0 && im->replaced)
        err = wb_output_printf("; %" PRIu64 " newer than what was there", im->replaced);
    if (err == 0 && im->captures)
        err = wb_output_printf("; %" PRIu64 " further capture%s of known bytes", im->captures,
                               wb_output_plural(im->captures));
    if (err == 0 && im->older)
        err = wb_output_printf("; %" PRIu64 " known already, or too old to be kept", im->older);
    if (err == 0 && im->barred)
        err = wb_output_printf("; %" PRIu64 " kept out because they were taken down", im->barred);
    if (err == 0 && im->revisits)
        err = wb_output_printf("; %" PRIu64 " revisit%s", im->revisits, wb_output_plural(im->revisits));
    if (err == 0 && im->errors)
        err = wb_output_printf("; %" PRIu64 " error%s", im->errors, wb_output_plural(im->errors));
    return err < 0 ? err : wb_output_write("\n", 1);
}

static int write_json(const struct wb_import *im)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "files", im->files);
    wb_json_field_u64(&j, "records", im->records);
    wb_json_field_u64(&j, "pages", im->pages);
    wb_json_field_u64(&j, "replaced", im->replaced);
    wb_json_field_u64(&j, "captures", im->captures);
    wb_json_field_u64(&j, "revisits", im->revisits);
    wb_json_field_u64(&j, "errors", im->errors);
    wb_json_field_u64(&j, "older", im->older);
    wb_json_field_u64(&j, "barred", im->barred);
    return wb_output_object_end(&j);
}

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
    struct import_show show = {.json = options->json};
    struct wb_ingest_sink sink = {.context = &show, .error = show_error, .commit = show_commit,
                                  .progress = show_progress};
    struct wb_import_options o;
    struct wb_import import = {.files = 0};
    struct wb_buf url = WB_BUF_INIT;

    wb_stop_on_signals();
    wb_progress_init(&show.progress, "import");
    int err = read_options(options, &o, &url);
    if (err == 0)
        err = wb_import(&o, &sink, &import);
    wb_progress_clear();
    if (err == 0)
        err = options->json ? write_json(&import) : write_words(&import);
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal; pages kept: %" PRIu64, import.pages);
    if (err == 0 && import.unreadable)
        err = 1;
    wb_buf_release(&url);
    return err;
}
