/* test_factfinder.c - what is remembered of a page: its links, each target once, and its fingerprints. */
#include "../expect.h"
#include "extract/extract.h"

#include <stdio.h>
#include <string.h>

enum { FOLLOW = WB_PAGELINK_FOLLOW, NOFOLLOW = WB_PAGELINK_NOFOLLOW };

static struct wb_factfinder finder;
static struct wb_pagefacts facts;
static struct wb_extract extract;

static int set_up(void **state)
{
    (void)state;
    return wb_factfinder_init(&finder);
}

static int tear_down(void **state)
{
    (void)state;
    wb_factfinder_release(&finder);
    return 0;
}

static void see_head(const char *head, const char *body, unsigned wants)
{
    struct wb_page page = {.url = WB_SLICE_LIT("http://h.example/a"), .head = wb_slice_str(head),
                           .type = WB_SLICE_LIT("text/html"), .body = wb_slice_str(body)};

    ok(wb_factfinder_read(&finder, &page, WB_SLICE_LIT("webbase"), wants, &facts, &extract));
}

static void see(const char *body)
{
    see_head("HTTP/1.1 200 OK\r\n", body, WB_EXTRACT_LINKS);
}

static void expect_link(size_t n, const char *url, const char *anchor, unsigned tag, unsigned flags)
{
    assert_true(n < facts.link_count);
    expect(facts.links[n].url, url);
    expect(facts.links[n].anchor, anchor);
    assert_int_equal(facts.links[n].tag, tag);
    assert_int_equal(facts.links[n].flags, flags);
}

static void test_only_web_links_without_fragments(void **state)
{
    (void)state;
    see("<a href='/b#part'>b</a><a href='mailto:x@y'>mail</a><a href='ftp://h/'>ftp</a><img src=i.png alt=i>"
        "<link rel=canonical href=/c><link rel=alternate href=/d><a href='#top'>top</a>");
    assert_int_equal(facts.link_count, 5);
    expect_link(0, "http://h.example/b", "b", WB_EXTRACT_LINK_A, FOLLOW);
    expect_link(1, "http://h.example/i.png", "i", WB_EXTRACT_LINK_IMG, 0);
    expect_link(2, "http://h.example/c", "", WB_EXTRACT_LINK_LINK, FOLLOW);
    expect_link(3, "http://h.example/d", "", WB_EXTRACT_LINK_LINK, 0);
    expect_link(4, "http://h.example/a", "top", WB_EXTRACT_LINK_A, FOLLOW);
}

static void test_each_target_once(void **state)
{
    (void)state;
    see("<a rel=nofollow href=/b></a><a href=/b#x>first</a><a href=/b>second</a><img src=/c><a href=/c>c</a>");
    assert_int_equal(facts.link_count, 2);
    expect_link(0, "http://h.example/b", "first", WB_EXTRACT_LINK_A, FOLLOW);
    expect_link(1, "http://h.example/c", "c", WB_EXTRACT_LINK_A, FOLLOW);
}

static void test_what_a_page_needs_keeps_its_tag(void **state)
{
    static const char body[] = "<a href=/c>c</a><img src=/c><img src=/d><a href=/d>d</a>";

    (void)state;
    see(body);
    expect_link(0, "http://h.example/c", "c", WB_EXTRACT_LINK_A, FOLLOW);
    expect_link(1, "http://h.example/d", "d", WB_EXTRACT_LINK_A, FOLLOW);
    see_head("", body, WB_EXTRACT_LINKS | WB_EXTRACT_NEEDS);
    expect_link(0, "http://h.example/c", "c", WB_EXTRACT_LINK_IMG, FOLLOW);
    expect_link(1, "http://h.example/d", "d", WB_EXTRACT_LINK_IMG, FOLLOW);
}

static void test_pages_that_ask_not_to_follow(void **state)
{
    static const char link[] = "<a href=/b>b</a>", both[] = "<meta name=robots content=nofollow><a href=/b>b</a>";
    static const struct {
        const char *head, *body;
        unsigned flags;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n", link, FOLLOW},
        {"HTTP/1.1 200 OK\r\n", both, FOLLOW | NOFOLLOW},
        {"HTTP/1.1 200 OK\r\nX-Robots-Tag: nofollow\r\n", link, FOLLOW | NOFOLLOW},
        {"HTTP/1.1 200 OK\r\nX-Robots-Tag: webbase: nofollow\r\n", link, FOLLOW | NOFOLLOW},
        {"HTTP/1.1 200 OK\r\nX-Robots-Tag: otherbot: nofollow\r\n", link, FOLLOW},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        see_head(cases[i].head, cases[i].body, WB_EXTRACT_LINKS);
        expect_link(0, "http://h.example/b", "b", WB_EXTRACT_LINK_A, cases[i].flags);
    }
}

static void test_fingerprints(void **state)
{
    (void)state;
    see_head("", "<p>some words of a page</p><a href=/b>b</a>", 0);
    assert_int_equal(facts.link_count, 0);
    assert_true(facts.simhash == extract.simhash && facts.simhash != 0 && facts.title_hash == 0);
    see_head("", "<title>T</title>", 0);
    uint64_t hash = facts.title_hash;
    assert_true(hash != 0 && facts.simhash == 0);
    see_head("", "<title>T</title><p>other text</p>", 0);
    assert_true(facts.title_hash == hash && facts.simhash != 0);
    see_head("", "<title>U</title>", 0);
    assert_true(facts.title_hash != hash);
}

/* Many links, most of them several times; then a page that shares targets with the one before. */
static void test_many_links(void **state)
{
    enum { TARGETS = 1500, LINKS = 4000 };
    static char body[64 * LINKS];
    size_t len = 0;

    (void)state;
    for (int i = 0; i < LINKS; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "<a href='/%d'>x</a>", i % TARGETS);
    see(body);
    assert_int_equal(facts.link_count, TARGETS);
    for (int i = 0; i < TARGETS; i++) {
        char url[40];
        snprintf(url, sizeof url, "http://h.example/%d", i);
        expect_link((size_t)i, url, "x", WB_EXTRACT_LINK_A, FOLLOW);
    }
    see("<a href=/7>y</a>");
    assert_int_equal(facts.link_count, 1);
    expect_link(0, "http://h.example/7", "y", WB_EXTRACT_LINK_A, FOLLOW);
}

static void test_links_of_sitemaps(void **state)
{
    static const struct {
        const char *text;
        unsigned tag;
    } cases[] = {
        {"<urlset><url><loc>http://h.example/p</loc><lastmod>2026-01-02</lastmod></url></urlset>",
         WB_EXTRACT_LINK_SITEMAP},
        {"<sitemapindex><sitemap><loc>http://h.example/p</loc><lastmod>2026-01-02</lastmod></sitemap></sitemapindex>",
         WB_PAGELINK_TAG_SITEMAP},
    };
    const struct wb_pagelink *links;
    size_t count;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        ok(wb_sitemap_extract(finder.extractor, WB_SLICE_LIT("http://h.example/s.xml"), wb_slice_str(cases[i].text),
                              &extract));
        ok(wb_factfinder_links(&finder, &extract, false, &links, &count));
        assert_int_equal(count, 1);
        expect(links[0].url, "http://h.example/p");
        assert_int_equal(links[0].tag, cases[i].tag);
        assert_true(links[0].modified_ms != 0 && links[0].flags == FOLLOW);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_web_links_without_fragments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_target_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_a_page_needs_keeps_its_tag, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pages_that_ask_not_to_follow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fingerprints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_links_of_sitemaps, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
