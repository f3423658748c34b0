/*
 * test_replay_pages.c - real pages, and what chance makes of them: the rewritten page has the same links, in the
 * archive, and the same text.
 */
#include "replay_support.h"
#include "same_links.h"
#include "../seeded.h"
#include "../testdata.h"

#include <dirent.h>

static struct wb_extractor *before, *after;
static struct wb_buf moved_bytes, want;

/* Rewrites a page and compares. */
static void check_page(struct wb_slice body, const char *what)
{
    struct wb_slice url = WB_SLICE_LIT("https://www.example.org/2019/page.html?a=1");
    struct wb_replay_page page = {url, WB_SLICE_LIT(SAME_LINKS_TIME), WB_SLICE_LIT("text/html"), WB_SLICE_EMPTY, body};
    struct wb_extract_input input = {url, page.type, page.charset, body, WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};
    struct wb_extract old, new;

    wb_buf_clear(&moved_bytes);
    assert_int_equal(wb_replay_rewrite(replayer, &page, &plain_options, &moved_bytes, &result), 0);
    assert_true(moved_bytes.len <= WB_REPLAY_BYTES_MAX(body.len));
    assert_int_equal(wb_extract(before, &input, &old), 0);
    input.url = WB_SLICE_LIT(SAME_LINKS_PLACE "https://www.example.org/2019/page.html?a=1");
    input.body = wb_buf_slice(&moved_bytes);
    input.charset = wb_slice_str(result.charset);
    assert_int_equal(wb_extract(after, &input, &new), 0);
    const char *differs = compare_links(&old, &new, url, &want);
    if (differs)
        fail_msg("%s: %s differs (%.*s)", what, differs, WB_SLICE_ARG(wb_buf_slice(&want)));
    assert_true(old.link_count == 0 || result.urls + result.urls_dropped > 0 || old.link_count < 3);
}

static void read_page(const char *path, struct wb_buf *packed, struct wb_buf *body)
{
    struct wb_payload_result unpacked;
    char chunk[65536];
    size_t n;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    wb_buf_clear(packed);
    wb_buf_clear(body);
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        assert_int_equal(wb_buf_append(packed, chunk, n), 0);
    fclose(file);
    assert_int_equal(wb_unpack_gzip(wb_buf_slice(packed), WB_PAGE_MAX_BYTES, body, &unpacked), 0);
    assert_true(unpacked.changed);
}

/* Changes a few bytes, mostly to those that mean something in markup. */
static void spoil(struct wb_buf *body, uint64_t *chance)
{
    static const char bytes[] = "<>\"'=&/ \n\0-!;:#(){}\\?xX";
    size_t count = 1 + chance_below(chance, 200);

    for (size_t i = 0; i < count && body->len; i++)
        body->ptr[chance_below(chance, body->len)] = bytes[chance_below(chance, sizeof bytes - 1)];
}

static void test_articles(void **state)
{
    struct wb_buf packed = WB_BUF_INIT, body = WB_BUF_INIT;
    uint64_t chance = test_seed();
    char folder[1024], path[2048];
    size_t count = 0;

    (void)state;
    test_data_path("content/articles/html", folder);
    DIR *dir = opendir(folder);
    if (!dir)
        skip();
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!strstr(entry->d_name, ".html.gz"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_page(path, &packed, &body);
        check_page(wb_buf_slice(&body), entry->d_name);
        for (int i = 0; i < 3; i++) {
            spoil(&body, &chance);
            check_page(wb_buf_slice(&body), entry->d_name);
        }
        count++;
    }
    closedir(dir);
    assert_true(count > 10);
    wb_buf_release(&packed);
    wb_buf_release(&body);
}

static const char *const scraps[] = {
    "<a href=", "<a href='", "<img src=\"", "x", "/y?a&amp;b", "'", "\"", ">", " ", "#f", "<base href=/b/>", "&",
    "&#106;avascript:x", "<svg>", "</svg>", "<![CDATA[", "]]>", "<style>", "</style>", "url(z)", "<title>",
    "</title>", "<script>", "</script>", "<!--", "-->", "<iframe src=q>", "</iframe>", "<template>", "</template>",
    "<area href=w alt=t>", "<form action=v>", "<link rel=canonical href=u>", " href=second",
    "<img srcset='a 1x,b,,c'>", "text", "</a>", "<p/>", "=", "<meta http-equiv=refresh content='1;url=r'>", "\n",
    "mailto:m", "data:,d", "//h.example/", "http://i.example", "\\", "\t", "<noscript>", "<textarea>",
    "</textarea>", "<math>", "</math>", "<foreignObject>", "<desc>", "<plaintext>",
};

/* Pages put together by chance from pieces of markup that is seldom correct. */
static void test_scraps(void **state)
{
    struct wb_buf body = WB_BUF_INIT;
    uint64_t chance = test_seed();

    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t pieces = 1 + chance_below(&chance, 30);
        wb_buf_clear(&body);
        for (size_t k = 0; k < pieces; k++)
            assert_int_equal(wb_buf_append_str(&body, scraps[chance_below(&chance, sizeof scraps / sizeof *scraps)]),
                             0);
        assert_int_equal(wb_buf_terminate(&body), 0);
        check_page(wb_buf_slice(&body), body.ptr);
    }
    wb_buf_release(&body);
}

static int set_up_all(void **state)
{
    return set_up(state) == 0 && wb_extractor_new(&before) == 0 && wb_extractor_new(&after) == 0 ? 0 : -1;
}

static int tear_down_all(void **state)
{
    wb_extractor_free(before);
    wb_extractor_free(after);
    wb_buf_release(&moved_bytes);
    wb_buf_release(&want);
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_articles),
        cmocka_unit_test(test_scraps),
    };

    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
