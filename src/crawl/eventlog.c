/*
 * eventlog.c - lines for the log of fetches, and warnings.
 *
 * A line goes to the spool at once, together with the page that it speaks of: whatever recovery brings back has its line. When that is
 * durable the line goes to the file of lines (lines.h), from which the parent passes it on. Warnings go to the parent through a pipe.
 */
#include "base/json.h"
#include "base/date.h"
#include "crawl/lines.h"
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

/* The value of a field of a line that wb_event_line() wrote; empty where it has none, or one with escapes. */
static struct wb_slice text_field(struct wb_slice line, const char *name)
{
    char start[32];
    int len = snprintf(start, sizeof start, "\"%s\":\"", name);
    const char *at = memmem(line.ptr, line.len, start, (size_t)len), *end = line.ptr + line.len;

    if (!at)
        return WB_SLICE_EMPTY;
    at += len;
    const char *quote = memchr(at, '"', (size_t)(end - at));
    return quote && !memchr(at, '\\', (size_t)(quote - at)) ? wb_slice(at, (size_t)(quote - at)) : WB_SLICE_EMPTY;
}

/* 1: the line says that a page was stored which is barred by now; 0: it does not. */
static int is_untrue(struct wb_worker *w, struct wb_slice line, struct wb_url *url, struct wb_buf *key)
{
    struct wb_slice result = text_field(line, "result"), href = text_field(line, "url");

    if (!href.len || !(wb_slice_equal(result, WB_SLICE_LIT("stored")) || wb_slice_equal(result, WB_SLICE_LIT("duplicate")) ||
                       wb_slice_equal(result, WB_SLICE_LIT("truncated"))))
        return 0;
    int err = wb_url_parse(href, NULL, url);
    if (err == 0)
        err = wb_url_key(url, key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    return wb_store_barred(w->store, wb_pageid_of_key(wb_buf_slice(key)), wb_key_site(wb_buf_slice(key)));
}

int wb_event_correct(struct wb_worker *w)
{
    struct wb_slice rest = wb_buf_slice(&w->lines);
    struct wb_buf lines = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = WB_URL_INIT;
    int err = 0;

    for (const char *end; err == 0 && rest.len && (end = memchr(rest.ptr, '\n', rest.len));) {
        struct wb_slice line = wb_slice(rest.ptr, (size_t)(end + 1 - rest.ptr)), result = text_field(line, "result");
        int untrue = is_untrue(w, line, &url, &key);
        err = untrue < 0 ? untrue : wb_buf_append(&lines, line.ptr, untrue ? (size_t)(result.ptr - line.ptr) : line.len);
        if (err == 0 && untrue)
            err = wb_buf_append_str(&lines, "expunged");
        if (err == 0 && untrue)
            err = wb_buf_append(&lines, result.ptr + result.len, (size_t)(end + 1 - (result.ptr + result.len)));
        rest = wb_slice(line.ptr + line.len, rest.len - line.len);
    }
    if (err == 0) {
        wb_buf_release(&w->lines);
        w->lines = wb_buf_take(&lines);
    }
    wb_buf_release(&lines);
    wb_buf_release(&key);
    wb_url_release(&url);
    return err;
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
