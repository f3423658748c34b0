/* test_xml.c - tags and text, however broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../cost.h"
#include "base/error.h"
#include "base/mem.h"
#include "markup/xml.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/*
 * Writes the tokens in one line: (p:name attributes) opens, [..] with a slash is empty, )name closes,
 * text is in quotes, with a * if it is coded.
 */
static void write_tokens(const char *document, struct wb_buf *out)
{
    struct wb_xml_token t;
    struct wb_xml xml;

    wb_buf_clear(out);
    wb_xml_init(&xml, wb_slice_str(document));
    while (wb_xml_next(&xml, &t)) {
        if (t.kind == WB_XML_TEXT)
            assert_int_equal(wb_buf_printf(out, "'%.*s'%s", WB_SLICE_ARG(t.text), t.coded ? "*" : ""), 0);
        else
            assert_int_equal(wb_buf_printf(out, "%c%.*s|%.*s%.*s%s", t.kind == WB_XML_OPEN ? '(' : ')',
                                           WB_SLICE_ARG(t.prefix), WB_SLICE_ARG(t.name), WB_SLICE_ARG(t.attributes),
                                           t.empty ? "/" : ""),
                             0);
    }
    assert_int_equal(wb_buf_terminate(out), 0);
}

static const char *const documents[][2] = {
    {"", ""},
    {"<a>b</a>", "(|a'b')|a"},
    {"<x:a b='c'/>", "(x|a b='c'/"},
    {"<a b=\"1>2\" c='\"'>x", "(|a b=\"1>2\" c='\"''x'"},
    {"<?xml version='1.0'?><!-- <a> --><!DOCTYPE a [<!ENTITY b \"]>\"><!-- ' ]> -->]><a/>", "(|a/"},
    {"<!DOCTYPE a SYSTEM \"x>y\"><a/>", "(|a/"},
    {"<?xml version=\"1.0\"><a/>", "(|a/"},
    {"<a><![CDATA[<b>&amp;]]></a>", "(|a'<b>&amp;')|a"},
    {"<a><![CDATA[b", "(|a'b'"},
    {"a &amp; b", "'a &amp; b'*"},
    {"<a>1 < 2<b>", "(|a'1 ''< 2'(|b"},
    {"<a>1 <", "(|a'1 ''<'"},
    {"<", "'<'"},
    {"<a", "(|a"},
    {"<a <b>", "(|a (|b"},
    {"</a", ")|a"},
    {"</>", ")|"},
    {"<a b=\"c>d", "(|a b=\"c'd'"},
    {"<a b=\"c><d e='f'><g h=\"i\">", "(|a b=\"c><d e='f'><g h=\"i\""},
    {"<!-- x", ""},
    {"<!x>y", "'y'"},
    {"<!", ""},
    {"<?", ""},
    {"<a/ >", "(|a/ "},
    {"<:a>", "(|a"},
    {"<a:>", "(a|"},
};

static void test_tokens(void **state)
{
    (void)state;
    struct wb_buf out = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(documents); i++) {
        write_tokens(documents[i][0], &out);
        if (strcmp(out.ptr, documents[i][1]) != 0)
            fail_msg("%s: %s, not %s", documents[i][0], out.ptr, documents[i][1]);
    }
    wb_buf_release(&out);
}

static void assert_attribute(const char *tag, const char *prefix, const char *name, const char *value)
{
    struct wb_xml_token t;
    struct wb_xml xml;
    struct wb_slice got;

    wb_xml_init(&xml, wb_slice_str(tag));
    assert_true(wb_xml_next(&xml, &t));
    bool found = wb_xml_attribute(&t, prefix, name, &got);
    if (found != (value != NULL) || (value && !wb_slice_equal(got, wb_slice_str(value))))
        fail_msg("%s: %s is '%.*s'", tag, name, WB_SLICE_ARG(got));
}

static void test_attributes(void **state)
{
    (void)state;
    assert_attribute("<a b='c' d = \"e\" f=g h>", "", "b", "c");
    assert_attribute("<a b='c' d = \"e\" f=g h>", "", "d", "e");
    assert_attribute("<a b='c' d = \"e\" f=g h>", "", "f", "g");
    assert_attribute("<a b='c' d = \"e\" f=g h>", "", "H", "");
    assert_attribute("<a b='c' d = \"e\" f=g h>", "", "i", NULL);
    assert_attribute("<a b='c' d = \"e\" f=g h>", "x", "b", NULL);
    assert_attribute("<a x:b='1' b='2'>", "", "b", "2");
    assert_attribute("<a x:b='1' b='2'>", "x", "b", "1");
    assert_attribute("<a b='>'/>", "", "b", ">");
    assert_attribute("<a b='1' b='2'/>", "", "b", "1");
    assert_attribute("<a =''>", "", "b", NULL);
    assert_attribute("<a b=>", "", "b", "");
}

static void test_references(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", ""},
        {"&amp;&lt;&gt;&quot;&apos;", "&<>\"'"},
        {"a&#38;b&#x26;c&#X26;", "a&b&c&"},
        {"&#x20AC;&#128512;", "\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"&nbsp;&AMP;&x;", "&nbsp;&AMP;&x;"},
        {"&#0;&#x1;&#xd800;&#x110000;&#99999999;&#;&#x;&#xg;", "&#0;&#x1;&#xd800;&#x110000;&#99999999;&#;&#x;&#xg;"},
        {"&", "&"},
        {"&&amp", "&&amp"},
        {"?a=1&b=2;&amp;c", "?a=1&b=2;&c"},
        {"&#00000000038;", "&#00000000038;"},
        {"&#0000000038;", "&"},
    };
    struct wb_buf out = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(texts); i++) {
        wb_buf_clear(&out);
        assert_int_equal(wb_xml_decode(wb_slice_str(texts[i][0]), &out), 0);
        if (!wb_slice_equal(wb_buf_slice(&out), wb_slice_str(texts[i][1])))
            fail_msg("%s: %.*s", texts[i][0], WB_SLICE_ARG(wb_buf_slice(&out)));
    }
    wb_buf_release(&out);
}

static void test_pieces(void **state)
{
    (void)state;
    struct wb_xml_text text = WB_XML_TEXT_INIT;
    struct wb_xml_token t;
    struct wb_xml xml;
    const char *document = " a <![CDATA[&b]]>&lt; ";

    wb_xml_init(&xml, wb_slice_str(document));
    assert_true(wb_xml_next(&xml, &t));
    assert_int_equal(wb_xml_text_add(&text, &t, 100), 0);
    assert_false(text.copied);
    assert_true(wb_slice_equal(wb_xml_text_get(&text), WB_SLICE_LIT("a")));
    while (wb_xml_next(&xml, &t))
        assert_int_equal(wb_xml_text_add(&text, &t, 100), 0);
    assert_true(wb_slice_equal(wb_xml_text_get(&text), WB_SLICE_LIT("a &b<")));
    wb_xml_text_clear(&text);
    assert_int_equal(wb_xml_text_get(&text).len, 0);
    for (int i = 0; i < 100; i++) {
        wb_xml_init(&xml, wb_slice_str("xxxxxxxxxx"));
        assert_true(wb_xml_next(&xml, &t));
        assert_int_equal(wb_xml_text_add(&text, &t, 50), 0);
    }
    assert_int_equal(wb_xml_text_get(&text).len, 60); /* the addition that exceeds the limit is still made */
    wb_xml_text_release(&text);
}

static void test_dates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } dates[] = {
        {"2005", 1104537600000},
        {"2005-01", 1104537600000},
        {" 2005-01-01\n", 1104537600000},
        {"2004-12-23T18:00:15+00:00", 1103824815000},
        {"2004-12-23T18:00:15.5-01:00", 1103828415500},
        {"Thu, 05 Jan 2017 13:34:51 +0100", 1483619691000},
        {"05 Jan 17 13:34:54 +0100", 1483619694000},
        {"Sun, 06 Sep 2009 16:20:00 GMT", 1252254000000},
        {"yesterday", 0},
        {"20x5", 0},
        {"2005-13", 0},
        {"", 0},
    };
    for (size_t i = 0; i < COUNT(dates); i++) {
        int64_t ms;
        bool found = wb_xml_date(wb_slice_str(dates[i].text), &ms);
        if (found != (dates[i].ms != 0) || (found && ms != dates[i].ms))
            fail_msg("'%s': %lld", dates[i].text, (long long)ms);
    }
}

/* Each is repeated up to a megabyte: twice the document takes about twice the time. */
static void test_linear(void **state)
{
    (void)state;
    static const char *const pieces[] = {"<", "<a b=\"", "<a b='\"",        "<!--",  "<![CDATA[", "<!DOCTYPE [", "<?",
                                         "&", "<a b",    "<!DOCTYPE [<!--", "\"'<a "};
    size_t size = (size_t)4 << 20;
    char *document = wb_alloc(size);

    assert_non_null(document);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct wb_xml_token t;
        struct wb_xml xml;
        struct wb_slice value;
        size_t len = strlen(pieces[i]), tokens = 0;
        for (size_t k = 0; k < size; k++)
            document[k] = pieces[i][k % len];
        int64_t start = test_cpu_ns();
        wb_xml_init(&xml, wb_slice(document, size));
        while (wb_xml_next(&xml, &t)) {
            tokens++;
            wb_xml_attribute(&t, "", "none", &value);
        }
        assert_in_range(tokens, 0, size);
        assert_true(test_cpu_ns() - start < INT64_C(100000000000)); /* takes milliseconds; if quadratic, hours */
    }
    wb_free(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),     cmocka_unit_test(test_attributes), cmocka_unit_test(test_references),
        cmocka_unit_test(test_pieces),     cmocka_unit_test(test_dates),      cmocka_unit_test(test_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
