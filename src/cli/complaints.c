/* complaints.c - reads a file line by line, and what is said of lines that are not what they should be. */
#include "cli/complaints.h"
#include "base/error.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { TOLD_MAX = 10 };

void wb_complain(struct wb_complaints *complaints, const struct wb_linereader *reader, const char *format, ...)
{
    char words[256];
    va_list args;

    if (complaints->count++ >= TOLD_MAX)
        return;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    wb_report("%s, line %" PRIu64 ": %s%s", wb_linereader_path(reader), wb_linereader_number(reader), words,
              complaints->count == TOLD_MAX ? " (further ones are only counted)" : "");
}

static void show(struct wb_progress *progress, const struct wb_linereader *reader)
{
    uint64_t done, size;

    wb_linereader_progress(reader, &done, &size);
    wb_progress_update(progress, done, size, wb_linereader_number(reader));
}

int wb_lines_each(const char *path, struct wb_complaints *complaints, wb_line_take take, void *context)
{
    struct wb_linereader *reader = NULL;
    struct wb_progress progress;
    struct wb_slice line;
    int got = 1, err = wb_linereader_open(path, &reader);

    wb_progress_init(&progress, "read");
    while (err == 0 && got != 0) {
        got = wb_linereader_next(reader, &line);
        if (got > 0)
            err = take(context, line);
        else if (got < 0)
            err = got;
        if (err == WB_E_PROTO || err == WB_E_LIMIT) {
            wb_complain(complaints, reader, "%s", wb_error_message());
            err = 0;
        } else if (got == WB_E_CORRUPT) {
            wb_report("%s; what comes after is not read", wb_error_message());
            complaints->unfinished++;
            err = got = 0;
        }
        if (err == 0 && wb_stop_requested())
            err = wb_fail(WB_E_STOPPED, "stopped by a signal; nothing was changed");
        if (err == 0)
            show(&progress, reader);
    }
    wb_progress_clear();
    wb_linereader_close(reader);
    return err;
}
