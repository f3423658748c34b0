/*
 * fuzz_sitemap.c - arbitrary bytes as XML: sitemaps, feeds, lists of URLs, and anything else.
 *
 * The input is one document, which is read as a sitemap and as XML.
 *   - tokens are inside the document and in order; decoding never makes text longer
 *   - only sitemaps and feeds have links; these are within the limits, and their URLs are valid
 *   - reading it twice gives the same, whatever was read in between
 */
#include "base/check.h"
#include "extract/extract.h"
#include "markup/xml.h"

#define URL WB_SLICE_LIT("http://example.org/maps/sitemap.xml")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tokens(struct wb_slice document)
{
    const char *at = document.ptr, *end = at + document.len;
    struct wb_buf decoded = WB_BUF_INIT;
    struct wb_xml_token t;
    struct wb_slice value;
    struct wb_xml xml;

    wb_xml_init(&xml, document);
    while (wb_xml_next(&xml, &t)) {
        struct wb_slice part = t.kind == WB_XML_TEXT ? t.text : t.name;
        WB_CHECK(part.len == 0 || (part.ptr >= at && part.ptr + part.len <= end));
        WB_CHECK(xml.at > at && xml.at <= end);
        at = xml.at;
        wb_buf_clear(&decoded);
        WB_CHECK(wb_xml_decode(t.text, &decoded) == 0 && decoded.len <= t.text.len);
        WB_CHECK(t.kind != WB_XML_OPEN || !wb_xml_attribute(&t, "xml", "base", &value) ||
                 value.len <= t.attributes.len);
    }
    WB_CHECK(xml.at == end);
    wb_buf_release(&decoded);
}

static void check_links(const struct wb_extract *out)
{
    struct wb_url url = WB_URL_INIT;

    WB_CHECK(out->link_count <= WB_EXTRACT_LINKS_MAX);
    WB_CHECK(out->link_count == 0 || out->sitemap != out->feed);
    for (size_t i = 0; i < out->link_count; i++) {
        const struct wb_extract_link *link = &out->links[i];
        WB_CHECK(out->sitemap ? link->tag == WB_EXTRACT_LINK_SITEMAP
                              : link->tag == WB_EXTRACT_LINK_FEED || link->tag == WB_EXTRACT_LINK_LINK);
        WB_CHECK(link->href.len > 0 && link->anchor.len <= WB_EXTRACT_ANCHOR_MAX);
        if (link->url.len) {
            WB_CHECK(wb_url_parse(link->url, NULL, &url) == 0);
            WB_CHECK(wb_slice_equal(wb_url_href(&url), link->url));
        }
    }
    wb_url_release(&url);
}

/* A hash of everything that was found. */
static uint64_t sum_of(const struct wb_extract *out)
{
    uint64_t sum = out->link_count * 31 + out->links_left_out + out->text.len * 7 + out->title.len;

    for (size_t i = 0; i < out->link_count; i++) {
        const struct wb_extract_link *link = &out->links[i];
        sum = sum * 1099511628211u + (uint64_t)link->modified_ms + link->tag + link->rels + link->anchor.len;
        for (size_t k = 0; k < link->url.len; k++)
            sum = sum * 1099511628211u + (unsigned char)link->url.ptr[k];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wb_extractor *x;
    struct wb_slice document = wb_slice(size ? (const char *)data : "", size);
    struct wb_extract_input input = {URL, WB_SLICE_LIT("text/xml"), WB_SLICE_EMPTY, document,
                                     WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};
    struct wb_extract out;
    uint64_t sums[2][2];

    WB_CHECK(x || wb_extractor_new(&x) == 0);
    check_tokens(document);
    for (int i = 0; i < 2; i++) {
        WB_CHECK(wb_sitemap_extract(x, URL, document, &out) == 0);
        check_links(&out);
        sums[i][0] = sum_of(&out);
        WB_CHECK(wb_extract(x, &input, &out) == 0);
        if (strcmp(out.module, "xml") == 0)
            check_links(&out);
        sums[i][1] = sum_of(&out);
    }
    WB_CHECK(sums[0][0] == sums[1][0] && sums[0][1] == sums[1][1]);
    return 0;
}
