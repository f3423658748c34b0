/*
 * cmd_import.c - webbase import: archives or a tree of files into the repository.
 *
 *   source (thread: reads, inflates, parses) -> queue -> importer (this thread) -> store
 *                                                 |-> journal (threads: what is in each page), one list ahead of the importer
 *
 * Commits at least once a second, so that what was acknowledged is never far
 * behind. A signal ends the work between two pages: what was put is committed.
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/import_source.h"
#include "cli/importer.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/limits.h"
#include "os/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define COMMIT_NS 500000000ll
#define COMMIT_PAGES 16384 /* a commit holds a leaf of the catalog in memory for each page, 4 KB */
#define WAIT_MS 100

struct import {
    bool json;
    struct wb_import_source source;
    struct wb_buf base;            /* the URL of a tree */
    struct wb_import_queue queue;
    struct wb_importer importer;
    struct wb_progress progress;
    int64_t commit_ns;             /* when the last commit ended */
    pthread_t thread;
    struct wb_error_copy result;   /* of the source */
    struct wb_buf line;
};

/* ---- events ------------------------------------------------------------------ */

static int show_commit(struct import *im)
{
    struct wb_json j;

    if (!im->json)
        return 0;
    wb_json_init(&j, &im->line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "commit");
    wb_json_field_u64(&j, "pages", wb_importer_pages(&im->importer));
    return wb_output_object(&j);
}

/* Messages of the reader name the file already, those about a payload do not. */
static void report_error(const struct wb_import_item *item)
{
    if (strstr(item->message, item->file))
        wb_report("%s", item->message);
    else if (item->fatal)
        wb_report("%s: %s", item->file, item->message);
    else
        wb_report("%s, offset %" PRIu64 ": %s", item->file, item->offset, item->message);
}

static int show_error(struct import *im, const struct wb_import_item *item)
{
    struct wb_json j;

    if (item->fatal || !im->json)
        report_error(item);
    if (!im->json)
        return 0;
    wb_json_init(&j, &im->line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "error");
    wb_json_field_str(&j, "file", item->file);
    wb_json_field_u64(&j, "offset", item->offset);
    wb_json_field_str(&j, "message", item->message);
    return wb_output_object(&j);
}

static int show_words(const struct wb_importer *r)
{
    uint64_t pages = wb_importer_pages(r);
    int err = wb_output_printf("%" PRIu64 " page%s of %" PRIu64 " record%s in %" PRIu64 " file%s", pages, wb_plural(pages),
                               r->records, wb_plural(r->records), r->files, wb_plural(r->files));

    if (err == 0 && r->commit.replaced)
        err = wb_output_printf("; %" PRIu64 " replaced older ones", r->commit.replaced);
    if (err == 0 && r->commit.older)
        err = wb_output_printf("; %" PRIu64 " not newer than what was there", r->commit.older);
    if (err == 0 && wb_importer_barred(r))
        err = wb_output_printf("; %" PRIu64 " kept out, because taken down", wb_importer_barred(r));
    if (err == 0 && r->revisits)
        err = wb_output_printf("; %" PRIu64 " revisit%s", r->revisits, wb_plural(r->revisits));
    if (err == 0 && r->errors)
        err = wb_output_printf("; %" PRIu64 " error%s", r->errors, wb_plural(r->errors));
    return err < 0 ? err : wb_output_write("\n", 1);
}

static int show_done(struct import *im)
{
    const struct wb_importer *r = &im->importer;
    struct wb_json j;

    if (!im->json)
        return show_words(r);
    wb_json_init(&j, &im->line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "files", r->files);
    wb_json_field_u64(&j, "records", r->records);
    wb_json_field_u64(&j, "pages", wb_importer_pages(r));
    wb_json_field_u64(&j, "replaced", r->commit.replaced);
    wb_json_field_u64(&j, "revisits", r->revisits);
    wb_json_field_u64(&j, "errors", r->errors);
    wb_json_field_u64(&j, "older", r->commit.older);
    wb_json_field_u64(&j, "barred", wb_importer_barred(r));
    return wb_output_object(&j);
}

/* ---- the two threads --------------------------------------------------------- */

static void *run_source(void *context)
{
    struct import *im = context;

    int err = im->source.dir ? wb_import_tree(&im->source, &im->queue) : wb_import_archives(&im->source, &im->queue);
    if (err < 0 && err != WB_E_STOPPED)
        wb_error_save(err, &im->result);
    wb_import_queue_close(&im->queue);
    return NULL;
}

static int commit(struct import *im)
{
    int err = wb_importer_commit(&im->importer);

    im->commit_ns = wb_clock_mono_ns();
    return err < 0 ? err : show_commit(im);
}

static int commit_in_time(struct import *im)
{
    uint64_t done = atomic_load_explicit(&im->queue.bytes_done, memory_order_relaxed);

    wb_progress_update(&im->progress, done, atomic_load(&im->queue.bytes_total), wb_importer_pages(&im->importer));
    if (im->importer.uncommitted == 0 ||
        (im->importer.uncommitted < COMMIT_PAGES && wb_clock_mono_ns() - im->commit_ns < COMMIT_NS))
        return 0;
    return commit(im);
}

/* What the repository could not take because a part of it that this page needs is damaged: it costs that page, not the import. */
static int show_refused(struct import *im, const struct wb_import_item *item)
{
    char message[WB_ERROR_MESSAGE_MAX + 512];
    char url[400];
    struct wb_import_item error = {.kind = WB_IMPORT_ERROR, .file = url, .message = message, .fatal = true};

    snprintf(url, sizeof url, "%.*s", WB_SLICE_ARG(item->page.url));
    snprintf(message, sizeof message, "%s is not stored: %s", url, wb_error_message());
    int err = wb_importer_take(&im->importer, &error);
    return err < 0 ? err : show_error(im, &error);
}

/* Puts a list into the repository; frees all of it even where that fails. */
static int take_list(struct import *im, struct wb_import_item *list)
{
    int err = 0;

    while (list) {
        struct wb_import_item *item = list;
        list = item->next;
        if (err == 0 && !wb_stop_requested()) {
            err = wb_importer_take(&im->importer, item);
            if (err == WB_E_CORRUPT)
                err = show_refused(im, item);
            else if (err == 0 && item->kind == WB_IMPORT_ERROR)
                err = show_error(im, item);
            if (err == 0)
                err = commit_in_time(im);
        }
        wb_import_queue_free_item(&im->queue, item);
    }
    return err;
}

static void drop_list(struct import *im, struct wb_import_item *list)
{
    while (list) {
        struct wb_import_item *next = list->next;
        wb_import_queue_free_item(&im->queue, list);
        list = next;
    }
}

/* A list through the journal: it comes out again when its pages are told, behind those that went in before. */
static int through_journal(struct import *im, struct wb_import_item *list, struct wb_import_item **list_out)
{
    struct wb_import_journal *journal = im->importer.journal;
    int err = list ? wb_import_journal_begin(journal, list) : 0;

    *list_out = NULL;
    if (err < 0)
        drop_list(im, list);
    return err < 0 ? err : wb_import_journal_take(journal, list == NULL, list_out);
}

/* What the journal still has after an error or a signal. */
static void drop_rest(struct import *im)
{
    while (im->importer.journal && wb_import_journal_busy(im->importer.journal)) {
        struct wb_import_item *list;
        (void)wb_import_journal_take(im->importer.journal, true, &list);
        drop_list(im, list);
    }
}

static int take_all(struct import *im)
{
    struct wb_import_journal *journal = im->importer.journal;
    struct wb_import_item *list = NULL;
    bool more = true, busy = false;
    int err = 0;

    im->commit_ns = wb_clock_mono_ns();
    while (err == 0 && (more || busy) && !wb_stop_requested()) {
        more = wb_import_queue_take(&im->queue, busy ? 0 : WAIT_MS, &list);
        err = wb_importer_sift(&im->importer, list);
        if (err == 0 && journal)
            err = through_journal(im, list, &list);
        if (err == 0)
            err = take_list(im, list);
        else
            drop_list(im, list);
        if (err == 0)
            err = commit_in_time(im);
        busy = journal && wb_import_journal_busy(journal);
    }
    drop_rest(im);
    /* The reader went away: what it was not told of is kept nevertheless. */
    if (err < 0 && wb_output_gone())
        wb_importer_commit(&im->importer);
    if (err == 0)
        err = commit(im);
    return err < 0 ? err : wb_importer_finish(&im->importer);
}

static int import_all(struct import *im)
{
    wb_import_queue_init(&im->queue);
    wb_progress_init(&im->progress, "import");
    int error = pthread_create(&im->thread, NULL, run_source, im);
    if (error) {
        wb_import_queue_release(&im->queue);
        /* EAGAIN is what a lack of memory for the stack gives too. */
        errno = error == EAGAIN && wb_limits_memory() ? ENOMEM : error;
        return wb_fail_errno("cannot start a thread");
    }
    int err = take_all(im);
    wb_import_queue_stop(&im->queue);
    pthread_join(im->thread, NULL);
    wb_import_queue_release(&im->queue);
    wb_progress_clear();
    if (err == 0 && im->result.code < 0)
        err = wb_error_restore(&im->result);
    return err;
}

/* ---- before and after -------------------------------------------------------- */

/* The URL that a tree stands for, with a slash at its end. */
static int read_base(const char *text, struct wb_buf *base_out)
{
    struct wb_url url = WB_URL_INIT;

    int err = wb_url_parse(wb_slice_str(text), NULL, &url);
    if (err == WB_E_PROTO || (err == 0 && (url.opaque_path || url.has_query || url.has_fragment)))
        err = wb_usage("import: --url takes a URL without query and fragment, not '%s'", text);
    if (err == 0)
        err = wb_buf_append_slice(base_out, wb_url_href(&url));
    if (err == 0 && base_out->ptr[base_out->len - 1] != '/')
        err = wb_buf_append_char(base_out, '/');
    wb_url_release(&url);
    return err;
}

static int read_source(const struct wb_options *options, struct import *im)
{
    const char *url = wb_options_text(options, "url");

    im->source.files = options->args;
    im->source.file_count = options->arg_count;
    im->source.dir = wb_options_text(options, "dir");
    uint64_t max = wb_options_number(options, "max-bytes", WB_PAGE_MAX_BYTES);
    if (max > WB_STORE_BODY_MAX)
        return wb_usage("import: --max-bytes can be at most %u", WB_STORE_BODY_MAX);
    im->source.body_max = (size_t)max;
    if (!im->source.dir != !url)
        return wb_usage("import: --dir and --url go together");
    if (im->source.dir && options->arg_count)
        return wb_usage("import: takes files or --dir, not both");
    if (!im->source.dir && options->arg_count == 0)
        return wb_usage("import: no file is named");
    if (!im->source.dir)
        return 0;
    int err = read_base(url, &im->base);
    im->source.base = wb_buf_slice(&im->base);
    if (err == 0 && wb_path_kind(im->source.dir) != WB_PATH_DIR)
        err = wb_fail(WB_E_INVALID, "%s is not a directory", im->source.dir);
    return err;
}

static int open_store(const char *dir, struct wb_store **store_out)
{
    struct wb_store_options defaults = {0};

    if (!wb_store_exists(dir)) {
        int err = wb_store_create(dir, &defaults);
        /* Another import may have made it in the meantime. */
        if (err < 0 && !wb_store_exists(dir))
            return err;
    }
    return wb_store_open(dir, WB_STORE_WRITE, store_out);
}

int wb_cmd_import(const struct wb_options *options)
{
    struct import im = {.json = options->json, .importer = WB_IMPORTER_INIT};

    wb_stop_on_signals();
    int err = read_source(options, &im);
    if (err == 0)
        err = open_store(options->dir, &im.importer.store);
    if (err == 0 && !wb_options_flag(options, "no-journal"))
        err = wb_import_journal_open(options->dir, 0, &im.importer.journal);
    if (err == 0)
        err = import_all(&im);
    if (err == 0)
        err = show_done(&im);
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal; pages kept: %" PRIu64, wb_importer_pages(&im.importer));
    if (err == 0 && im.importer.unreadable)
        err = 1;
    wb_importer_release(&im.importer);
    wb_buf_release(&im.base);
    wb_buf_release(&im.line);
    return err;
}
