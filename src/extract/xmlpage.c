/*
 * xmlpage.c - the module for XML.
 *
 * Sitemaps and feeds are passed to sitemap.c and feed.c; in any other document, the character data is
 * text. It never looks for links in attributes, because only a vocabulary defines which of them are.
 */
#include "base/error.h"
#include "extract/xmlpage.h"

#define TITLE_BYTES_MAX 1024u

/* XHTML belongs to the html module, which comes first in the table. */
static bool accepts_xml(struct wb_slice type)
{
    return wb_slice_equal(type, WB_SITEMAP_TYPE) || wb_slice_equal(type, WB_SLICE_LIT("application/xml")) ||
           wb_slice_equal(type, WB_SLICE_LIT("text/xml")) ||
           (wb_slice_ends(type, WB_SLICE_LIT("+xml")) && !wb_slice_equal(type, WB_SLICE_LIT("application/xhtml+xml")));
}

static int put_text(struct wb_extractor *x, const struct wb_xml_token *token, struct wb_buf *mem)
{
    struct wb_slice text = token->text;
    int err = 0;

    if (token->coded) {
        wb_buf_clear(mem);
        err = wb_xml_decode(text, mem);
        text = wb_buf_slice(mem);
    }
    if (err == 0)
        wb_sink_text(x, text);
    return err;
}

/* Reads any XML: text with one block per element, the first title, and the language of the root. */
static int read_any(struct wb_extractor *x)
{
    struct wb_xml_text title = WB_XML_TEXT_INIT;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_xml_token token;
    struct wb_xml xml;
    bool rooted = false, in_title = false, wanted = x->input->wants & WB_EXTRACT_TEXT;
    int err = wanted ? wb_sink_room(x, x->utf8.len) : 0;

    wb_xml_init(&xml, x->utf8);
    while (err == 0 && wb_xml_next(&xml, &token)) {
        if (token.kind == WB_XML_TEXT) {
            if (in_title)
                err = wb_xml_text_add(&title, &token, TITLE_BYTES_MAX);
            if (err == 0 && wanted)
                err = put_text(x, &token, &mem);
            continue;
        }
        wb_sink_break(x);
        if (in_title && x->out->title.len == 0)
            err = wb_sink_keep_words(x, wb_xml_text_get(&title), TITLE_BYTES_MAX, &x->out->title);
        in_title = token.kind == WB_XML_OPEN && x->out->title.len == 0 && wb_xml_is(&token, "title");
        if (token.kind == WB_XML_OPEN && !rooted) {
            rooted = true;
            wb_xml_attribute(&token, "xml", "lang", &x->out->lang);
        }
    }
    wb_xml_text_release(&title);
    wb_buf_release(&mem);
    return err;
}

static int run_xml(struct wb_extractor *x)
{
    struct wb_xml_token token;
    struct wb_xml xml;

    if (wb_slice_equal(x->input->type, WB_SITEMAP_TYPE))
        return wb_sitemap_run(x);
    wb_xml_init(&xml, x->utf8);
    while (wb_xml_next(&xml, &token)) {
        if (token.kind != WB_XML_OPEN)
            continue;
        if (wb_sitemap_is_root(&token))
            return wb_sitemap_read(x);
        if (wb_feed_is_root(&token))
            return wb_feed_read(x);
        break;
    }
    return read_any(x);
}

const struct wb_module wb_module_xml = {
    .name = "xml",
    .charset_kind = WB_CHARSET_XML,
    .accepts = accepts_xml,
    .run = run_xml,
};
