/*
 * eventlog.c - lines for the log of fetches, and warnings.
 *
 * A line goes to the spool at once, together with the page that it speaks of: whatever recovery brings back has its line. When that is
 * durable the line goes to the file of lines (lines.h), from which the parent passes it on. Warnings go to the parent through a pipe.
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

int wb_event_page(struct wb_worker *w, const struct wb_fetch_event *event, const struct wb_page *page)
{
    size_t before = w->lines.len;
    int err = 0;

    if (event->error)
        wb_tally_add(&w->tally->errors[event->error], 1);
    if (!w->plan->lines && !page)
        return 0;
    if (w->plan->lines)
        err = wb_event_line(&w->lines, event);
    if (err == 0)
        err = wb_spool_add(w->spool, page, wb_slice(w->lines.ptr + before, w->lines.len - before));
    if (err < 0)
        w->lines.len = before;
    wb_worker_dirty(w);
    return err;
}

void wb_event_fetch(struct wb_worker *w, const struct wb_fetch_event *event)
{
    int err = wb_event_page(w, event, NULL);

    if (err < 0)
        wb_worker_fail(w, err);
}

void wb_event_skip(struct wb_worker *w, struct wb_slice url, const char *result)
{
    struct wb_fetch_event event = {.url = url, .result = result, .time_ms = wb_worker_now(w)};

    wb_tally_add(strcmp(result, "robots") == 0 ? &w->tally->robots : &w->tally->skipped, 1);
    wb_event_fetch(w, &event);
}

int wb_event_release(struct wb_worker *w)
{
    int err = w->plan->lines ? wb_lines_append(w->plan->lines, wb_buf_slice(&w->lines), wb_spool_round(w->spool)) : 0;

    if (err < 0)
        return err;
    wb_buf_clear(&w->lines);
    if (w->lines.cap > LINES_KEPT)
        wb_buf_release(&w->lines);
    return 0;
}

void wb_event_warn(struct wb_worker *w, const char *format, ...)
{
    char text[WB_ERROR_MESSAGE_MAX + 1];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, WB_ERROR_MESSAGE_MAX, format, args);
    va_end(args);
    if (len < 0)
        return;
    if (len >= WB_ERROR_MESSAGE_MAX)
        len = WB_ERROR_MESSAGE_MAX - 1;
    for (int i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ')
            text[i] = ' ';
    text[len] = '\n';
    /* It does not block, and is shorter than PIPE_BUF: it goes whole, or not at all where the parent is gone or hopelessly behind. */
    ssize_t n;
    do
        n = write(w->events_fd, text, (size_t)len + 1);
    while (n < 0 && errno == EINTR);
}
