/* test_replay_hostile.c - pages that are made to get out of the archive, to break the output, or to cost too much. */
#include "replay_support.h"
#include "../cost.h"
#include "markup/markup.h"

static void test_odd_markup(void **state)
{
    static const struct {
        const char *body, *want;
    } cases[] = {
        /* A tag or value that the page's end cuts off is dropped by browsers. */
        {"<p><a href=\"http://x.example/", "<p><a href=\"http://x.example/"},
        {"<a href=\"x\" title='</a><a href=y>", "<a href=\"x\" title='</a><a href=y>"},
        {"<a href", "<a href"},
        {"<", "<"},
        {"</", "</"},
        /* The first of two attributes counts, but both are changed. */
        {"<a href=/a href=/b>",
         "<a href=\"" IN_ARCHIVE "https://example.org/a\" href=\"" IN_ARCHIVE "https://example.org/b\">"},
        {"<a href=javascript:x href=/b>", "<a href=\"#\" href=\"" IN_ARCHIVE "https://example.org/b\">"},
        /* No blank between attributes; slashes instead of blanks. */
        {"<a class='c'href='/a'id=d>", "<a class='c'href='" IN_ARCHIVE "https://example.org/a'id=d>"},
        {"<a/href=/a/>", "<a/href=\"" IN_ARCHIVE "https://example.org/a/\">"},
        {"<a\nhref\n=\n/a\n>", "<a\nhref\n=\n\"" IN_ARCHIVE "https://example.org/a\"\n>"},
        {"<a href==/a>", "<a href=\"" IN_ARCHIVE "https://example.org/dir/=/a\">"},
        {"<a =href=/a>", "<a =href=/a>"},
        /* Quotes and tags in values. */
        {"<a href='/\"><script>'>", "<a href='" IN_ARCHIVE "https://example.org/%22%3E%3Cscript%3E'>"},
        {"<a href=/a\"b'c>", "<a href=\"" IN_ARCHIVE "https://example.org/a%22b&#39;c\">"},
        {"<p style='a:url(\"/b\");x:\"</style>\"'>",
         "<p style='a:url(&quot;" IN_ARCHIVE "https://example.org/b&quot;);x:&quot;&lt;/style&gt;&quot;'>"},
        {"<style>a{b:url('</style><a href=/c>')}",
         "<style>a{b:url('</style><a href=\"" IN_ARCHIVE "https://example.org/c\">')}"},
        {"<style>a{b:url(/<!--</style>x", "<style>a{b:url(" IN_ARCHIVE "https://example.org/%3C!--</style>x"},
        /* Entities without a semicolon, in and out of a URL. */
        {"<a href='?a=1&ltb'>", "<a href='" IN_ARCHIVE HERE "?a=1&amp;ltb'>"},
        {"<a href='/&lt;&gt&quot'>", "<a href='" IN_ARCHIVE "https://example.org/%3C%3E%22'>"},
        {"<a href='&#106avascript&#58alert(1)'>", "<a href='#'>"},
        {"<a href='&Tab;java&NewLine;script:x'>", "<a href='#'>"},
        {"<a href='\x01javascript:x'>", "<a href='#'>"},
        {"<a href='vbscript:x'>", "<a href='#'>"},
        {"<object data=javascript:x>", "<object data=\"about:blank\">"},
        {"<svg><a xlink:href='javascript:x'>", "<svg><a xlink:href='#'>"},
        {"<p style='a:url(javascript:x)'>", "<p style='a:url(about:blank)'>"},
        {"<form action=javascript:x>", "<form action=\"about:blank\">"},
        /* Paths that climb out. */
        {"<a href='../../../../../etc/passwd'>", "<a href='" IN_ARCHIVE "https://example.org/etc/passwd'>"},
        {"<a href='http:\\\\x.example\\y'>", "<a href='" IN_ARCHIVE "http://x.example/y'>"},
        {"<a href='https:x'>", "<a href='" IN_ARCHIVE "https://example.org/dir/x'>"},
        {"<a href='/web/20010101000000/http://x.example/'>",
         "<a href='" IN_ARCHIVE "https://example.org/web/20010101000000/http://x.example/'>"},
        /* A policy that hides its name. */
        {"<meta http-equiv='CONTENT-security&#45;policy' content=x>", "<meta   content=x>"},
        {"<svg><meta http-equiv=refresh content='0;/a'>",
         "<svg><meta http-equiv=refresh content='0;url=" IN_ARCHIVE "https://example.org/a'>"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_html(cases[i].body, cases[i].want);
}

static void test_nul(void **state)
{
    struct wb_slice body = WB_SLICE_LIT("\0<a\0 hr\0ef=/a href='/\0b'>\0<style>a{b:url(/\0c)}</style>\0<a href=/d\0>");

    (void)state;
    expect_bytes(body, rewrite("text/html", "utf-8", body, &plain_options),
                 WB_SLICE_LIT("\0<a\0 hr\0ef=/a href='" IN_ARCHIVE
                              "https://example.org/%EF%BF%BDb'>\0<style>a{b:url(" IN_ARCHIVE
                              "https://example.org/%EF%BF%BDc)}</style>\0<a href=\"" IN_ARCHIVE
                              "https://example.org/d%EF%BF%BD\">"));
}

/* Appends the text n times. */
static void repeat(struct wb_buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(wb_buf_append_str(out, text), 0);
}

/* Attributes that the tokenizer does not keep are not written: one of them might be a link. */
static void test_many_attributes(void **state)
{
    struct wb_buf body = WB_BUF_INIT;

    (void)state;
    repeat(&body, "<a ", 1);
    repeat(&body, "x ", WB_TOKEN_ATTRS_MAX - 1);
    repeat(&body, "y=/z href=http://x.example/>text", 1);
    struct wb_slice got = rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options);
    assert_true(wb_slice_ends(got, WB_SLICE_LIT(" y=/z >text")));
    assert_null(memmem(got.ptr, got.len, "x.example", 9));
    wb_buf_clear(&body);
    repeat(&body, "<svg><a ", 1);
    repeat(&body, "x ", WB_TOKEN_ATTRS_MAX - 1);
    repeat(&body, "src=/z href=/>text", 1);
    got = rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options);
    assert_true(wb_slice_ends(got, WB_SLICE_LIT("src=\"" IN_ARCHIVE "https://example.org/z\" >text")));
    wb_buf_release(&body);
}

/* A URL that is too long for us may not be too long for a browser. */
static void test_long_values(void **state)
{
    struct wb_buf body = WB_BUF_INIT;

    (void)state;
    repeat(&body, "<a href=http://x.example/", 1);
    repeat(&body, "0123456789abcdef", (WB_URL_MAX_BYTES >> 4) + 1);
    repeat(&body, ">", 1);
    expect_bytes(WB_SLICE_EMPTY, rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options),
                 WB_SLICE_LIT("<a href=\"about:invalid\">"));
    /* A picture in a data: URL may be of any size. */
    wb_buf_clear(&body);
    repeat(&body, "<img src='data:image/png;base64,", 1);
    repeat(&body, "0123456789abcdef", 1 << 16);
    repeat(&body, "'>", 1);
    expect_bytes(WB_SLICE_EMPTY, rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options),
                 wb_buf_slice(&body));
    wb_buf_release(&body);
}

/* A long base makes each of many short links long. The output stays within its bound, and the time with it. */
static void test_long_base(void **state)
{
    static const char *const links[] = {"<a href=x>",
                                        "<p style='a:url(x)'>",
                                        "<img srcset='x,'>",
                                        "<iframe srcdoc='<a href=x>'></iframe>",
                                        "<style>@import 'x';</style>",
                                        "<meta http-equiv=refresh content='0;url=x'>",
                                        "<svg><style>a{b:url(x)}</style>",
                                        "<a href>",
                                        "<p style=\"a:url(x);'\">"};
    struct wb_buf body = WB_BUF_INIT;
    int64_t start = test_cpu_ns();

    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        wb_buf_clear(&body);
        repeat(&body, "<base href=\"/", 1);
        repeat(&body, "(&amp;')/&amp;'(", 2000);
        repeat(&body, "/\">", 1);
        repeat(&body, links[i], 20000);
        rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options);
        assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
        assert_true(result.urls > 0 && (result.urls_dropped > 1000 || strstr(links[i], "href>")));
    }
    wb_buf_release(&body);
    assert_true(test_cpu_ns() - start < INT64_C(60) * 1000000000);
}

/* What replaces invalid URLs is paid for, too: half of this sheet uses up the room, and the rest must not grow. */
static void test_invalid_urls(void **state)
{
    struct wb_buf body = WB_BUF_INIT;

    (void)state;
    repeat(&body, "a{b:image-set(", 1);
    repeat(&body, "'x' ", 100000);
    repeat(&body, "'//' ", 400000);
    repeat(&body, ")}", 1);
    rewrite("text/css", "utf-8", wb_buf_slice(&body), &plain_options);
    assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
    assert_true(result.urls > 1000 && result.urls_dropped >= 400000);
    wb_buf_release(&body);
}

/* The number of URLs that are resolved against a long base is bounded, not only what they add to the page. */
static void test_work_on_urls(void **state)
{
    struct wb_buf body = WB_BUF_INIT;

    (void)state;
    repeat(&body, "<base href=\"http://x.example/", 1);
    repeat(&body, "b/", 30000);
    repeat(&body, "\">", 1);
    repeat(&body, "<a href=/>y</a>", 300000); /* each of them is short when it is resolved */
    rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options);
    assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
    /* Resolved: 16 bytes for each byte of the page, and 4 MiB, with a base of 60,000 bytes each. */
    assert_true(result.urls <= (16 * body.len + (4 << 20)) / 60000);
    assert_int_equal(result.urls + result.urls_dropped, 300000);
    wb_buf_release(&body);
}

/* Where a page has more links than there is room for, those that a browser resolves to the same place stay relative. */
static void test_short_links(void **state)
{
    struct wb_replay_options options = plain_options;
    struct wb_buf body = WB_BUF_INIT;

    (void)state;
    repeat(&body, "<a href=x>y</a>", 50000);
    repeat(&body, "<a href=../x><a href=/x><a href=//x.example><a href=?a:b><a href=a.b/c?d=e&f>", 1);
    options.in_place = true;
    struct wb_slice got = rewrite("text/html", "utf-8", wb_buf_slice(&body), &options);
    assert_true(got.len <= WB_REPLAY_BYTES_MAX(body.len) && result.urls > 1000 && result.urls_dropped == 4);
    assert_true(
        wb_slice_ends(got, WB_SLICE_LIT("<a href=x>y</a><a href=\"#\"><a href=\"#\"><a href=\"#\"><a href=\"#\">"
                                        "<a href=a.b/c?d=e&f>")));
    /* Shown elsewhere, or with another base, it would lead elsewhere. */
    options.in_place = false;
    got = rewrite("text/html", "utf-8", wb_buf_slice(&body), &options);
    assert_true(result.urls_dropped > 1000 && wb_slice_ends(got, WB_SLICE_LIT("<a href=\"#\">")));
    options.in_place = true;
    repeat(&body, "<base href=/other/>", 1);
    got = rewrite("text/html", "utf-8", wb_buf_slice(&body), &options);
    assert_true(result.urls_dropped > 1000 && got.len <= WB_REPLAY_BYTES_MAX(body.len));
    wb_buf_release(&body);
}

/* Documents in documents cost no more than their length. */
static void test_deep_srcdoc(void **state)
{
    struct wb_buf body = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 5000; i++)
        repeat(&body, i % 2 ? "<iframe srcdoc=\"" : "<iframe srcdoc='", 1);
    repeat(&body, "<a href=/x>", 1);
    for (int i = 4999; i >= 0; i--)
        repeat(&body, i % 2 ? "\">" : "'>", 1);
    rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options);
    assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
    wb_buf_clear(&body);
    repeat(&body, "<iframe srcdoc='", 1);
    repeat(&body, "\"&", 100000);
    repeat(&body, "<p style=\"a:url(b)", 1);
    repeat(&body, "&amp;", 100000);
    repeat(&body, "\">'>", 1);
    rewrite("text/html", "latin1", wb_buf_slice(&body), &plain_options);
    assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
    wb_buf_release(&body);
}

/* Tags that are never closed, and unclosed values, take linear time. */
static void test_unclosed(void **state)
{
    static const char *const pieces[] = {
        "<a href=\"", "<a href='x", "<style>",           "<svg>",           "<![CDATA[",       "<!--",
        "url(",       "<script>",   "<p style=\"a:url(", "<img srcset=\"(", "<template><svg>", "</"};
    struct wb_buf body = WB_BUF_INIT;
    int64_t start = test_cpu_ns();

    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        wb_buf_clear(&body);
        repeat(&body, pieces[i], 50000);
        rewrite("text/html", "utf-8", wb_buf_slice(&body), &plain_options);
        assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
        rewrite("text/css", "utf-8", wb_buf_slice(&body), &plain_options);
        assert_true(output.len <= WB_REPLAY_BYTES_MAX(body.len));
    }
    wb_buf_release(&body);
    assert_true(test_cpu_ns() - start < INT64_C(60) * 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_odd_markup),  cmocka_unit_test(test_nul),       cmocka_unit_test(test_many_attributes),
        cmocka_unit_test(test_long_values), cmocka_unit_test(test_long_base), cmocka_unit_test(test_invalid_urls),
        cmocka_unit_test(test_deep_srcdoc), cmocka_unit_test(test_unclosed),  cmocka_unit_test(test_work_on_urls),
        cmocka_unit_test(test_short_links),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
