/* test_replay_banner.c - the bar over a replayed page: where it goes, and that nothing in it becomes markup. */
#include "replay_support.h"

static const struct wb_replay_options with_banner = {.prefix = {"/web/", 5}, .banner = {"{BAR}", 5}};

static void expect_place(const char *body, const char *want)
{
    expect_bytes(wb_slice_str(body), rewrite("text/html", "utf-8", wb_slice_str(body), &with_banner),
                 wb_slice_str(want));
}

static void test_place(void **state)
{
    (void)state;
    expect_place("<html><head><title>t</title></head><body class=c>x",
                 "<html><head><title>t</title></head><body class=c>{BAR}x");
    expect_place("<!doctype html>\n<title>t</title><style>a</style><script>b</script>\n<p>x<body>",
                 "<!doctype html>\n<title>t</title><style>a</style><script>b</script>\n{BAR}<p>x<body>");
    expect_place("x<p>", "{BAR}x<p>");
    expect_place("\xef\xbb\xbfx", "\xef\xbb\xbf{BAR}x");
    expect_place("<head><noscript><img src=data:,x></noscript><template><p></template><body>y",
                 "<head><noscript><img src=data:,x></noscript><template><p></template><body>{BAR}y");
    expect_place("<!--c--> <meta charset=utf-8><svg>", "<!--c--> <meta charset=utf-8>{BAR}<svg>");
    /* Nothing may come before frames. */
    expect_place("<html><frameset><frame src=data:,x></frameset>", "<html><frameset><frame src=data:,x></frameset>");
    expect_place("", "");
    expect_place("<title>x", "<title>x");
    struct wb_slice svg = WB_SLICE_LIT("<svg>x</svg>");
    expect_bytes(svg, rewrite("image/svg+xml", "", svg, &with_banner), svg);
    expect_bytes(svg, rewrite("text/plain", "", svg, &with_banner), svg);
}

/* Every declaration wins against the page's styles. */
static void expect_important(struct wb_slice style)
{
    for (size_t i = 0, begin = 0; i <= style.len; i++) {
        if (i < style.len && style.ptr[i] != ';')
            continue;
        struct wb_slice one = wb_slice(style.ptr + begin, i - begin);
        if (one.len && !wb_slice_ends(one, WB_SLICE_LIT("!important")))
            fail_msg("'%.*s' is not important", WB_SLICE_ARG(one));
        begin = i + 1;
    }
}

static void test_banner(void **state)
{
    struct wb_replay_banner banner = {WB_SLICE_LIT("http://example.org/it's/\"><script>?a&b"),
                                      WB_SLICE_LIT(TIME),
                                      WB_SLICE_LIT("/web/"),
                                      WB_SLICE_LIT("/web/all/"),
                                      false,
                                      true};
    struct wb_extract_input input = {WB_SLICE_LIT("http://archive.example/"), WB_SLICE_LIT("text/html"),
                                     WB_SLICE_LIT("utf-8"), WB_SLICE_EMPTY, WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};
    struct wb_extractor *extractor = NULL;
    struct wb_extract e;
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_extractor_new(&extractor), 0);
    assert_int_equal(wb_replay_banner(&banner, &html), 0);
    for (size_t i = 0; i < html.len; i++)
        assert_true(html.ptr[i] >= ' ' && html.ptr[i] < 0x7f);
    assert_null(memmem(html.ptr, html.len, "<script", 7));
    input.body = wb_buf_slice(&html);
    assert_int_equal(wb_buf_append_char(&html, '\0'), 0);
    for (const char *p = html.ptr; (p = strstr(p, "style=\""));) {
        p += 7;
        expect_important(wb_slice(p, (size_t)(strchr(p, '"') - p)));
    }
    assert_int_equal(wb_extract(extractor, &input, &e), 0);
    expect_bytes(
        input.body, e.text,
        WB_SLICE_LIT(
            "Archived page\ncaptured on 2026-01-02 03:04:05 UTC \xc2\xb7 http://example.org/it's/\"><script>?a&b"
            " \xc2\xb7 newest \xc2\xb7 all versions"));
    assert_int_equal(e.link_count, 2);
    expect_bytes(input.body, e.links[0].href, WB_SLICE_LIT("/web/http://example.org/it's/\"><script>?a&b"));
    expect_bytes(input.body, e.links[1].href, WB_SLICE_LIT("/web/all/http://example.org/it's/\"><script>?a&b"));

    /* In a frame, and with odd arguments. */
    banner.in_frame = true;
    wb_buf_clear(&html);
    assert_int_equal(wb_replay_banner(&banner, &html), 0);
    assert_int_equal(html.len, 0);
    banner = (struct wb_replay_banner){
        WB_SLICE_LIT("\n<\xff"), WB_SLICE_LIT("2026<"), WB_SLICE_LIT("\""), WB_SLICE_LIT("'"), false, false};
    assert_int_equal(wb_replay_banner(&banner, &html), 0);
    assert_non_null(memmem(html.ptr, html.len, "captured on 2026&#60; &#183; ?&#60;? &#183;", 43));
    wb_buf_release(&html);
    wb_extractor_free(extractor);
}

/* In HTML, the bar is one element without a name, whose content is in a closed tree. */
static void test_own_tree(void **state)
{
    static const char front[] = "<div><template shadowrootmode=\"closed\"><style>:host{", back[] = "</template></div>";
    struct wb_replay_banner banner = {
        WB_SLICE_LIT(HERE), WB_SLICE_LIT(TIME), WB_SLICE_LIT("/web/"), WB_SLICE_LIT("/web/*/"), false, false};
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_replay_banner(&banner, &html), 0);
    assert_true(wb_slice_starts(wb_buf_slice(&html), WB_SLICE_LIT(front)));
    assert_true(wb_slice_ends(wb_buf_slice(&html), WB_SLICE_LIT(back)));
    const char *end = memchr(html.ptr + sizeof front - 1, '}', html.len - (sizeof front - 1));
    expect_important(wb_slice(html.ptr + sizeof front - 1, (size_t)(end - html.ptr) - (sizeof front - 1)));
    assert_non_null(memmem(html.ptr, html.len, "href=\"/web/*/" HERE "\"", 20));
    wb_buf_release(&html);
}

/* A URL of 60,000 characters does not make a bar of half a megabyte. */
static void test_long_url(void **state)
{
    struct wb_replay_banner banner = {.time = WB_SLICE_LIT(TIME)};
    struct wb_buf html = WB_BUF_INIT, url = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 60000; i++)
        assert_int_equal(wb_buf_append_char(&url, '\''), 0);
    banner.url = wb_buf_slice(&url);
    assert_int_equal(wb_replay_banner(&banner, &html), 0);
    assert_true(html.len < 10000);
    assert_null(memmem(html.ptr, html.len, "<a ", 3));
    wb_buf_release(&html);
    wb_buf_release(&url);
}

static bool allows(const char *policy, const char *word)
{
    return strstr(policy, word) != NULL;
}

static void test_policy(void **state)
{
    const char *policy = wb_replay_policy();

    (void)state;
    assert_int_equal(strncmp(policy, "sandbox", 7), 0);
    assert_false(allows(policy, "allow-scripts") || allows(policy, "allow-same-origin") ||
                 allows(policy, "allow-forms"));
    assert_true(allows(policy, "script-src 'none'") && allows(policy, "default-src 'self' data: blob:"));
    assert_true(allows(policy, "connect-src 'none'") && allows(policy, "form-action 'none'"));
    assert_false(allows(policy, "http:") || allows(policy, "*") || strpbrk(policy, "\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),    cmocka_unit_test(test_banner), cmocka_unit_test(test_own_tree),
        cmocka_unit_test(test_long_url), cmocka_unit_test(test_policy),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
