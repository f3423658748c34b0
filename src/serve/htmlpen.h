/*
 * htmlpen.h - private to serve: web pages as HTML. Everything that comes from pages, URLs or queries is escaped here,
 * and only here.
 *
 *   wb_htmlpen_put(h, "<a href=\"/page?url={}\">{}</a>", wb_htmlpen_param(url), wb_htmlpen_text(title));
 *
 * Each {} of a template takes one value, and the type of the value says how it is escaped. Texts may stand between tags
 * and in attributes with double quotes; nothing here may stand inside <script> or <style>, which our pages do not
 * contain. Markup that was made elsewhere goes through wb_htmlpen_markup(), which only two callers use: snippets, which
 * the room query has escaped, and parts of pages made with this header.
 *
 * The first error is remembered, and nothing more is written; wb_page_end() reports it.
 */
#ifndef WB_SERVE_HTMLPEN_H
#define WB_SERVE_HTMLPEN_H

#include "serve/server.h"

#define WB_HTMLPEN_MAGIC 0x57424850u

struct wb_htmlpen {
    uint32_t magic; /* WB_HTMLPEN_MAGIC from wb_htmlpen_init() until wb_page_end(), if that is called */
    struct wb_buf *out;
    int err;
};

/* Nothing has to be released. */
static inline void wb_htmlpen_init(struct wb_htmlpen *h, struct wb_buf *out)
{
    *h = (struct wb_htmlpen){.magic = WB_HTMLPEN_MAGIC, .out = out};
}

enum wb_htmlpen_kind {
    WB_HTML_TEXT,   /* escaped */
    WB_HTML_PARAM,  /* percent-encoded: the value of a parameter in a URL */
    WB_HTML_MARKUP, /* as it is */
    WB_HTML_NUMBER, /* 12,345 */
    WB_HTML_PLAIN,  /* 12345, for attributes and URLs */
    WB_HTML_BYTES,  /* 1.2 MB */
    WB_HTML_TIME,   /* <time datetime="2026-01-02T03:04:05.678Z">2026-01-02 03:04:05 UTC</time> */
    WB_HTML_UTC,    /* 2026-01-02 03:04:05 UTC, where there can be no element */
    WB_HTML_DIGITS, /* 20260102030405 */
};

struct wb_htmlpen_value {
    enum wb_htmlpen_kind kind;
    struct wb_slice text;
    uint64_t number;
    int64_t time_ms;
};

static inline struct wb_htmlpen_value wb_htmlpen_text(struct wb_slice text)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_TEXT, .text = text};
}

static inline struct wb_htmlpen_value wb_htmlpen_str(const char *text)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_TEXT, .text = wb_slice_str(text)};
}

static inline struct wb_htmlpen_value wb_htmlpen_param(struct wb_slice text)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_PARAM, .text = text};
}

static inline struct wb_htmlpen_value wb_htmlpen_markup(struct wb_slice html)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_MARKUP, .text = html};
}

static inline struct wb_htmlpen_value wb_htmlpen_number(uint64_t number)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_NUMBER, .number = number};
}

static inline struct wb_htmlpen_value wb_htmlpen_plain(uint64_t number)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_PLAIN, .number = number};
}

static inline struct wb_htmlpen_value wb_htmlpen_bytes(uint64_t bytes)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_BYTES, .number = bytes};
}

static inline struct wb_htmlpen_value wb_htmlpen_time(int64_t time_ms)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_TIME, .time_ms = time_ms};
}

static inline struct wb_htmlpen_value wb_htmlpen_utc(int64_t time_ms)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_UTC, .time_ms = time_ms};
}

static inline struct wb_htmlpen_value wb_htmlpen_digits(int64_t time_ms)
{
    return (struct wb_htmlpen_value){.kind = WB_HTML_DIGITS, .time_ms = time_ms};
}

/* Fills a template. It must have as many {} as there are values. */
#define wb_htmlpen_put(h, template, ...)                                                                               \
    wb_htmlpen_fill(h, template, (const struct wb_htmlpen_value[]){__VA_ARGS__},                                       \
                    sizeof((const struct wb_htmlpen_value[]){__VA_ARGS__}) / sizeof(struct wb_htmlpen_value))
void wb_htmlpen_fill(struct wb_htmlpen *h, const char *template, const struct wb_htmlpen_value *values, size_t count);

/* Markup without values. */
void wb_htmlpen_raw(struct wb_htmlpen *h, const char *markup);

/* A row of facts: <dt>name</dt><dd>value</dd>. The value is a template for one value. */
void wb_htmlpen_fact(struct wb_htmlpen *h, const char *name, struct wb_htmlpen_value value);

/* A URL with a link to its page view, if it is one of the web; otherwise only the text. */
void wb_htmlpen_page_link(struct wb_htmlpen *h, struct wb_slice url, struct wb_slice text);

/* Whether a URL may be in an href: its scheme is http or https. */
bool wb_htmlpen_is_web_url(struct wb_slice url);

/* ---- whole pages (page_frame.c) ---------------------------------------------------------------------------------- */

enum wb_page_place { WB_PAGE_SEARCH, WB_PAGE_VIEW, WB_PAGE_SITE, WB_PAGE_DASH };

struct wb_page_frame {
    struct wb_slice title;    /* text */
    struct wb_slice query;    /* in the search box */
    enum wb_page_place place; /* which of our pages this is */
    const char *script;       /* its file in web/; NULL: none but that of all pages */
    bool charts;              /* the script draws charts */
};

/* Begins a page: fields of the reply, head, the bar with the search box, and <main>. */
void wb_page_begin(struct wb_call *call, struct wb_htmlpen *h, const struct wb_page_frame *frame);

/* Ends it. An error so far makes the reply an error instead. */
void wb_page_end(struct wb_call *call, struct wb_htmlpen *h);

/* Makes the reply a page that shows an error to people. */
void wb_page_error(struct wb_http_reply *reply, unsigned status, const char *message);

/*
 * Markup that names a file of web/. The template has a place for its name and one for the hash of its content, which is
 * part of its address, so that a new program never meets old styles or scripts.
 */
void wb_page_asset(struct wb_htmlpen *h, const char *template, const char *name);

/* Adds the fields that all our pages have, above all the Content-Security-Policy. */
int wb_page_fields(struct wb_http_reply *reply);

#endif
