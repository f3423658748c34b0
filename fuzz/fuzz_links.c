/*
 * fuzz_links.c - arbitrary bytes as an HTML page: everything extracted from it is consistent.
 *
 * If the input contains a NUL, the part before it is the page's URL; the rest is the page.
 *   - every link's URL is what the URL parser gives for its href
 *   - text, main text and anchors are UTF-8 without two blanks in a row and without a blank at
 *     either end, except for a single one beside the tags of an anchor
 *   - every block of the main text is a block of the text
 *   - the limits are kept, and extracting again gives the same
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "extract/extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_gap(char c)
{
    return c == ' ' || c == '\n';
}

static void check_words(struct wb_slice s, bool blocks)
{
    WB_CHECK(wb_utf8_valid(s));
    if (s.len == 0)
        return;
    WB_CHECK(!is_gap(s.ptr[0]) && !is_gap(s.ptr[s.len - 1]));
    for (size_t i = 0; i < s.len; i++) {
        WB_CHECK((uint8_t)s.ptr[i] >= ' ' || (blocks && s.ptr[i] == '\n'));
        WB_CHECK(!is_gap(s.ptr[i]) || !is_gap(s.ptr[i + 1]));
    }
}

static struct wb_slice next_block(struct wb_slice *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->ptr) : rest->len, past = end ? len + 1 : len;
    struct wb_slice block = wb_slice(rest->ptr, len);

    *rest = wb_slice(rest->ptr + past, rest->len - past);
    return block;
}

static void check_main_text(struct wb_slice text, struct wb_slice main_text)
{
    while (main_text.len > 0) {
        struct wb_slice wanted = next_block(&main_text);
        while (text.len > 0 && !wb_slice_equal(next_block(&text), wanted))
            WB_CHECK(text.len > 0);
    }
}

static void check_link(const struct wb_extract_link *link, const struct wb_url *base)
{
    static struct wb_url url;

    WB_CHECK(link->tag >= WB_EXTRACT_LINK_A && link->tag <= WB_EXTRACT_LINK_META && *wb_extract_tag_name(link->tag));
    int err = wb_url_parse(link->href, base, &url);
    WB_CHECK(wb_slice_equal(link->url, err < 0 ? WB_SLICE_EMPTY : wb_url_href(&url)));
    struct wb_slice anchor = link->anchor;
    WB_CHECK(anchor.len <= WB_EXTRACT_ANCHOR_MAX);
    if (anchor.len > 1 && anchor.ptr[0] == ' ')
        anchor = wb_slice(anchor.ptr + 1, anchor.len - 1);
    if (anchor.len > 1 && anchor.ptr[anchor.len - 1] == ' ')
        anchor.len--;
    check_words(anchor, false);
}

static uint64_t check_page(const struct wb_extract *e)
{
    struct wb_url base = WB_URL_INIT;
    uint64_t hash = wb_hash64(e->text.ptr, e->text.len) ^ wb_hash64(e->main_text.ptr, e->main_text.len) * 3 ^
                    wb_hash64(e->title.ptr, e->title.len) * 5;

    if (e->base.len)
        WB_CHECK(wb_url_parse(e->base, NULL, &base) == 0 && wb_slice_equal(wb_url_href(&base), e->base));
    WB_CHECK(e->link_count <= WB_EXTRACT_LINKS_MAX);
    for (size_t i = 0; i < e->link_count; i++) {
        check_link(&e->links[i], e->base.len ? &base : NULL);
        hash = hash * 31 + wb_hash64(e->links[i].url.ptr, e->links[i].url.len) +
               wb_hash64(e->links[i].anchor.ptr, e->links[i].anchor.len);
    }
    WB_CHECK(e->text.len <= WB_EXTRACT_TEXT_MAX);
    check_words(e->text, true);
    check_words(e->main_text, true);
    check_words(e->title, false);
    check_words(e->description, false);
    check_main_text(e->text, e->main_text);
    wb_url_release(&base);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wb_extractor *extractor;
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    size_t url_len = nul ? (size_t)(nul - data) : 0, past = nul ? url_len + 1 : 0;
    struct wb_extract_input input = {wb_slice((const char *)data, url_len), WB_SLICE_LIT("text/html"),
                                     WB_SLICE_LIT("utf-8"), wb_slice((const char *)data + past, size - past),
                                     WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};
    struct wb_extract extract;

    if (!nul)
        input.url = WB_SLICE_LIT("https://example.org/dir/page.html");
    if (!extractor)
        WB_CHECK(wb_extractor_new(&extractor) == 0);
    WB_CHECK(wb_extract(extractor, &input, &extract) == 0);
    uint64_t first = check_page(&extract);
    WB_CHECK(wb_extract(extractor, &input, &extract) == 0);
    WB_CHECK(check_page(&extract) == first);
    return 0;
}
