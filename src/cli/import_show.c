/*
 * import_show.c - shows what an import does, and its result (import_show.h).
 */
#include "cli/import_show.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/report.h"

#include <inttypes.h>

/* ---- events ------------------------------------------------------------------------------------ */

static int show_commit(void *context, uint64_t pages)
{
    struct wb_import_show *show = context;
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
    struct wb_import_show *show = context;
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
    struct wb_import_show *show = context;

    wb_progress_update(&show->progress, progress->bytes_done, progress->bytes_total, progress->count);
}

/* ---- the end ----------------------------------------------------------------------------------- */

static int write_words(const struct wb_import *im)
{
    int err = wb_output_printf("%" PRIu64 " page%s of %" PRIu64, im->pages, wb_output_plural(im->pages), im->records);

    if (err == 0 && im->files)
        err = wb_output_printf(" record%s in %" PRIu64 " file%s", wb_output_plural(im->records), im->files,
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

struct wb_ingest_sink wb_import_show_init(struct wb_import_show *show, bool json, const char *verb)
{
    show->json = json;
    wb_progress_init(&show->progress, verb);
    return (struct wb_ingest_sink){
        .context = show, .error = show_error, .commit = show_commit, .progress = show_progress};
}

int wb_import_show_end(struct wb_import_show *show, const struct wb_import *import)
{
    return show->json ? write_json(import) : write_words(import);
}
