/*
 * plaintext.c - the module for plain text, and lists of URLs.
 *
 * Consecutive lines are one block; an empty line ends it. Plain text has no markup, and therefore no
 * title and no links. Only if it was fetched as a sitemap are its lines links (sitemaps.org, "Text
 * file").
 */
#include "extract/xmlpage.h"

static bool accepts_text(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("text/plain")) || wb_slice_equal(type, WB_SLICE_LIT("text/markdown")) ||
           wb_slice_equal(type, WB_SLICE_LIT("text/csv")) || wb_slice_equal(type, WB_SLICE_LIT("text/x-rst")) ||
           wb_slice_equal(type, WB_SLICE_LIT("text/tab-separated-values"));
}

static bool is_blank(struct wb_slice line)
{
    for (size_t i = 0; i < line.len; i++)
        if (!strchr(" \t\f\v", line.ptr[i]) || line.ptr[i] == '\0')
            return false;
    return true;
}

static int run_text(struct wb_extractor *x)
{
    struct wb_slice rest = x->utf8, line;

    if (!(x->input->wants & WB_EXTRACT_TEXT))
        return 0;
    int err = wb_sink_room(x, x->utf8.len);
    if (err < 0)
        return err;
    while (wb_slice_next_text_line(&rest, &line)) {
        if (is_blank(line)) {
            wb_sink_break(x);
        } else {
            wb_sink_text(x, line);
            wb_sink_text(x, WB_SLICE_LIT(" "));
        }
    }
    return 0;
}

const struct wb_module wb_module_text = {
    .name = "text",
    .charset_kind = WB_CHARSET_TEXT,
    .accepts = accepts_text,
    .run = run_text,
};

/* ---- lists of URLs ----------------------------------------------------------------------------- */

static bool is_http_line(struct wb_slice line)
{
    if (!wb_slice_starts_nocase(line, WB_SLICE_LIT("http://")) &&
        !wb_slice_starts_nocase(line, WB_SLICE_LIT("https://")))
        return false;
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] == ' ' || line.ptr[i] == '\t')
            return false;
    return line.len <= WB_URL_MAX_BYTES;
}

bool wb_plaintext_is_urls(struct wb_slice utf8)
{
    struct wb_slice line;
    size_t urls = 0;

    while (wb_slice_next_text_line(&utf8, &line)) {
        line = wb_slice_trim(line);
        if (line.len == 0)
            continue;
        if (!is_http_line(line))
            return false;
        urls++;
    }
    return urls > 0;
}

int wb_plaintext_urls(struct wb_extractor *x)
{
    struct wb_slice rest = x->utf8, line;
    int err = 0;

    while (err == 0 && wb_slice_next_text_line(&rest, &line)) {
        line = wb_slice_trim(line);
        struct wb_extract_link link = {WB_EXTRACT_LINK_SITEMAP, 0, line, WB_SLICE_EMPTY, WB_SLICE_EMPTY,
                                       WB_SLICE_EMPTY,          0};
        if (is_http_line(line))
            err = wb_sink_link(x, &link, NULL);
    }
    x->out->sitemap = true;
    return err;
}
