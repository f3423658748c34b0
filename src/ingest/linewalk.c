/*
 * linewalk.c - goes through files of lines, and reports the lines that are not what they should be. It changes nothing.
 */
#include "ingest/linewalk.h"
#include "base/error.h"
#include "ingest/linereader.h"
#include "os/stop.h"

#include <stdio.h>

enum { REPORTED_MAX = 10 }; /* bad lines that the sink is told about */

static int report(const struct wb_linewalk *walk, const struct wb_ingest_error *error)
{
    return walk->sink->error ? walk->sink->error(walk->sink->context, error) : 0;
}

/* The line that was read last is bad; the error message says why. */
static int report_bad_line(struct wb_linewalk *walk, const char *path, const struct wb_linereader *reader)
{
    char message[WB_ERROR_MESSAGE_MAX + 64];
    struct wb_ingest_error error = {.file = path, .line = wb_linereader_number(reader), .message = message};

    if (walk->bad_lines++ >= REPORTED_MAX)
        return 0;
    snprintf(message, sizeof message, "%.255s%s", wb_error_message(),
             walk->bad_lines == REPORTED_MAX ? " (further ones are only counted)" : "");
    return report(walk, &error);
}

/* The file is damaged after the line that was read last; the error message names the file. */
static int report_damage(struct wb_linewalk *walk, const char *path, const struct wb_linereader *reader)
{
    char message[WB_ERROR_MESSAGE_MAX + 64];
    struct wb_ingest_error error = {.file = path, .line = wb_linereader_number(reader), .message = message,
                                    .fatal = true};

    walk->unfinished++;
    snprintf(message, sizeof message, "%s; what comes after is not read", wb_error_message());
    return report(walk, &error);
}

static void report_progress(const struct wb_linewalk *walk, const char *path, const struct wb_linereader *reader)
{
    struct wb_ingest_progress progress = {.file = path, .count = wb_linereader_number(reader)};

    if (!walk->sink->progress)
        return;
    wb_linereader_progress(reader, &progress.bytes_done, &progress.bytes_total);
    walk->sink->progress(walk->sink->context, &progress);
}

int wb_linewalk_file(struct wb_linewalk *walk, const char *path, wb_linewalk_take take, void *context)
{
    struct wb_linereader *reader = NULL;
    struct wb_slice line;
    int got = 1, err = wb_linereader_open(path, &reader);

    while (err == 0 && got != 0) {
        got = wb_linereader_next(reader, &line);
        if (got > 0)
            err = take(context, line);
        else if (got < 0)
            err = got;
        if (err == WB_E_PROTO || err == WB_E_LIMIT) {
            err = report_bad_line(walk, path, reader);
        } else if (got == WB_E_CORRUPT) {
            err = report_damage(walk, path, reader);
            got = 0;
        }
        if (err == 0 && wb_stop_requested())
            err = wb_fail(WB_E_STOPPED, "stopped by a signal; nothing was changed");
        if (err == 0)
            report_progress(walk, path, reader);
    }
    wb_linereader_close(reader);
    return err;
}
