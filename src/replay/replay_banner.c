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

/* docs/design/0032-replay.md explains each directive. The page would be part of our own site with allow-same-origin. */
const char *wb_replay_policy(void)
{
    return "sandbox allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation; "
           "default-src 'self' data: blob:; style-src 'self' 'unsafe-inline' data: blob:; script-src 'none'; "
           "connect-src 'none'; base-uri 'none'; form-action 'none'";
}
