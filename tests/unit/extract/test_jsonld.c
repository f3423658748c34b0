/* test_jsonld.c - facts in JSON-LD: objects of every shape, the best of several, and input that is not JSON. */
#include "base/buf.h"
#include "extract/jsonld.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct wb_arena arena;
static struct wb_jsonld facts;

static int tear_down(void **state)
{
    (void)state;
    wb_arena_release(&arena);
    return 0;
}

static void see(struct wb_slice text)
{
    wb_arena_clear(&arena);
    assert_int_equal(wb_jsonld_read(&arena, text, &facts), 0);
}

static void expect(const char *json, const char *what, struct wb_slice got, const char *want)
{
    if (!wb_slice_equal(got, wb_slice_str(want)))
        fail_msg("%s: the %s is '%.*s', not '%s'", json, what, WB_SLICE_ARG(got), want);
}

struct ld_case {
    const char *json, *type, *published, *modified, *author;
};

static void check_cases(const struct ld_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        see(wb_slice_str(cases[i].json));
        expect(cases[i].json, "type", facts.type, cases[i].type);
        expect(cases[i].json, "date", facts.published, cases[i].published);
        expect(cases[i].json, "modification", facts.modified, cases[i].modified);
        expect(cases[i].json, "author", facts.author, cases[i].author);
    }
}
#define CHECK_CASES(cases) check_cases(cases, sizeof(cases) / sizeof *(cases))

static void shapes(void **state)
{
    static const struct ld_case cases[] = {
        {"{}", "", "", "", ""},
        {"{\"@type\":\"Article\",\"datePublished\":\"2024-01-02\",\"dateModified\":\"2024-01-03\",\"author\":\"Ann\"}",
         "Article", "2024-01-02", "2024-01-03", "Ann"},
        {" [ {\"@type\" : \"NewsArticle\" , \"datePublished\" : \"a\" } ] ", "NewsArticle", "a", "", ""},
        {"{\"@graph\":[{\"@type\":\"Organization\",\"datePublished\":\"no\"},{\"@type\":\"BlogPosting\","
         "\"datePublished\":\"yes\"}]}",
         "BlogPosting", "yes", "", ""},
        {"{\"@type\":\"WebPage\",\"datePublished\":\"a\",\"mainEntity\":{\"@type\":\"Article\",\"dateModified\":\"b\"}"
         "}",
         "Article", "a", "b", ""},
        {"{\"@type\":\"Article\",\"mainEntityOfPage\":{\"@type\":\"WebPage\",\"dateModified\":\"b\"},\"datePublished\":"
         "\"a\"}",
         "Article", "a", "b", ""},
        {"{\"@type\":\"Article\",\"mainEntityOfPage\":\"https://a.org/\",\"datePublished\":\"a\"}", "Article", "a", "",
         ""},
        {"{\"@type\":[\"Article\",\"Thing\"],\"datePublished\":[\"a\",\"b\"]}", "Article", "a", "", ""},
        {"{\"@type\":\"http://schema.org/NewsArticle\"}", "NewsArticle", "", "", ""},
        {"{\"@type\":\"schema:Recipe\",\"datePublished\":\"a\"}", "Recipe", "a", "", ""},
        {"{\"datePublished\":\"a\"}", "", "a", "", ""},
        /* what is inside an article is not the article */
        {"{\"@type\":\"Article\",\"comment\":[{\"@type\":\"Comment\",\"datePublished\":\"no\"}],\"image\":{"
         "\"datePublished\":\"no\"}}",
         "Article", "", "", ""},
        {"[{\"@type\":\"Person\",\"name\":\"x\"},{\"@type\":\"WebSite\",\"datePublished\":\"no\"}]", "", "", "", ""},
        /* the one with the higher rank, then the first one */
        {"[{\"@type\":\"Product\",\"datePublished\":\"a\"},{\"@type\":\"Article\",\"datePublished\":\"b\"},{\"@type\":"
         "\"Article\",\"datePublished\":\"c\"}]",
         "Article", "b", "", ""},
        {"{\"@type\":\"Article\",\"datePublished\":7,\"dateModified\":{\"x\":[1,2.5e-3,true,null]}}", "Article", "", "",
         ""},
        {"{\"@type\":\"Article\",\"datePublished\":\"a\",\"datePublished\":\"b\"}", "Article", "a", "", ""},
    };

    (void)state;
    CHECK_CASES(cases);
}

static void authors(void **state)
{
    static const struct ld_case cases[] = {
        {"{\"author\":{\"@type\":\"Person\",\"name\":\"Ann B.\",\"url\":\"x\"}}", "", "", "", "Ann B."},
        {"{\"author\":[{\"name\":\"Ann\"},\"Bob\",{\"name\":[\"Cid\",\"no\"]},7,{}]}", "", "", "", "Ann, Bob, Cid"},
        {"{\"author\":[]}", "", "", "", ""},
        {"{\"@graph\":[{\"@type\":\"Article\",\"author\":{\"@id\":\"#p\"}},{\"@type\":\"Person\",\"@id\":\"#q\","
         "\"name\":\"no\"},"
         "{\"@type\":\"Person\",\"@id\":\"#p\",\"name\":\"Ann\"}]}",
         "Article", "", "", "Ann"},
        {"{\"author\":\"J\\u00f6rg \\\"J\\\" \\ud83d\\ude00 \\/\"}", "", "", "", "J\u00f6rg \"J\" \U0001f600 /"},
        {"{\"author\":\"\\ud83d\\u0041\\udc00\\uZZZZ\\q\\\"}", "", "", "", ""},
        {"{\"author\":\"\\ud83dA\\udc00\\uZZZZ\\q\"}", "", "", "", "\ufffdA\ufffduZZZZq"},
    };

    (void)state;
    CHECK_CASES(cases);
}

static void wrapping(void **state)
{
    static const struct ld_case cases[] = {
        {"<!-- {\"datePublished\":\"a\"} -->", "", "a", "", ""},
        {"\n//<![CDATA[\n{\"datePublished\":\"a\"}\n//]]>\n", "", "a", "", ""},
        {"/*<![CDATA[*/{\"datePublished\":\"a\"}/*]]>*/", "", "a", "", ""},
        {"<![CDATA[{\"datePublished\":\"a\"}]]>", "", "a", "", ""},
        {"{\"datePublished\":\"a\"};", "", "a", "", ""},
        /* common mistakes */
        {"{\"description\":\"two\nlines\",\"datePublished\":\"a\",}", "", "a", "", ""},
        {"[{\"datePublished\":\"a\"},]", "", "a", "", ""},
    };

    (void)state;
    CHECK_CASES(cases);
}

static void not_json(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[",
        "}",
        "\"",
        "\"a\"",
        "7",
        "nonsense",
        "{\"datePublished\":",
        "{\"datePublished\":\"a\"",
        "{\"datePublished\":\"a",
        "{\"datePublished\":\"a\\",
        "{\"datePublished\" \"a\"}",
        "{datePublished:\"a\"}",
        "{\"datePublished\":\"a\" \"b\":1}",
        "[{\"datePublished\":\"a\"}",
        "{\"datePublished\":\"a\",\"b\":}",
        "{\"datePublished\":\"a\",\"b\":[1 2]}",
        "{'datePublished':'a'}",
        "{\"x\":\"a\\\"}",
    };
    struct wb_buf deep = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        see(wb_slice_str(texts[i]));
        expect(texts[i], "date", facts.published, "");
    }
    for (int side = 0; side < 2; side++) {
        wb_buf_clear(&deep);
        assert_int_equal(wb_buf_append_str(&deep, "{\"datePublished\":\"a\",\"b\":"), 0);
        for (int i = 0; i < 100000; i++)
            assert_int_equal(wb_buf_append_str(&deep, side ? "[" : "{\"@graph\":"), 0);
        see(wb_buf_slice(&deep));
        expect("deep", "date", facts.published, "");
    }
    /* Well-formed, but too long to be read. */
    wb_buf_clear(&deep);
    assert_int_equal(wb_buf_append_str(&deep, "{\"datePublished\":\"a\",\"b\":\""), 0);
    while (deep.len <= WB_JSONLD_MAX_BYTES)
        assert_int_equal(wb_buf_append_str(&deep, "0123456789"), 0);
    assert_int_equal(wb_buf_append_str(&deep, "\"}"), 0);
    see(wb_buf_slice(&deep));
    expect("long", "date", facts.published, "");
    wb_buf_release(&deep);
}

/* Long values are cut between characters, and the number of authors is limited. */
static void bounded(void **state)
{
    struct wb_buf json = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_buf_append_str(&json, "{\"author\":["), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(wb_buf_append_str(&json, i ? ",\"" : "\""), 0);
        for (int n = 0; n < 1000; n++)
            assert_int_equal(wb_buf_append_str(&json, n % 2 ? "\u00e4" : "\\u20ac"), 0);
        assert_int_equal(wb_buf_append_char(&json, '"'), 0);
    }
    assert_int_equal(
        wb_buf_append_str(
            &json, "],\"datePublished\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}"),
        0);
    see(wb_buf_slice(&json));
    assert_in_range(facts.author.len, 2000, 4096);
    assert_true(facts.published.len <= 64);
    wb_buf_release(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),   cmocka_unit_test(authors), cmocka_unit_test(wrapping),
        cmocka_unit_test(not_json), cmocka_unit_test(bounded),
    };

    return cmocka_run_group_tests(tests, NULL, tear_down);
}
