/* test_s3_answer.c - the XML of S3, as several stores write it, and as nobody should. */
#include "../expect.h"
#include "object/s3_answer.h"
#include "object/s3_xml.h"

#include <stdio.h>

/* ---- XML --------------------------------------------------------------------------------------------------- */

/* The events of a text: "<a" "=text" ">a", and "!" if it is refused. */
static void expect_events(const char *text, const char *want)
{
    struct wb_buf got = WB_BUF_INIT;
    struct wb_s3_xml xml;
    int event;

    wb_s3_xml_init(&xml, wb_slice_str(text));
    while ((event = wb_s3_xml_next(&xml)) >= 0 && event != WB_S3_XML_OVER) {
        if (event == WB_S3_XML_BEGIN)
            ok(wb_buf_printf(&got, "<%.*s", WB_SLICE_ARG(xml.open[xml.depth - 1])));
        else if (event == WB_S3_XML_END)
            ok(wb_buf_printf(&got, ">%.*s", WB_SLICE_ARG(xml.ended)));
        else
            ok(wb_buf_printf(&got, "=%.*s", WB_SLICE_ARG(wb_buf_slice(&xml.text))));
    }
    if (event < 0) {
        assert_int_equal(event, WB_E_PROTO);
        ok(wb_buf_append_char(&got, '!'));
    }
    expect(wb_buf_slice(&got), want);
    wb_s3_xml_release(&xml);
    wb_buf_release(&got);
}

static void test_xml(void **state)
{
    (void)state;
    expect_events("<a/>", "<a>a");
    expect_events("\xef\xbb\xbf<?xml version='1.0'?>\n<a x='>' y=\"/>\" ><b>1</b ><!-- <c> -->2</a>\n", "<a<b=1>b=2>a");
    expect_events("<s:a xmlns:s='u'><s:b/></s:a>", "<a<b>b>a");
    expect_events("<a>&amp;&lt;&gt;&quot;&apos;&#65;&#x42;&#xfc;</a>", "<a=&<>\"'AB\xc3\xbc>a");
    expect_events("<a><![CDATA[<b>&amp;]]></a>", "<a=<b>&amp;>a");
    expect_events("<a><![CDATA[]]></a>", "<a=>a");
}

static void test_bad_xml(void **state)
{
    static const char *const wrong[][2] = {
        {"", "!"},
        {"   ", "!"},
        {"text", "!"},
        {"<a>", "<a!"},
        {"<a></b>", "<a!"},
        {"</a>", "!"},
        {"<a/><b/>", "<a>a!"},
        {"<a></a>x", "<a>a!"},
        {"<", "!"},
        {"<a", "!"},
        {"<a b='>", "!"},
        {"<a <b>", "!"},
        {"<a></a", "<a!"},
        {"<!-- <a/>", "!"},
        {"<?xml", "!"},
        {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "!"},
        {"<a>&x;</a>", "<a!"},
        {"<a>&</a>", "<a!"},
        {"<a>&#0;</a>", "<a!"},
        {"<a>&#xd800;</a>", "<a!"},
        {"<a>&#x110000;</a>", "<a!"},
        {"<a>&#99999999999;</a>", "<a!"},
        {"<a>&#;</a>", "<a!"},
        {"<a>&#x;</a>", "<a!"},
        {"<a>&#a;</a>", "<a!"},
        {"<a><![CDATA[x]></a>", "<a!"},
        {"<a><![CDATA[]></a>", "<a!"},
    };
    char deep[200] = "";

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_events(wrong[i][0], wrong[i][1]);
    for (size_t i = 0; i <= WB_S3_XML_DEPTH_MAX; i++)
        memcpy(deep + strlen(deep), "<a>", 4);
    expect_events(deep, "<a<a<a<a<a<a<a<a<a<a<a<a<a<a<a<a!");
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

static void expect_error(const char *xml, const char *code, const char *message, const char *region)
{
    struct wb_s3_error error;

    wb_s3_error_read(wb_slice_str(xml), &error);
    assert_string_equal(error.code, code);
    assert_string_equal(error.message, message);
    assert_string_equal(error.region, region);
}

static void test_error(void **state)
{
    char xml[2000] = "<Error><Code>";

    (void)state;
    expect_error(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code><Message>It isn&apos;t\nthere"
        "</Message><Key>k</Key><Extra><Code>x</Code></Extra></Error>",
        "NoSuchKey", "It isn't?there", "");
    expect_error("<Error><Region>eu-central-1</Region><Code>AuthorizationHeaderMalformed</Code></Error>",
                 "AuthorizationHeaderMalformed", "", "eu-central-1");
    expect_error("<html><Code>x</Code></html>", "", "", "");
    expect_error("", "", "", "");
    expect_error("<Error><Code>SlowDown</Code><Mess", "SlowDown", "", "");
    memset(xml + strlen(xml), 'c', 1000);
    struct wb_s3_error error;
    wb_s3_error_read(wb_slice_str(xml), &error);
    assert_int_equal(strlen(error.code), sizeof error.code - 1);
}

/* ---- listings ---------------------------------------------------------------------------------------------- */

#define LIST(more, text)                                                                                               \
    "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Name>b</Name><IsTruncated>" more               \
    "</IsTruncated>" text "</ListBucketResult>"
#define ENTRY(key, size) "<Contents><Key>" key "</Key><ETag>&quot;x&quot;</ETag><Size>" size "</Size></Contents>"
#define NEXT(token) "<NextContinuationToken>" token "</NextContinuationToken>"
#define URL "<EncodingType>url</EncodingType>"

static int read_listing(const char *xml, const char *before, const char *token, struct wb_object_page *page)
{
    *page = (struct wb_object_page){.names = WB_BUF_INIT};
    ok(wb_buf_append_str(&page->token, token));
    return wb_s3_listing_read(wb_slice_str(xml), before, page);
}

static void release_page(struct wb_object_page *page)
{
    wb_buf_release(&page->names);
    wb_vec_release(&page->entries);
    wb_buf_release(&page->token);
}

/* want: "name size " for each entry, and the token. */
static void expect_listing(const char *xml, const char *before, const char *want)
{
    struct wb_object_page page;
    struct wb_buf got = WB_BUF_INIT;

    ok(read_listing(xml, before, "old", &page));
    for (size_t i = 0; i < page.entries.count; i++)
        ok(wb_buf_printf(&got, "%s %llu ", page.names.ptr + page.entries.items[i].name_at,
                         (unsigned long long)page.entries.items[i].size));
    ok(wb_buf_append_slice(&got, wb_buf_slice(&page.token)));
    assert_int_equal(page.more, page.token.len > 0);
    expect(wb_buf_slice(&got), want);
    wb_buf_release(&got);
    release_page(&page);
}

static void expect_no_listing(const char *xml)
{
    struct wb_object_page page;

    assert_int_equal(read_listing(xml, "", "old", &page), WB_E_PROTO);
    release_page(&page);
}

static void test_listing(void **state)
{
    (void)state;
    expect_listing(LIST("false", ""), "", "");
    expect_listing("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>", "p/", "");
    expect_listing(LIST("false", ENTRY("p/a", "0") ENTRY("p/b/c", "67108864")), "p/", "a 0 b/c 67108864 ");
    expect_listing(LIST("true", NEXT("t&amp;1") ENTRY("a", "1")), "", "a 1 t&1");
    /* Other people's objects, and what cannot be the name of one of ours. */
    expect_listing(LIST("false", ENTRY("p", "1") ENTRY("p/", "1") ENTRY("p/a b", "x") ENTRY("q/c", "1")
                                     ENTRY("p/../d", "1") ENTRY("p/e", " 7 ")),
                   "p/", "e 7 ");
}

/* Stores encode '+' and blanks differently; whether keys are encoded may be said after them. */
static void test_encodings(void **state)
{
    (void)state;
    expect_listing(LIST("false", URL ENTRY("a%20b%2Bc%2F%C3%BC/x", "1")), "a b+c/\xc3\xbc/", "x 1 ");
    expect_listing(LIST("false", ENTRY("a+b%2Bc/x", "1") URL), "a b+c/", "x 1 ");
    expect_listing(LIST("false", URL ENTRY("a+b/x", "1")), "a+b/", "x 1 ");
    expect_listing(LIST("false", ENTRY("a%20b/x", "1")), "a%20b/", "x 1 ");
    expect_listing(LIST("false", URL ENTRY("100%25%/x", "1")), "100%%/", "x 1 ");
    expect_listing(LIST("false", URL ENTRY("p/x%00y", "1")), "p/", "");
}

static void test_bad_listing(void **state)
{
    struct wb_buf large = WB_BUF_INIT;

    (void)state;
    expect_no_listing("");
    expect_no_listing("<html>hello</html>");
    expect_no_listing("<ListBucketResult/>");
    expect_no_listing(LIST("maybe", ""));
    expect_no_listing(LIST("true", ""));
    expect_no_listing(LIST("true", NEXT("old")));
    expect_no_listing(LIST("false", ENTRY("a", "")));
    expect_no_listing(LIST("false", ENTRY("a", "-1")));
    expect_no_listing(LIST("false", ENTRY("a", "99999999999999999999")));
    expect_no_listing(LIST("false", ENTRY("a", "1")) "x");
    expect_no_listing("<Error><IsTruncated>false</IsTruncated></Error>");
    ok(wb_buf_append_str(&large, "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>"));
    for (int i = 0; i < 5000; i++)
        ok(wb_buf_append_char(&large, 'k'));
    ok(wb_buf_append_str(&large, "</Key><Size>1</Size></Contents></ListBucketResult>"));
    ok(wb_buf_terminate(&large));
    expect_no_listing(large.ptr);
    wb_buf_release(&large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xml),     cmocka_unit_test(test_bad_xml),   cmocka_unit_test(test_error),
        cmocka_unit_test(test_listing), cmocka_unit_test(test_encodings), cmocka_unit_test(test_bad_listing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
