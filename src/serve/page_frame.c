/* page_frame.c - what all pages for people have in common: fields, head, the bar at the top, errors. */
#include "base/check.h"
#include "base/error.h"
#include "serve/assets.h"
#include "serve/htmlpen.h"

/* Nothing from elsewhere, no script in the page itself, no frame of others around it, and no base that moves links. */
static const char policy[] = "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; "
                             "frame-ancestors 'none'";

int wb_page_fields(struct wb_http_reply *reply)
{
    static const char *const fields[][2] = {
        {"Content-Type", "text/html; charset=utf-8"},
        {"Content-Security-Policy", policy},
        {"Referrer-Policy", "same-origin"},
        {"Cache-Control", "private, no-cache"},
    };
    int err = 0;

    WB_CHECK(reply->body.len == 0);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && err == 0; i++)
        err = wb_http_reply_field(reply, fields[i][0], wb_slice_str(fields[i][1]));
    return err;
}

void wb_page_asset(struct wb_htmlpen *h, const char *template, const char *name)
{
    const struct wb_asset *asset = wb_asset_find(wb_slice_str(name));
    struct wb_slice hash = wb_slice_str(asset->etag); /* in quotes */

    wb_htmlpen_put(h, template, wb_htmlpen_str(name), wb_htmlpen_param(wb_slice(hash.ptr + 1, hash.len - 2)));
}

static void add_head(struct wb_htmlpen *h, const struct wb_page_frame *frame)
{
    static const char sheet[] = "<link rel=\"stylesheet\" href=\"/assets/{}?{}\">\n";
    static const char script[] = "<script src=\"/assets/{}?{}\" defer></script>\n";

    wb_htmlpen_raw(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    wb_htmlpen_put(h, "<title>{}{}WebBase</title>\n", wb_htmlpen_text(frame->title),
                   wb_htmlpen_str(frame->title.len ? " \xC2\xB7 " : ""));
    wb_htmlpen_raw(h, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta name=\"color-scheme\" content=\"light dark\">\n"
                      "<meta name=\"robots\" content=\"noindex\">\n");
    if (frame->charts)
        wb_page_asset(h, sheet, "uPlot.min.css");
    wb_page_asset(h, sheet, "webbase.css");
    wb_page_asset(h, "<link rel=\"icon\" href=\"/assets/{}?{}\" type=\"image/svg+xml\">\n", "icon.svg");
    wb_htmlpen_raw(h, "<link rel=\"search\" type=\"application/opensearchdescription+xml\" title=\"WebBase\" "
                      "href=\"/opensearch.xml\">\n");
    wb_page_asset(h, script, "times.js");
    wb_page_asset(h, script, "webbase.js");
    wb_page_asset(h, script, "complete.js");
    if (frame->charts)
        wb_page_asset(h, script, "uPlot.iife.min.js");
    if (frame->script)
        wb_page_asset(h, script, frame->script);
    wb_htmlpen_raw(h, "</head>\n");
}

static void add_bar(struct wb_htmlpen *h, const struct wb_page_frame *frame, bool front)
{
    wb_htmlpen_put(h, "<body{}>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header class=\"bar\">\n",
                   wb_htmlpen_markup(front ? WB_SLICE_LIT(" class=\"front\"") : WB_SLICE_EMPTY));
    wb_page_asset(h,
                  "<a class=\"brand\" href=\"/\"><img src=\"/assets/{}?{}\" alt=\"\" width=\"22\" height=\"22\">"
                  "<span>WebBase</span></a>\n",
                  "icon.svg");
    wb_htmlpen_put(h,
                   "<form class=\"search\" role=\"search\" action=\"/\" method=\"get\">\n"
                   "<label class=\"hidden\" for=\"q\">Search the collection</label>\n"
                   "<input id=\"q\" name=\"q\" type=\"search\" value=\"{}\" placeholder=\"Search\" "
                   "autocomplete=\"off\" autocapitalize=\"none\" spellcheck=\"false\" enterkeyhint=\"search\">\n"
                   "<button>Search</button>\n</form>\n",
                   wb_htmlpen_text(frame->query));
    wb_htmlpen_put(
        h, "<nav aria-label=\"Pages\"><a href=\"/\"{}>Search</a> <a href=\"/dash\"{}>Dashboard</a></nav>\n",
        wb_htmlpen_markup(frame->place == WB_PAGE_SEARCH ? WB_SLICE_LIT(" aria-current=\"page\"") : WB_SLICE_EMPTY),
        wb_htmlpen_markup(frame->place == WB_PAGE_DASH ? WB_SLICE_LIT(" aria-current=\"page\"") : WB_SLICE_EMPTY));
    wb_htmlpen_raw(h, "</header>\n<main id=\"main\" tabindex=\"-1\">\n");
}

static void begin(struct wb_http_reply *reply, struct wb_htmlpen *h, const struct wb_page_frame *frame)
{
    wb_htmlpen_init(h, &reply->body);
    h->err = wb_page_fields(reply);
    add_head(h, frame);
    add_bar(h, frame, frame->place == WB_PAGE_SEARCH && frame->query.len == 0 && frame->title.len == 0);
}

void wb_page_begin(struct wb_call *call, struct wb_htmlpen *h, const struct wb_page_frame *frame)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->body == WB_CALL_NOTHING);
    WB_CHECK(call->reply->body.len == 0);
    call->body = WB_CALL_PAGE;
    begin(call->reply, h, frame);
}

static void end(struct wb_htmlpen *h)
{
    wb_htmlpen_raw(h,
                   "</main>\n<footer class=\"foot\">WebBase \xC2\xB7 <a href=\"/api/openapi.json\">API</a></footer>\n"
                   "</body>\n</html>\n");
}

void wb_page_end(struct wb_call *call, struct wb_htmlpen *h)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    WB_CHECK(call->body == WB_CALL_PAGE);
    WB_CHECK(h->magic == WB_HTMLPEN_MAGIC);
    WB_CHECK(h->out == &call->reply->body);
    call->body = WB_CALL_ENDED;
    end(h);
    h->magic = 0; /* nothing comes after it */
    if (h->err < 0)
        wb_call_fail(call, h->err);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const char *title_of(unsigned status)
{
    switch (status) {
    case 400:
        return "This cannot be answered";
    case 401:
        return "A token is needed";
    case 403:
        return "Not allowed";
    case 404:
        return "Not found";
    case 503:
        return "Not available right now";
    default:
        return status < 500 ? "This cannot be done" : "Something failed";
    }
}

void wb_page_error(struct wb_http_reply *reply, unsigned status, const char *message)
{
    WB_CHECK(status >= 400);
    struct wb_page_frame frame = {.title = wb_slice_str(title_of(status)), .place = WB_PAGE_VIEW};
    struct wb_htmlpen h;

    /* The JSON stays if there is no memory for the page. It also clears whatever the reply was. */
    wb_http_reply_error(reply, status, "%s", message);
    struct wb_buf body = wb_buf_take(&reply->body), fields = wb_buf_take(&reply->fields);
    begin(reply, &h, &frame);
    wb_htmlpen_put(&h, "<h1>{}</h1>\n<p class=\"problem\">{}</p>\n<p class=\"quiet\">Status {}.</p>\n",
                   wb_htmlpen_text(frame.title), wb_htmlpen_str(message), wb_htmlpen_plain(status));
    end(&h);
    if (h.err < 0) {
        wb_buf_release(&reply->body);
        wb_buf_release(&reply->fields);
        reply->body = wb_buf_take(&body);
        reply->fields = wb_buf_take(&fields);
    }
    wb_buf_release(&body);
    wb_buf_release(&fields);
}
