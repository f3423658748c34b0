/*
 * cmd_export.c - webbase export: writes pages to a web archive (WARC or WACZ): the latest state, that of a snapshot, or
 * with --versions every capture. With --facts it writes what is known about pages (cmd_export_facts.c).
 *
 * The archive appears under its name when it is complete (os/newfile.h). Pages that cannot be read are reported
 * and left out, and the exit status is 1.
 */
#include "answer/answer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/cmd_export_facts.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/select_args.h"
#include "ingest/ingest.h"
#include "os/clock.h"
#include "os/newfile.h"
#include "os/stop.h"
#include "warc/warc.h"

#include <inttypes.h>
#include <stdio.h>

struct archive_export {
    const char *path;      /* "-": standard output */
    bool wacz;
    enum wb_warc_coding coding;
    struct wb_newfile file;
    struct wb_selection selection;
    struct wb_store *store;
    struct wb_waczpen *pen;        /* with --wacz; then it owns the writer */
    struct wb_warc_writer *writer;
    uint32_t snapshot;     /* 0: the latest state */
    bool versions;         /* every capture, and pages that are gone */
    struct wb_captures *captures;
    uint64_t pages, records, errors;
    uint64_t capture_count, revisits; /* revisits are captures too */
};

static int write_file(void *context, const void *bytes, size_t len)
{
    struct archive_export *e = context;

    return wb_newfile_write(&e->file, bytes, len);
}

static int write_stdout(void *context, const void *bytes, size_t len)
{
    (void)context;
    return wb_output_write(bytes, len);
}

static bool to_stdout(const struct archive_export *e)
{
    return strcmp(e->path, "-") == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Temporary files go where the archive goes: only there we know that we may write. */
static int open_pen(struct archive_export *e, const struct wb_options *options)
{
    size_t dir_bytes = (size_t)(base_name(e->path) - e->path);
    char *dir = to_stdout(e)    ? wb_strdup(options->dir)
                : dir_bytes > 0 ? wb_strndup(e->path, dir_bytes)
                                : wb_strdup(".");
    struct wb_waczpen_options o = {
        .sink = to_stdout(e) ? write_stdout : write_file,
        .context = e,
        .temporary_dir = dir,
        .memory_bytes = WB_WACZPEN_MEMORY_BYTES,
        .archive_bytes = WB_WACZPEN_ARCHIVE_BYTES,
        .now_ms = wb_clock_wall_ms(),
    };

    int err = dir ? wb_waczpen_open(&o, &e->pen) : WB_E_NOMEM;
    e->writer = err < 0 ? NULL : wb_waczpen_writer(e->pen);
    wb_free(dir);
    return err;
}

static int open_writer(struct archive_export *e)
{
    int err = wb_warc_writer_new(e->coding, to_stdout(e) ? write_stdout : write_file, e, &e->writer);

    if (err == 0)
        err = wb_warc_write_info(e->writer, to_stdout(e) ? NULL : base_name(e->path), wb_clock_wall_ms());
    e->records++;
    return err;
}

static int open_target(struct archive_export *e, const struct wb_options *options)
{
    int err = to_stdout(e) ? 0 : wb_newfile_open(&e->file, e->path, wb_options_flag(options, "force"));

    if (err < 0)
        return err;
    return e->wacz ? open_pen(e, options) : open_writer(e);
}

static int finish_target(struct archive_export *e)
{
    int err = e->wacz ? wb_waczpen_finish(e->pen) : 0;

    if (err < 0)
        return err;
    e->records += e->wacz ? wb_waczpen_archives(e->pen) : 0; /* each begins with a warcinfo record */
    return to_stdout(e) ? wb_output_flush() : wb_newfile_finish(&e->file);
}

static void close_target(struct archive_export *e)
{
    if (e->pen)
        wb_waczpen_close(e->pen);
    else
        wb_warc_writer_free(e->writer);
    wb_newfile_close(&e->file);
}

static int write_page(struct archive_export *e, const struct wb_page *page)
{
    if (!wb_selection_matches(&e->selection, page))
        return 0;
    int err = wb_warc_write_page(e->writer, page);
    if (err == 0) {
        e->pages++;
        e->records++;
    }
    return err;
}

/* Writes all captures of a page. */
static int write_captures(struct archive_export *e, const struct wb_page *page)
{
    struct wb_capture capture;
    uint64_t before = e->records;
    int err = 0;

    if (!wb_selection_has_site(&e->selection, page->key))
        return 0;
    err = wb_captures_begin(e->captures, page->id, page, INT64_MIN, 0);
    if (err == WB_E_CORRUPT) { /* nothing is known about the past of this page */
        e->errors++;
        wb_report_damage();
        return 0;
    }
    while (err == 0 && !wb_stop_requested()) {
        int got = wb_captures_next(e->captures, &capture);
        if (got == WB_E_CORRUPT) {
            e->errors++;
            wb_report_damage();
            continue;
        }
        if (got <= 0) {
            err = got;
            break;
        }
        err = capture.revisit ? wb_warc_write_revisit(e->writer, &capture.page, capture.original_ms)
                              : wb_warc_write_page(e->writer, &capture.page);
        e->revisits += capture.revisit;
        e->capture_count++;
        e->records++;
    }
    e->pages += e->records > before;
    return err;
}

static int write_next(struct archive_export *e, const struct wb_page *page)
{
    int err = e->versions ? write_captures(e, page) : write_page(e, page);

    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal; %s was not written", e->path);
    return err;
}

/* Reads the whole store in the order of the disk. A damaged place costs the pages in it. */
static int write_pages(struct archive_export *e)
{
    struct wb_store_scan_options options = {.snapshot = e->snapshot, .site = wb_selection_only_site(&e->selection),
                                            .gone = e->versions};
    struct wb_store_scan *scan = NULL;
    struct wb_store_stat stat;
    struct wb_progress progress;
    struct wb_page page;
    uint64_t done = 0;

    int err = wb_store_stat(e->store, &stat);
    if (err == 0)
        err = wb_store_scan_open(e->store, &options, &scan);
    struct wb_store_scan_holds holds = {0};
    if (err == 0)
        err = wb_store_scan_holds(scan, &holds);
    /* The captures are those of the state that the scan shows, whatever arrives meanwhile. */
    struct wb_captures_options captures = {.store = e->store, .selection = &e->selection, .epoch = holds.epoch};
    if (err == 0 && e->versions)
        err = wb_captures_new(&captures, &e->captures);
    wb_progress_init(&progress, "export");
    while (err == 0) {
        int got = wb_store_scan_next(scan, &page);
        if (got == 0)
            break;
        if (got == WB_E_CORRUPT) {
            e->errors++;
            wb_report_damage();
            continue;
        }
        err = got < 0 ? got : write_next(e, &page);
        done += got > 0 ? page.body.len : 0;
        wb_progress_update(&progress, done, stat.bytes_pages, e->pages);
    }
    wb_progress_clear();
    wb_captures_free(e->captures);
    wb_store_scan_close(scan);
    return err;
}

/* Prints the line, unless composing it has failed. If the archive is on standard output, it goes to standard error. */
static int print_summary(const struct archive_export *e, int err, struct wb_buf *line)
{
    if (err == 0 && to_stdout(e))
        fwrite(line->ptr, 1, line->len, stderr);
    else if (err == 0)
        err = wb_output_lines(line);
    wb_buf_release(line);
    return err;
}

static int write_words(const struct archive_export *e)
{
    struct wb_buf line = WB_BUF_INIT;

    int err = wb_buf_printf(&line, "wrote %" PRIu64 " page%s", e->pages, wb_output_plural(e->pages));
    if (err == 0 && e->versions)
        err = wb_buf_printf(&line, " with %" PRIu64 " capture%s", e->capture_count,
                            wb_output_plural(e->capture_count));
    if (err == 0)
        err = wb_buf_printf(&line, " to %s\n", e->path);
    return print_summary(e, err, &line);
}

static int write_json(const struct archive_export *e)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "records", e->records);
    wb_json_field_u64(&j, "pages", e->pages);
    wb_json_field_u64(&j, "errors", e->errors);
    if (e->versions) {
        wb_json_field_u64(&j, "captures", e->capture_count);
        wb_json_field_u64(&j, "revisits", e->revisits);
    }
    wb_json_object_end(&j);
    return print_summary(e, wb_json_line(&j), &line);
}

static int read_coding(struct archive_export *e)
{
    e->coding = WB_WARC_PLAIN;
    if (to_stdout(e) || e->wacz)
        return 0;
    int err = wb_warc_coding_of_name(e->path, &e->coding);
    return err == WB_E_INVALID ? wb_options_usage("%s", wb_error_message()) : err;
}

static int export_pages(struct archive_export *e, const struct wb_options *options)
{
    const char *snapshot = wb_options_text(options, "snapshot");

    int err = read_coding(e);
    if (err == 0)
        err = wb_select_args(options, &e->selection);
    if (err == 0)
        err = wb_store_open(options->dir, WB_STORE_READ, &e->store);
    if (err == 0 && snapshot)
        err = wb_which_snapshot(e->store, wb_slice_str(snapshot), &e->snapshot);
    if (err == 0)
        err = open_target(e, options);
    if (err == 0)
        err = write_pages(e);
    if (err == 0)
        err = finish_target(e);
    if (err == 0)
        err = options->json ? write_json(e) : write_words(e);
    return err;
}

/* Options that only make sense for one kind of export. */
static int check_options(const struct wb_options *options)
{
    bool facts = wb_options_text(options, "facts") != NULL, versions = wb_options_flag(options, "versions");
    bool snapshot = wb_options_text(options, "snapshot") != NULL, warc = wb_options_text(options, "warc") != NULL;

    if (facts + warc + (wb_options_text(options, "wacz") != NULL) != 1)
        return wb_options_usage("export: give one of --warc FILE, --wacz FILE and --facts FILE");
    if (facts && (versions || snapshot))
        return wb_options_usage("export: --facts describes the pages of the index; --versions and --snapshot do not "
                                "go with it");
    if (!facts && (wb_options_text(options, "lang") || wb_options_text(options, "query")))
        return wb_options_usage("export: --lang and --query need --facts, because only the index can answer them");
    if (versions && snapshot)
        return wb_options_usage("export: --versions and --snapshot exclude each other");
    return 0;
}

int wb_cmd_export(const struct wb_options *options)
{
    const char *wacz = wb_options_text(options, "wacz");
    struct archive_export e = {.path = wacz ? wacz : wb_options_text(options, "warc"),
                               .wacz = wacz != NULL,
                               .file = WB_NEWFILE_INIT,
                               .selection = WB_SELECTION_INIT,
                               .versions = wb_options_flag(options, "versions")};
    int err = check_options(options);

    if (err < 0)
        return err;
    wb_stop_on_signals();
    if (!e.path)
        return wb_cmd_export_facts(options);
    err = export_pages(&e, options);
    close_target(&e);
    wb_selection_release(&e.selection);
    wb_store_close(e.store);
    if (err == 0 && e.errors) {
        wb_report("%s: what is in %" PRIu64 " damaged place%s was left out", options->dir, e.errors,
                  wb_output_plural(e.errors));
        return 1;
    }
    return err;
}
