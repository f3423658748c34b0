/*
 * eventlog.c - a worker's lines for the log of fetches, and its warnings.
 *
 * A line goes to the spool at once, in one record with the page that it is about: so every page that recovery brings
 * back has its line. After the commit the line goes to the file of lines (lines.h), from which the parent passes it on
 * (teller.c). Warnings go to the parent through a pipe. Nothing here waits for a reader.
 */
#include "base/check.h"
#include "base/json.h"
#include "base/date.h"
#include "crawl/lines.h"
#include "crawl/worker.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINES_KEPT_BYTES = 1 << 20 }; /* memory that is kept from commit to commit */

enum { RESULT_BYTES = 64 };

static void write_result(const struct wb_eventlog_entry *entry, char result_out[RESULT_BYTES])
{
    WB_CHECK(entry->error || entry->result);
    snprintf(result_out, RESULT_BYTES, "%s%s", entry->error ? "error:" : "",
             entry->error ? wb_crawl_error_word(entry->error) : entry->result);
}

int wb_eventlog_format(struct wb_buf *lines, const struct wb_eventlog_entry *entry)
{
    char result[RESULT_BYTES], time[WB_DATE_TEXT_MAX];
    struct wb_json j;

    write_result(entry, result);
    wb_date_format(entry->time_ms, time);
    wb_json_init(&j, lines);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "fetch");
    wb_json_field_slice(&j, "url", entry->url);
    wb_json_field_u64(&j, "status", entry->status);
    wb_json_field_u64(&j, "bytes", entry->bytes);
    wb_json_field_u64(&j, "ms", entry->ms);
    wb_json_field_str(&j, "result", result);
    wb_json_field_str(&j, "time", time);
    if (entry->message)
        wb_json_field_str(&j, "reason", entry->message);
    wb_json_object_end(&j);
    return wb_json_line(&j);
}

/* For people who watch: requests and what came of them, not what nobody asked for. */
static void tell_watchers(struct wb_worker *w, const struct wb_eventlog_entry *entry)
{
    char result[RESULT_BYTES];

    if (!entry->error && entry->status == 0)
        return;
    write_result(entry, result);
    uint64_t queued = entry->site ? entry->site->queue.count + entry->site->again.count : WB_RECENT_UNKNOWN;
    struct wb_recent_fetch fetch = {.time_ms = entry->time_ms,
                                    .took_ms = entry->ms,
                                    .queued = queued < WB_RECENT_UNKNOWN ? (uint32_t)queued : WB_RECENT_UNKNOWN,
                                    .status = entry->status,
                                    .bytes = entry->bytes,
                                    .url = entry->url,
                                    .result = wb_slice_str(result),
                                    .reason = wb_slice_str(entry->message ? entry->message : "")};
    wb_recent_add(&w->recent, &fetch);
}

int wb_eventlog_page(struct wb_worker *w, const struct wb_eventlog_entry *entry, const struct wb_page *page)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && (!page || page->digested));
    struct wb_buf *lines = &w->uncommitted.lines;
    size_t before = lines->len;
    int err = 0;

    tell_watchers(w, entry);
    if (entry->error)
        wb_tally_add(&w->tally->errors[entry->error], 1);
    if (!w->plan->lines && !page)
        return 0;
    if (w->plan->lines)
        err = wb_eventlog_format(lines, entry);
    if (err == 0)
        err = wb_spool_add(w->repo.spool, page, wb_slice(lines->ptr + before, lines->len - before));
    if (err < 0)
        lines->len = before;
    wb_worker_dirty(w);
    return err;
}

void wb_eventlog_fetch(struct wb_worker *w, const struct wb_eventlog_entry *entry)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    int err = wb_eventlog_page(w, entry, NULL);

    if (err < 0)
        wb_worker_fail(w, err);
}

void wb_eventlog_module(struct wb_worker *w, struct wb_slice url, const char *module, const char *error)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && *error);
    struct wb_buf *lines = &w->uncommitted.lines;
    size_t before = lines->len;
    struct wb_json j;

    wb_tally_add(&w->tally->module_errors, 1);
    if (!w->plan->lines)
        return;
    wb_json_init(&j, lines);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "module");
    wb_json_field_slice(&j, "url", url);
    wb_json_field_str(&j, "module", module);
    wb_json_field_str(&j, "error", error);
    wb_json_object_end(&j);
    int err = wb_json_line(&j);
    if (err == 0)
        err = wb_spool_add(w->repo.spool, NULL, wb_slice(lines->ptr + before, lines->len - before));
    if (err < 0) {
        lines->len = before;
        wb_worker_fail(w, err);
    }
    wb_worker_dirty(w);
}

void wb_eventlog_skip(struct wb_worker *w, struct wb_slice url, const char *result)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    struct wb_eventlog_entry entry = {.url = url, .result = result, .time_ms = wb_clock_now_ms()};

    wb_tally_add(strcmp(result, "robots") == 0 ? &w->tally->robots : &w->tally->skipped, 1);
    wb_eventlog_fetch(w, &entry);
}

/* The value of a text field of a line that wb_eventlog_format() wrote; empty if it is missing or has escapes. */
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

static bool says_stored(struct wb_slice result)
{
    return wb_slice_equal(result, WB_SLICE_LIT("stored")) || wb_slice_equal(result, WB_SLICE_LIT("duplicate")) ||
           wb_slice_equal(result, WB_SLICE_LIT("truncated"));
}

/* Whether the line says that a page was stored that is barred by now: 1, 0 or an error. */
static int is_untrue(struct wb_worker *w, struct wb_slice line)
{
    struct wb_slice href = text_field(line, "url");
    struct wb_pageid id;

    if (!href.len || !says_stored(text_field(line, "result")))
        return 0;
    int err = wb_worker_parse(w, href, &id);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    return wb_store_barred(w->repo.store, id, wb_key_site(wb_buf_slice(&w->scratch.key)));
}

int wb_eventlog_correct(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    struct wb_slice rest = wb_buf_slice(&w->uncommitted.lines);
    struct wb_buf lines = WB_BUF_INIT;
    int err = 0;

    for (const char *end; err == 0 && rest.len && (end = memchr(rest.ptr, '\n', rest.len));) {
        struct wb_slice line = wb_slice(rest.ptr, (size_t)(end + 1 - rest.ptr)), result = text_field(line, "result");
        int untrue = is_untrue(w, line);
        err = untrue < 0 ? untrue
                         : wb_buf_append(&lines, line.ptr, untrue ? (size_t)(result.ptr - line.ptr) : line.len);
        if (err == 0 && untrue)
            err = wb_buf_append_str(&lines, "expunged");
        if (err == 0 && untrue)
            err = wb_buf_append(&lines, result.ptr + result.len, (size_t)(end + 1 - (result.ptr + result.len)));
        rest = wb_slice(line.ptr + line.len, rest.len - line.len);
    }
    if (err == 0) {
        wb_buf_release(&w->uncommitted.lines);
        w->uncommitted.lines = wb_buf_take(&lines);
    }
    wb_buf_release(&lines);
    return err;
}

int wb_eventlog_release(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && (w->plan->lines || w->uncommitted.lines.len == 0));
    struct wb_buf *lines = &w->uncommitted.lines;
    int err = 0;

    if (w->plan->lines)
        err = wb_lines_append(w->plan->lines, wb_buf_slice(lines), wb_spool_round(w->repo.spool));
    if (err < 0)
        return err;
    wb_buf_clear(lines);
    if (lines->cap > LINES_KEPT_BYTES)
        wb_buf_release(lines);
    return 0;
}

void wb_eventlog_warn(struct wb_worker *w, const char *format, ...)
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
    /* The pipe does not block, and the text is shorter than PIPE_BUF: it is written as a whole, or not at all if the
       parent is gone or too far behind. */
    ssize_t n;
    do
        n = write(w->warnings_fd, text, (size_t)len + 1);
    while (n < 0 && errno == EINTR);
}
