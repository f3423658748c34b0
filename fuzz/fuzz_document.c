/*
 * fuzz_document.c - arbitrary bytes as an image and as a document of Office, OpenDocument or EPUB.
 *
 *   - facts have names and values within the limits, and no two have the same name
 *   - links lead out of the document, and are valid URLs
 *   - reading it twice gives the same
 */
#include "base/check.h"
#include "extract/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_facts(const struct wb_extract *out)
{
    WB_CHECK(out->fact_count <= WB_EXTRACT_FACTS_MAX);
    for (size_t i = 0; i < out->fact_count; i++) {
        WB_CHECK(out->facts[i].name.len > 0 && out->facts[i].value.len > 0 && out->facts[i].value.len <= 4096);
        for (size_t k = 0; k < i; k++)
            WB_CHECK(!wb_slice_equal(out->facts[i].name, out->facts[k].name));
    }
}

static void check_links(const struct wb_extract *out)
{
    struct wb_url url = WB_URL_INIT;

    WB_CHECK(out->link_count <= WB_EXTRACT_LINKS_MAX && out->text.len <= WB_EXTRACT_TEXT_MAX);
    for (size_t i = 0; i < out->link_count; i++) {
        WB_CHECK(out->links[i].anchor.len <= WB_EXTRACT_ANCHOR_MAX);
        WB_CHECK(wb_slice_starts_nocase(out->links[i].href, WB_SLICE_LIT("http")));
        if (out->links[i].url.len)
            WB_CHECK(wb_url_parse(out->links[i].url, NULL, &url) == 0);
    }
    wb_url_release(&url);
}

static uint64_t sum_of(const struct wb_extract *out)
{
    uint64_t sum = out->link_count * 31 + out->text.len * 7 + out->title.len + (uint64_t)out->published_ms +
                   (uint64_t)out->modified_ms * 3 + out->fact_count;

    for (size_t k = 0; k < out->text.len; k++)
        sum = sum * 1099511628211u + (unsigned char)out->text.ptr[k];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct wb_slice types[] = {WB_SLICE_LIT("image/png"), WB_SLICE_LIT("application/epub+zip")};
    static struct wb_extractor *x;
    struct wb_extract out;

    WB_CHECK(x || wb_extractor_new(&x) == 0);
    for (int i = 0; i < 2; i++) {
        struct wb_extract_input input = {WB_SLICE_LIT("http://example.org/a"), types[i], WB_SLICE_EMPTY,
                                         wb_slice(size ? (const char *)data : "", size), WB_EXTRACT_ALL};
        uint64_t sums[2];
        for (int k = 0; k < 2; k++) {
            WB_CHECK(wb_extract(x, &input, &out) == 0);
            check_facts(&out);
            check_links(&out);
            sums[k] = sum_of(&out);
        }
        WB_CHECK(sums[0] == sums[1]);
    }
    return 0;
}
