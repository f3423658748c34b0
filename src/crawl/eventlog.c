/*
 * eventlog.c - lines for the log of fetches. They wait in memory until what they speak of is
 * durable, then go to the parent through a pipe: '{' begins an event, '!' a warning in words.
 */
#include "base/json.h"
#include "base/date.h"
#include "crawl/worker.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINES_KEPT = 1 << 20 };

int wb_event_line(struct wb_buf *lines, const struct wb_fetch_event *event)
{
    char result[64], time[WB_DATE_TEXT_MAX];
    struct wb_json j;

    snprintf(result, sizeof result, "%s%s", event->error ? "error:" : "",
             event->error ? wb_crawl_error_word(event->error) : event->result);
    wb_date_format(event->time_ms, time);
    wb_json_init(&j, lines);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "fetch");
    wb_json_field_slice(&j, "url", event->url);
    wb_json_field_u64(&j, "status", event->status);
    wb_json_field_u64(&j, "bytes", event->bytes);
    wb_json_field_u64(&j, "ms", event->ms);
    wb_json_field_str(&j, "result", result);
    wb_json_field_str(&j, "time", time);
    if (event->message)
        wb_json_field_str(&j, "reason", event->message);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

void wb_event_fetch(struct wb_worker *w, const struct wb_fetch_event *event)
{
    if (event->error)
        wb_tally_add(&w->tally->errors[event->error], 1);
    if (!w->plan->wants_lines)
        return;
    int err = wb_event_line(&w->lines, event);
    if (err < 0)
        wb_worker_fail(w, err);
    wb_worker_dirty(w);
}

void wb_event_skip(struct wb_worker *w, struct wb_slice url, const char *result)
{
    struct wb_fetch_event event = {.url = url, .result = result, .time_ms = wb_worker_now(w)};

    wb_tally_add(strcmp(result, "robots") == 0 ? &w->tally->robots : &w->tally->skipped, 1);
    wb_event_fetch(w, &event);
}

void wb_event_warn(struct wb_worker *w, const char *format, ...)
{
    char text[WB_ERROR_MESSAGE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (wb_buf_printf(&w->lines, "!%s\n", text) == 0)
        wb_worker_dirty(w);
}

void wb_event_flush(struct wb_worker *w)
{
    size_t done = 0;

    while (done < w->lines.len) {
        ssize_t n = write(w->events_fd, w->lines.ptr + done, w->lines.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* the parent is gone; the next tick sees it */
        done += (size_t)n;
    }
    wb_buf_clear(&w->lines);
    if (w->lines.cap > LINES_KEPT)
        wb_buf_release(&w->lines);
}
