/*
 * cmd_stream.c - webbase stream: delivers the pages of one state of a repository, each exactly once.
 *
 * Moves records from a stream to a sink (stream_sink.h), and shows how far it has come. Everything else is the room
 * stream's.
 *
 *   {"event":"done","records":472,"damaged":0,"snapshot":3,"token":"..."}     on standard error, with --json
 *   {"name":"corpus1","snapshot":3,"records":1200,"finished":false,"saved":...}   stream list
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/select_args.h"
#include "cli/stream_sink.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

/* A sink is flushed after so many records; a named stream repeats fewer than 1000 after it was killed. */
#define FLUSH_RECORDS 250

struct stream_run {
    const struct wb_options *options;
    struct wb_stream_home *home;
    struct wb_stream_spec spec;
    struct wb_stream_sink *sink;
    struct wb_stream *stream;
    struct wb_progress progress;
    uint64_t records, damaged;
};

/* ---- moving records ------------------------------------------------------------------------------ */

/* Everything so far has arrived. */
static int acknowledge(struct stream_run *run)
{
    int err = run->sink->kind.flush(run->sink);

    return err == 0 ? wb_stream_acknowledge(run->stream) : err;
}

/* Stops cleanly, and says how to go on. */
static int stop(struct stream_run *run)
{
    struct wb_buf token = WB_BUF_INIT;
    int err = acknowledge(run);

    if (err == 0)
        err = wb_stream_token(run->stream, &token);
    if (err == 0 && run->spec.name.len)
        err = wb_fail(WB_E_STOPPED, "stopped by a signal after %" PRIu64 " records; --name %.*s goes on from here",
                      run->records, WB_SLICE_ARG(run->spec.name));
    else if (err == 0)
        err = wb_fail(WB_E_STOPPED, "stopped by a signal after %" PRIu64 " records; go on with --resume %.*s",
                      run->records, WB_SLICE_ARG(wb_buf_slice(&token)));
    wb_buf_release(&token);
    return err;
}

static void show_progress(struct stream_run *run)
{
    struct wb_stream_info info;
    char text[120];

    if (!wb_progress_due(&run->progress))
        return;
    wb_stream_info(run->stream, &info);
    snprintf(text, sizeof text, "stream: %" PRIu64 " records of snapshot %" PRIu32 ", which has %" PRIu64 " pages",
             run->records, info.snapshot, info.pages);
    wb_progress_show(&run->progress, text);
}

static int move_records(struct stream_run *run)
{
    struct wb_stream_record record;

    for (;;) {
        if (wb_stop_requested())
            return stop(run);
        int got = wb_stream_next(run->stream, &record);
        if (got == WB_E_CORRUPT) {
            run->damaged++;
            wb_report("%s", wb_error_message());
            continue;
        }
        if (got <= 0)
            return got;
        int err = run->sink->kind.record(run->sink, &record);
        run->records++;
        if (err == 0 && run->records % FLUSH_RECORDS == 0)
            err = acknowledge(run);
        if (err < 0)
            return err;
        show_progress(run);
    }
}

/* ---- the command --------------------------------------------------------------------------------- */

/* The last line, on standard error: standard output has the records. */
static int show_done(struct stream_run *run)
{
    struct wb_buf line = WB_BUF_INIT, token = WB_BUF_INIT;
    struct wb_stream_info info;
    struct wb_json j;
    int err = wb_stream_token(run->stream, &token);

    wb_stream_info(run->stream, &info);
    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "records", run->records);
    wb_json_field_u64(&j, "damaged", run->damaged);
    wb_json_field_u64(&j, "snapshot", info.snapshot);
    wb_json_field_text(&j, "token", wb_buf_slice(&token));
    wb_json_object_end(&j);
    if (err == 0)
        err = wb_json_line(&j);
    if (err == 0)
        fwrite(line.ptr, 1, line.len, stderr);
    wb_buf_release(&line);
    wb_buf_release(&token);
    return err;
}

static int open_sink(struct stream_run *run)
{
    const char *name = wb_options_text(run->options, "format");
    enum wb_stream_format format = WB_STREAM_JSONL;
    int err = name ? wb_stream_format_parse(wb_slice_str(name), &format) : 0;

    if (err == WB_E_INVALID)
        return wb_options_usage("--%s", wb_error_message());
    return err < 0 ? err : wb_stream_sink_print(format, wb_options_flag(run->options, "tokens"), &run->sink);
}

static int deliver(struct stream_run *run)
{
    struct wb_stream_info info;

    run->spec.facts = !run->sink->kind.bodies;
    run->spec.docids = run->sink->kind.docids;
    int err = wb_stream_open(run->home, &run->spec, false, &run->stream);
    if (err < 0)
        return err;
    wb_stream_info(run->stream, &info);
    wb_progress_init(&run->progress, "stream");
    err = run->sink->kind.begin(run->sink, &info);
    if (err == 0)
        err = move_records(run);
    wb_progress_clear();
    if (err == 0)
        err = acknowledge(run);
    if (err == 0)
        err = run->sink->kind.end(run->sink);
    return err == 0 && run->options->json ? show_done(run) : err;
}

static int run_stream(const struct wb_options *options, const char *dir)
{
    struct stream_run run = {.options = options};
    int err = wb_stream_args(options, &run.spec);

    wb_stop_on_signals();
    if (err == 0)
        err = open_sink(&run);
    if (err == 0)
        err = wb_stream_home_open(dir, &run.home);
    if (err == 0)
        err = deliver(&run);
    wb_stream_close(run.stream);
    if (run.sink)
        run.sink->kind.close(run.sink);
    wb_stream_home_close(run.home);
    wb_stream_spec_release(&run.spec);
    if (err == 0 && run.damaged) {
        wb_report("%s: what is in %" PRIu64 " damaged place%s was left out", dir, run.damaged,
                  wb_output_plural(run.damaged));
        return 1;
    }
    return err;
}

/* ---- named streams ------------------------------------------------------------------------------- */

static int show_named(void *context, const struct wb_stream_named *named)
{
    const struct wb_options *options = context;
    struct wb_json j;

    if (!options->json && named->damaged)
        return wb_output_printf("%-24s  its file is damaged\n", named->name);
    if (!options->json)
        return wb_output_printf("%-24s  snapshot %" PRIu32 ", %" PRIu64 " record%s%s\n", named->name, named->snapshot,
                                named->delivered, wb_output_plural(named->delivered),
                                named->finished ? ", finished" : "");
    wb_output_object_begin(&j, NULL);
    wb_json_field_str(&j, "name", named->name);
    wb_json_field_u64(&j, "snapshot", named->snapshot);
    wb_json_field_u64(&j, "records", named->delivered);
    wb_json_field_bool(&j, "finished", named->finished);
    wb_json_field_bool(&j, "damaged", named->damaged);
    wb_json_field_time(&j, "saved", named->saved_ms);
    return wb_output_object_end(&j);
}

static int drop_named(const struct wb_options *options, struct wb_stream_home *home)
{
    const char *name = options->args[1];
    struct wb_json j;
    int err = wb_stream_named_drop(home, wb_slice_str(name));

    if (err < 0)
        return err;
    if (!options->json)
        return wb_output_printf("dropped the stream %s\n", name);
    wb_output_object_begin(&j, "done");
    wb_json_field_str(&j, "name", name);
    return wb_output_object_end(&j);
}

static int manage_named(const struct wb_options *options, bool list)
{
    struct wb_stream_home *home = NULL;

    if (options->arg_count != (list ? 1 : 2))
        return wb_options_usage(list ? "stream list takes no argument" : "stream drop takes the name of a stream");
    int err = wb_stream_home_open(options->dir, &home);
    if (err == 0)
        err = list ? wb_stream_named_each(home, show_named, (void *)options) : drop_named(options, home);
    wb_stream_home_close(home);
    return err;
}

int wb_cmd_stream(const struct wb_options *options)
{
    const char *first = options->arg_count ? options->args[0] : NULL;

    if (first && strcmp(first, "list") == 0)
        return manage_named(options, true);
    if (first && strcmp(first, "drop") == 0)
        return manage_named(options, false);
    if (options->arg_count > 1)
        return wb_options_usage("stream: does not take '%s'", options->args[1]);
    return run_stream(options, first ? first : options->dir);
}
