/*
 * cmd_verify.c - webbase verify: lets every room check its files, and shows what they find. It changes nothing.
 *
 *   problem: segments/1 at 4096: ...
 *   damaged: 1 problem; pages that can be read: 812
 *
 * With --json all findings are in one object, so they are collected first. All are counted, but at most LISTED_MAX
 * are listed.
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "crawl/crawl.h"
#include "cycle/cycle.h"
#include "index/index.h"
#include "os/stop.h"
#include "serve/serve.h"
#include "store/store.h"
#include "stream/stream.h"

#include <inttypes.h>

#define LISTED_MAX 10000

struct verify_show {
    bool json;
    struct wb_store_verify_counts counts; /* findings of all rooms */
    struct wb_buf problems, notes;        /* the elements of two arrays, without the brackets */
    struct wb_json problems_json, notes_json;
    uint64_t listed;
    struct wb_progress progress;
    int err;                              /* of writing to standard output */
};

static void list_finding(struct wb_json *j, const struct wb_store_finding *finding)
{
    wb_json_object(j);
    wb_json_field_str(j, "file", finding->file);
    wb_json_field_u64(j, "offset", finding->offset);
    wb_json_field_str(j, "message", finding->message);
    wb_json_object_end(j);
}

static void on_found(void *context, const struct wb_store_finding *finding)
{
    struct verify_show *v = context;

    if (v->err < 0)
        return;
    wb_progress_clear();
    if (!v->json)
        v->err = wb_output_finding(finding->problem ? "problem" : "note", finding->file, finding->offset,
                                   finding->message);
    else if (v->listed++ < LISTED_MAX)
        list_finding(finding->problem ? &v->problems_json : &v->notes_json, finding);
}

/* ---- one room after the other ------------------------------------------------------------------ */

/* The store counts its own findings; for the other rooms we count. */
static void on_other_found(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    struct verify_show *v = context;
    struct wb_store_finding finding = {.problem = problem, .file = file, .offset = offset, .message = message};

    v->counts.problems += problem;
    v->counts.notes += !problem;
    on_found(v, &finding);
}

static void on_webdb_found(void *context, const char *file, uint64_t offset, const char *message)
{
    on_other_found(context, true, file, offset, message);
}

/* The state file of the cycle is small: reading it checks it. */
static int verify_cycle(const char *dir, struct verify_show *v)
{
    struct wb_cycle_status status;

    int err = wb_cycle_status(dir, &status);
    if (err != WB_E_CORRUPT && err != WB_E_NEWER)
        return err == WB_E_NOTFOUND ? 0 : err;
    on_other_found(v, true, "cycle", 0, wb_error_message());
    return 0;
}

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    struct verify_show *v = context;

    wb_progress_update(&v->progress, done, total, 0);
    return !wb_stop_requested() && v->err == 0;
}

static int write_json(const struct verify_show *v)
{
    const struct wb_store_verify_counts *counts = &v->counts;
    struct wb_buf line = WB_BUF_INIT;
    int err = v->problems_json.err < 0 ? v->problems_json.err : v->notes_json.err;

    if (err == 0)
        err = wb_buf_printf(&line, "{\"ok\":%s,\"pages\":%" PRIu64 ",\"problems\":[",
                            counts->problems ? "false" : "true", counts->pages);
    if (err == 0)
        err = wb_buf_append_slice(&line, wb_buf_slice(&v->problems));
    if (err == 0)
        err = wb_buf_append_str(&line, "],\"notes\":[");
    if (err == 0)
        err = wb_buf_append_slice(&line, wb_buf_slice(&v->notes));
    if (err == 0)
        err = wb_buf_printf(&line, "],\"problem_count\":%" PRIu64 ",\"note_count\":%" PRIu64 "}\n", counts->problems,
                            counts->notes);
    if (err == 0)
        err = wb_output_lines(&line);
    wb_buf_release(&line);
    return err;
}

static int write_words(const struct wb_store_verify_counts *counts)
{
    if (counts->problems)
        return wb_output_printf("damaged: %" PRIu64 " problem%s; pages that can be read: %" PRIu64 "\n",
                                counts->problems, wb_output_plural(counts->problems), counts->pages);
    return wb_output_printf("sound: %" PRIu64 " page%s checked\n", counts->pages, wb_output_plural(counts->pages));
}

static int verify_all(const char *dir, struct verify_show *v)
{
    struct wb_webdb_count count;
    uint64_t records;

    int err = wb_store_verify(dir, on_found, v, on_progress, v, &v->counts);
    if (err == 0)
        err = wb_journal_verify(dir, on_other_found, v, &records);
    if (err == 0)
        err = wb_webdb_check(dir, on_webdb_found, v, &count);
    if (err == 0)
        err = wb_index_verify(dir, on_webdb_found, v);
    if (err == 0)
        err = wb_crawl_verify(dir, on_other_found, v);
    if (err == 0)
        err = wb_stream_verify(dir, on_other_found, v);
    if (err == 0)
        err = wb_serve_verify(dir, on_other_found, v);
    return err < 0 ? err : verify_cycle(dir, v);
}

int wb_cmd_verify(const struct wb_options *options)
{
    struct verify_show v = {.json = options->json};

    wb_stop_on_signals();
    wb_json_init(&v.problems_json, &v.problems);
    wb_json_init(&v.notes_json, &v.notes);
    wb_progress_init(&v.progress, "verify");
    int err = verify_all(options->dir, &v);
    wb_progress_clear();
    if (err == 0)
        err = v.err;
    if (err == 0)
        err = options->json ? write_json(&v) : write_words(&v.counts);
    wb_buf_release(&v.problems);
    wb_buf_release(&v.notes);
    return err < 0 ? err : v.counts.problems > 0;
}
