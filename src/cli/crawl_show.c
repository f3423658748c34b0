/* crawl_show.c - shows a crawl while it works. It never waits for a reader, and leaves the result to cmd_crawl.c. */
#include "cli/crawl_show.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 64 << 10, TAIL_MAX = 64 << 10, STDERR_MS = 1000 };

/* Writes lines to standard output or to the log, as many as fit without waiting for a reader. */
static int take_lines(void *context, unsigned output, struct wb_slice bytes, size_t *taken_out)
{
    struct wb_crawl_show *show = context;

    if (output == WB_CRAWL_OUTPUT_JSON)
        return wb_output_try(STDOUT_FILENO, "standard output", bytes, 0, taken_out);
    if (!show->log_plain)
        return wb_output_try(show->log.fd, show->log.path, bytes, 0, taken_out);
    *taken_out = 0;
    int err = wb_file_write_at(&show->log, show->log_at, bytes.ptr, bytes.len);
    if (err < 0)
        return err;
    *taken_out = bytes.len;
    show->log_at += bytes.len;
    return 0;
}

/* Writes the warnings that wait. Those that find no room in time stay. */
static void flush_words(struct wb_crawl_show *show, int wait_ms)
{
    size_t taken = 0;

    if (!show->words.len)
        return;
    wb_progress_clear();
    if (wb_output_try(STDERR_FILENO, "standard error", wb_buf_slice(&show->words), wait_ms, &taken) < 0)
        taken = show->words.len; /* standard error is closed: nobody will ever read them */
    memmove(show->words.ptr, show->words.ptr + taken, show->words.len - taken);
    show->words.len -= taken;
    if (show->words.len == 0 && show->words_lost) {
        wb_report("%" PRIu64 " more warnings were not written, because nobody read standard error", show->words_lost);
        show->words_lost = 0;
    }
}

static void show_warning(void *context, const char *message)
{
    struct wb_crawl_show *show = context;
    size_t before = show->words.len;

    if (before > WORDS_MAX || wb_buf_printf(&show->words, "webbase: %s", message) < 0) {
        show->words.len = before;
        show->words_lost++;
        return;
    }
    wb_output_clean(show->words.ptr + before, show->words.len - before);
    if (wb_buf_append_char(&show->words, '\n') < 0)
        show->words.len = before;
    flush_words(show, 0);
}

/* A second; 0 if nothing has changed. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
    return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

void wb_crawl_show_text(const struct wb_crawl_stat *last, const struct wb_crawl_stat *stat, double seconds,
                        char *text_out, size_t size)
{
    double pages_rate = rate(last->pages, stat->pages, seconds);
    double bytes_rate = rate(last->wire_bytes, stat->wire_bytes, seconds);

    snprintf(text_out, size,
             "crawl: %" PRIu64 " pages, %.0f/s, %.1f MB/s; sites %u (%u waiting), %" PRIu64 " left, %" PRIu64
             " done%s%.100s",
             stat->pages, pages_rate, bytes_rate / 1e6, stat->sites_active, stat->sites_waiting,
             stat->sites_open + stat->sites_left, stat->sites_done, stat->errors ? "; errors: " : "",
             stat->error_kinds);
}

static void show_progress(void *context, const struct wb_crawl_stat *stat)
{
    struct wb_crawl_show *show = context;
    int64_t now = wb_clock_mono_ns();
    char text[320];

    flush_words(show, 0);
    /* If the counts have become smaller, this is another crawl: that of the next cycle. */
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

/* A crawl that was killed may have left half a line. Remove it: the line was kept elsewhere and is written again. */
static int cut_half_line(struct wb_crawl_show *show)
{
    struct wb_buf tail = WB_BUF_INIT;
    size_t len = show->log_at < TAIL_MAX ? (size_t)show->log_at : TAIL_MAX, start;

    int err = wb_buf_reserve(&tail, len + 1);
    if (err == 0)
        err = wb_file_read_exact(&show->log, show->log_at - len, tail.ptr, len);
    for (start = len; err == 0 && start && tail.ptr[start - 1] != '\n'; start--)
        ;
    /* Remove it only if it starts like our lines do: the user may have appended to some other file. */
    bool ours = err == 0 && start < len && wb_slice_starts(wb_slice(tail.ptr + start, len - start),
                                                           WB_SLICE_LIT("{\"event\":\"fetch\""));
    if (ours)
        err = wb_file_truncate(&show->log, show->log_at - (len - start));
    if (ours && err == 0)
        show->log_at -= len - start;
    else if (err == 0 && start < len)
        err = wb_file_write_at(&show->log, show->log_at++, "\n", 1);
    wb_buf_release(&tail);
    return err;
}

int wb_crawl_show_init(struct wb_crawl_show *show, const struct wb_options *options)
{
    const char *path = wb_options_text(options, "log");
    struct stat st;

    *show = (struct wb_crawl_show){.json = options->json, .log = WB_FILE_INIT, .last_ns = wb_clock_mono_ns()};
    wb_progress_init(&show->progress, "crawl");
    if (!path)
        return 0;
    int err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, &show->log);
    if (err < 0)
        return err;
    show->log_plain = fstat(show->log.fd, &st) == 0 && S_ISREG(st.st_mode);
    if (!show->log_plain)
        return 0;
    err = wb_file_size(&show->log, &show->log_at);
    return err < 0 ? err : cut_half_line(show);
}

void wb_crawl_show_release(struct wb_crawl_show *show)
{
    wb_progress_clear();
    flush_words(show, STDERR_MS);
    wb_buf_release(&show->words);
    wb_file_close(&show->log);
}

struct wb_crawl_sink wb_crawl_show_sink(struct wb_crawl_show *show)
{
    unsigned outputs = show->json ? 1u << WB_CRAWL_OUTPUT_JSON : 0;

    if (show->log.fd >= 0)
        outputs |= 1u << WB_CRAWL_OUTPUT_LOG;

    return (struct wb_crawl_sink){take_lines, show_progress, show_warning, show, outputs};
}
