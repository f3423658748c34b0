/* test_http.c - heads of HTTP responses: where they end, their headers, and what is not a head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "base/error.h"
#include "page/page.h"

static const struct {
    const char *message, *raw, *body;
    int status; /* 0: not a response */
} messages[] = {
    {"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", "HTTP/1.1 200 OK\r\nA: b\r\n", "body", 200},
    {"HTTP/1.0 404 Not Found\nA: b\n\nbody", "HTTP/1.0 404 Not Found\nA: b\n", "body", 404},
    {"HTTP/1.1 200 OK\r\nA: b\n\r\nbody", "HTTP/1.1 200 OK\r\nA: b\n", "body", 200},
    {"HTTP/2 301\r\n\r\n", "HTTP/2 301\r\n", "", 301},
    {"http/1.1  503  x\r\n\r\n\r\n", "http/1.1  503  x\r\n", "\r\n", 503},
    {"HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n", "", 200},
    {"HTTP/1.1 200 OK\r\nA: b", "HTTP/1.1 200 OK\r\nA: b", "", 200},
    {"HTTP/1.1 200", "HTTP/1.1 200", "", 200},
    {"HTTP/1.1 200 OK\r\n\r\r\nA: b\r\n\r\nx", "HTTP/1.1 200 OK\r\n\r\r\nA: b\r\n", "x", 200},
    /* whatever the status line says, what follows it is not the body */
    {"HTTP/1.1 0 No Content\r\nA: b\r\n\r\nbody", "HTTP/1.1 0 No Content\r\nA: b\r\n", "body", 200},
    {"HTTP/1.x 404 x\r\nA: b\r\n\r\nbody", "HTTP/1.x 404 x\r\nA: b\r\n", "body", 404},
    {"ICY 200 OK\r\nicy-name: b\r\n\r\nbody", "ICY 200 OK\r\nicy-name: b\r\n", "body", 200},
    {"HTTP/2 204\r\n\r\n", "HTTP/2 204\r\n", "", 204},
    {"HTTP/1.1 20\r\n\r\nx", "HTTP/1.1 20\r\n", "x", 200},
    {"HTTP/1.1 2000 OK\r\n\r\nx", "HTTP/1.1 2000 OK\r\n", "x", 200},
    {"HTTP/1.1 099 OK\r\n\r\nx", "HTTP/1.1 099 OK\r\n", "x", 200},
    {"HTTP/1.1 -1\r\n\r\nx", "HTTP/1.1 -1\r\n", "x", 200},
    {"HTTP/1.1 OK\r\n\r\nx", "HTTP/1.1 OK\r\n", "x", 200},
    {"HTTP/1.1\r\n\r\nx", "HTTP/1.1\r\n", "x", 200},
    {"HTTP/ 201\r\n\r\nx", "HTTP/ 201\r\n", "x", 201},
    {"HTTP/1.0 200 OK\r\n\r\n\r\nx", "HTTP/1.0 200 OK\r\n", "\r\nx", 200},
    {"\r\n\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nx", "HTTP/1.1 200 OK\r\nA: b\r\n", "x", 200},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 x\nA: b\n\nx", "HTTP/1.1 404 x\nA: b\n", "x", 404},
    {"HTTP/1.1 103 x\r\n\r\nx", "HTTP/1.1 103 x\r\n", "x", 103},
    {"ICY roads\n\nx", "", "", 0},
    {"Icy 200\n\nx", "", "", 0},
    {"HTTP/\x01 200\n\nx", "", "", 0},
    {"HTTPS/1.1 200 OK\n\nx", "", "", 0},
    {"<html>", "", "", 0},
    {"", "", "", 0},
};

static void test_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        struct wb_http_head head;
        int err = wb_http_split(wb_slice_str(messages[i].message), &head);
        if (err != (messages[i].status ? 0 : WB_E_PROTO))
            fail_msg("case %zu gives %d", i, err);
        assert_int_equal(head.status, messages[i].status);
        expect(head.raw, messages[i].raw);
        expect(head.body, messages[i].body);
    }
}

static void test_endless_head(void **state)
{
    (void)state;
    struct wb_buf message = WB_BUF_INIT;
    struct wb_http_head head;

    assert_int_equal(wb_buf_append_str(&message, "HTTP/1.1 200 OK\r\n"), 0);
    while (message.len < (2u << 20))
        assert_int_equal(wb_buf_append_str(&message, "X-Header: and so on\r\n"), 0);
    assert_int_equal(wb_buf_append_str(&message, "\r\nbody"), 0);
    assert_int_equal(wb_http_split(wb_buf_slice(&message), &head), WB_E_PROTO);
    wb_buf_release(&message);
}

static void test_headers(void **state)
{
    (void)state;
    struct wb_slice head = WB_SLICE_LIT("HTTP/1.1 200 OK: not a header\r\nFirst:  one \r\nno colon here\r\n"
                                        "Folded: a\r\n b\r\n\tc\r\nEMPTY:\r\nfirst: two\nLast : x");
    static const char *const expected[][2] = {
        {"First", "one"}, {"Folded", "a\r\n b\r\n\tc"}, {"EMPTY", ""}, {"first", "two"}, {"Last", "x"},
    };
    struct wb_slice name, value;
    size_t at = 0, n = 0;

    while (wb_http_header_next(head, &at, &name, &value)) {
        assert_true(n < 5);
        expect(name, expected[n][0]);
        expect(value, expected[n][1]);
        n++;
    }
    assert_int_equal(n, 5);
    assert_true(wb_http_header(head, "FIRST", &value));
    expect(value, "one");
    assert_true(wb_http_header(head, "empty", &value));
    expect(value, "");
    assert_false(wb_http_header(head, "HTTP/1.1 200 OK", &value));
    assert_false(wb_http_header(WB_SLICE_EMPTY, "x", &value));
}

static void test_fields(void **state)
{
    (void)state;
    struct wb_slice lines = WB_SLICE_LIT("A: 1\n stray\nB: 2\n");
    struct wb_slice name, value;
    size_t at = 0;

    assert_true(wb_http_field_next(lines, &at, &name, &value));
    expect(name, "A");
    expect(value, "1\n stray");
    assert_true(wb_http_field_next(lines, &at, &name, &value));
    expect(name, "B");
    expect(value, "2");
    assert_false(wb_http_field_next(lines, &at, &name, &value));
    assert_int_equal(name.len + value.len, 0);
}

static void test_locations(void **state)
{
    static const struct {
        const char *head, *target; /* NULL: there is none */
    } cases[] = {
        {"HTTP/1.1 301 Moved\r\nLocation: ../to#x\r\n", "http://h.example/to"},
        {"HTTP/1.1 301 Moved\r\nlocation: https://o.example/?q#\r\n", "https://o.example/?q"},
        {"HTTP/1.1 301 Moved\r\nLocation:\r\n", "http://h.example/a/b"},
        {"HTTP/1.1 302 Found\r\n", NULL},
        {"HTTP/1.1 302 Found\r\nLocation: mailto:x@y\r\n", NULL},
        {"HTTP/1.1 302 Found\r\nLocation: http://\r\n", NULL},
        {"", NULL},
    };
    struct wb_url base = WB_URL_INIT, target = WB_URL_INIT;
    struct wb_slice url = WB_SLICE_LIT("http://h.example/a/b"), location;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int err = wb_http_location(wb_slice_str(cases[i].head), url, &base, &target, &location);
        assert_int_equal(err, cases[i].target ? 0 : WB_E_PROTO);
        expect(location, cases[i].target ? cases[i].target : "");
    }
    assert_int_equal(wb_http_location(wb_slice_str(cases[0].head), WB_SLICE_LIT("no url"), &base, &target, &location),
                     WB_E_PROTO);
    wb_url_release(&base);
    wb_url_release(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_endless_head),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_locations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
