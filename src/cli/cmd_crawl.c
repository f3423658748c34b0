/*
 * cmd_crawl.c - webbase crawl: copies sites into the repository. Options in, lines and progress out;
 * the work is in src/crawl.
 */
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "crawl/crawl.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

struct show {
    bool json;
    struct wb_file log;
    uint64_t log_at;
    struct wb_progress progress;
    struct wb_crawl_stat last;
    int64_t last_ns;
    int err;
};

static void show_line(void *context, struct wb_slice line)
{
    struct show *show = context;

    if (show->json && show->err == 0)
        show->err = wb_output_write(line.ptr, line.len);
    if (show->log.fd >= 0 && show->err == 0) {
        show->err = wb_file_write_at(&show->log, show->log_at, line.ptr, line.len);
        show->log_at += line.len;
    }
}

static void show_warning(void *context, const char *message)
{
    (void)context;
    wb_report("%s", message);
}

/* pages/s and MB/s of the last moments, then the state of the whole. */
static void show_progress(void *context, const struct wb_crawl_stat *stat)
{
    struct show *show = context;
    int64_t now = wb_clock_mono_ns();
    char text[320];

    if (show->json && show->err == 0)
        show->err = wb_output_flush();
    if (!wb_progress_due(&show->progress))
        return;
    double seconds = (double)(now - show->last_ns) / 1e9;
    snprintf(text, sizeof text,
             "crawl: %" PRIu64 " pages, %.0f/s, %.1f MB/s; sites %u (%u waiting), %" PRIu64 " left, %" PRIu64 " done%s%.100s",
             stat->pages, (double)(stat->pages - show->last.pages) / seconds, (double)(stat->wire_bytes - show->last.wire_bytes) / seconds / 1e6,
             stat->sites_active, stat->sites_waiting, stat->sites_open, stat->sites_done, stat->errors ? "; errors: " : "", stat->error_kinds);
    wb_progress_show(&show->progress, text);
    show->last = *stat;
    show->last_ns = now;
}

static int show_end_json(const struct wb_crawl_stat *stat)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "pages", stat->pages);
    wb_json_field_u64(&j, "bytes", stat->bytes);
    wb_json_field_u64(&j, "errors", stat->errors);
    wb_json_field_str(&j, "error_kinds", stat->error_kinds);
    wb_json_field_u64(&j, "requests", stat->requests);
    wb_json_field_u64(&j, "unchanged", stat->unchanged);
    wb_json_field_u64(&j, "redirects", stat->redirects);
    wb_json_field_u64(&j, "duplicates", stat->duplicates);
    wb_json_field_u64(&j, "gone", stat->gone);
    wb_json_field_u64(&j, "robots", stat->robots);
    wb_json_field_u64(&j, "skipped", stat->skipped);
    wb_json_field_u64(&j, "known", stat->known);
    wb_json_field_u64(&j, "sites_done", stat->sites_done);
    wb_json_field_u64(&j, "sites_left", stat->sites_left + stat->sites_open);
    wb_json_field_u64(&j, "wire_bytes", stat->wire_bytes);
    wb_json_field_u64(&j, "ms", (uint64_t)(stat->seconds * 1000));
    wb_json_field_u64(&j, "cpu_ms", stat->cpu_ms);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int show_end(struct show *show, const struct wb_crawl_stat *stat)
{
    wb_progress_clear();
    if (show->json)
        return show_end_json(stat);
    int err = wb_output_printf("%" PRIu64 " page%s stored (%.1f MB) with %" PRIu64 " requests in %.1f s, %.0f a second of CPU time\n"
                               "%" PRIu64 " unchanged, %" PRIu64 " redirects, %" PRIu64 " gone, %" PRIu64 " copies, %" PRIu64
                               " kept out by robots.txt, %" PRIu64 " skipped\n"
                               "%" PRIu64 " site%s done, %" PRIu64 " left for another run\n",
                               stat->pages, wb_plural(stat->pages), (double)stat->bytes / 1e6, stat->requests, stat->seconds,
                               stat->cpu_ms ? (double)stat->pages * 1000 / (double)stat->cpu_ms : 0.0, stat->unchanged, stat->redirects,
                               stat->gone, stat->duplicates, stat->robots, stat->skipped, stat->sites_done, wb_plural(stat->sites_done),
                               stat->sites_left + stat->sites_open);
    if (err == 0 && stat->errors)
        err = wb_output_printf("%" PRIu64 " error%s: %s\n", stat->errors, wb_plural(stat->errors), stat->error_kinds);
    return err;
}

/* ---- options --------------------------------------------------------------------------------------- */

static void fill_options(const struct wb_options *options, struct wb_crawl_options *o)
{
    const char *scope = wb_options_text(options, "scope");

    *o = (struct wb_crawl_options){
        .dir = options->dir,
        .urls = options->args,
        .url_count = options->arg_count,
        .seeds_file = wb_options_text(options, "seeds"),
        .scope = !scope || scope[0] == 's' ? WB_SCOPE_SITE : scope[0] == 'd' ? WB_SCOPE_DOMAIN : WB_SCOPE_ANY,
        .max_pages = wb_options_number(options, "max-pages", 0),
        .max_depth = (uint32_t)wb_options_number(options, "max-depth", UINT32_MAX),
        .max_time_ms = wb_options_duration(options, "max-time", 0),
        .delay_ms = wb_options_duration(options, "delay", -1),
        .crawl_delay_max_ms = wb_options_duration(options, "max-crawl-delay", 0),
        .processes = (unsigned)wb_options_number(options, "processes", 0),
        .sites = (unsigned)wb_options_number(options, "sites", 0),
        .connections = (unsigned)wb_options_number(options, "connections", 0),
        .per_address = (unsigned)wb_options_number(options, "per-address", 0),
        .user_agent = wb_options_text(options, "user-agent"),
        .allow_private = wb_options_flag(options, "allow-private"),
        .dns_servers = wb_options_text(options, "dns"),
        .dns_rate = (unsigned)wb_options_number(options, "dns-rate", 0),
        .dispenser = wb_options_text(options, "dispenser"),
        .fresh_ms = wb_options_duration(options, "fresh", 0),
        .timeout_ms = wb_options_duration(options, "timeout", 0),
        .max_bytes = wb_options_number(options, "max-bytes", 0),
        .site_budget = wb_options_number(options, "site-budget", 0),
        .lifetime_days = (uint32_t)wb_options_number(options, "lifetime", 0),
        .root_first = wb_options_flag(options, "root-first"),
        .ignore_sitemaps = wb_options_flag(options, "no-sitemaps"),
        .ca_file = wb_options_text(options, "ca-file"),
    };
    o->resolve = wb_options_list(options, "resolve", &o->resolve_count);
}

static int check_options(const struct wb_crawl_options *o)
{
    if (o->user_agent) {
        for (const char *c = o->user_agent; *c; c++)
            if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
                return wb_usage("--user-agent takes printable ASCII");
        if (!((o->user_agent[0] | 32) >= 'a' && (o->user_agent[0] | 32) <= 'z'))
            return wb_usage("--user-agent must begin with a name, such as mybot/1.0 (+https://example.org/bot)");
    }
    if (o->max_bytes > 1u << 30)
        return wb_usage("--max-bytes takes at most %u", 1u << 30);
    if (o->dispenser && strncmp(o->dispenser, "postgres://", 11) != 0 && strncmp(o->dispenser, "postgresql://", 13) != 0)
        return wb_usage("--dispenser takes a URL such as postgres://user@host/database, not '%s'", o->dispenser);
    return 0;
}

static int open_log(struct show *show, const char *path)
{
    if (!path)
        return 0;
    int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &show->log);
    return err < 0 ? err : wb_file_size(&show->log, &show->log_at);
}

int wb_cmd_crawl(const struct wb_options *options)
{
    struct show show = {.json = options->json, .log = WB_FILE_INIT, .last_ns = wb_clock_mono_ns()};
    struct wb_crawl_options o;
    struct wb_crawl_stat stat;
    struct wb_crawl_sink sink = {show_line, show_progress, show_warning, &show, false};
    const char *log = wb_options_text(options, "log");

    fill_options(options, &o);
    int err = check_options(&o);
    if (err == 0)
        err = open_log(&show, log);
    if (err < 0)
        return err;
    sink.wants_lines = options->json || log;
    wb_progress_init(&show.progress, "crawl");
    wb_stop_on_signals();
    err = wb_crawl(&o, &sink, &stat);
    if (err == 0 || err == WB_E_STOPPED) {
        int shown = show.err < 0 ? show.err : show_end(&show, &stat);
        err = err < 0 ? err : shown;
    }
    wb_progress_clear();
    wb_file_close(&show.log);
    return err;
}
