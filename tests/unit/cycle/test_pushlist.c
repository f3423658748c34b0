/* test_pushlist.c - pushes from lines and JSON: what is read, what is refused, and whose a site is. */
#include "cycle_support.h"

#include "../allocfail.h"
#include "base/codec.h"

#define NOW_MS INT64_C(1780000000000)

static const struct wb_push_reading strict = {
    .name = "push", .provider = "h.test", .now_ms = NOW_MS, .strict = true, .items_max = 5};

static void check_text(struct wb_slice got, const char *want)
{
    if (!wb_slice_equal(got, wb_slice_str(want)))
        fail_msg("%.*s instead of %s", WB_SLICE_ARG(got), want);
}

static void check_refused(const char *text, int code, const char *words)
{
    struct wb_push_list list;

    int err = wb_push_list_read(wb_slice_str(text), &strict, &list);
    if (err != code || !strstr(wb_error_message(), words))
        fail_msg("%s: %d, %s", text, err, wb_error_message());
    wb_push_list_release(&list);
}

/* A page with one more member, in a push. */
static void check_page_refused(const char *members, int code, const char *words)
{
    char text[1000];

    snprintf(text, sizeof text, "{\"pages\": [{\"url\": \"http://h.test/\", \"html\": \"x\"}, {%s}]}", members);
    check_refused(text, code, words);
    assert_true(strstr(wb_error_message(), "page 2") || strstr(wb_error_message(), "twice"));
}

static void test_urls(void **state)
{
    struct wb_push_list list;

    (void)state;
    ok(wb_push_list_read(
        WB_SLICE_LIT("\xef\xbb\xbf {\"url\": \"HTTP://A.h.test/x#y\", \"urlList\": [\"http://h.test:8080/\"],"
                     "\"changed\": [\"https://h.test/1\"], \"gone\": [\"https://h.test/2\"], \"key\": \"k\","
                     "\"host\": \"H.test\", \"keyLocation\": \"http://h.test/k.txt\"}"),
        &strict, &list));
    assert_int_equal(list.urls.count, 4);
    assert_int_equal(list.pages.count, 0);
    check_text(list.urls.items[0].url, "http://a.h.test/x");
    check_text(list.urls.items[0].site, "a.h.test");
    check_text(list.urls.items[1].site, "h.test:8080");
    assert_true(list.urls.items[2].what == WB_PUSH_CHANGED && list.urls.items[3].what == WB_PUSH_GONE);
    wb_push_list_release(&list);
}

static void test_pages(void **state)
{
    struct wb_push_list list;
    const struct wb_page *page;

    (void)state;
    ok(wb_push_list_read(
        WB_SLICE_LIT(
            "{\"pages\": [{\"url\": \"http://h.test/a/#b\", \"html\": \"<p>\\u00e4\\u0000\"},"
            "{\"url\": \"http://h.test/b\", \"type\": \"Image/PNG\", \"body_base64\": \"AAEC/w==\","
            " \"time\": \"2026-01-02T03:04:05Z\", \"status\": 404, \"lifetime\": 7,"
            " \"headers\": {\"ETag\": \"\\\"1\\\"\", \"Content-type\": \"text/plain\", \"X-A\": [\"1\", \"2\"]}},"
            "{\"url\": \"http://h.test/c\", \"body_base64\": \"\","
            " \"headers\": {\"Content-Type\": \"text/plain; charset=Latin1\"}}]}"),
        &strict, &list));
    assert_int_equal(list.pages.count, 3);
    page = &list.pages.items[0];
    check_text(page->url, "http://h.test/a/");
    check_text(page->key, "h.test/a");
    assert_true(wb_pageid_equal(page->id, wb_pageid_of_key(page->key)));
    assert_true(wb_slice_equal(page->body, WB_SLICE_LIT("<p>\xc3\xa4\0")));
    assert_true(page->time_ms == NOW_MS && page->status == 200 && page->lifetime == 0 && page->body_bytes == 6 &&
                page->kind == WB_PAGE_RESPONSE);
    check_text(page->type, "text/html");
    check_text(page->charset, "utf-8");
    check_text(page->head,
               "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-WebBase-Provider: h.test\r\n");
    page = &list.pages.items[1];
    assert_true(wb_slice_equal(page->body, WB_SLICE_LIT("\0\1\2\xff")));
    assert_true(page->status == 404 && page->lifetime == 7 && page->lifetime_count == 7);
    assert_int_equal(page->time_ms, INT64_C(1767323045000));
    check_text(page->head, "HTTP/1.1 404 \r\nETag: \"1\"\r\nX-A: 1\r\nX-A: 2\r\nContent-Type: Image/PNG\r\n"
                           "X-WebBase-Provider: h.test\r\n");
    check_text(page->type, "image/png");
    page = &list.pages.items[2];
    check_text(page->type, "text/plain");
    check_text(page->charset, "latin1");
    assert_int_equal(page->body.len, 0);
    wb_push_list_release(&list);
}

static void test_refused_pages(void **state)
{
    static const char *const bad[][2] = {
        {"\"html\": \"x\"", "url"},
        {"\"url\": 7, \"html\": \"x\"", "url"},
        {"\"url\": \"file:///etc/passwd\", \"html\": \"x\"", "file:///etc/passwd"},
        {"\"url\": \"http://h.test/\"", "html"},
        {"\"url\": \"http://h.test/\", \"html\": 7", "html"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"body_base64\": \"\"", "either"},
        {"\"url\": \"http://h.test/\", \"body_base64\": \"eA==\"", "type"},
        {"\"url\": \"http://h.test/\", \"type\": \"text\", \"body_base64\": \"eA==\"", "type"},
        {"\"url\": \"http://h.test/\", \"type\": \"a/b\\r\\nX: y\", \"body_base64\": \"eA==\"", "type"},
        {"\"url\": \"http://h.test/\", \"type\": \"a/b\", \"body_base64\": \"eA=\"", "base64"},
        {"\"url\": \"http://h.test/\", \"type\": \"a/b\", \"body_base64\": \"eB==\"", "base64"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"type\": \"text/html; charset=latin1\"", "utf-8"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"time\": \"yesterday\"", "time"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"time\": \"2027-01-01\"", "ahead"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"status\": 100", "status"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"status\": \"200\"", "status"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"status\": 304", "status"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"lifetime\": -1", "lifetime"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"headers\": []", "headers"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"headers\": {\"A\": 1}", "headers"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"headers\": {\"A\": \"b\\nC: d\"}", "headers"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"headers\": {\"A: b\": \"c\"}", "headers"},
        {"\"url\": \"http://h.test/\", \"html\": \"x\", \"headers\": {\"x-webbase-provider\": \"c\"}", "headers"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        check_page_refused(bad[i][0], WB_E_INVALID, bad[i][1]);
    check_page_refused("\"url\": \"http://h.test/#again\", \"html\": \"y\"", WB_E_INVALID, "twice");
    check_refused("{\"pages\": [7]}", WB_E_INVALID, "page 1");
    check_refused("{\"pages\": {}}", WB_E_INVALID, "pages");
}

static void test_refused_json(void **state)
{
    (void)state;
    check_refused("", WB_E_PROTO, "JSON");
    check_refused("http://h.test/", WB_E_PROTO, "JSON");
    check_refused("[]", WB_E_INVALID, "object");
    check_refused("{}", WB_E_INVALID, "pages");
    check_refused("{\"url\": \"http://h.test/\", \"url\": \"http://h.test/\"}", WB_E_PROTO, "JSON");
    check_refused("{\"url\": 7}", WB_E_INVALID, "url");
    check_refused("{\"url\": \"ftp://h.test/\"}", WB_E_INVALID, "ftp://h.test/");
    check_refused("{\"gone\": [7]}", WB_E_INVALID, "gone 1");
    check_refused("{\"host\": \"other.test\", \"urlList\": [\"http://h.test/\"]}", WB_E_INVALID, "other.test");
    check_refused("{\"host\": 7, \"urlList\": [\"http://h.test/\"]}", WB_E_INVALID, "host");
    check_refused(
        "{\"urlList\": [\"http://h/1\",\"http://h/2\",\"http://h/3\",\"http://h/4\",\"http://h/5\",\"http://h/6\"]}",
        WB_E_LIMIT, "5 URLs");
}

/* Neither depth nor the number of values reaches the parser. */
static void test_shape(void **state)
{
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 100000; i++)
        ok(wb_buf_append_char(&text, '['));
    ok(wb_buf_terminate(&text));
    check_refused(text.ptr, WB_E_PROTO, "nested");
    wb_buf_clear(&text);
    ok(wb_buf_append_str(&text, "{\"x\":[0"));
    for (int i = 0; i < 1000; i++)
        ok(wb_buf_append_str(&text, ",0"));
    ok(wb_buf_append_str(&text, "]}"));
    ok(wb_buf_terminate(&text));
    check_refused(text.ptr, WB_E_LIMIT, "values");
    check_refused("{\"x\":\"[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[[[[[\"}", WB_E_INVALID,
                  "pages"); /* brackets in texts are fine */
    wb_buf_release(&text);
}

static void test_covers(void **state)
{
    static const struct {
        const char *host, *site;
        bool covers;
    } cases[] = {
        {"h.test", "h.test", true},
        {"h.test", "a.h.test", true},
        {"h.test", "ah.test", false},
        {"h.test", "test", false},
        {"h.test", "h.test:8080", true},
        {"h.test", "a.h.test:8080", true},
        {"h.test:80", "h.test", false},
        {"h.test:80", "a.h.test:80", true},
        {"h.test", "h.test.evil", false},
        {"h.test:80", "h.test:8080", false},
        {"[::1]", "[::1]:8080", true},
        {"[::1]", "[2::1]", false},
        {"", "h.test", false},
        {"h.test", "", false},
        {"127.0.0.1", "127.0.0.1:90", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (wb_push_covers(wb_slice_str(cases[i].host), wb_slice_str(cases[i].site)) != cases[i].covers)
            fail_msg("%s, %s", cases[i].host, cases[i].site);
}

static void test_no_memory(void **state)
{
    struct wb_slice text =
        WB_SLICE_LIT("{\"urlList\": [\"http://h.test/\"], \"host\": \"h.test\", \"pages\": [{\"url\": "
                     "\"http://h.test/\", \"type\": \"a/b\", \"body_base64\": \"eHg=\"}]}");
    struct wb_push_list list;
    int err = WB_E_NOMEM;

    (void)state;
    for (size_t i = 0; err < 0; i++) {
        alloc_fail_nth(i);
        err = wb_push_list_read(text, &strict, &list);
        bool failed = alloc_has_failed();
        wb_alloc_should_fail = NULL;
        assert_true(failed ? err == WB_E_NOMEM : err == 0);
        wb_push_list_release(&list);
        assert_true(i < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),         cmocka_unit_test(test_pages), cmocka_unit_test(test_refused_pages),
        cmocka_unit_test(test_refused_json), cmocka_unit_test(test_shape), cmocka_unit_test(test_covers),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
