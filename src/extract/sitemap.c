/*
 * sitemap.c - reads sitemaps and sitemap indexes (sitemaps.org 0.9), in which a site lists its pages.
 *
 *   urlset        url      loc, lastmod    -> a link with its time
 *   sitemapindex  sitemap  loc, lastmod    -> the same, with WB_EXTRACT_REL_INDEX
 *
 * An entry is recognised by the name of its start tag alone, so that an entry without an end tag does
 * not swallow the ones behind it. Elements with another prefix than the root, or with another
 * default namespace, are extensions (images, news, videos), and their locs are not pages. It never
 * fetches anything, and never takes the links of a page for those of a sitemap.
 */
#include "extract/xmlpage.h"

#include "base/error.h"

#define SITEMAP_BYTES_MAX ((size_t)50 << 20) /* unpacked; sitemaps.org does not allow more */

enum sitemap_field { FIELD_NONE, FIELD_LOC, FIELD_LASTMOD };

struct sitemap_reader {
    struct wb_extractor *x;
    struct wb_slice prefix;    /* the prefix of the root */
    struct wb_slice xmlns;     /* its default namespace, as written */
    bool index_root, index;    /* the document, or the entry, is one of a sitemap index */
    unsigned foreign;          /* how many elements with another default namespace, or inside one, are open */
    enum sitemap_field field;  /* whose text is being read */
    struct wb_xml_text text;
    size_t first, count;       /* the links of the entry */
    int64_t modified_ms;       /* the lastmod of the entry */
};

bool wb_sitemap_is_root(const struct wb_xml_token *root)
{
    return wb_xml_is(root, "urlset") || wb_xml_is(root, "sitemapindex");
}

/* Takes the text of a loc as a link. */
static int take_loc(struct sitemap_reader *r)
{
    struct wb_extract_link link = {
        .tag = WB_EXTRACT_LINK_SITEMAP, .rels = r->index ? WB_EXTRACT_REL_INDEX : 0, .href = wb_xml_text_get(&r->text)};
    size_t number;
    int err = 0;

    link.url = link.anchor = link.rel = WB_SLICE_EMPTY;
    link.modified_ms = r->modified_ms;
    if (link.href.len == 0 || link.href.len > WB_URL_MAX_BYTES)
        return 0;
    if (r->text.copied)
        err = wb_sink_keep(r->x, link.href, &link.href);
    if (err == 0)
        err = wb_sink_link(r->x, &link, &number);
    if (err == 0 && number != SIZE_MAX) {
        r->first = r->count ? r->first : number;
        r->count++;
    }
    return err;
}

/* Takes a lastmod, which may come before or after the loc. */
static void take_lastmod(struct sitemap_reader *r)
{
    if (!wb_xml_date(wb_xml_text_get(&r->text), &r->modified_ms))
        return;
    for (size_t i = 0; i < r->count; i++)
        r->x->links[r->first + i].modified_ms = r->modified_ms;
}

/* Ends the present field; any tag does that. */
static int end_field(struct sitemap_reader *r)
{
    int err = r->field == FIELD_LOC ? take_loc(r) : 0;

    if (r->field == FIELD_LASTMOD)
        take_lastmod(r);
    r->field = FIELD_NONE;
    wb_xml_text_clear(&r->text);
    return err;
}

static bool is_entry(const struct wb_xml_token *token)
{
    return wb_xml_is(token, "url") || wb_xml_is(token, "sitemap");
}

/* True if an element with the root's prefix has another default namespace than the root. */
static bool is_foreign(const struct sitemap_reader *r, const struct wb_xml_token *token)
{
    struct wb_slice xmlns;

    return wb_xml_attribute(token, "", "xmlns", &xmlns) && !wb_slice_equal(xmlns, r->xmlns);
}

/* Handles a start tag: an entry, an extension, or a field whose text is wanted. */
static void read_open(struct sitemap_reader *r, const struct wb_xml_token *token)
{
    if (!wb_slice_equal(token->prefix, r->prefix))
        return;
    if (is_entry(token)) {
        r->foreign = 0;
        r->count = 0;
        r->modified_ms = 0;
        r->index = r->index_root || wb_xml_is(token, "sitemap");
        return;
    }
    if (r->foreign || is_foreign(r, token)) {
        r->foreign += !token->empty;
        return;
    }
    if (token->empty)
        return;
    if (wb_xml_is(token, "loc"))
        r->field = FIELD_LOC;
    else if (wb_xml_is(token, "lastmod"))
        r->field = FIELD_LASTMOD;
}

static void read_close(struct sitemap_reader *r, const struct wb_xml_token *token)
{
    if (!wb_slice_equal(token->prefix, r->prefix))
        return;
    if (is_entry(token))
        r->foreign = 0;
    else if (r->foreign)
        r->foreign--;
}

int wb_sitemap_read(struct wb_extractor *x)
{
    struct sitemap_reader r = {.x = x, .prefix = WB_SLICE_EMPTY, .xmlns = WB_SLICE_EMPTY, .text = WB_XML_TEXT_INIT};
    struct wb_xml_token token;
    struct wb_xml xml;
    bool rooted = false;
    int err = 0;

    x->out->sitemap = true;
    wb_xml_init(&xml, x->utf8);
    while (err == 0 && wb_xml_next(&xml, &token)) {
        if (token.kind == WB_XML_TEXT) {
            err = r.field ? wb_xml_text_add(&r.text, &token, WB_URL_MAX_BYTES) : 0;
            continue;
        }
        err = end_field(&r);
        if (token.kind == WB_XML_CLOSE) {
            read_close(&r, &token);
        } else if (!rooted) {
            rooted = true;
            r.prefix = token.prefix;
            r.index = r.index_root = wb_xml_is(&token, "sitemapindex");
            wb_xml_attribute(&token, "", "xmlns", &r.xmlns);
        } else {
            read_open(&r, &token);
        }
    }
    if (err == 0)
        err = end_field(&r);
    wb_xml_text_release(&r.text);
    return err;
}

/* ---- bytes that were fetched as a sitemap ----------------------------------------------------------- */

static bool is_gzip(struct wb_slice bytes)
{
    return bytes.len > 2 && memcmp(bytes.ptr, "\x1f\x8b", 2) == 0;
}

/* Unpacks a gzip file; its content becomes the document, and is kept in x->decoded. */
static int unpack(struct wb_extractor *x)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_payload_result decoded;

    x->utf8 = WB_SLICE_EMPTY;
    wb_buf_clear(&x->decoded);
    int err = wb_unpack_gzip(x->input->body, SITEMAP_BYTES_MAX, &x->decoded, &decoded);
    if (err < 0)
        return err;
    struct wb_slice bytes = wb_buf_slice(&x->decoded);
    x->out->charset = wb_charset_of(bytes, WB_SLICE_EMPTY, WB_CHARSET_XML);
    err = wb_charset_decode(x->out->charset, bytes, SITEMAP_BYTES_MAX, &mem, &x->utf8);
    if (err == 0 && mem.len) {
        wb_buf_release(&x->decoded);
        x->decoded = wb_buf_take(&mem);
    }
    wb_buf_release(&mem);
    return err;
}

int wb_sitemap_run(struct wb_extractor *x)
{
    struct wb_xml_token token;
    struct wb_xml xml;
    int err = is_gzip(x->input->body) ? unpack(x) : 0;

    if (err < 0)
        return err;
    wb_xml_init(&xml, x->utf8);
    while (wb_xml_next(&xml, &token)) {
        if (token.kind != WB_XML_OPEN)
            continue;
        if (wb_sitemap_is_root(&token) || is_entry(&token))
            return wb_sitemap_read(x);
        if (wb_feed_is_root(&token))
            return wb_feed_read(x);
        return wb_plaintext_is_urls(x->utf8) ? wb_plaintext_urls(x) : 0;
    }
    err = wb_plaintext_urls(x);
    x->out->sitemap = x->link_count > 0;
    return err;
}

int wb_sitemap_extract(struct wb_extractor *extractor, struct wb_slice url, struct wb_slice bytes,
                       struct wb_extract *extract_out)
{
    struct wb_extract_input input = {
        .url = url, .type = WB_SITEMAP_TYPE, .charset = WB_SLICE_EMPTY, .body = bytes, .wants = WB_EXTRACT_LINKS};

    if (is_gzip(bytes))
        input.charset = WB_SLICE_LIT("utf-8"); /* do not guess the encoding of compressed bytes */
    int err = wb_extract(extractor, &input, extract_out);
    if (err < 0 || extract_out->sitemap || extract_out->feed)
        return err;
    extract_out->link_count = 0; /* this is probably an error page in HTML */
    extract_out->links_left_out = 0;
    return 0;
}
