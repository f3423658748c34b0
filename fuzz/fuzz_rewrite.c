/*
 * fuzz_rewrite.c - arbitrary bytes as a page that is replayed.
 *
 * The first byte chooses the media type, the encoding and whether scripts may run; the rest is the page.
 *   - the output is bounded
 *   - if no URL was dropped: a rewritten HTML page has the same text, and the same links in the archive
 */
#include "../tests/unit/replay/same_links.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_links(const struct wb_replay_page *page, struct wb_slice moved, const char *charset)
{
    static struct wb_extractor *before, *after;
    static struct wb_buf want;
    struct wb_extract_input input = {page->url, page->type, page->charset, page->body,
                                     WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};
    struct wb_extract old, new;

    if (!before)
        WB_CHECK(wb_extractor_new(&before) == 0 && wb_extractor_new(&after) == 0);
    WB_CHECK(wb_extract(before, &input, &old) == 0);
    input.url = WB_SLICE_LIT(SAME_LINKS_PLACE "https://example.org/dir/page.html");
    input.body = moved;
    input.charset = wb_slice_str(charset);
    WB_CHECK(wb_extract(after, &input, &new) == 0);
    if (strcmp(old.module, "html") == 0 && old.links_left_out == 0 && new.links_left_out == 0)
        WB_CHECK(!compare_links(&old, &new, page->url, &want));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"text/html", "text/css", "image/svg+xml", "application/xhtml+xml"};
    static const char *const charsets[] = {"utf-8", "", "windows-1252", "shift_jis"};
    static const struct wb_replay_base base = {false, {"localhost:8081", 14}};
    static struct wb_replayer *replayer;
    static struct wb_buf out;
    unsigned choice = size ? data[0] : 0;
    struct wb_replay_page page = {WB_SLICE_LIT("https://example.org/dir/page.html"), WB_SLICE_LIT(SAME_LINKS_TIME),
                                  wb_slice_str(types[choice & 3]), wb_slice_str(charsets[choice >> 2 & 3]),
                                  wb_slice((const char *)data + (size > 0), size - (size > 0))};
    struct wb_replay_options options = {.prefix = WB_SLICE_LIT("/web/"),
                                        .origins = choice & 16 ? &base : NULL,
                                        .outermost = (choice & 64) != 0,
                                        .in_place = (choice & 32) != 0};
    struct wb_replay_result result;

    if (!replayer)
        WB_CHECK(wb_replayer_new(&replayer) == 0);
    wb_buf_clear(&out);
    WB_CHECK(wb_replay_rewrite(replayer, &page, &options, &out, &result) == 0);
    WB_CHECK(out.len <= 2 * WB_REPLAY_BYTES_MAX(page.body.len));
    if (result.kind == WB_REPLAY_HTML && !options.origins && result.urls_dropped == 0 && (choice & 3) == 0)
        check_links(&page, wb_buf_slice(&out), result.charset);
    options.banner = WB_SLICE_LIT("<b>banner</b>");
    wb_buf_clear(&out);
    WB_CHECK(wb_replay_rewrite(replayer, &page, &options, &out, &result) == 0);
    return 0;
}
