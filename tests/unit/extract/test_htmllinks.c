/* test_htmllinks.c - the links of HTML: every kind, their anchors, how they are resolved, and limits. */
#include "extract_support.h"

#include "base/buf.h"
#include "base/error.h"

#define URL "https://example.org/dir/page.html"

static struct wb_buf shown;

static int tear_down_shown(void **state)
{
    wb_buf_release(&shown);
    return tear_down(state);
}

static void see_bytes(struct wb_slice body)
{
    struct wb_extract_input input = {WB_SLICE_LIT(URL), WB_SLICE_LIT("text/html"), WB_SLICE_LIT("utf-8"), body,
                                     WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};

    assert_int_equal(wb_extract(extractor, &input, &page), 0);
    assert_string_equal(page.module, "html");
}

static void see(const char *html)
{
    see_bytes(wb_slice_str(html));
}

/* Writes the links as "tag url [anchor] (rel)", one per line; the page's folder is omitted from URLs. */
static const char *show_links(void)
{
    wb_buf_clear(&shown);
    for (size_t i = 0; i < page.link_count; i++) {
        const struct wb_extract_link *l = &page.links[i];
        struct wb_slice url = l->url, dir = WB_SLICE_LIT("https://example.org/dir/");
        if (wb_slice_starts(url, dir))
            url = wb_slice(url.ptr + dir.len, url.len - dir.len);
        assert_int_equal(wb_buf_printf(&shown, "%s %.*s", wb_extract_tag_name(l->tag), WB_SLICE_ARG(url)), 0);
        if (l->anchor.len)
            assert_int_equal(wb_buf_printf(&shown, " [%.*s]", WB_SLICE_ARG(l->anchor)), 0);
        if (l->rel.len)
            assert_int_equal(wb_buf_printf(&shown, " (%.*s)", WB_SLICE_ARG(l->rel)), 0);
        assert_int_equal(wb_buf_append_char(&shown, '\n'), 0);
    }
    assert_int_equal(wb_buf_terminate(&shown), 0);
    return shown.ptr;
}

static void expect_links(const char *html, const char *want)
{
    see(html);
    if (strcmp(show_links(), want) != 0)
        fail_msg("%s\nwant:\n%s\ngot:\n%s", html, want, shown.ptr);
}

static void every_kind_of_link(void **state)
{
    (void)state;
    expect_links("<a href=a>one</a>", "a a [one]\n");
    expect_links("<map><area href=b alt='two words'></map>", "area b [two words]\n");
    expect_links("<link rel=stylesheet href=s.css>", "link s.css (stylesheet)\n");
    expect_links("<iframe src=i>no <a href=x>x</a></iframe>", "iframe i\n");
    expect_links("<frameset><frame src=f1><frame src=f2></frameset>", "frame f1\nframe f2\n");
    expect_links("<img src=p.png alt=' a  picture '>", "img p.png [a picture]\n");
    expect_links("<form action='go?x=1'><input></form>", "form go?x=1\n");
    expect_links("<meta http-equiv=refresh content='0;url=next'>", "meta next\n");
    expect_links("<picture><source srcset='s1 1x, s2 2x'><img src=s3></picture>", "source s1\nsource s2\nimg s3\n");
    expect_links("<svg><a xlink:href='v'><text>t</text></a></svg>", "a v [t]\n");
    expect_links("<A HREF=a ReL=NoFollow>x</A>", "a a [x] (NoFollow)\n");
    assert_int_equal(page.links[0].rels, WB_EXTRACT_REL_NOFOLLOW);
}

static void links_that_are_none(void **state)
{
    (void)state;
    expect_links("<!-- <a href=a>x</a> -->", "");
    expect_links("<script>'<a href=a>x</a>'</script>", "");
    expect_links("<script><!-- <script> <a href=a> </script> <a href=b> --></script><a href=c>", "a c\n");
    expect_links("<style><a href=a></style>", "");
    expect_links("<textarea><a href=a></textarea><title><a href=b></title><xmp><a href=c></xmp>", "");
    expect_links("<noframes><a href=a></noframes><noembed><a href=b></noembed>", "");
    expect_links("<template><a href=a><template></template><a href=b></template><a href=c>", "a c\n");
    expect_links("<a name=x>no</a><img alt=x><form></form><iframe></iframe><link rel=canonical>", "");
    expect_links("<img src=''><iframe src=''></iframe><form action=''><link href=''>", "");
    expect_links("<a href=a", "");
    expect_links("<a href='a", "");
    expect_links("<plaintext><a href=a>", "");
    expect_links("&lt;a href=a&gt;", "");
    /* We do not run scripts, so the content of noscript counts. */
    expect_links("<noscript><a href=a>x</a></noscript>", "a a [x]\n");
}

static void hrefs(void **state)
{
    (void)state;
    see("<a href=' x?a=1&amp;b=2&copy=3&lt;&#x41; \n'>");
    expect(page.links[0].href, "x?a=1&b=2&copy=3<A");
    expect(page.links[0].url, "https://example.org/dir/x?a=1&b=2&copy=3%3CA");
    see("<a href=''>self</a><a href=#part>part</a><a href='?q#f'>query</a><a href='//other.org'>other</a><a "
        "href=/x>root</a><a href=../u>up</a>");
    expect(page.links[0].url, URL);
    expect(page.links[1].url, URL "#part");
    expect(page.links[2].url, URL "?q#f");
    expect(page.links[3].url, "https://other.org/");
    expect(page.links[4].url, "https://example.org/x");
    expect(page.links[5].url, "https://example.org/u");
    see("<a href='mailto:a@b.c'>m</a><a href='javascript:f(\"#\")'>j</a><a href='http://[bad'>bad</a><a "
        "href=tel:1>t</a>");
    expect(page.links[0].url, "mailto:a@b.c");
    expect(page.links[1].url, "javascript:f(\"#%22)");
    expect(page.links[2].url, "");
    expect(page.links[2].href, "http://[bad");
    expect(page.links[3].url, "tel:1");
    /* The first attribute with a name counts. */
    expect_links("<a href=a HREF=b href=c>", "a a\n");
    expect_links("<a href=\"a\"title=x>y</a><a/href=b>z</a>", "a a [y]\na b [z]\n");
}

/* In spite of the cache, every URL is what the URL parser gives. */
static void resolving_is_the_parsers(void **state)
{
    static const char *const hrefs[] = {
        "a#b",     "a #b",       "a#b c",      "a#<>",       "#",
        "#x",      "",           "a",          "a#",         "a##b",
        "http:#x", "http://h#x", "http://#x",  "mailto:x#y", "data:,a #b",
        "a\t#b",   "a#b\tc",     "?#",         "?a#b",       "//h#f",
        "/#f",     "..#f",       "a#\xc3\xa4", "\xc3\xa4#a", "javascript:#a",
        "%#%",     "a#b`c",      "https:a#b",  "x:#y",
    };
    static const char *const bases[] = {URL, "mailto:x", "data:text/html,y#z", "file:///a/b", "https://h/?q#f"};
    struct wb_url base = WB_URL_INIT, want = WB_URL_INIT;
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    for (int twice = 0; twice < 2; twice++)
        for (size_t i = 0; i < sizeof hrefs / sizeof *hrefs; i++)
            assert_int_equal(wb_buf_printf(&html, "<a href=\"%s\">", hrefs[i]), 0);
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        struct wb_extract_input input = {wb_slice_str(bases[b]), WB_SLICE_LIT("text/html"), WB_SLICE_LIT("utf-8"),
                                         wb_buf_slice(&html), WB_EXTRACT_LINKS};
        assert_int_equal(wb_url_parse(input.url, NULL, &base), 0);
        assert_int_equal(wb_extract(extractor, &input, &page), 0);
        assert_int_equal(page.link_count, 2 * sizeof hrefs / sizeof *hrefs);
        for (size_t i = 0; i < page.link_count; i++) {
            int err = wb_url_parse(page.links[i].href, &base, &want);
            if (!wb_slice_equal(page.links[i].url, err < 0 ? WB_SLICE_EMPTY : wb_url_href(&want)))
                fail_msg("'%.*s' against '%s': '%.*s'", WB_SLICE_ARG(page.links[i].href), bases[b],
                         WB_SLICE_ARG(page.links[i].url));
        }
    }
    wb_url_release(&base);
    wb_url_release(&want);
    wb_buf_release(&html);
}

static void bases(void **state)
{
    (void)state;
    see("<base href='/other/'><a href=a>");
    expect(page.links[0].url, "https://example.org/other/a");
    expect(page.base, "https://example.org/other/");
    see("<link href=l rel=canonical><a href=a>1</a><base target=x><base href='http://b.org/c/d'><base "
        "href='http://no.org/'><a href=a>2</a>");
    expect(page.links[0].url, "http://b.org/c/l");
    expect(page.links[1].url, "http://b.org/c/a");
    expect(page.links[2].url, "http://b.org/c/a");
    expect(page.canonical, "http://b.org/c/l");
    see("<base href='http://[nonsense'><a href=a>");
    expect(page.links[0].url, "https://example.org/dir/a");
    see("<template><base href='http://no.org/'></template><a href=a>");
    expect(page.base, URL);
}

static void anchors(void **state)
{
    (void)state;
    expect_links("<p>before <a href=a> some\n <b>bold</b>\ttext </a> after", "a a [ some bold text ]\n");
    /* A single blank beside a tag is text; anything else is layout. */
    expect_links("<a href=a>also </a>x", "a a [also ]\n");
    expect_links("<a href=a>\n  also\n</a><a href=b>two  </a><a href=c><b>three</b> </a>",
                 "a a [also]\na b [two]\na c [three]\n");
    expect_links("<a href=a> </a><a href=b> <b>x</b></a>", "a a\na b [x]\n");
    expect_links("<a href=a><img src=i alt='A &amp; B'></a>", "a a [A & B]\nimg i [A & B]\n");
    expect_links("<a href=a><img src=i alt=alt>text</a>", "a a [text]\nimg i [alt]\n");
    expect_links("<a href=a><div>one</div><div>two</div></a>", "a a [one two]\n");
    expect_links("<a href=a>one<br>two</a>", "a a [one two]\n");
    expect_links("<a href=a>one<a href=b>two<p>three</a>four", "a a [one]\na b [two three]\n");
    expect_links("<a href=a>one<script>no</script><!-- no --> two", "a a [one two]\n");
    expect_links("<a href=a>&lt;b&gt;&nbsp;&eacute;&#8364;</a>", "a a [<b> \xc3\xa9\xe2\x82\xac]\n");
    expect_links("x<a href=a></a>y", "a a\n");
}

static void long_anchors_are_cut(void **state)
{
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_buf_append_str(&html, "<a href=a>x"), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(wb_buf_append_str(&html, "\xe2\x82\xac"), 0);
    see_bytes(wb_buf_slice(&html));
    assert_int_equal(page.links[0].anchor.len, 511); /* one byte and 170 whole characters */
    assert_int_equal(page.text.len, 3001);
    wb_buf_release(&html);
}

static void srcsets(void **state)
{
    (void)state;
    expect_links("<img srcset='a, b'>", "img a\nimg b\n");
    expect_links("<img srcset='a,b 2x'>", "img a,b\n");
    expect_links("<img srcset=' ,, a 100w , b(1,2) 2x,c'>", "img a\nimg b(1,2)\nimg c\n");
    expect_links("<img srcset='a (x,y) 1x, b'>", "img a\nimg b\n");
    expect_links("<img src=s srcset='data:image/png;base64,xx== 1x, b,' alt=t>",
                 "img s [t]\nimg data:image/png;base64,xx== [t]\nimg b [t]\n");
    expect_links("<img srcset=''><img srcset=',,,'><source srcset=' '>", "");
}

static void refreshes(void **state)
{
    static const struct {
        const char *content, *want;
    } cases[] = {
        {"0; url=a", "meta a\n"},
        {"5;URL='a b'", "meta a%20b\n"},
        {"5 ; Url = \"a\" rest", "meta a\n"},
        {"1.5, a", "meta a\n"},
        {"0;a", "meta a\n"},
        {"0 a", "meta a\n"},
        {".5;url=a", "meta a\n"},
        {"  3 ;  url=a", "meta a\n"},
        {"0;url a", "meta url%20a\n"},
        {"0;'a", "meta a\n"},
        {"0;url=", ""},
        {"10", ""},
        {"x;url=a", ""},
        {"", ""},
        {"0x;url=a", ""},
        {"; url=a", ""},
        {"0;u=a", "meta u=a\n"},
        {"0;url='a\"b'", "meta a%22b\n"},
    };
    char html[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wb_buf_clear(&shown);
        for (const char *p = cases[i].content; *p; p++)
            assert_int_equal(wb_buf_append_str(&shown, *p == '"' ? "&quot;" : (char[]){*p, 0}), 0);
        assert_int_equal(wb_buf_terminate(&shown), 0);
        snprintf(html, sizeof html, "<meta http-equiv=Refresh content=\"%s\">", shown.ptr);
        expect_links(html, cases[i].want);
    }
    expect_links("<meta http-equiv=refresh content='bad'><meta http-equiv=refresh content='0;a'><meta "
                 "http-equiv=refresh content='0;b'>",
                 "meta a\n");
    expect_links("<meta http-equiv=refresh content='9'><meta http-equiv=refresh content='0;b'>", "");
}

static void rels(void **state)
{
    (void)state;
    see("<link rel='Alternate' type='application/RSS+xml; charset=x' href=f><link rel=alternate hreflang=de href=d>"
        "<a rel='external nofollow\tnoopener' href=n>x</a><link rel=canonical href='../c'><link rel=canonical "
        "href=second>");
    assert_int_equal(page.links[0].rels, WB_EXTRACT_REL_ALTERNATE | WB_EXTRACT_REL_FEED);
    assert_int_equal(page.links[1].rels, WB_EXTRACT_REL_ALTERNATE);
    assert_int_equal(page.links[2].rels, WB_EXTRACT_REL_NOFOLLOW);
    assert_int_equal(page.links[3].rels, WB_EXTRACT_REL_CANONICAL);
    expect(page.canonical, "https://example.org/c");
    see("<a href=x rel=nofollower>");
    assert_int_equal(page.links[0].rels, 0);
}

static void too_many_links(void **state)
{
    struct wb_buf html = WB_BUF_INIT;

    (void)state;
    for (unsigned i = 0; i < WB_EXTRACT_LINKS_MAX + 10; i++)
        assert_int_equal(wb_buf_printf(&html, "<a href=%u>x", i), 0);
    see_bytes(wb_buf_slice(&html));
    assert_int_equal(page.link_count, WB_EXTRACT_LINKS_MAX);
    assert_int_equal(page.links_left_out, 10);
    expect(page.links[WB_EXTRACT_LINKS_MAX - 1].anchor, "x");
    /* A long base makes every URL long; memory is bounded nevertheless. */
    wb_buf_clear(&html);
    assert_int_equal(wb_buf_printf(&html, "<base href='/%060000d/'>", 1), 0);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(wb_buf_printf(&html, "<a href=%u>x", i), 0);
    see_bytes(wb_buf_slice(&html));
    assert_true(page.link_count > 100 && page.link_count < 1000);
    assert_int_equal(page.links_left_out, 5000 - page.link_count);
    /* The same if the base comes after the links. */
    wb_buf_clear(&html);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(wb_buf_printf(&html, "<a href=%u>x", i), 0);
    assert_int_equal(wb_buf_printf(&html, "<base href='/%060000d/'><a href=y>z", 1), 0);
    see_bytes(wb_buf_slice(&html));
    assert_true(page.link_count > 100 && page.link_count < 1000);
    assert_int_equal(page.links_left_out, 5001 - page.link_count);
    wb_buf_release(&html);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_link),
        cmocka_unit_test(links_that_are_none),
        cmocka_unit_test(hrefs),
        cmocka_unit_test(resolving_is_the_parsers),
        cmocka_unit_test(bases),
        cmocka_unit_test(anchors),
        cmocka_unit_test(long_anchors_are_cut),
        cmocka_unit_test(srcsets),
        cmocka_unit_test(refreshes),
        cmocka_unit_test(rels),
        cmocka_unit_test(too_many_links),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down_shown);
}
