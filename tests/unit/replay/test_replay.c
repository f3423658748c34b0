/* test_replay.c - what becomes of each thing that a page can name. */
#include "replay_support.h"
#include "../allocfail.h"

static void test_urls(void **state)
{
    static const struct {
        const char *body, *want;
    } cases[] = {
        {"<a href=\"http://example.com/x\">", "<a href=\"" IN_ARCHIVE "http://example.com/x\">"},
        {"<a href='/x'>", "<a href='" IN_ARCHIVE "https://example.org/x'>"},
        {"<a href=x>", "<a href=\"" IN_ARCHIVE "https://example.org/dir/x\">"},
        {"<a href = x class=c>", "<a href = \"" IN_ARCHIVE "https://example.org/dir/x\" class=c>"},
        {"<A HREF=\" //CDN.example.com/z \" >", "<A HREF=\"" IN_ARCHIVE "https://cdn.example.com/z\" >"},
        {"<a href=\"?a=1&amp;b=2&copy=3#f\">", "<a href=\"" IN_ARCHIVE HERE "?a=1&amp;b=2&amp;copy=3#f\">"},
        {"<a href=\"it's\">", "<a href=\"" IN_ARCHIVE "https://example.org/dir/it&#39;s\">"},
        {"<a href=\"h&eacute;\">", "<a href=\"" IN_ARCHIVE "https://example.org/dir/h%C3%A9\">"},
        {"<a href=\"ftp://example.com/\">", "<a href=\"" IN_ARCHIVE "ftp://example.com/\">"},
        /* what only makes sense in the page */
        {"<a href=\"#f\">", "<a href=\"#f\">"},
        {"<a href=\"\"><a href>", "<a href=\"\"><a href>"},
        {"<a href=\"mailto:a@example.org\"><img src='data:image/gif;base64,R0l='>",
         "<a href=\"mailto:a@example.org\"><img src='data:image/gif;base64,R0l='>"},
        {"<iframe src=about:blank></iframe>", "<iframe src=about:blank></iframe>"},
        {"<a href=\"javascript:void(0)\">", "<a href=\"#\">"},
        {"<a href=\" Java&#115;cript&colon;x\">", "<a href=\"#\">"},
        {"<a href=\"java\nscript:x\">", "<a href=\"#\">"},
        {"<iframe src=javascript:x></iframe>", "<iframe src=\"about:blank\"></iframe>"},
        {"<a href=\"http://[\">", "<a href=\"about:invalid\">"},
        {"<script src=\"file:///x.js\">", "<script src=\"" IN_ARCHIVE "file:///x.js\">"},
        /* the same attribute of any element */
        {"<img src=a><input src=b><embed src=c><script src=d></script><video src=e poster=f><track src=g>",
         "<img src=\"" IN_ARCHIVE "https://example.org/dir/a\"><input src=\"" IN_ARCHIVE
         "https://example.org/dir/b\"><embed src=\"" IN_ARCHIVE "https://example.org/dir/c\"><script src=\"" IN_ARCHIVE
         "https://example.org/dir/d\"></script><video src=\"" IN_ARCHIVE
         "https://example.org/dir/e\" poster=\"" IN_ARCHIVE "https://example.org/dir/f\"><track src=\"" IN_ARCHIVE
         "https://example.org/dir/g\">"},
        {"<form action=/a><button formaction=/b>",
         "<form action=\"" IN_ARCHIVE "https://example.org/a\"><button formaction=\"" IN_ARCHIVE
         "https://example.org/b\">"},
        {"<object data=/a><p data=/a>", "<object data=\"" IN_ARCHIVE "https://example.org/a\"><p data=/a>"},
        {"<body background=/a><q cite=/b><img longdesc=/c>",
         "<body background=\"" IN_ARCHIVE "https://example.org/a\"><q cite=\"" IN_ARCHIVE
         "https://example.org/b\"><img longdesc=\"" IN_ARCHIVE "https://example.org/c\">"},
        {"<html manifest=/a><p manifest=/a>", "<html manifest=\"" IN_ARCHIVE "https://example.org/a\"><p manifest=/a>"},
        {"<svg><image href=/a /><use xlink:href='#b'/><a xlink:href=/c>",
         "<svg><image href=\"" IN_ARCHIVE "https://example.org/a\" /><use xlink:href='#b'/><a xlink:href=\"" IN_ARCHIVE
         "https://example.org/c\">"},
        /* what must go */
        {"<script src=/a integrity=sha384-x crossorigin nonce='n'></script>",
         "<script src=\"" IN_ARCHIVE "https://example.org/a\"      ></script>"},
        {"<a ping='/p'href=#f>", "<a  href=#f>"},
        {"<a/ping>", "<a/ >"},
        /* what is not markup */
        {"<!-- <a href=/x> --><title><a href=/x></title><script>'<a href=/x>'</script><textarea><a href=/x></textarea>",
         "<!-- <a href=/x> --><title><a href=/x></title><script>'<a href=/x>'</script><textarea><a "
         "href=/x></textarea>"},
        {"a < b & c &eacute; <br/> \xff \xc3\xa9\r\n", "a < b & c &eacute; <br/> \xff \xc3\xa9\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_html(cases[i].body, cases[i].want);
    expect_html("<a href=/a><a href=javascript:x>", "<a href=\"" IN_ARCHIVE "https://example.org/a\"><a href=\"#\">");
    assert_int_equal(result.kind, WB_REPLAY_HTML);
    assert_string_equal(result.charset, "utf-8");
    assert_int_equal(result.urls, 1);
    assert_int_equal(result.urls_dropped, 1);
}

static void test_base(void **state)
{
    (void)state;
    /* It applies to links before it, and only the first one counts; its target stays. */
    expect_html("<a href=x><base target=_top href=//example.com/d/><base href=/e/><a href=#f><img src=''>",
                "<a href=\"" IN_ARCHIVE "https://example.com/d/x\"><base target=_top  ><base  ><a href=\"" IN_ARCHIVE
                "https://example.com/d/#f\"><img src=''>");
    expect_html("<base href=/e/><a href><svg><use href=#a>",
                "<base  ><a href=\"" IN_ARCHIVE "https://example.org/e/\"><svg><use href=#a>");
    /* One that names the page itself changes nothing. */
    expect_html("<base href=page.html><a href=#f>", "<base  ><a href=#f>");
    /* In svg it is just an element. */
    expect_html("<svg><base href=/e/></base></svg><a href=x>",
                "<svg><base href=\"" IN_ARCHIVE "https://example.org/e/\"></base></svg><a href=\"" IN_ARCHIVE
                "https://example.org/dir/x\">");
}

static void test_srcset(void **state)
{
    (void)state;
    expect_html("<img srcset=\" a 1x, /b,c 2x,d\">",
                "<img srcset=\" " IN_ARCHIVE "https://example.org/dir/a 1x, " IN_ARCHIVE
                "https://example.org/b,c 2x," IN_ARCHIVE "https://example.org/dir/d\">");
    expect_html("<source srcset='a, b (x,y), ,,'>",
                "<source srcset='" IN_ARCHIVE "https://example.org/dir/a, " IN_ARCHIVE
                "https://example.org/dir/b (x,y), ,,'>");
    expect_html("<img srcset='data:,x 2x'>", "<img srcset='data:,x 2x'>");
    expect_html("<img srcset=''><img srcset>", "<img srcset=''><img srcset>");
    expect_html("<link imagesrcset=a>", "<link imagesrcset=\"" IN_ARCHIVE "https://example.org/dir/a\">");
}

static void test_css(void **state)
{
    (void)state;
    expect_html("<style>@import 'a';b{c:url(/d)}</style><a>url(/d)</a>",
                "<style>@import '" IN_ARCHIVE "https://example.org/dir/a';b{c:url(" IN_ARCHIVE
                "https://example.org/d)}</style><a>url(/d)</a>");
    expect_html("<p style='a:url(/b)'>", "<p style='a:url(" IN_ARCHIVE "https://example.org/b)'>");
    expect_html("<p style=\"a:url(&quot;/b?c&amp;d&quot;);e:'\xc3\xa9'\">",
                "<p style=\"a:url(&quot;" IN_ARCHIVE "https://example.org/b?c&amp;d&quot;);e:&#39;\xc3\xa9&#39;\">");
    expect_html("<p style=\"color:&quot;x&quot;;b:url(#c)\">", "<p style=\"color:&quot;x&quot;;b:url(#c)\">");
    expect_html("<p style=\"a:url('/(b)')\">",
                "<p style=\"a:url(&#39;" IN_ARCHIVE "https://example.org/\\(b\\)&#39;)\">");
    expect_html("<svg><style>a{b:url(/c?d&amp;e)}</style><style><![CDATA[a{b:url(/c?d&e)}]]></style><style/>url(/f)",
                "<svg><style>a{b:url(" IN_ARCHIVE
                "https://example.org/c?d&amp;e)}</style><style><![CDATA[a{b:url(" IN_ARCHIVE
                "https://example.org/c?d&e)}]]></style><style/>url(/f)");
    expect_html("<svg><path fill='url(/a#b)'></svg><path fill='url(/a)'>",
                "<svg><path fill='url(" IN_ARCHIVE "https://example.org/a#b)'></svg><path fill='url(/a)'>");
    struct wb_slice got =
        rewrite("text/css", "", WB_SLICE_LIT("a{b:url(../c)}@import\"d\";e{f:url(data:,x)}"), &plain_options);
    expect_bytes(WB_SLICE_EMPTY, got,
                 WB_SLICE_LIT("a{b:url(" IN_ARCHIVE "https://example.org/c)}@import\"" IN_ARCHIVE
                              "https://example.org/dir/d\";e{f:url(data:,x)}"));
    assert_int_equal(result.kind, WB_REPLAY_CSS);
}

static void test_meta(void **state)
{
    (void)state;
    expect_html("<meta http-equiv=refresh content='5; url=\"/a\"'>",
                "<meta http-equiv=refresh content='5;url=" IN_ARCHIVE "https://example.org/a'>");
    expect_html("<meta content=0;/a http-equiv=\" Refresh\">",
                "<meta content=\"0;url=" IN_ARCHIVE "https://example.org/a\" http-equiv=\" Refresh\">");
    expect_html("<meta http-equiv=refresh content=5>", "<meta http-equiv=refresh content=5>");
    expect_html("<meta http-equiv=refresh content='0;url=javascript:x'>", "<meta http-equiv=refresh content=''>");
    expect_html("<meta name=x content='0;url=/a'>", "<meta name=x content='0;url=/a'>");
    /* With its first http-equiv, a second one would go into effect. */
    expect_html("<meta http-equiv='Content-Security-Policy' http-equiv=refresh content=\"img-src 'none'\">",
                "<meta     content=\"img-src 'none'\">");
    expect_html("<meta http-equiv=content-security-policy-report-only content=x>", "<meta   content=x>");
}

static void test_srcdoc(void **state)
{
    (void)state;
    expect_html("<iframe srcdoc=\"<a href='/x?a&amp;amp;b'>&lt;b></a>\">",
                "<iframe srcdoc=\"&lt;a href=&#39;" IN_ARCHIVE
                "https://example.org/x?a&amp;amp;b&#39;&gt;&lt;b&gt;&lt;/a&gt;\">");
    /* A document in a document in a document is dropped. */
    expect_html("<iframe srcdoc='<iframe srcdoc=\"<a href=/x>\">'>",
                "<iframe srcdoc='&lt;iframe srcdoc=&quot;&quot;&gt;'>");
    expect_html("<p srcdoc='<a href=/x>'>", "<p srcdoc='<a href=/x>'>");
}

/* On origins of their own, pages stay as they are, as far as they can. */
static void test_origins(void **state)
{
    struct wb_replay_base base = {false, WB_SLICE_LIT("localhost:8081")};
    struct wb_replay_options options = {.origins = &base, .in_place = true};
    static const char *const cases[][2] = {
        {"<a href='javascript:x()'><iframe src=javascript:y></iframe>", NULL},
        {"<base href=/d/><a href=/z><a href=../y?a#b><a href='#c'><a href=''><img src=x:y>", NULL},
        {"<script src=a.js crossorigin></script><a target=_top href=?q><style>a{b:url(/c)}</style>", NULL},
        {"<a href=https://example.org/z>", "<a href=\"http://" TIME "-https-example-org.localhost:8081/z\">"},
        {"<base href=//cdn.example.com/d/>", "<base href=\"http://" TIME "-https-cdn-example-com.localhost:8081/d/\">"},
        {"<a href='/\t\\h/'>", "<a href='http://" TIME "-https-h.localhost:8081/'>"},
        {"<img srcset='a 1x, http://b:81/ 2x'>", "<img srcset='a 1x, http://" TIME "-http81-b.localhost:8081/ 2x'>"},
        {"<a href=https:x>", "<a href=\"http://" TIME "-https-example-org.localhost:8081/dir/x\">"},
        {"<p style='a:url(//b/c)'>", "<p style='a:url(http://" TIME "-https-b.localhost:8081/c)'>"},
        {"<a href='http://[::1]/'><script integrity=x nonce=y>", "<a href='about:invalid'><script    >"},
        {"<script src='file:///x.js'></script><link rel=stylesheet href='FILE:///x.css'>", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wb_slice body = wb_slice_str(cases[i][0]);
        expect_bytes(body, rewrite("text/html", "", body, &options), cases[i][1] ? wb_slice_str(cases[i][1]) : body);
    }
    /* What is shown under another address than its own has no relative references. */
    options.in_place = false;
    struct wb_slice body = WB_SLICE_LIT("<base href=/d/><a href=z>");
    expect_bytes(body, rewrite("text/html", "", body, &options),
                 WB_SLICE_LIT("<base  ><a href=\"http://" TIME "-https-example-org.localhost:8081/d/z\">"));
}

/* In the frame of a page of ours, links lead that one on; what is put at the front comes before all that is loaded. */
static void test_outermost(void **state)
{
    struct wb_buf refresh = WB_BUF_INIT;
    struct wb_replay_options options = {
        .prefix = WB_SLICE_LIT("/web/"), .front = WB_SLICE_LIT("<base>"), .outermost = true, .refresh = &refresh};
    static const char *const fronts[][2] = {
        {"<!DOCTYPE html><html><head lang=x><script>", "<!DOCTYPE html><html><head lang=x><base><script>"},
        {"<!-- --><meta charset=utf-8><title>", "<!-- --><base><meta charset=utf-8><title>"},
        {" text <p>", "<base> text <p>"},
        {"<HTML><body>", "<HTML><base><body>"},
    };
    struct wb_slice body;

    (void)state;
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
        body = wb_slice_str(fronts[i][0]);
        expect_bytes(body, rewrite("text/html", "", body, &options), wb_slice_str(fronts[i][1]));
    }
    body = WB_SLICE_LIT("<a target=_SELF><a target=x target=_top><a formtarget='_parent'><a target>"
                        "<meta http-equiv=refresh content='7;url=/d'><meta http-equiv=refresh content='1;url=/e'>");
    expect_bytes(body, rewrite("text/html", "", body, &options),
                 WB_SLICE_LIT("<base><a  ><a target=x target=_top><a  ><a  >"
                              "<meta http-equiv=refresh content='7;url=" IN_ARCHIVE "https://example.org/d'>"
                              "<meta http-equiv=refresh content='1;url=" IN_ARCHIVE "https://example.org/e'>"));
    expect_bytes(body, wb_buf_slice(&refresh), WB_SLICE_LIT("7;url=" IN_ARCHIVE "https://example.org/d"));
    wb_buf_release(&refresh);
}

/* Where the reader is stays in the archive, whatever the page says. */
static void test_referrer(void **state)
{
    (void)state;
    expect_html("<meta name=referrer content=unsafe-url>", "<meta name=referrer  >");
    expect_html("<META CONTENT='always' NAME=' Referrer '>", "<META   NAME=' Referrer '>");
    expect_html("<meta name=keywords content=unsafe-url>", "<meta name=keywords content=unsafe-url>");
    expect_html("<p referrerpolicy=unsafe-url id=x>", "<p   id=x>");
}

/* Pages in other encodings keep their bytes, unless a byte of them may look like a tag and not be one. */
static void test_charsets(void **state)
{
    struct wb_slice got, body;

    (void)state;
    body = WB_SLICE_LIT("\xe9<a href='\xe9' style='a:url(b);c:\"\x80\"'>\x80");
    got = rewrite("text/html", "iso-8859-1", body, &plain_options);
    expect_bytes(body, got,
                 WB_SLICE_LIT("\xe9<a href='" IN_ARCHIVE "https://example.org/dir/%C3%A9' style='a:url(" IN_ARCHIVE
                              "https://example.org/dir/b);c:&quot;&#8364;&quot;'>\x80"));
    assert_string_equal(result.charset, "windows-1252");
    /* What is malformed becomes U+FFFD, as in all of extract; U+FEFF in a value is not a BOM. */
    body = WB_SLICE_LIT("\xff<a href='\xf2\xbfI'><a href='\xef\xbb\xbf\xff'><a href='\xef\xbb\xbf'>");
    got = rewrite("text/html", "utf-8", body, &plain_options);
    expect_bytes(body, got,
                 WB_SLICE_LIT("\xff<a href='" IN_ARCHIVE "https://example.org/dir/%EF%BF%BDI'><a href='" IN_ARCHIVE
                              "https://example.org/dir/%EF%BB%BF%EF%BF%BD'><a href='" IN_ARCHIVE
                              "https://example.org/dir/%EF%BB%BF'>"));
    body = WB_SLICE_LIT("<style>a{b:url(\xe9\\e9 )}</style>\xe9");
    got = rewrite("text/html", "windows-1252", body, &plain_options);
    expect_bytes(body, got,
                 WB_SLICE_LIT("<style>a{b:url(" IN_ARCHIVE "https://example.org/dir/%C3%A9%C3%A9)}</style>\xe9"));
    body = WB_SLICE_LIT("\xff\xfe<\0a\0 \0h\0r\0e\0f\0=\0\xe9\0>\0\xe9\0");
    got = rewrite("text/html", "", body, &plain_options);
    expect_bytes(body, got, WB_SLICE_LIT("<a href=\"" IN_ARCHIVE "https://example.org/dir/%C3%A9\">\xc3\xa9"));
    assert_string_equal(result.charset, "utf-8");
    body = WB_SLICE_LIT("<a href=x>\x1b$B<\"\x1b(B</a>"); /* in ISO-2022-JP, a byte '<' may be half of a character */
    got = rewrite("text/html", "iso-2022-jp", body, &plain_options);
    expect_bytes(body, got, WB_SLICE_LIT("<a href=\"" IN_ARCHIVE "https://example.org/dir/x\">\xe6\xbb\x8b</a>"));
    body = WB_SLICE_LIT("\xef\xbb\xbf<a href=x>");
    got = rewrite("text/html", "windows-1252", body, &plain_options);
    expect_bytes(body, got, WB_SLICE_LIT("\xef\xbb\xbf<a href=\"" IN_ARCHIVE "https://example.org/dir/x\">"));
    assert_string_equal(result.charset, "utf-8");
    body = WB_SLICE_LIT("@charset \"shift_jis\";a{b:url('\x95\x5c.png')}"); /* the second byte looks like a backslash */
    got = rewrite("text/css", "", body, &plain_options);
    expect_bytes(
        body, got,
        WB_SLICE_LIT("@charset \"shift_jis\";a{b:url('" IN_ARCHIVE "https://example.org/dir/%E8%A1%A8.png')}"));
    assert_string_equal(result.charset, "utf-8");
}

static void test_types(void **state)
{
    struct wb_slice body = WB_SLICE_LIT("<a href=/x>"), got;

    (void)state;
    static const char *const others[] = {"text/plain", "application/javascript", "image/png", "application/rss+xml"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        expect_bytes(body, rewrite(others[i], "", body, &plain_options), body);
        assert_int_equal(result.kind, WB_REPLAY_UNCHANGED);
        assert_string_equal(result.charset, "");
    }
    rewrite("", "", WB_SLICE_LIT("<!doctype html><a href=/x>"), &plain_options);
    assert_int_equal(result.kind, WB_REPLAY_HTML);
    assert_int_equal(result.urls, 1);
    /* Browsers show a feed that is served as HTML as HTML. */
    rewrite("text/html", "", WB_SLICE_LIT("<rss><a href=/x>"), &plain_options);
    assert_int_equal(result.urls, 1);
    body =
        WB_SLICE_LIT("<svg xmlns='http://www.w3.org/2000/svg'><image href='a'/><style>b{c:url(d&amp;e)}</style></svg>");
    got = rewrite("image/svg+xml", "", body, &plain_options);
    expect_bytes(body, got,
                 WB_SLICE_LIT("<svg xmlns='http://www.w3.org/2000/svg'><image href='" IN_ARCHIVE
                              "https://example.org/dir/a'/><style>b{c:url(" IN_ARCHIVE
                              "https://example.org/dir/d&amp;e)}</style></svg>"));
    assert_int_equal(result.kind, WB_REPLAY_SVG);
    body = WB_SLICE_LIT("<html><style/><a href='x'/><![CDATA[<a href='y'>]]></html>");
    got = rewrite("application/xhtml+xml", "", body, &plain_options);
    expect_bytes(body, got,
                 WB_SLICE_LIT("<html><style/><a href='" IN_ARCHIVE
                              "https://example.org/dir/x'/><![CDATA[<a href='y'>]]></html>"));
}

static void test_arguments(void **state)
{
    struct wb_replay_page page = {WB_SLICE_LIT(HERE), WB_SLICE_LIT("2026010203040"), WB_SLICE_LIT("text/html"),
                                  WB_SLICE_EMPTY, WB_SLICE_LIT("<a href=/x>")};
    struct wb_replay_options options = plain_options;
    struct wb_buf out = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_replay_rewrite(replayer, &page, &options, &out, &result), WB_E_INVALID);
    page.time = WB_SLICE_LIT("2026010203040x");
    assert_int_equal(wb_replay_rewrite(replayer, &page, &options, &out, &result), WB_E_INVALID);
    page.time = WB_SLICE_LIT(TIME);
    options.prefix = WB_SLICE_LIT("/\">");
    assert_int_equal(wb_replay_rewrite(replayer, &page, &options, &out, &result), WB_E_INVALID);
    assert_int_equal(out.len, 0);
    /* A page whose URL is invalid has no base. */
    page.url = WB_SLICE_LIT("x");
    page.body = WB_SLICE_LIT("<a href=/x><a href=http://example.com>");
    assert_int_equal(wb_replay_rewrite(replayer, &page, &plain_options, &out, &result), 0);
    expect_bytes(page.body, wb_buf_slice(&out),
                 WB_SLICE_LIT("<a href=\"about:invalid\"><a href=\"" IN_ARCHIVE "http://example.com/\">"));
    wb_buf_release(&out);
}

static void test_location(void **state)
{
    struct wb_replay_page page = {WB_SLICE_LIT(HERE), WB_SLICE_LIT(TIME), WB_SLICE_EMPTY, WB_SLICE_EMPTY,
                                  WB_SLICE_EMPTY};
    struct wb_buf out = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_replay_location(&page, WB_SLICE_LIT("/web/"), false, WB_SLICE_LIT("../x?y#z"), &out), 0);
    expect_bytes(page.url, wb_buf_slice(&out), WB_SLICE_LIT(IN_ARCHIVE "https://example.org/x?y#z"));
    wb_buf_clear(&out);
    assert_int_equal(wb_replay_location(&page, WB_SLICE_LIT("/web/"), false, WB_SLICE_LIT("javascript:x"), &out),
                     WB_E_PROTO);
    assert_int_equal(wb_replay_location(&page, WB_SLICE_LIT("/web/"), false, WB_SLICE_LIT("http://["), &out),
                     WB_E_PROTO);
    page.time = WB_SLICE_EMPTY;
    assert_int_equal(wb_replay_location(&page, WB_SLICE_LIT("/web/"), false, WB_SLICE_LIT("/"), &out), WB_E_INVALID);
    assert_int_equal(out.len, 0);
    wb_buf_release(&out);
}

/* Whichever allocation fails, the call fails, the output is as before, and the next call works. */
static void test_out_of_memory(void **state)
{
    struct wb_slice body = WB_SLICE_LIT("<base href=/b/><a href='x&amp;y' style='a:url(\\62)'><img srcset='\xe9 2x'>"
                                        "<style>a{b:url(c)}</style><iframe srcdoc='<a href=z>'>");
    struct wb_replay_page page = {WB_SLICE_LIT(HERE), WB_SLICE_LIT(TIME), WB_SLICE_LIT("text/html"),
                                  WB_SLICE_LIT("latin1"), body};
    struct wb_buf out = WB_BUF_INIT;
    size_t n = 0;

    (void)state;
    for (bool failed = true; failed; n++) {
        struct wb_replayer *r = NULL;
        wb_buf_release(&out);
        alloc_fail_nth(n);
        int err = wb_replayer_new(&r);
        if (err == 0)
            err = wb_replay_rewrite(r, &page, &plain_options, &out, &result);
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        assert_true(!failed || out.len == 0);
        wb_replayer_free(r);
    }
    assert_true(n > 20);
    wb_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),     cmocka_unit_test(test_base),          cmocka_unit_test(test_srcset),
        cmocka_unit_test(test_css),      cmocka_unit_test(test_meta),          cmocka_unit_test(test_srcdoc),
        cmocka_unit_test(test_origins),  cmocka_unit_test(test_outermost),     cmocka_unit_test(test_referrer),
        cmocka_unit_test(test_charsets), cmocka_unit_test(test_types),         cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_location), cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
