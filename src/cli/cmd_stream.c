/*
 * cmd_stream.c - webbase stream: delivers the pages of one state of a repository, each exactly once.
 *
 * Moves records from a stream, or from a server, to a sink: standard output (stream_print.c), a command or handlers;
 * and shows how far it has come. With --workers, several processes do that, each with a part (stream_workers.c).
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
#include "cli/stream_workers.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
    const struct wb_stream_sink *parent; /* what the parent of several workers has made for handlers */
    unsigned worker, workers;            /* 1 of 1 without --workers; 0: the parent */
    bool handlers;                       /* the sink is that of handlers */
};

/* The last line, on standard error: standard output has the records. */
static int show_done(struct stream_run *run, const struct wb_stream_info *info, struct wb_slice token)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "records", run->records);
    wb_json_field_u64(&j, "damaged", run->damaged);
    if (run->handlers)
        wb_json_field_u64(&j, "skipped", wb_handlers_skipped(run->sink));
    wb_json_field_u64(&j, "snapshot", info->snapshot);
    wb_json_field_text(&j, "token", token);
    wb_json_object_end(&j);
    int err = wb_json_line(&j);
    if (err == 0)
        fwrite(line.ptr, 1, line.len, stderr);
    wb_buf_release(&line);
    return err;
}

/* ---- moving records ------------------------------------------------------------------------------ */

/* Everything so far has arrived. */
static int acknowledge(struct stream_run *run)
{
    int enough = run->sink->kind.flush(run->sink);
    int err = enough < 0 ? enough : wb_stream_acknowledge(run->stream);

    return err < 0 ? err : enough;
}

/* Stops cleanly, and says how to go on. */
static int stop(struct stream_run *run)
{
    struct wb_buf token = WB_BUF_INIT;
    int err = acknowledge(run);

    if (err >= 0)
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

    if (run->workers > 1 || !wb_progress_due(&run->progress))
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
            wb_report_damage();
            continue;
        }
        if (got == WB_E_STOPPED)
            return stop(run);
        if (got <= 0)
            return got;
        int err = run->sink->kind.record(run->sink, &record);
        run->records++;
        if (err == 0 && run->records % FLUSH_RECORDS == 0)
            err = acknowledge(run);
        if (err != 0)
            return err < 0 ? err : 0;
        show_progress(run);
    }
}

/* ---- a server ------------------------------------------------------------------------------------ */

/* Shows how far it is, and why it waits. False: stop. */
static bool on_progress(void *context, const struct wb_stream_info *info, const char *trouble)
{
    struct stream_run *run = context;
    char text[200];

    run->records = info->delivered;
    if (run->workers == 1 && wb_progress_due(&run->progress)) {
        snprintf(text, sizeof text, "stream: %" PRIu64 " records%s%s", info->delivered,
                 trouble ? "; waiting for the server: " : "", trouble ? trouble : "");
        wb_progress_show(&run->progress, text);
    }
    return !wb_stop_requested();
}

static void on_warning(void *context, const char *text)
{
    (void)context;
    wb_report("%s", text);
}

static int deliver_remote(struct stream_run *run, const char *url)
{
    struct wb_buf token = WB_BUF_INIT;
    struct wb_stream_info info = {0};
    struct wb_remote_options remote = {.url = url,
                                       .token = wb_options_text(run->options, "token"),
                                       .ca_file = wb_options_text(run->options, "ca-file"),
                                       .spec = &run->spec,
                                       .patience_ms = wb_options_duration(run->options, "patience", 0),
                                       .sink = run->sink,
                                       .progress = on_progress,
                                       .warn = on_warning,
                                       .context = run};

    wb_progress_init(&run->progress, "stream");
    int err = wb_remote_stream(&remote, &info, &token);
    wb_progress_clear();
    run->records = info.delivered;
    run->damaged = info.damaged;
    if (err == WB_E_STOPPED && token.len && !run->spec.name.len && !run->spec.join.len)
        err = wb_fail(WB_E_STOPPED, "stopped by a signal after %" PRIu64 " records; go on with --resume %.*s",
                      run->records, WB_SLICE_ARG(wb_buf_slice(&token)));
    if (err == 0 && run->options->json)
        err = show_done(run, &info, wb_buf_slice(&token));
    wb_buf_release(&token);
    return err;
}

/* ---- the command --------------------------------------------------------------------------------- */

static void say_line(const char *line)
{
    wb_report("%s", line);
}

static int open_sink(struct stream_run *run)
{
    const struct wb_options *o = run->options;
    const char *name = wb_options_text(o, "format"), *command = wb_options_text(o, "exec");
    bool tokens = wb_options_flag(o, "tokens");
    enum wb_stream_format format = WB_STREAM_JSONL;
    struct wb_handler_options handlers = {
        .worker = run->worker, .workers = run->workers, .parent = run->parent, .say = say_line};
    int err = name ? wb_stream_format_parse(wb_slice_str(name), &format) : 0;

    handlers.paths = wb_options_list(o, "handler", &handlers.count);
    if (err == WB_E_INVALID)
        return wb_options_usage("--%s", wb_error_message());
    if (handlers.count && (command || name))
        return wb_options_usage("stream: --handler excludes --exec and --format");
    run->handlers = handlers.count > 0;
    if (err == 0 && handlers.count)
        return wb_handlers_new(&handlers, &run->sink);
    if (err == 0 && command)
        return wb_exec_new(command, format, tokens, &run->sink);
    return err < 0 ? err : wb_stream_sink_print(format, tokens, &run->sink);
}

static int deliver(struct stream_run *run)
{
    char warning[WB_ERROR_MESSAGE_MAX];
    struct wb_stream_info info;

    run->spec.facts = !run->sink->kind.bodies;
    run->spec.docids = run->sink->kind.docids;
    int err = wb_stream_open(run->home, &run->spec, false, &run->stream);
    if (err < 0)
        return err;
    if (wb_stream_warning(run->stream, warning))
        wb_report("%s", warning);
    wb_stream_info(run->stream, &info);
    wb_progress_init(&run->progress, "stream");
    err = run->sink->kind.begin(run->sink, &info);
    if (err == 0)
        err = move_records(run);
    wb_progress_clear();
    if (err == 0)
        err = acknowledge(run);
    if (err >= 0)
        err = run->sink->kind.end(run->sink);
    wb_stream_info(run->stream, &info);
    run->damaged = info.damaged; /* also what was damaged when the list of pages was made */
    if (err == 0 && run->options->json) {
        struct wb_buf token = WB_BUF_INIT;
        err = wb_stream_token(run->stream, &token);
        if (err == 0)
            err = show_done(run, &info, wb_buf_slice(&token));
        wb_buf_release(&token);
    }
    return err;
}

static bool is_remote(const char *where)
{
    return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

/* What all workers have in common. */
struct stream_work {
    const struct wb_options *options;
    const char *where;
    struct wb_stream_sink *parent; /* of handlers that several workers run; otherwise NULL */
    uint32_t snapshot;             /* that all workers deliver, whatever is published meanwhile; 0: what is asked for */
};

/* One worker, or all of it. The exit status. */
static int run_part(void *context, unsigned worker, unsigned workers)
{
    const struct stream_work *work = context;
    const struct wb_options *options = work->options;
    const char *where = work->where;
    struct stream_run run = {.options = options, .parent = work->parent, .worker = worker, .workers = workers};
    char part[32], snapshot[16];
    int err = wb_stream_args(options, &run.spec);

    snprintf(part, sizeof part, "%u/%u", worker, workers);
    snprintf(snapshot, sizeof snapshot, "%" PRIu32, work->snapshot);
    if (err == 0 && workers > 1)
        err = wb_stream_spec_set(&run.spec, "partition", wb_slice_str(part), false);
    if (err == 0 && work->snapshot)
        err = wb_stream_spec_set(&run.spec, "snapshot", wb_slice_str(snapshot), false);
    wb_stop_on_signals();
    if (err == 0)
        err = open_sink(&run);
    if (err == 0 && !is_remote(where))
        err = wb_stream_home_open(where, &run.home);
    if (err == 0)
        err = is_remote(where) ? deliver_remote(&run, where) : deliver(&run);
    wb_stream_close(run.stream);
    if (run.sink)
        run.sink->kind.close(run.sink);
    wb_stream_home_close(run.home);
    wb_stream_spec_release(&run.spec);
    if (err == 0 && run.damaged) {
        wb_report("%s: what is in %" PRIu64 " damaged place%s was left out", where, run.damaged,
                  wb_output_plural(run.damaged));
        return 1;
    }
    return err;
}

/*
 * The workers start one after the other, and another generation may become active in between: all of them deliver the
 * state of the one that is active now.
 */
static int choose_snapshot(struct stream_work *work)
{
    const struct wb_options *o = work->options;
    struct wb_index_info info = {0};
    int err = 0;

    if (!is_remote(work->where) && !wb_options_flag(o, "latest") && !wb_options_flag(o, "versions") &&
        !wb_options_text(o, "snapshot"))
        err = wb_index_newest(work->where, &info);
    work->snapshot = info.snapshot;
    return err;
}

/* Handlers in several processes: the parent loads them first, and merges their results at last. */
static int run_handlers(struct stream_work *work, unsigned workers)
{
    struct stream_run parent = {.options = work->options, .workers = workers};
    int err = open_sink(&parent), merged;

    work->parent = parent.sink;
    if (err == 0)
        err = wb_stream_workers(workers, true, run_part, work);
    if (err >= 0 && (merged = wb_handlers_merge(parent.sink)) < 0)
        err = merged;
    if (parent.sink)
        parent.sink->kind.close(parent.sink);
    return err;
}

static int run_stream(const struct wb_options *options, const char *where)
{
    struct stream_work work = {.options = options, .where = where};
    uint64_t workers = wb_options_number(options, "workers", 1);
    size_t handlers;

    (void)wb_options_list(options, "handler", &handlers);
    if (workers == 1)
        return run_part(&work, 1, 1);
    if (workers > WB_STREAM_WORKERS_MAX)
        return wb_options_usage("--workers: at most %d", WB_STREAM_WORKERS_MAX);
    if (!handlers && !wb_options_text(options, "exec"))
        return wb_options_usage("--workers needs --handler or --exec: the output of several workers would be mixed");
    if (wb_options_text(options, "partition") || wb_options_text(options, "resume") || wb_options_text(options, "name"))
        return wb_options_usage("--workers excludes --partition, --resume and --name");
    int err = choose_snapshot(&work);
    if (err < 0)
        return err;
    return handlers ? run_handlers(&work, (unsigned)workers)
                    : wb_stream_workers((unsigned)workers, false, run_part, &work);
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
