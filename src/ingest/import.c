/*
 * import.c - an import of archives or of a tree of files, from its options to its last commit.
 *
 *   source              queue            journal                    importer
 *   reads, inflates,    bounded in       digests and extracts       resolves revisits,
 *   parses           -> bytes         -> each page, one list     -> puts pages into the store,
 *   own thread                           ahead; pool of threads     commits; the caller's thread
 *
 * It commits at least once a second, so that a crash can undo little work. A signal, or a sink that fails, ends the
 * work between two pages, and what was put until then is committed. This file never looks inside a record or a page.
 */
#include "base/check.h"
#include "base/error.h"
#include "ingest/import_source.h"
#include "ingest/importer.h"
#include "ingest/ingest.h"
#include "ingest/repository.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/path.h"
#include "os/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define COMMIT_NS 500000000ll
#define COMMIT_PAGES 16384 /* until it is committed, each page holds a leaf of the catalog in memory, 4 KB */
#define WAIT_MS 100

struct import {
    const struct wb_ingest_sink *sink;
    bool sink_failed;              /* it wants no more events */
    struct wb_import_source source;
    struct wb_import_queue queue;
    struct wb_importer importer;
    int64_t commit_ns;             /* when the last commit ended */
    bool refused;                  /* a page was refused since the last commit in time */
    pthread_t thread;
    struct wb_error_copy result;   /* of the source; code 0: it has not failed */
};

/* ---- events ------------------------------------------------------------------------------------ */

static int report_commit(struct import *im)
{
    int err = im->sink->commit ? im->sink->commit(im->sink->context, wb_importer_pages(&im->importer)) : 0;

    im->sink_failed = im->sink_failed || err < 0;
    return err;
}

static int report_error(struct import *im, const struct wb_import_item *item)
{
    struct wb_ingest_error error = {.file = item->file, .offset = item->offset, .message = item->message,
                                    .fatal = item->fatal};
    int err = im->sink->error ? im->sink->error(im->sink->context, &error) : 0;

    im->sink_failed = im->sink_failed || err < 0;
    return err;
}

static void report_progress(struct import *im)
{
    struct wb_ingest_progress progress = {
        .bytes_done = atomic_load_explicit(&im->queue.bytes_done, memory_order_relaxed),
        .bytes_total = atomic_load(&im->queue.bytes_total),
        .count = wb_importer_pages(&im->importer),
    };

    if (im->sink->progress)
        im->sink->progress(im->sink->context, &progress);
}

/* ---- the two threads --------------------------------------------------------------------------- */

static void *run_source(void *context)
{
    struct import *im = context;

    int err = im->source.dir ? wb_import_tree_read(&im->source, &im->queue)
                             : wb_import_archive_read(&im->source, &im->queue);
    if (err < 0 && err != WB_E_STOPPED)
        wb_error_save(err, &im->result);
    wb_import_queue_close(&im->queue);
    return NULL;
}

static int commit(struct import *im)
{
    int err = wb_importer_commit(&im->importer);

    im->commit_ns = wb_clock_mono_ns();
    return err < 0 ? err : report_commit(im);
}

static int commit_in_time(struct import *im)
{
    report_progress(im);
    if (im->importer.uncommitted == 0 ||
        (im->importer.uncommitted < COMMIT_PAGES && wb_clock_mono_ns() - im->commit_ns < COMMIT_NS))
        return 0;
    im->refused = false;
    return commit(im);
}

/*
 * A node is down. If the page alone needs it, the page is refused. If pages that were put before need it, the store
 * refuses all further pages with the same words; a commit tells, and one in half a second is enough.
 */
static int check_commit(struct import *im)
{
    struct wb_error_copy why;
    int err = 0;

    wb_error_save(WB_E_DOWN, &why);
    if (!im->refused && im->importer.uncommitted)
        err = commit(im);
    im->refused = true;
    if (err == 0)
        wb_error_restore(&why);
    return err;
}

/*
 * Whether there is such a capture: then nothing is lost, even if the node that has it is down. The catalog knows its
 * time, its status and the length of its body. This is so after a node was lost, when pages that were committed before
 * come once more.
 */
static bool has_capture(const struct wb_store_timeline *timeline, const struct wb_store_version *version,
                        const struct wb_page *page)
{
    if (version->status != page->status || version->body_bytes != page->body.len)
        return false;
    for (size_t i = version->first; i < version->first + version->captures; i++)
        if (timeline->times[i] == page->time_ms)
            return true;
    return false;
}

static bool is_known(struct import *im, const struct wb_import_item *item)
{
    struct wb_store_timeline timeline = {0};
    struct wb_error_copy why;
    bool known = false;

    if (item->kind != WB_IMPORT_PAGE)
        return false;
    wb_error_save(WB_E_DOWN, &why);
    if (wb_store_timeline(im->importer.store, item->page.id, &timeline) == 0) {
        for (size_t i = 0; i < timeline.count; i++)
            known = known || has_capture(&timeline, &timeline.versions[i], &item->page);
        wb_store_timeline_release(&timeline);
    }
    wb_error_restore(&why);
    return known;
}

/* The part of the repository that this page needs is damaged or down: that costs the page, not the import. */
static int refuse_page(struct import *im, const struct wb_import_item *item)
{
    char message[WB_ERROR_MESSAGE_MAX + 512];
    char url[400];
    struct wb_import_item error = {.kind = WB_IMPORT_ERROR, .file = url, .message = message, .fatal = true};

    snprintf(url, sizeof url, "%.*s", WB_SLICE_ARG(item->page.url));
    snprintf(message, sizeof message, "%s is not stored: %s", url, wb_error_message());
    int err = wb_importer_take(&im->importer, &error);
    return err < 0 ? err : report_error(im, &error);
}

/* A node is down that this page needs. */
static int take_without_node(struct import *im, const struct wb_import_item *item)
{
    int err = check_commit(im);

    if (err < 0)
        return err;
    if (!is_known(im, item))
        return refuse_page(im, item);
    im->importer.commit.older++;
    return 0;
}

/* Puts a list into the repository. All of the list is freed, even if that fails. */
static int take_list(struct import *im, struct wb_import_item *list)
{
    int err = 0;

    while (list) {
        struct wb_import_item *item = list;
        list = item->next;
        if (err == 0 && !wb_stop_requested()) {
            err = wb_importer_take(&im->importer, item);
            if (err == WB_E_CORRUPT)
                err = refuse_page(im, item);
            else if (err == WB_E_DOWN)
                err = take_without_node(im, item);
            else if (err == 0 && item->kind == WB_IMPORT_ERROR)
                err = report_error(im, item);
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

/*
 * Sends a list through the journal. *list_out is the oldest list whose pages are journaled, which may be another one
 * than went in now, or NULL if none is ready. Without a list to send, it waits for one.
 */
static int pass_through_journal(struct import *im, struct wb_import_item *list, struct wb_import_item **list_out)
{
    struct wb_import_journal *journal = im->importer.journal;
    int err = list ? wb_import_journal_begin(journal, list) : 0;

    *list_out = NULL;
    if (err < 0)
        drop_list(im, list);
    return err < 0 ? err : wb_import_journal_take(journal, list == NULL, list_out);
}

/* Drops what the journal still holds after an error or a signal. */
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
            err = pass_through_journal(im, list, &list);
        if (err == 0)
            err = take_list(im, list);
        else
            drop_list(im, list);
        if (err == 0)
            err = commit_in_time(im);
        busy = journal && wb_import_journal_busy(journal);
    }
    drop_rest(im);
    /* Nobody listens any more, but what was read is kept. */
    if (err < 0 && im->sink_failed)
        wb_importer_commit(&im->importer);
    if (err == 0)
        err = commit(im);
    if (err == 0 && im->importer.uncommitted)
        err = commit(im);
    return err < 0 ? err : wb_importer_finish(&im->importer);
}

static int import_all(struct import *im)
{
    wb_import_queue_init(&im->queue);
    int error = pthread_create(&im->thread, NULL, run_source, im);
    if (error) {
        wb_import_queue_release(&im->queue);
        /* EAGAIN may also mean that there is no memory for the stack. */
        errno = error == EAGAIN && wb_limits_memory() ? ENOMEM : error;
        return wb_fail_errno("cannot start a thread");
    }
    int err = take_all(im);
    wb_import_queue_stop(&im->queue);
    pthread_join(im->thread, NULL);
    wb_import_queue_release(&im->queue);
    if (err == 0 && im->result.code < 0)
        err = wb_error_restore(&im->result);
    return err;
}

/* ---- the door ---------------------------------------------------------------------------------- */

int wb_import_tree_url(const char *text, struct wb_buf *url_out)
{
    struct wb_url url = WB_URL_INIT;

    int err = wb_url_parse(wb_slice_str(text), NULL, &url);
    if (err == 0 && (url.opaque_path || url.has_query || url.has_fragment))
        err = wb_fail(WB_E_PROTO, "%s has a query or a fragment", text);
    if (err == 0)
        err = wb_buf_append_slice(url_out, wb_url_href(&url));
    if (err == 0 && url_out->ptr[url_out->len - 1] != '/')
        err = wb_buf_append_char(url_out, '/');
    wb_url_release(&url);
    return err;
}

/* Counts go on from what is committed already. */
static int import_once(const struct wb_import_options *options, const struct wb_ingest_sink *sink,
                       struct wb_store_commit_counts *commit_inout, struct wb_import *import_out)
{
    struct import im = {.sink = sink,
                        .importer = WB_IMPORTER_INIT,
                        .source = {.files = options->files,
                                   .file_count = options->file_count,
                                   .dir = options->tree,
                                   .dir_url = options->tree_url,
                                   .body_max = options->body_max}};

    im.importer.commit = *commit_inout;
    int err = wb_repository_open_store(options->dir, &im.importer.store);
    if (err == 0)
        err = wb_importer_begin(&im.importer);
    if (err == 0 && !options->no_journal)
        err = wb_import_journal_open(options->dir, 0, &im.importer.journal);
    if (err == 0 && im.importer.journal)
        wb_import_journal_limit_links(im.importer.journal, options->max_links);
    if (err == 0)
        err = import_all(&im);
    *commit_inout = im.importer.commit;
    wb_importer_count(&im.importer, import_out);
    wb_importer_release(&im.importer);
    return err;
}

/* A node went down again with pages that were not committed: says what is stored, and how to go on. */
static int explain_loss(const struct wb_import *import)
{
    char why[WB_ERROR_MESSAGE_MAX];

    snprintf(why, sizeof why, "%s", wb_error_message());
    return wb_fail(WB_E_DOWN,
                   "%s. Pages that are stored, and stay: %" PRIu64 ". When the node is back, import the same once more",
                   why, import->pages);
}

int wb_import(const struct wb_import_options *options, const struct wb_ingest_sink *sink, struct wb_import *import_out)
{
    struct wb_store_commit_counts commit = {0};

    WB_CHECK(options->body_max > 0 && options->body_max <= WB_STORE_BODY_MAX);
    WB_CHECK(!options->tree || (options->file_count == 0 && options->tree_url.len &&
                                options->tree_url.ptr[options->tree_url.len - 1] == '/'));
    *import_out = (struct wb_import){.files = 0};
    if (options->tree && wb_path_kind(options->tree) != WB_PATH_DIR)
        return wb_fail(WB_E_INVALID, "%s is not a directory", options->tree);
    int err = import_once(options, sink, &commit, import_out);
    if (err != WB_E_DOWN || wb_stop_requested())
        return err;
    /* A node went down with pages that were not committed, and pages of other nodes were lost with them. Adding the
       same page twice changes nothing, so we start again: this time only pages that need that node are refused. */
    uint64_t known = commit.added + commit.replaced + commit.past + commit.captures;
    commit.older = commit.barred = 0;
    err = import_once(options, sink, &commit, import_out);
    import_out->older -= import_out->older < known ? import_out->older : known;
    return err == WB_E_DOWN ? explain_loss(import_out) : err;
}
