/* test_sitemap.c - sitemaps, feeds and other XML: the conformance files, and what they do not cover. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "../testdata.h"
#include "../cost.h"
#include "base/date.h"
#include "base/error.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/path.h"
#include "extract/extract.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

static struct wb_extractor *x;

static int make_extractor(void **state)
{
    (void)state;
    return wb_extractor_new(&x);
}

static int drop_extractor(void **state)
{
    (void)state;
    wb_extractor_free(x);
    return 0;
}

/* ---- the conformance files ------------------------------------------------------------------ */

/* The n-th link with a tag (0: any tag). */
static const struct wb_extract_link *nth_link(const struct wb_extract *out, int tag, size_t n)
{
    for (size_t i = 0; i < out->link_count; i++)
        if ((!tag || out->links[i].tag == tag) && n-- == 0)
            return &out->links[i];
    return NULL;
}

static void check_links(const char *name, const struct wb_extract *out, int tag, const json_t *want)
{
    size_t i;
    json_t *url;

    json_array_foreach(want, i, url) {
        const struct wb_extract_link *link = nth_link(out, tag, i);
        if (!link || !wb_slice_equal(link->url, wb_slice_str(json_string_value(url))))
            fail_msg("%s: link %zu is '%.*s', not %s", name, i, link ? (int)link->url.len : 4,
                     link ? link->url.ptr : "none", json_string_value(url));
    }
    if (nth_link(out, tag, i))
        fail_msg("%s: more than %zu links", name, i);
}

/* The times are in order; some links have none. */
static void check_lastmods(const char *name, const struct wb_extract *out, const json_t *want)
{
    size_t i, at = 0;
    json_t *text;

    json_array_foreach(want, i, text) {
        int64_t ms;
        assert_true(wb_date_parse(wb_slice_str(json_string_value(text)), &ms));
        while (at < out->link_count && out->links[at].modified_ms == 0)
            at++;
        if (at == out->link_count || out->links[at++].modified_ms != ms)
            fail_msg("%s: lastmod %zu is not %s", name, i, json_string_value(text));
    }
    for (; at < out->link_count; at++)
        assert_int_equal(out->links[at].modified_ms, 0);
}

static void check_file(const char *folder, const char *name, const json_t *want)
{
    const char *type = json_string_value(json_object_get(want, "type"));
    bool text = strcmp(type, "text") == 0, feed = strcmp(type, "rss") == 0 || strcmp(type, "feed") == 0;
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_extract out;
    char path[2048];

    snprintf(path, sizeof path, "%s/crawler-commons/%s", folder, name);
    assert_int_equal(wb_path_read(path, 1 << 20, &bytes), 0);
    assert_int_equal(wb_sitemap_extract(x, WB_SLICE_LIT("http://www.example.com/"), wb_buf_slice(&bytes), &out), 0);
    assert_int_equal(out.sitemap, !feed);
    assert_int_equal(out.feed, feed);
    if (text) {
        check_links(name, &out, WB_EXTRACT_LINK_SITEMAP, json_object_get(want, "urls"));
    } else if (feed) {
        check_links(name, &out, 0, json_object_get(want, "links"));
    } else {
        check_links(name, &out, 0, json_object_get(want, "locs"));
        check_lastmods(name, &out, json_object_get(want, "lastmods"));
    }
    wb_buf_release(&bytes);
}

static void test_files(void **state)
{
    (void)state;
    const char *name;
    char folder[1024], path[1100];
    size_t seen = 0;
    json_t *file;

    test_data_path("sitemaps", folder);
    snprintf(path, sizeof path, "%s/expected_lxml.json", folder);
    json_t *files = json_load_file(path, 0, NULL);
    if (!files)
        skip();
    json_object_foreach(files, name, file) {
        check_file(folder, name, file);
        seen++;
    }
    json_decref(files);
    assert_in_range(seen, 20, 1000);
}

/* ---- our own cases ------------------------------------------------------------------------------------ */

/* One line per link: tag, '!' for an index, url, '@' and its time, '#' and its anchor, '=' and its rel. */
static void write_links(const struct wb_extract *out, struct wb_buf *text)
{
    char date[WB_DATE_TEXT_MAX];

    wb_buf_clear(text);
    for (size_t i = 0; i < out->link_count; i++) {
        const struct wb_extract_link *l = &out->links[i];
        assert_int_equal(wb_buf_printf(text, "%s%s %.*s", wb_extract_tag_name(l->tag),
                                       l->rels & WB_EXTRACT_REL_INDEX ? "!" : "", WB_SLICE_ARG(l->url)),
                         0);
        wb_date_format(l->modified_ms, date);
        if (l->modified_ms)
            assert_int_equal(wb_buf_printf(text, " @%.16s", date), 0);
        if (l->anchor.len)
            assert_int_equal(wb_buf_printf(text, " #%.*s", WB_SLICE_ARG(l->anchor)), 0);
        if (l->rel.len)
            assert_int_equal(wb_buf_printf(text, " =%.*s", WB_SLICE_ARG(l->rel)), 0);
        assert_int_equal(wb_buf_append_char(text, '\n'), 0);
    }
    assert_int_equal(wb_buf_terminate(text), 0);
}

static void assert_sitemap(struct wb_slice bytes, const char *links)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_extract out;

    assert_int_equal(wb_sitemap_extract(x, WB_SLICE_LIT("http://h/dir/map.xml"), bytes, &out), 0);
    write_links(&out, &text);
    if (strcmp(text.ptr, links) != 0)
        fail_msg("%.*s\n%sinstead of\n%s", WB_SLICE_ARG(bytes), text.ptr, links);
    wb_buf_release(&text);
}

static const char *const sitemaps[][2] = {
    {"<urlset><url><loc> "
     "/a\n</loc><lastmod>2026-01-02</lastmod></url><url><lastmod>2026-01-03T04:05Z</lastmod><loc>b?x=1&amp;y=2</loc></"
     "url></urlset>",
     "sitemap http://h/a @2026-01-02T00:00\nsitemap http://h/dir/b?x=1&y=2 @2026-01-03T04:05\n"},
    {"<sitemapindex><sitemap><loc>http://h/1.gz</loc></sitemap></sitemapindex>", "sitemap! http://h/1.gz\n"},
    {"<urlset><url><loc>http://h/<![CDATA[a&b]]>&#x63;</loc></url></urlset>", "sitemap http://h/a&bc\n"},
    {"<s:urlset xmlns:s='x'><s:url><s:loc>/1</s:loc></s:url><url><loc>/2</loc></url></s:urlset>",
     "sitemap http://h/1\n"},
    {"<urlset><url><loc>/1</loc><image:image><image:loc>/i</image:loc></image:image></url></urlset>",
     "sitemap http://h/1\n"},
    {"<urlset xmlns='a'><url><image xmlns='b'><loc>/i</loc><br/></image><loc>/1</loc></url><url "
     "xmlns='a'><loc>/2</loc></url></urlset>",
     "sitemap http://h/1\nsitemap http://h/2\n"},
    /* broken: missing end tags, a missing root, text in the wrong place */
    {"<urlset><url><loc>/1<url><loc>/2</url><lastmod>2026-01-02<loc>/3",
     "sitemap http://h/1\nsitemap http://h/2 @2026-01-02T00:00\nsitemap http://h/3 @2026-01-02T00:00\n"},
    {"<url><loc>/1</loc></url>", "sitemap http://h/1\n"},
    {"junk <urlset>junk<url>junk<loc>/1</loc>junk</url></urlset>", "sitemap http://h/1\n"},
    {"<urlset><url><loc></loc><loc/><loc> \x01 </loc><loc>http://[</loc><lastmod>never</lastmod></url></urlset>",
     "sitemap \n"},
    {"<URLSET><URL><LOC>/1</LOC></URL></URLSET>", "sitemap http://h/1\n"},
    /* texts */
    {"http://h/1\r\n\n  https://h/2 \r# no\n/3\n", "sitemap http://h/1\nsitemap https://h/2\n"},
    {"\xef\xbb\xbfhttp://h/1", "sitemap http://h/1\n"},
    /* not sitemaps */
    {"<html><body><a href='/x'>x</a><url><loc>/1</loc></url></body></html>", ""},
    {"<!doctype html><p>http://h/1\nhttp://h/2", ""},
    {"<a><loc>/1</loc></a>", ""},
    {"", ""},
    {"\x1f\x8b\x08", ""},
};

static void test_sitemaps(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sitemaps); i++)
        assert_sitemap(wb_slice_str(sitemaps[i][0]), sitemaps[i][1]);
    assert_sitemap(WB_SLICE_LIT("\xff\xfe<\0u\0r\0l\0s\0e\0t\0>\0<\0l\0o\0c\0>\0/\0"
                                "1\0<\0/\0l\0o\0c\0>\0"),
                   "sitemap http://h/1\n");
}

static const char *const feeds[][2] = {
    {"<rss><channel><link>/home</link><title>T</title><item><title>One &amp; two</title><link>/1</link><pubDate>Sun, "
     "06 Sep 2009 16:20:00 +0000</pubDate></item>"
     "<item><guid>http://h/2</guid></item><item><guid "
     "isPermaLink='false'>http://h/3</guid></item><item><guid>tag:4</guid></item>"
     "<item><guid>http://h/guid</guid><link>http://h/5</link></item></channel></rss>",
     "link http://h/home\nfeed http://h/1 @2009-09-06T16:20 #One & two\nfeed http://h/2\nfeed http://h/5\n"},
    {"<rss xmlns:atom='a'><channel><atom:link href='/self' rel='self'/><item><atom:link "
     "href='/1'/><media:title>no</media:title><dc:date>2020-02-03</dc:date></item></channel></rss>",
     "link http://h/self =self\nfeed http://h/1 @2020-02-03T00:00\n"},
    {"<rdf:RDF xmlns='http://purl.org/rss/1.0/'><channel rdf:about='/c'><link>/home</link></channel><item "
     "rdf:about='http://h/0'><link>/1</link><dc:date>2020-02-03</dc:date></item>"
     "<item rdf:about='http://h/2&amp;3'><title>x</title></item></rdf:RDF>",
     "link http://h/home\nfeed http://h/1 @2020-02-03T00:00\nfeed http://h/2&3 #x\n"},
    {"<feed xml:base='http://b/x/'><link href='a'/><link rel='self' href='s'/><entry xml:base='y/'><title "
     "type='html'>A &lt;b></title><link href='1'/><link rel='edit' href='2'/>"
     "<published>2020-01-01</published><updated>2020-01-02</updated><content><div xmlns='x'><link "
     "href='no'/></div></content></entry><entry><link href='3' xml:base='z/'/>"
     "<link href='4'/></entry></feed>",
     "link http://b/x/a\nlink http://b/x/s =self\nfeed http://b/x/y/1 @2020-01-02T00:00 #A <b>\nlink http://b/x/y/2 "
     "=edit\nfeed http://b/x/z/3\nfeed http://b/x/4\n"},
    {"<feed version='0.3'><entry><link rel='alternate' "
     "href='/1'/><modified>2020-01-02T03:04:05Z</modified><issued>2020-01-01</issued></entry></feed>",
     "feed http://h/1 @2020-01-02T03:04 =alternate\n"},
    /* broken */
    {"<rss><channel><item><link>/1</link><item><link>/2<item><title>t</item></channel></rss>",
     "feed http://h/1\nfeed http://h/2\n"},
    {"<rss><item><link>/1</link></x></y></item><item><link>/2</link>", "feed http://h/1\nfeed http://h/2\n"},
    {"<feed><entry><link href=' '/><source><link href='/no'/></source><link href='/1'/></entry></feed>",
     "feed http://h/1\n"},
};

static void test_feeds(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(feeds); i++)
        assert_sitemap(wb_slice_str(feeds[i][0]), feeds[i][1]);
}

static void extract_xml(const char *body, struct wb_extract *out)
{
    struct wb_extract_input input = {WB_SLICE_LIT("http://h/dir/x"), WB_SLICE_LIT("application/xml"), WB_SLICE_EMPTY,
                                     wb_slice_str(body), WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};

    assert_int_equal(wb_extract(x, &input, out), 0);
    assert_string_equal(out->module, "xml");
}

static void test_feed_facts(void **state)
{
    (void)state;
    struct wb_extract out;

    extract_xml("<rss><channel><title>The\n title</title><description>About "
                "&lt;i&gt;it&lt;/i&gt;</description><language>de</language><lastBuildDate>2020-01-02</lastBuildDate>"
                "<pubDate>2020-01-01</pubDate><item><title>One</title><link>/1</"
                "link><description><![CDATA[<p>First&nbsp;par<b>ag</b>raph</p><p>second 1 < 2]]></description></item>"
                "</channel></rss>",
                &out);
    assert_true(out.feed);
    expect(out.title, "The title");
    expect(out.lang, "de");
    assert_int_equal(out.modified_ms, 1577923200000);
    assert_int_equal(out.published_ms, 1577836800000);
    expect(out.text, "The title\nAbout it\nOne\nFirst paragraph\nsecond 1 < 2");

    extract_xml("<feed xml:lang='en'><title>T</title><subtitle>S</subtitle><entry><title>E</title><content "
                "type='xhtml'><div><p>a</p><p>b</p></div></content><id>no</id></entry></feed>",
                &out);
    expect(out.lang, "en");
    expect(out.description, "S");
    expect(out.text, "T\nS\nE\na\nb");
}

static void test_other_xml(void **state)
{
    (void)state;
    struct wb_extract out;

    extract_xml("<doc xml:lang='fr' xmlns:xlink='x'><title>A  title</title><p xlink:href='/no'>One &amp; "
                "<b>two</b><![CDATA[<x>]]></p><title>Another</title></doc>",
                &out);
    assert_false(out.feed || out.sitemap);
    assert_int_equal(out.link_count, 0);
    expect(out.title, "A title");
    expect(out.lang, "fr");
    expect(out.text, "A title\nOne &\ntwo\n<x>\nAnother");
    extract_xml("<rdf:RDF xmlns:rdf='r'><item><link>/no</link></item></rdf:RDF>", &out);
    assert_false(out.feed);
    assert_int_equal(out.link_count, 0);
    extract_xml("<urlset><url><loc>/1</loc></url></urlset>", &out);
    assert_true(out.sitemap);
    assert_int_equal(out.link_count, 1);
    assert_int_equal(out.text.len, 0);
}

/* ---- bounds ------------------------------------------------------------------------------------- */

static void pack(struct wb_slice bytes, struct wb_buf *out)
{
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(wb_buf_reserve(out, deflateBound(&z, bytes.len)), 0);
    z.next_in = (unsigned char *)(uintptr_t)bytes.ptr;
    z.avail_in = (unsigned)bytes.len;
    z.next_out = (unsigned char *)out->ptr;
    z.avail_out = (unsigned)out->cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len = z.total_out;
    deflateEnd(&z);
}

static void test_large(void **state)
{
    (void)state;
    struct wb_buf text = WB_BUF_INIT, packed = WB_BUF_INIT;
    struct wb_extract out;

    assert_int_equal(wb_buf_append_str(&text, "<urlset>"), 0);
    for (int i = 0; i < 70000; i++)
        assert_int_equal(
            wb_buf_printf(&text, "<url><loc>http://example.org/page/%d.html</loc><lastmod>2026-01-02</lastmod></url>\n",
                          i),
            0);
    pack(wb_buf_slice(&text), &packed);
    int64_t start = wb_clock_mono_ns();
    assert_int_equal(wb_sitemap_extract(x, WB_SLICE_LIT("http://example.org/"), wb_buf_slice(&packed), &out), 0);
    print_message("# %zu bytes of sitemap in %lld ms\n", text.len, (long long)(wb_clock_mono_ns() - start) / 1000000);
    assert_int_equal(out.link_count, WB_EXTRACT_LINKS_MAX);
    assert_int_equal(out.links_left_out, 70000 - WB_EXTRACT_LINKS_MAX);
    expect(out.links[WB_EXTRACT_LINKS_MAX - 1].url, "http://example.org/page/65535.html");

    /* A bomb: 200 MB of blanks, and then an entry beyond the limit. */
    struct wb_buf bomb = WB_BUF_INIT;
    wb_buf_clear(&text);
    wb_buf_clear(&packed);
    assert_int_equal(wb_buf_append_str(&text, "<urlset><url><loc>http://h/1</loc></url>"), 0);
    size_t len = (size_t)200 << 20;
    assert_int_equal(wb_buf_reserve(&bomb, len), 0);
    memset(bomb.ptr, ' ', len);
    memcpy(bomb.ptr, text.ptr, text.len);
    memcpy(bomb.ptr + len - text.len, text.ptr, text.len);
    pack(wb_slice(bomb.ptr, len), &packed);
    wb_buf_release(&bomb);
    assert_int_equal(wb_sitemap_extract(x, WB_SLICE_LIT("http://h/"), wb_buf_slice(&packed), &out), 0);
    assert_int_equal(out.link_count, 1);
    wb_buf_release(&text);
    wb_buf_release(&packed);
}

/* Repeated for megabytes: time is linear, and memory is no more than the size of the page. */
static void test_hostile(void **state)
{
    (void)state;
    static const char *const pieces[][2] = {
        {"<feed>", "<a xml:base='x'>"},
        {"<feed>", "<entry xml:base='x/'>"},
        {"<feed>", "<entry><link href='x' xml:base='y'/>"},
        {"<rss>", "<item><title>"},
        {"<rss>", "<item></x>"},
        {"<urlset>", "<url><loc>a"},
        {"<urlset>", "<url xmlns='x'>"},
        {"<urlset>", "<x xmlns='"},
        {"<x>", "<title>"},
        {"<rss><channel><description>", "&lt;a"},
        {"<rss><channel><description>", "&amp;"},
    };
    size_t size = (size_t)2 << 20;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_extract out;

    for (size_t i = 0; i < COUNT(pieces); i++) {
        wb_buf_clear(&text);
        assert_int_equal(wb_buf_append_str(&text, pieces[i][0]), 0);
        while (text.len < size)
            assert_int_equal(wb_buf_append_str(&text, pieces[i][1]), 0);
        assert_int_equal(wb_buf_terminate(&text), 0);
        int64_t start = test_cpu_ns();
        extract_xml(text.ptr, &out);
        assert_true(test_cpu_ns() - start < INT64_C(100000000000));
        assert_in_range(out.link_count, 0, WB_EXTRACT_LINKS_MAX);
    }
    wb_buf_release(&text);
}

static void test_memory(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "<feed xml:base='b/'><title>a&amp;</title><entry><link "
        "href='&amp;'/><title>t</title><link>x&amp;y</link></entry></feed>",
        "<urlset><url><loc>&amp;<![CDATA[b]]></loc></url></urlset>",
    };
    for (size_t i = 0; i < COUNT(documents); i++) {
        struct wb_buf packed = WB_BUF_INIT;
        struct wb_extract out;
        int err = WB_E_NOMEM;
        pack(wb_slice_str(documents[i]), &packed);
        for (uint64_t nth = 1; nth < 1000 && err == WB_E_NOMEM; nth++) {
            struct wb_extractor *mine;
            assert_int_equal(wb_extractor_new(&mine), 0);
            wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
            err = wb_sitemap_extract(mine, WB_SLICE_LIT("http://h/"), wb_buf_slice(&packed), &out);
            wb_fault_disarm();
            assert_true(err == 0 || err == WB_E_NOMEM);
            wb_extractor_free(mine);
        }
        assert_int_equal(err, 0);
        wb_buf_release(&packed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),      cmocka_unit_test(test_sitemaps),  cmocka_unit_test(test_feeds),
        cmocka_unit_test(test_feed_facts), cmocka_unit_test(test_other_xml), cmocka_unit_test(test_large),
        cmocka_unit_test(test_hostile),    cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make_extractor, drop_extractor);
}
