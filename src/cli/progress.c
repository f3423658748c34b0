/* progress.c - draws the progress line. Work that is done within the first half second gets none. */
#include "cli/progress.h"
#include "base/error.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SECOND_NS 1000000000ll
#define REDRAW_NS (SECOND_NS / 5)
#define FIRST_NS (SECOND_NS / 2)
#define LINE_NS (60 * SECOND_NS)

static bool drawn; /* there is a line on the terminal */

void wb_progress_init(struct wb_progress *progress, const char *verb)
{
    *progress = (struct wb_progress){.verb = verb, .terminal = isatty(STDERR_FILENO) == 1};
    progress->start_ns = wb_clock_mono_ns();
    progress->next_ns = progress->start_ns + (progress->terminal ? FIRST_NS : LINE_NS);
}

/* "12.3 MB", in units of 1000. */
static void size_text(uint64_t bytes, char *text_out, unsigned size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1000 && unit < 4) {
        value /= 1000;
        unit++;
    }
    snprintf(text_out, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* "40 s", "3 min" or "1.5 h". */
static void time_text(double seconds, char *text_out, unsigned size)
{
    if (seconds < 60)
        snprintf(text_out, size, "%.0f s", seconds);
    else if (seconds < 3600)
        snprintf(text_out, size, "%.0f min", seconds / 60);
    else
        snprintf(text_out, size, "%.1f h", seconds / 3600);
}

void wb_progress_text(const char *verb, uint64_t done, uint64_t total, uint64_t pages, double seconds, char *text_out,
                      unsigned size)
{
    char done_text[32], total_text[32], rate[32], left[32];

    size_text(done, done_text, sizeof done_text);
    size_text(total, total_text, sizeof total_text);
    size_text(seconds > 0 ? (uint64_t)((double)done / seconds) : 0, rate, sizeof rate);
    if (total == 0 || done == 0 || done > total) {
        snprintf(text_out, size, "%s: %s, %" PRIu64 " pages, %s/s", verb, done_text, pages, rate);
        return;
    }
    time_text(seconds * (double)(total - done) / (double)done, left, sizeof left);
    snprintf(text_out, size, "%s: %s of %s (%.0f %%), %" PRIu64 " pages, %s/s, %s left", verb, done_text, total_text,
             100.0 * (double)done / (double)total, pages, rate, left);
}

void wb_progress_update(struct wb_progress *progress, uint64_t done, uint64_t total, uint64_t pages)
{
    char text[200];

    if (!wb_progress_due(progress))
        return;
    wb_progress_text(progress->verb, done, total, pages,
                     (double)(wb_clock_mono_ns() - progress->start_ns) / (double)SECOND_NS, text, sizeof text);
    wb_progress_show(progress, text);
}

void wb_progress_bytes(void *context, uint64_t done, uint64_t total)
{
    struct wb_progress *progress = context;
    char text[80];

    if (!wb_progress_due(progress))
        return;
    snprintf(text, sizeof text, "%s: %.1f of %.1f MB", progress->verb, (double)done / 1e6, (double)total / 1e6);
    wb_progress_show(progress, text);
}

bool wb_progress_due(struct wb_progress *progress)
{
    int64_t now = wb_clock_mono_ns();

    if (now < progress->next_ns)
        return false;
    progress->next_ns = now + (progress->terminal ? REDRAW_NS : LINE_NS);
    return true;
}

/* The width of the terminal. The line must not be wider, because only one line can be drawn over. */
static int columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

void wb_progress_show(const struct wb_progress *progress, const char *text)
{
    if (!progress->terminal) {
        fprintf(stderr, "webbase: %s\n", text);
        return;
    }
    fprintf(stderr, "\r\033[K%.*s", columns() - 1, text);
    fflush(stderr);
    drawn = true;
}

void wb_progress_clear(void)
{
    if (drawn)
        fputs("\r\033[K", stderr);
    drawn = false;
}
