/* test_html.c - what is found in HTML: facts, text, main text. Links are in test_htmllinks.c. */
#include "extract_support.h"

#include "base/buf.h"
#include "base/date.h"
#include "base/error.h"

#define URL "https://example.org/dir/page.html"
#define LONG "This is a sentence of a paragraph that is long enough to be taken for the content of a page by anybody."

static void see_bytes(struct wb_slice body)
{
    struct wb_extract_input input = {WB_SLICE_LIT(URL), WB_SLICE_LIT("text/html"), WB_SLICE_LIT("utf-8"), body,
                                     WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};

    assert_int_equal(wb_extract(extractor, &input, &page), 0);
    assert_string_equal(page.module, "html");
}

static void see_xhtml(const char *xhtml)
{
    struct wb_extract_input input = {WB_SLICE_LIT(URL), WB_SLICE_LIT("application/xhtml+xml"), WB_SLICE_LIT("utf-8"),
                                     wb_slice_str(xhtml), WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};

    assert_int_equal(wb_extract(extractor, &input, &page), 0);
    assert_string_equal(page.module, "html");
}

static void see(const char *html)
{
    see_bytes(wb_slice_str(html));
}

static void expect_text(const char *html, const char *want)
{
    see(html);
    if (!wb_slice_equal(page.text, wb_slice_str(want)))
        fail_msg("%s\nwant '%s'\ngot  '%.*s'", html, want, WB_SLICE_ARG(page.text));
}

/* ---- facts --------------------------------------------------------------------------------- */

static void facts(void **state)
{
    (void)state;
    see("<!DOCTYPE html><html lang=' de-AT '><head><title> A &amp; B\n C</title><meta NAME=Description content=' d  e "
        "'>"
        "<meta name=robots content='NoIndex'><meta name=googlebot content=nofollow><meta name=robots "
        "content='noarchive'></head>");
    expect(page.title, "A & B C");
    expect(page.description, "d e");
    expect(page.lang, "de-AT");
    expect(page.robots, "NoIndex, noarchive");
    assert_int_equal(page.robots_flags, WB_ROBOTSTAG_NOINDEX | WB_ROBOTSTAG_NOARCHIVE);
    see("<title>one</title><title>two</title>");
    expect(page.title, "one");
    see("<svg><title>icon</title></svg><title>page</title>");
    expect(page.title, "page");
    expect(page.text, "");
    see("<title>unclosed <p>text");
    expect(page.title, "unclosed <p>text");
    see("<meta http-equiv=content-language content=fr>");
    expect(page.lang, "fr");
    see("<html xml:lang=it><meta http-equiv=content-language content=fr>");
    expect(page.lang, "it");
    see("<meta property=og:description content=og><meta name=description content=real><meta name=description "
        "content=second>");
    expect(page.description, "real");
    see("");
    expect(page.title, "");
    expect(page.lang, "");
    assert_int_equal(page.robots_flags, 0);
    assert_int_equal(page.published_ms, 0);
}

#define LD(json) "<script type=application/ld+json>" json "</script>"

static void dates(void **state)
{
    static const struct {
        const char *html;
        int64_t published_days, modified_days;
    } cases[] = {
        {"<meta property=article:published_time content=1970-01-03><meta property='article:modified_time' "
         "content='1970-01-05T00:00:00Z'>",
         2, 4},
        {"<meta name=DC.Date content=1970-01-02><meta name=dcterms.modified content=1970-01-04>", 1, 3},
        {"<meta name=date content=1970-01-02><meta property=article:published_time content=1970-01-09>", 8, 0},
        {"<meta property=article:published_time content=1970-01-09><meta name=date content=1970-01-02>", 8, 0},
        {"<meta itemprop=datePublished content=1970-01-02><time itemprop=dateModified datetime=1970-01-03></time>", 1,
         2},
        {"<meta http-equiv=last-modified content='Sat, 03 Jan 1970 00:00:00 GMT'>", 0, 2},
        {"<time datetime=1970-01-06>x</time><time datetime=1970-01-07>x</time>", 5, 0},
        {"<time datetime='last week'>x</time><time datetime=P1D></time><meta name=date content='nonsense'>", 0, 0},
        /* JSON-LD takes precedence over everything except article:... */
        {LD("{\"datePublished\":\"1970-01-02\",\"dateModified\":\"1970-01-03T00:00:00Z\"}"), 1, 2},
        {LD("{\"datePublished\":\"1970-01-02\"}") "<meta itemprop=datePublished content=1970-01-09><time "
                                                  "datetime=1970-01-08>x</time>",
         1, 0},
        {LD("{\"datePublished\":\"1970-01-02\"}") "<meta property=article:published_time content=1970-01-09>", 8, 0},
        {"<meta property=article:published_time content=1970-01-09>" LD("{\"datePublished\":\"1970-01-02\"}"), 8, 0},
        {LD("{") LD("[{}]") "<body>" LD("{\"dateModified\":\"1970-01-03\"}") LD("{\"dateModified\":\"1970-01-05\"}"), 0,
         2},
        {"<script type=' Application/LD+JSON; charset=utf-8'>{\"datePublished\":\"1970-01-02\"}</script>", 1, 0},
        {"<script type=text/javascript>{\"datePublished\":\"1970-01-02\"}</script><template>" LD(
             "{\"datePublished\":\"1970-01-02\"}") "</template>",
         0, 0},
        {LD("{\"datePublished\":\"soon\"}") "<meta name=date content=1970-01-04>", 3, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        see(cases[i].html);
        assert_int_equal(page.published_ms, cases[i].published_days * WB_DAY_MS);
        assert_int_equal(page.modified_ms, cases[i].modified_days * WB_DAY_MS);
    }
}

static void authors_and_types(void **state)
{
    static const struct {
        const char *html, *author, *type;
    } cases[] = {
        {"<p>x", "", ""},
        {"<meta name=author content=' Ann  B. '><meta property=og:type content=article>", "Ann B.", "article"},
        {"<meta property=article:author content=https://a.org/ann><meta name=dc.creator content=Bob>", "Bob", ""},
        {"<meta name=dc.creator content=Bob><meta name=author content=Ann><meta name=author content=Cid>", "Ann", ""},
        {"<meta name=author content=Ann><meta property=og:type content=website>" LD(
             "{\"@type\":\"NewsArticle\",\"author\":[\"D\",{\"name\":\"E\"}]}"),
         "D, E", "NewsArticle"},
        {LD("{\"@type\":\"Organization\",\"name\":\"x\"}") "<meta property=og:type content=article>", "", "article"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        see(cases[i].html);
        expect(page.author, cases[i].author);
        expect(page.type, cases[i].type);
    }
}

/* ---- text ---------------------------------------------------------------------------------- */

static void text(void **state)
{
    (void)state;
    expect_text("<title>t</title><h1>Head</h1><p>one\n two<p>three<b>four</b>", "Head\none two\nthreefour");
    expect_text("a<script>b</script>c<style>d</style>e<!-- f -->g<template>h</template>i", "aceg" "i");
    expect_text("<ul><li>a<li>b</ul><table><tr><td>1<td>2<tr><th>3</table>c<br>d<hr>e", "a\nb\n1 2\n3\nc\nd\ne");
    expect_text("  \n<p>  <p>\t</p>\n", "");
    expect_text("&lt;p&gt; &amp;amp; &nbsp; &notit; &copy &#0; x&#x20;&#32;y",
                "<p> &amp; \xc2\xacit; \xc2\xa9 \xef\xbf\xbd x y");
    expect_text("<pre>a\n  b</pre>", "a b");
    expect_text("<textarea>a <b> &amp;</textarea>x<xmp><b>&amp;</xmp>", "a <b> & x\n<b>&amp;");
    expect_text("a < b <3 </ x>c</>d<", "a < b <3 cd<");
    expect_text("<svg><text>in</text><style>no</style><![CDATA[<x>]]></svg><![CDATA[no]]>out", "in<x>out");
    expect_text("<svg><desc>no</desc><p>broke out<![CDATA[no]]>", "broke out");
    expect_text("<svg><foreignObject><div>a<![CDATA[no]]></div></foreignObject><![CDATA[b]]></svg>c", "a\nbc");
    expect_text("<math><mi>x</mi><mo>=</mo></math>", "x=");
    expect_text("<plaintext><b>&amp;", "<b>&amp;");
    expect_text("<template shadowrootmode=open>a</template>b<template>c</template>d", "abd");
    expect_text("<select><option>a<option>b</select>", "a\nb");
    expect_text("a\xc2\xa0\xe2\x80\x83 b\xe3\x80\x80" "c\xe2\x80\x94" "d", "a b c\xe2\x80\x94" "d");
    expect_text("<div>a</div><div>b</div><DIV\n>c</DIV\n>", "a\nb\nc");
}

/* Readings are shown above the text and are not part of it. */
static void ruby(void **state)
{
    (void)state;
    expect_text(
        "<p>\u4eca<ruby>\u6f22<rp>(</rp><rt>kan</rt><rp>)</rp>\u5b57<rp>(</rp><rt>ji</rt><rp>)</rp></ruby>\u3092",
        "\u4eca\u6f22\u5b57\u3092");
    expect_text("<ruby>\u6f22<rt>kan<rt>kan\u5b57</ruby>x", "\u6f22x");
    expect_text("<ruby><rb>\u6f22<rb>\u5b57<rt>kan<rt>ji</ruby>x", "\u6f22\u5b57x");
    expect_text("<ruby><rb>\u6f22<rtc>a<rt>kan<rb>\u5b57</ruby>x", "\u6f22\u5b57x");
    expect_text("<ruby>\u6f22<rt><b>ka</b>n</rt>\u5b57</ruby>", "\u6f22\u5b57");
    expect_text("<ruby>a<rt>b<p>c</p>d", "a\nc\nd");
    expect_text("a<rt>b</rt>c</ruby>d", "abcd");
    expect_text("<ruby>a<rt>b</ruby><ruby>c<rt>d</ruby>", "ac");
}

/* XHTML differs in empty elements and in CDATA. */
static void xhtml(void **state)
{
    static const char doc[] =
        "<html xml:lang='en'><head><title/><script src='s'/><style/></head><body><nav/><p>" LONG "</p>"
        "<p><a href='a'/>b<![CDATA[<c>]]><svg/><template/>d<textarea/>e</p></body></html>";

    (void)state;
    see_xhtml(doc);
    expect(page.text, LONG "\nb<c>d e");
    expect(page.main_text, LONG "\nb<c>d e");
    expect(page.links[0].anchor, "");
    expect(page.lang, "en");
    see(doc);
    expect(page.title, "<script src='s'/><style/></head><body><nav/><p>" LONG
                       "</p><p><a href='a'/>b<![CDATA[<c>]]><svg/><template/>d<textarea/>e</p></body></html>");
}

/* Text of every length at every offset, compared with an obvious implementation. */
static void text_in_wide_pieces(void **state)
{
    static const char *const pieces[] = {"a",        " ",        "&amp;",        "\n",
                                         "\xc3\xa4", "\xc2\xa0", "\xe3\x80\x80", "\xe3\x81\x82",
                                         "&",        "word",     "\xe2\x80\x99", "\t"};
    static const char *const means[] = {
        "a", " ", "&", " ", "\xc3\xa4", " ", " ", "\xe3\x81\x82", "&", "word", "\xe2\x80\x99", " "};
    struct wb_buf html = WB_BUF_INIT, want = WB_BUF_INIT;
    uint32_t random = 1;

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        wb_buf_clear(&html);
        wb_buf_clear(&want);
        for (unsigned n = round % 60; n > 0; n--) {
            random = random * 1664525u + 1013904223u;
            size_t k = (random >> 16) % 12;
            if (k == 8 && n > 1) /* the next byte might make it a reference */
                k = 9;
            assert_int_equal(wb_buf_append_str(&html, pieces[k]), 0);
            bool blank = *means[k] == ' ';
            if (!blank || (want.len && want.ptr[want.len - 1] != ' '))
                assert_int_equal(wb_buf_append_str(&want, means[k]), 0);
        }
        if (want.len && want.ptr[want.len - 1] == ' ')
            want.len--;
        see_bytes(wb_buf_slice(&html));
        if (!wb_slice_equal(page.text, wb_buf_slice(&want)))
            fail_msg("round %u: '%.*s' gave '%.*s'", round, WB_SLICE_ARG(wb_buf_slice(&html)), WB_SLICE_ARG(page.text));
    }
    wb_buf_release(&html);
    wb_buf_release(&want);
}

static void text_is_bounded(void **state)
{
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    while (html.len < WB_EXTRACT_TEXT_MAX + 1000)
        assert_int_equal(wb_buf_append_str(&html, "\xe2\x82\xac 0123456789abcdef<p>"), 0);
    size_t pieces = html.len / 23;
    see_bytes(wb_buf_slice(&html));
    assert_false(page.text_cut);
    assert_int_equal(page.text.len, pieces * 21 - 1);
    while (html.len < WB_EXTRACT_TEXT_MAX * 3 / 2)
        assert_int_equal(wb_buf_append_str(&html, "\xe2\x82\xac 0123456789abcdef<p>"), 0);
    see_bytes(wb_buf_slice(&html));
    assert_true(page.text_cut);
    assert_in_range(page.text.len, WB_EXTRACT_TEXT_MAX - 4, WB_EXTRACT_TEXT_MAX);
    see("short");
    assert_false(page.text_cut);
    wb_buf_release(&html);
}

static void main_text(void **state)
{
    static const struct {
        const char *html, *want;
    } cases[] = {
        {"<nav>Home</nav><p>" LONG "</p><footer>Imprint</footer>", LONG},
        {"<div role=navigation>Home <div>x</div> y</div><p>" LONG, LONG},
        {"<header>Site</header><main><h1>Head</h1><p>short</p></main><p>" LONG, "Head\nshort"},
        {"<article><header><h1>Head</h1></header><p>" LONG "</p><footer>by X</footer></article><p>" LONG,
         "Head\n" LONG},
        {"<ul><li><a href=a>One</a><li><a href=b>Two</a></ul><h2>Head</h2><p>" LONG
         "<p>short<ul><li><a href=c>Three</a></ul>",
         "Head\n" LONG "\nshort"},
        {"<p>" LONG "</p><h2>Related</h2><p><a href=a>" LONG "</a></p>", LONG},
        {"<p>a<p>b", "a\nb"},
        {"<p>" LONG "<select><option>One<option>Two</select><dialog>Three</dialog><p>short<p>" LONG,
         LONG "\nshort\n" LONG},
        {"<a href=a>only</a><p><a href=b>links</a>", "only\nlinks"},
        {"<h1><a href=a>Head</a></h1><p><a href=b>links</a><p>by me<p><a href=c>links</a><p>" LONG,
         "Head\nby me\n" LONG},
        {"<main><h2>Head</h2><p><a href=b>links</a></main>", "Head"},
        {"<nav>unclosed <p>" LONG, "unclosed\n" LONG},
        {"<nav>unclosed<main><p>short</main>", "short"},
        {"<div><nav>closed by its parent</div><p>" LONG, LONG},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        see(cases[i].html);
        if (!wb_slice_equal(page.main_text, wb_slice_str(cases[i].want)))
            fail_msg("%s\nwant '%s'\ngot  '%.*s'", cases[i].html, cases[i].want, WB_SLICE_ARG(page.main_text));
    }
}

static void deep_and_broken(void **state)
{
    static const char *const pieces[] = {"<div>",      "<div><nav>", "</div>",     "<svg>",  "<svg><desc>",
                                         "<math><mi>", "<template>", "<a href=x>", "<b><i>", "<table><tr><td>",
                                         "</p>",       "<p",         "<!--",       "<!",     "<![CDATA[",
                                         "<script>",   "&#",         "<a b=\"",    "<h1>"};
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        wb_buf_clear(&html);
        for (int n = 0; n < 20000; n++)
            assert_int_equal(wb_buf_append_str(&html, pieces[i]), 0);
        see_bytes(wb_buf_slice(&html));
    }
    /* Elements beyond the limit are counted, so that the place is right again behind them. */
    wb_buf_clear(&html);
    for (int n = 0; n < 1000; n++)
        assert_int_equal(wb_buf_append_str(&html, "<div>"), 0);
    assert_int_equal(wb_buf_append_str(&html, "<nav>deep</nav>"), 0);
    for (int n = 0; n < 1000; n++)
        assert_int_equal(wb_buf_append_str(&html, "</div>"), 0);
    assert_int_equal(wb_buf_append_str(&html, "<nav>no</nav><p>" LONG), 0);
    see_bytes(wb_buf_slice(&html));
    assert_null(memmem(page.main_text.ptr, page.main_text.len, "no\n", 3));
    assert_non_null(memmem(page.main_text.ptr, page.main_text.len, LONG, sizeof LONG - 1));
    wb_buf_release(&html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),
        cmocka_unit_test(dates),
        cmocka_unit_test(authors_and_types),
        cmocka_unit_test(text),
        cmocka_unit_test(ruby),
        cmocka_unit_test(xhtml),
        cmocka_unit_test(text_in_wide_pieces),
        cmocka_unit_test(text_is_bounded),
        cmocka_unit_test(main_text),
        cmocka_unit_test(deep_and_broken),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
