/*
 * cmd_verify.c - webbase verify: reads everything and tells what is damaged.
 *
 * With --json the findings are one object, so they are gathered first; their
 * number there is bounded, the count of all of them is not.
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "crawl/crawl.h"
#include "cycle/cycle.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>

#define LISTED_MAX 10000

struct verify {
    bool json;
    struct wb_buf problems, notes; /* arrays in the making, without brackets */
    struct wb_json problems_json, notes_json;
    uint64_t listed;
    struct wb_progress progress;
    int err; /* of writing */
};

static void list_report(struct wb_json *j, const struct wb_store_finding *report)
{
    wb_json_object(j);
    wb_json_field_str(j, "file", report->file);
    wb_json_field_u64(j, "offset", report->offset);
    wb_json_field_str(j, "message", report->message);
    wb_json_object_end(j);
}

static int show_report(const struct wb_store_finding *report)
{
    wb_progress_clear();
    int err = wb_output_printf("%s %s at %" PRIu64 ": ", report->problem ? "problem:" : "note:", report->file, report->offset);
    if (err == 0)
        err = wb_output_text(wb_slice_str(report->message));
    if (err == 0)
        err = wb_output_write("\n", 1);
    return err;
}

static void on_found(void *context, const struct wb_store_finding *report)
{
    struct verify *v = context;

    if (v->err < 0)
        return;
    if (!v->json)
        v->err = show_report(report);
    else if (v->listed++ < LISTED_MAX)
        list_report(report->problem ? &v->problems_json : &v->notes_json, report);
}

struct journal_check {
    struct verify *verify;
    struct wb_store_verify_counts *result;
};

static void on_journal_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    struct journal_check *check = context;
    struct wb_store_finding report = {.problem = problem, .file = file, .offset = offset, .message = message};

    check->result->problems += problem;
    check->result->notes += !problem;
    on_found(check->verify, &report);
}

static int verify_journal(const char *dir, struct verify *v, struct wb_store_verify_counts *result)
{
    struct journal_check check = {v, result};
    uint64_t records;

    return wb_journal_verify(dir, on_journal_found, &check, &records);
}

static void on_webdb_found(void *context, const char *file, uint64_t offset, const char *message)
{
    on_journal_found(context, true, file, offset, message);
}

static int verify_webdb(const char *dir, struct verify *v, struct wb_store_verify_counts *result)
{
    struct journal_check check = {v, result};
    struct wb_webdb_count count;

    return wb_webdb_check(dir, on_webdb_found, &check, &count);
}

static int verify_dispenser(const char *dir, struct verify *v, struct wb_store_verify_counts *result)
{
    struct journal_check check = {v, result};

    return wb_crawl_verify(dir, on_journal_found, &check);
}

/* The state files of the cycle are small and told in words of their own. */
static int verify_cycle(const char *dir, struct verify *v, struct wb_store_verify_counts *result)
{
    struct journal_check check = {v, result};
    struct wb_cycle_status status;

    int err = wb_cycle_status(dir, &status);
    if (err != WB_E_CORRUPT)
        return err == WB_E_NOTFOUND ? 0 : err;
    on_journal_found(&check, true, "cycle", 0, wb_error_message());
    return 0;
}

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    struct verify *v = context;

    wb_progress_update(&v->progress, done, total, 0);
    return !wb_stop_requested() && v->err == 0;
}

static int write_json(struct verify *v, const struct wb_store_verify_counts *result)
{
    struct wb_buf line = WB_BUF_INIT;
    int err = v->problems_json.err < 0 ? v->problems_json.err : v->notes_json.err;

    if (err == 0)
        err = wb_buf_printf(&line, "{\"ok\":%s,\"pages\":%" PRIu64 ",\"problems\":[", result->problems ? "false" : "true",
                            result->pages);
    if (err == 0)
        err = wb_buf_append_slice(&line, wb_buf_slice(&v->problems));
    if (err == 0)
        err = wb_buf_append_str(&line, "],\"notes\":[");
    if (err == 0)
        err = wb_buf_append_slice(&line, wb_buf_slice(&v->notes));
    if (err == 0)
        err = wb_buf_printf(&line, "],\"problem_count\":%" PRIu64 ",\"note_count\":%" PRIu64 "}\n", result->problems,
                            result->notes);
    if (err == 0)
        err = wb_output_lines(&line);
    wb_buf_release(&line);
    return err;
}

static int write_words(const struct wb_store_verify_counts *result)
{
    if (result->problems)
        return wb_output_printf("damaged: %" PRIu64 " problem%s; pages that can be read: %" PRIu64 "\n", result->problems,
                                wb_plural(result->problems), result->pages);
    return wb_output_printf("sound: %" PRIu64 " page%s checked\n", result->pages, wb_plural(result->pages));
}

int wb_cmd_verify(const struct wb_options *options)
{
    struct verify v = {.json = options->json};
    struct wb_store_verify_counts result;

    wb_stop_on_signals();
    wb_json_init(&v.problems_json, &v.problems);
    wb_json_init(&v.notes_json, &v.notes);
    wb_progress_init(&v.progress, "verify");
    int err = wb_store_verify(options->dir, on_found, &v, on_progress, &v, &result);
    if (err == 0)
        err = verify_journal(options->dir, &v, &result);
    if (err == 0)
        err = verify_webdb(options->dir, &v, &result);
    if (err == 0)
        err = verify_dispenser(options->dir, &v, &result);
    if (err == 0)
        err = verify_cycle(options->dir, &v, &result);
    wb_progress_clear();
    if (err == 0)
        err = v.err;
    if (err == 0)
        err = options->json ? write_json(&v, &result) : write_words(&result);
    wb_buf_release(&v.problems);
    wb_buf_release(&v.notes);
    if (err < 0)
        return err;
    return result.problems ? 1 : 0;
}
