/*
 * replay_banner.c - what goes around a replayed page: the bar that says what it is, and the policy that keeps it from
 * doing harm.
 *
 *   <div>                              in the page: one element, without a name
 *     <template shadowrootmode=...>    the browser makes a tree of its own of it, without a script
 *       <style> :host{...!important}   of two important styles, the one in the inner tree wins
 *       <details> ...
 *
 * So the styles of a page reach neither the bar's content nor, with anything that matters, its element. In XML there
 * are no such trees: there each element has an important style of its own. The text is ASCII, so that it fits pages in
 * every encoding, and nothing is loaded.
 */
#include "base/error.h"
#include "replay/replay.h"

/* Of a longer URL, only the beginning is shown; one that is much longer is not linked to either. */
enum { URL_SHOWN_MAX = 500, URL_LINKED_MAX = 8192 };

#define TEXT_STYLE "all:initial!important;font:13px/1.4 system-ui,sans-serif!important;color:#eee!important;"
#define BAR_STYLE                                                                                                      \
    TEXT_STYLE "direction:ltr!important;unicode-bidi:isolate!important;display:block!important;"                       \
               "position:sticky!important;top:0!important;left:0!important;z-index:2147483647!important;"              \
               "background:#222!important;border-bottom:1px solid #666!important;padding:2px 10px!important;"          \
               "text-align:left!important;overflow-wrap:anywhere!important;"
#define SEPARATOR " &#183; "

/* The parts of the bar around its texts, and the attributes of its links. */
struct banner_form {
    const char *front, *middle, *link, *back;
};

static const struct banner_form html_form = {"<div><template shadowrootmode=\"closed\"><style>:host{" BAR_STYLE
                                             "}a{color:#9cf}summary{cursor:pointer}</style>"
                                             "<details open=\"open\"><summary>",
                                             "</summary><div>", "", "</div></details></template></div>"};

static const struct banner_form xml_form = {
    "<div style=\"" BAR_STYLE "\"><details open=\"open\" style=\"" TEXT_STYLE "display:block!important\">"
    "<summary style=\"" TEXT_STYLE
    "display:list-item!important;list-style:revert!important;cursor:pointer!important\">",
    "</summary><div style=\"" TEXT_STYLE "display:block!important\">",
    " style=\"" TEXT_STYLE "color:#9cf!important;text-decoration:underline!important;cursor:pointer!important\"",
    "</div></details></div>"};

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
static int put_link(const struct banner_form *form, struct wb_slice prefix, struct wb_slice url, const char *words,
                    struct wb_buf *out)
{
    int err = wb_buf_printf(out, SEPARATOR "<a rel=\"nofollow\"%s href=\"", form->link);

    if (err == 0)
        err = put_escaped(prefix, out);
    if (err == 0)
        err = put_escaped(url, out);
    return err < 0 ? err : wb_buf_printf(out, "\">%s</a>", words);
}

static int put_url(struct wb_slice url, struct wb_buf *out)
{
    bool whole = url.len <= URL_SHOWN_MAX;
    int err = put_escaped(wb_slice(url.ptr, whole ? url.len : URL_SHOWN_MAX), out);

    return err < 0 || whole ? err : wb_buf_append_str(out, "...");
}

int wb_replay_banner(const struct wb_replay_banner *banner, struct wb_buf *html_out)
{
    const struct banner_form *form = banner->xml ? &xml_form : &html_form;
    bool linked = banner->url.len <= URL_LINKED_MAX;
    size_t before = html_out->len;

    if (banner->in_frame)
        return 0;
    int err = wb_buf_printf(html_out, "%sArchived page%scaptured on ", form->front, form->middle);
    if (err == 0)
        err = put_date(banner->time, html_out);
    if (err == 0)
        err = wb_buf_append_str(html_out, SEPARATOR);
    if (err == 0)
        err = put_url(banner->url, html_out);
    if (err == 0 && linked)
        err = put_link(form, banner->prefix, banner->url, "newest", html_out);
    if (err == 0 && linked)
        err = put_link(form, banner->versions, banner->url, "all versions", html_out);
    if (err == 0)
        err = wb_buf_append_str(html_out, form->back);
    if (err < 0)
        html_out->len = before;
    return err;
}

/*
 * docs/design/0032-replay.md explains each directive. The sandbox never has allow-same-origin: a page would then be
 * part of our own site. With scripts, it has nothing that lets a page leave its frame.
 */
#define LOADS "default-src 'self' data: blob:; style-src 'self' 'unsafe-inline' data: blob:; "
#define NEVER "connect-src 'none'; base-uri 'none'; form-action 'none'"

const char *wb_replay_policy(bool scripts)
{
    return scripts ? "sandbox allow-scripts; " LOADS "script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
                     "frame-src 'self'; " NEVER
                   : "sandbox allow-popups allow-top-navigation-by-user-activation; " LOADS "script-src 'none'; " NEVER;
}

/* ---- around a page with scripts ------------------------------------------------------------------------------------
 */

/* The frame of a document may only go where frame-src of the document around it lets it, also by a script in it. */
const char *wb_replay_stage_policy(void)
{
    return "default-src 'none'; frame-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'";
}

int wb_replay_stage(struct wb_slice src, struct wb_slice title, struct wb_buf *html_out)
{
    size_t before = html_out->len;
    int err =
        wb_buf_append_str(html_out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");

    if (err == 0)
        err = put_escaped(title, html_out);
    if (err == 0)
        err = wb_buf_append_str(html_out,
                                "</title>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                                "<style>html,body{margin:0;height:100%;overflow:hidden}iframe{display:block;border:0;"
                                "width:100%;height:100%}</style>\n</head>\n<body>\n<iframe title=\"Archived page\" "
                                "sandbox=\"allow-scripts\" referrerpolicy=\"no-referrer\" src=\"");
    if (err == 0)
        err = put_escaped(src, html_out);
    if (err == 0)
        err = wb_buf_append_str(html_out, "\"></iframe>\n</body>\n</html>\n");
    if (err < 0)
        html_out->len = before;
    return err;
}
