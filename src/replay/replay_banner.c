/*
 * replay_banner.c - what goes around a replayed page: the bar that says what it is, and the policy that keeps it from
 * doing harm.
 *
 * The bar is plain HTML with inline styles: it needs no script, and loads nothing. Its text is ASCII, so that it fits
 * pages in every encoding.
 */
#include "base/error.h"
#include "replay/replay.h"

/* Each element starts from the browser's defaults, whatever the page's style sheets say. */
#define RESET "all:initial;font:13px/1.4 system-ui,sans-serif;color:#eee;"
#define SEPARATOR " &#183; "
#define LINK_STYLE RESET "color:#9cf;text-decoration:underline;cursor:pointer;"

static int put_escaped(struct wb_slice text, struct wb_buf *out)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];
        if (c < ' ' || c >= 0x7f)
            err = wb_buf_append_char(out, '?'); /* URLs have no such characters */
        else if (strchr("&<>\"'", c))
            err = wb_buf_printf(out, "&#%u;", c);
        else
            err = wb_buf_append_char(out, (char)c);
    }
    return err;
}

/* Appends "2026-01-02 03:04:05 UTC", or the digits if they are not 14. */
static int put_date(struct wb_slice time, struct wb_buf *out)
{
    const char *d = time.ptr;

    if (time.len != 14)
        return put_escaped(time, out);
    char text[24] = {d[0], d[1], d[2],  d[3],  '-', d[4],  d[5],  '-', d[6], d[7], ' ', d[8],
                     d[9], ':',  d[10], d[11], ':', d[12], d[13], ' ', 'U',  'T',  'C'};
    return put_escaped(wb_slice(text, 23), out);
}

/* Appends a link to a place in the archive. */
static int put_link(struct wb_slice prefix, struct wb_slice url, const char *words, struct wb_buf *out)
{
    int err = wb_buf_append_str(out, SEPARATOR "<a rel=\"nofollow\" style=\"" LINK_STYLE "\" href=\"");

    if (err == 0)
        err = put_escaped(prefix, out);
    if (err == 0)
        err = put_escaped(url, out);
    return err < 0 ? err : wb_buf_printf(out, "\">%s</a>", words);
}

int wb_replay_banner(const struct wb_replay_banner *banner, struct wb_buf *html_out)
{
    size_t before = html_out->len;
    int err = 0;

    if (banner->in_frame)
        return 0;
    err = wb_buf_append_str(html_out,
                            "<div id=\"webbase-banner\" style=\"" RESET "display:block;position:sticky;top:0;left:0;"
                            "z-index:2147483647;background:#222;padding:2px 10px;text-align:left;"
                            "overflow-wrap:anywhere\">"
                            "<details open=\"open\" style=\"" RESET "display:block\">"
                            "<summary style=\"" RESET "display:list-item;list-style:revert;cursor:pointer\">"
                            "Archived page</summary><div style=\"" RESET "display:block\">captured on ");
    if (err == 0)
        err = put_date(banner->time, html_out);
    if (err == 0)
        err = wb_buf_append_str(html_out, SEPARATOR);
    if (err == 0)
        err = put_escaped(banner->url, html_out);
    if (err == 0)
        err = put_link(banner->prefix, banner->url, "newest", html_out);
    if (err == 0)
        err = put_link(banner->versions, banner->url, "all versions", html_out);
    if (err == 0)
        err = wb_buf_append_str(html_out, "</div></details></div>");
    if (err < 0)
        html_out->len = before;
    return err;
}

/*
 * docs/design/0032-replay.md explains each directive. The sandbox never has allow-same-origin: a page would then be
 * part of our own site.
 */
#define SANDBOX "sandbox allow-popups allow-top-navigation-by-user-activation"
#define LOADS "default-src 'self' data: blob:; style-src 'self' 'unsafe-inline' data: blob:; "
#define NEVER "connect-src 'none'; base-uri 'none'; form-action 'none'"

const char *wb_replay_policy(bool scripts)
{
    return scripts ? SANDBOX " allow-scripts; " LOADS
                             "script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; " NEVER
                   : SANDBOX "; " LOADS "script-src 'none'; " NEVER;
}
