/*
 * csslinks.c - the module for style sheets: what they need in order to be displayed, as links of the page. Also for the
 * style elements and attributes of HTML.
 */
#include "base/error.h"
#include "extract/module.h"
#include "url/url.h"

/* The crawler has no use for parts of the page itself and for what is in the URL. */
static bool is_file(struct wb_slice url)
{
    return url.len && url.len <= WB_URL_MAX_BYTES && url.ptr[0] != '#' && !wb_slice_starts(url, WB_SLICE_LIT("data:"));
}

static int add_link(struct wb_extractor *x, const struct wb_css_item *item)
{
    struct wb_extract_link link = {.tag = item->kind == WB_CSS_URL ? WB_EXTRACT_LINK_IMAGE : WB_EXTRACT_LINK_STYLE,
                                   .href = item->raw,
                                   .url = WB_SLICE_EMPTY,
                                   .anchor = WB_SLICE_EMPTY,
                                   .rel = WB_SLICE_EMPTY};
    int err = 0;

    if (item->coded) {
        err = wb_css_decode(item->raw, &x->css);
        if (err == 0)
            err = wb_sink_keep(x, wb_buf_slice(&x->css), &link.href);
    }
    return err < 0 || !is_file(link.href) ? err : wb_sink_link(x, &link, NULL);
}

int wb_css_links(struct wb_extractor *x, struct wb_slice sheet)
{
    struct wb_css css;
    struct wb_css_item item;
    int err = 0;

    wb_css_init(&css, sheet);
    while (err == 0 && wb_css_next(&css, &item))
        err = add_link(x, &item);
    return err;
}

static bool accepts_css(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SLICE_LIT("text/css"));
}

static int run_css(struct wb_extractor *x)
{
    return wb_css_links(x, x->utf8);
}

const struct wb_module wb_module_css = {
    .name = "css",
    .charset_kind = WB_CHARSET_TEXT,
    .accepts = accepts_css,
    .run = run_css,
};
