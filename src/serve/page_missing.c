/* page_missing.c - "this page is not in the archive": the captures of its site next to the time, and the live web. */
#include "serve/page_missing.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "serve/capture.h"

/* The front page of the site: what there is most likely of it. */
static int find_front(struct wb_call *call, struct wb_slice url, struct wb_memento_target *front_out,
                      struct wb_store_timeline *timeline_out)
{
    struct wb_url parsed = WB_URL_INIT;
    int err = wb_url_parse(url, NULL, &parsed);

    *front_out = (struct wb_memento_target){0};
    if (err == 0)
        err = wb_memento_url(wb_slice(parsed.href.ptr, parsed.path_at), front_out);
    if (err == 0)
        err = wb_capture_timeline(call, front_out->id, timeline_out);
    wb_url_release(&parsed);
    return err;
}

static int put_address(const struct wb_page_missing *m, struct wb_slice url, int64_t time_ms, struct wb_buf *out)
{
    char digits[WB_CDX_TIME_MAX];

    wb_cdx_time(time_ms, digits);
    return m->door ? wb_replay_door_address(m->door, digits, url, out)
                   : wb_memento_address(WB_SLICE_EMPTY, url, time_ms, out);
}

static void add_capture(struct wb_htmlpen *h, const struct wb_page_missing *m, struct wb_slice url, int64_t time_ms)
{
    struct wb_buf address = WB_BUF_INIT;

    if (put_address(m, url, time_ms, &address) == 0)
        wb_htmlpen_put(h, "<li><a href=\"{}\"{}>{}</a></li>\n", wb_htmlpen_text(wb_buf_slice(&address)),
                       wb_htmlpen_markup(m->door ? WB_SLICE_EMPTY : WB_SLICE_LIT(" target=\"_top\"")),
                       wb_htmlpen_time(time_ms));
    wb_buf_release(&address);
}

/* The captures of the front page around the time: at most two before and two after it. */
static void add_front(struct wb_call *call, struct wb_htmlpen *h, const struct wb_page_missing *m)
{
    struct wb_memento_target front;
    struct wb_store_timeline timeline = {0};
    int64_t time_ms = m->target->has_time ? m->target->time_ms : INT64_MAX;

    if (find_front(call, wb_buf_slice(&m->target->url), &front, &timeline) == 0) {
        size_t at = wb_memento_find(&timeline, time_ms), from = at ? at - 1 : 0;
        wb_htmlpen_put(h, "<h2>The front page of this site</h2>\n<p>{}</p>\n<ul class=\"dates\">\n",
                       wb_htmlpen_text(wb_buf_slice(&front.url)));
        for (size_t i = from; i < timeline.time_count && i <= at + 2; i++)
            add_capture(h, m, wb_buf_slice(&front.url), timeline.times[i]);
        wb_htmlpen_raw(h, "</ul>\n");
    }
    wb_store_timeline_release(&timeline);
    wb_memento_target_release(&front);
}

void wb_page_missing_site(struct wb_htmlpen *h, struct wb_slice url, const char *words)
{
    struct wb_url parsed = WB_URL_INIT;

    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    if (wb_url_parse(url, NULL, &parsed) == 0)
        wb_htmlpen_put(h, "<a rel=\"nofollow\" target=\"_top\" href=\"/web/*/{}/*\">{}</a>\n",
                       wb_htmlpen_text(wb_slice(parsed.href.ptr, parsed.path_at)), wb_htmlpen_str(words));
    wb_url_release(&parsed);
}

int wb_page_missing_file(struct wb_call *call)
{
    static const struct {
        const char *dest, *type;
    } files[] = {{"style", "text/css"},
                 {"script", "text/javascript"},
                 {"worker", "text/javascript"},
                 {"sharedworker", "text/javascript"}};

    WB_CHECK(call->magic == WB_CALL_MAGIC);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!wb_capture_is_for(call, files[i].dest))
            continue;
        wb_http_reply_error(call->reply, 404, "there is no copy of this file");
        wb_buf_clear(&call->reply->fields);
        wb_buf_clear(&call->reply->body);
        int err = wb_http_reply_field(call->reply, "Content-Type", wb_slice_str(files[i].type));
        return err < 0 ? err : 1;
    }
    return 0;
}

/* Where to go on. In the frame, the bar above it has these links, and a page there may not lead out. */
static void add_ways(struct wb_htmlpen *h, const struct wb_page_missing *m)
{
    struct wb_htmlpen_value url = wb_htmlpen_text(wb_buf_slice(&m->target->url));

    if (m->door) {
        wb_htmlpen_put(h, "<p class=\"quiet\">The bar above has a link to <span>{}</span> on the live web.</p>\n", url);
        return;
    }
    wb_htmlpen_put(h,
                   "<p><a href=\"{}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">Look on the live "
                   "web</a></p>\n<p>",
                   url);
    wb_page_missing_site(h, wb_buf_slice(&m->target->url), "All captures of this site");
    wb_htmlpen_raw(h, "</p>\n<p><a href=\"/\" target=\"_top\">Search</a></p>\n");
}

int wb_page_missing(struct wb_call *call, const struct wb_page_missing *m)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC && (!m->door || call->request->also));
    struct wb_htmlpen h;
    struct wb_htmlpen_value url = wb_htmlpen_text(wb_buf_slice(&m->target->url));

    wb_htmlpen_init(&h, &call->reply->body);
    wb_http_reply_error(call->reply, 404, "there is no copy of this page");
    wb_buf_clear(&call->reply->fields);
    wb_buf_clear(&call->reply->body);
    h.err = wb_http_reply_field(call->reply, "Content-Type", WB_SLICE_LIT("text/html; charset=utf-8"));
    wb_htmlpen_put(&h,
                   "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n{}<meta charset=\"utf-8\">\n"
                   "<title>Not in the archive: {}</title>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"robots\" content=\"noindex\">\n"
                   "<link rel=\"stylesheet\" href=\"{}\">\n</head>\n<body class=\"missing\">\n<main>\n"
                   "<h1>Not in the archive</h1>\n<p class=\"address\">{}</p>\n",
                   wb_htmlpen_markup(m->front), url, wb_htmlpen_str(m->sheet), url);
    if (m->form)
        wb_htmlpen_raw(&h, "<p>What forms sent, and what was answered, is not stored.</p>\n");
    else if (m->target->has_time)
        wb_htmlpen_put(&h, "<p>There is no copy of this page, at {} or at any other time.</p>\n",
                       wb_htmlpen_time(m->target->time_ms));
    else
        wb_htmlpen_raw(&h, "<p>There is no copy of this page, of any time.</p>\n");
    add_front(call, &h, m);
    add_ways(&h, m);
    wb_htmlpen_raw(&h, "</main>\n</body>\n</html>\n");
    return h.err;
}
