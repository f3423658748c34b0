/* crawl_show.c - shows a crawl while it works. It never writes the sums at the end. */
#include "cli/crawl_show.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>

static void show_line(void *context, struct wb_slice line)
{
    struct wb_crawl_show *show = context;

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

static double rate(uint64_t before, uint64_t now, double seconds)
{
    return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

void wb_crawl_show_text(const struct wb_crawl_stat *last, const struct wb_crawl_stat *stat, double seconds, char *text_out, size_t size)
{
    snprintf(text_out, size, "crawl: %" PRIu64 " pages, %.0f/s, %.1f MB/s; sites %u (%u waiting), %" PRIu64 " left, %" PRIu64 " done%s%.100s",
             stat->pages, rate(last->pages, stat->pages, seconds), rate(last->wire_bytes, stat->wire_bytes, seconds) / 1e6, stat->sites_active,
             stat->sites_waiting, stat->sites_open, stat->sites_done, stat->errors ? "; errors: " : "", stat->error_kinds);
}

static void show_progress(void *context, const struct wb_crawl_stat *stat)
{
    struct wb_crawl_show *show = context;
    int64_t now = wb_clock_mono_ns();
    char text[320];

    if (show->json && show->err == 0)
        show->err = wb_output_flush();
    /* Counts that fall are those of another crawl, the one of the next cycle. */
    if (stat->pages < show->last.pages || stat->wire_bytes < show->last.wire_bytes) {
        show->last = (struct wb_crawl_stat){0};
        show->last_ns = now;
    }
    if (!wb_progress_due(&show->progress))
        return;
    wb_crawl_show_text(&show->last, stat, (double)(now - show->last_ns) / 1e9, text, sizeof text);
    wb_progress_show(&show->progress, text);
    show->last = *stat;
    show->last_ns = now;
}

int wb_crawl_show_init(struct wb_crawl_show *show, const struct wb_options *options)
{
    const char *path = wb_options_text(options, "log");

    *show = (struct wb_crawl_show){.json = options->json, .log = WB_FILE_INIT, .last_ns = wb_clock_mono_ns()};
    wb_progress_init(&show->progress, "crawl");
    if (!path)
        return 0;
    int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &show->log);
    return err < 0 ? err : wb_file_size(&show->log, &show->log_at);
}

void wb_crawl_show_release(struct wb_crawl_show *show)
{
    wb_progress_clear();
    wb_file_close(&show->log);
}

struct wb_crawl_sink wb_crawl_show_sink(struct wb_crawl_show *show)
{
    return (struct wb_crawl_sink){show_line, show_progress, show_warning, show, show->json || show->log.fd >= 0};
}
