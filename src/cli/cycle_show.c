/* cycle_show.c - draws the progress of a step, and stops the step after a signal. */
#include "cli/cycle_show.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/clock.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

static bool on_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    struct wb_cycle_show *show = context;
    char text[200];

    if (!wb_progress_due(&show->progress))
        return !wb_stop_requested();
    double seconds = (double)(wb_clock_mono_ns() - show->progress.start_ns) / 1e9;
    if (total && done <= total)
        snprintf(text, sizeof text, "%s: %s, %" PRIu64 " of %" PRIu64 " (%.0f %%), %.0f s", show->progress.verb, step,
                 done, total, 100.0 * (double)done / (double)total, seconds);
    else
        snprintf(text, sizeof text, "%s: %s, %" PRIu64 ", %.0f s", show->progress.verb, step, done, seconds);
    wb_progress_show(&show->progress, text);
    return !wb_stop_requested();
}

static void on_warning(void *context, const char *message)
{
    (void)context;
    wb_report("%s", message);
}

struct wb_cycle_sink wb_cycle_show_init(struct wb_cycle_show *show, const char *verb)
{
    wb_progress_init(&show->progress, verb);
    return (struct wb_cycle_sink){on_progress, on_warning, show};
}

void wb_cycle_show_end(struct wb_cycle_show *show)
{
    (void)show;
    wb_progress_clear();
}
