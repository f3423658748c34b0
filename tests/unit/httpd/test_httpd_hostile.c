/*
 * test_httpd_hostile.c - requests that are refused. Each is sent at once, in small parts, and byte by byte: how bytes
 * arrive must not change what they mean. A second request follows each, and must never be answered.
 */
#include "httpd_support.h"

#include "base/error.h"

#include <string.h>
#include <unistd.h>

#define H " HTTP/1.1\r\nHost: x\r\n"
#define NEXT "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
#define N(text) text, sizeof(text) - 1

struct bad_request {
    const char *statuses;
    const char *bytes;
    size_t len;
};

static const struct bad_request bad_lines[] = {
    {"400", N("\r\n\r\n\r\n: \r\n\r\n")},
    {"400", N("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")},
    {"400", N("\xff\xfe garbage")},
    {"400", N(" GET /" H "\r\n")},
    {"400", N("GET\r\n\r\n")},
    {"400", N("GET /hello\r\n\r\n")},
    {"400", N("GET HTTP/1.1\r\nHost: x\r\n\r\n")},
    {"400", N("GET  /hello" H "\r\n")},
    {"400", N("GET /hello  HTTP/1.1\r\nHost: x\r\n\r\n")},
    {"400", N("GET\t/hello" H "\r\n")},
    {"400", N("GET / a b" H "\r\n")},
    {"400", N("G(T /hello" H "\r\n")},
    {"505", N("GET /hello HTTP/9.9\r\nHost: x\r\n\r\n")},
    {"505", N("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
    {"400", N("GET /hello HTTP/1.10\r\nHost: x\r\n\r\n")},
    {"400", N("GET /hello HTTP/1.1 \r\nHost: x\r\n\r\n")},
    {"400", N("GET /hello http/1.1\r\nHost: x\r\n\r\n")},
    {"400", N("GET /hello HTTP/1,1\r\nHost: x\r\n\r\n")},
    {"400", N("GET hello" H "\r\n")},
    {"400", N("GET *" H "\r\n")},
    {"400", N("GET ftp://x/hello" H "\r\n")},
    {"400", N("GET http:///hello" H "\r\n")},
    {"400", N("GET http://x?y" H "\r\n")},
    {"400", N("GET /hello#x" H "\r\n")},
    {"400", N("GET /\x00hello" H "\r\n")},
    {"400", N("GET /\x7fhello" H "\r\n")},
    {"400", N("GET /\rhello" H "\r\n")},
    {"405", N("CONNECT other.example:443" H "\r\n")},
    {"400", N("GET /hello HTTP/1.1\nHost: x\r\n\r\n")},
    {"400", N("GET /hello HTTP/1.1\n\n")},
};

static const struct bad_request bad_fields[] = {
    {"400", N("GET /hello HTTP/1.1\r\n\r\n")},
    {"400", N("GET /hello" H "Host: x\r\n\r\n")},
    {"400", N("GET /hello HTTP/1.1\r\nHost: a/b\r\n\r\n")},
    {"400", N("GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n")},
    {"400", N("GET /hello" H "nonsense\r\n\r\n")},
    {"400", N("GET /hello" H ": x\r\n\r\n")},
    {"400", N("GET /hello" H "X : y\r\n\r\n")},
    {"400", N("GET /hello" H "X\t: y\r\n\r\n")},
    {"400", N("GET /hello" H " X: y\r\n\r\n")},
    {"400", N("GET /hello" H "X: y\r\n folded\r\n\r\n")},
    {"400", N("GET /hello" H "X: y\r\n\tfolded\r\n\r\n")},
    {"400", N("GET /hello HTTP/1.1\r\n X: y\r\nHost: x\r\n\r\n")},
    {"400", N("GET /hello" H "X: a\rb\r\n\r\n")},
    {"400", N("GET /hello" H "X: a\x00"
              "b\r\n\r\n")},
    {"400", N("GET /hello" H "X: a\x0b\r\n\r\n")},
    {"400", N("GET /hello" H "X: a\nY: b\r\n\r\n")},
    {"400", N("GET /hello" H "X: a\r\n\n")},
    {"400", N("GET /hello" H "X: a\r\r\n\r\n")},
    {"400", N("GET /hello" H "X[]: a\r\n\r\n")},
    {"400", N("GET /hello" H "X\xc3\xa4: a\r\n\r\n")},
};

/* All of these have been used to make two servers see two different requests. */
static const struct bad_request smuggling[] = {
    {"400", N("POST /echo" H "Content-Length: 0\r\nContent-Length: 35\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: 35\r\nContent-Length: 0\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: 35\r\ncontent-length: 35\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: 0, 35\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: +0\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: -1\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: 0x10\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: 1 0\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length:\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: ten\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length : 35\r\n\r\n")},
    {"400", N("POST /echo" H "Content-Length: 35\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"400", N("POST /echo" H "Transfer-Encoding: chunked\r\nContent-Length: 35\r\n\r\n0\r\n\r\n")},
    {"501", N("POST /echo" H "Content-Length: 35\r\nTransfer-Encoding: xchunked\r\n\r\n")},
    {"501", N("POST /echo" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")},
    {"501", N("POST /echo" H "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n")},
    {"400", N("POST /echo" H "Transfer-Encoding: \x0c"
              "chunked\r\n\r\n0\r\n\r\n")},
    {"501", N("POST /echo" H "Transfer-Encoding: identity\r\n\r\n")},
    {"501", N("POST /echo" H "Transfer-Encoding:\r\n\r\n")},
    {"400", N("POST /echo" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"501", N("POST /echo" H "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"400", N("POST /echo" H "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n")},
    {"400", N("POST /echo" H " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"400", N("POST /echo" H "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n")},
    {"400", N("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
    {"413", N("POST /echo" H "Content-Length: 1000000000000000000\r\n\r\nabc")},
    {"413", N("POST /echo" H "Content-Length: 99999999999999999999999999\r\n\r\nabc")},
    {"413", N("POST /hello" H "Content-Length: 1\r\n\r\nabc")},
    {"403", N("POST /forbidden" H "Content-Length: 5\r\n\r\nabc")},
    {"403", N("POST /forbidden" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")},
};

#define CHUNKED "POST /echo" H "Transfer-Encoding: chunked\r\n\r\n"

static const struct bad_request bad_chunks[] = {
    {"400", N(CHUNKED "ZZZ\r\nabc\r\n0\r\n\r\n")},
    {"413", N(CHUNKED "7fffffffffffff\r\nabc\r\n")},
    {"400", N(CHUNKED "0000000000000003\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "-5\r\nabc\r\n")},
    {"400", N(CHUNKED "+3\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "0x3\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED ";x\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3 \r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED " 3\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3\rabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3;x\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3;x\x01\r\nabc\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3\r\nabcd\r\n0\r\n\r\n")},
    {"400", N(CHUNKED "3\r\nabc\n0\r\n\r\n")},
    {"400", N(CHUNKED "3\r\nabc0\r\n\r\n")},
    {"400", N(CHUNKED "0\r\nX\r\n\r\n")},
    {"400", N(CHUNKED "0\r\nX : y\r\n\r\n")},
    {"400", N(CHUNKED "0\r\n X: y\r\n\r\n")},
    {"400", N(CHUNKED "0\r\nX: y\n\r\n")},
    {"400", N(CHUNKED "0\r\nX: \x00y\r\n\r\n")},
    {"400", N(CHUNKED "0\n\r\n")},
};

static void refuse_each(struct site *site, const struct bad_request *list, size_t count)
{
    static const size_t steps[] = {100000, 7, 1};
    struct wb_buf bytes = WB_BUF_INIT;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            wb_buf_clear(&bytes);
            wb_buf_append(&bytes, list[i].bytes, list[i].len);
            wb_buf_append_str(&bytes, NEXT NEXT);
            const char *found = statuses_of(site, bytes.ptr, bytes.len, steps[k], false);
            if (strcmp(found, list[i].statuses) != 0)
                fail_msg("%zu, in steps of %zu: %.*s: \"%s\", not %s", i, steps[k], (int)list[i].len, list[i].bytes,
                         found, list[i].statuses);
        }
    wb_buf_release(&bytes);
    assert_int_equal(site->handled, 0);
    await_connections(site, 0);
}

#define refusals(name, list)                                                                                           \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        struct site site = {0};                                                                                        \
                                                                                                                       \
        (void)state;                                                                                                   \
        site_start(&site);                                                                                             \
        refuse_each(&site, list, sizeof(list) / sizeof *(list));                                                       \
        site_stop(&site);                                                                                              \
    }

refusals(test_lines, bad_lines) refusals(test_fields, bad_fields) refusals(test_smuggling, smuggling)
    refusals(test_chunks, bad_chunks)

    /* What comes before garbage is answered; the garbage is refused, and nothing after it is looked at. */
    static void test_garbage_behind(void **state)
{
    static const char text[] = NEXT NEXT "\x00\xff garbage\r\n\r\n" NEXT;
    struct site site = {0};

    (void)state;
    site_start(&site);
    assert_string_equal(statuses_of(&site, text, sizeof text - 1, 100000, false), "200 200 400");
    assert_string_equal(statuses_of(&site, text, sizeof text - 1, 1, false), "200 200 400");
    assert_int_equal(site.handled, 4);
    site_stop(&site);
}

/* Fills a request up to a size and returns how it is answered. */
static const char *filled(struct site *site, const char *begin, const char *unit, size_t count, const char *end)
{
    struct wb_buf text = WB_BUF_INIT;

    wb_buf_append_str(&text, begin);
    for (size_t i = 0; i < count; i++)
        wb_buf_append_str(&text, unit);
    wb_buf_append_str(&text, end);
    const char *found = statuses_of(site, text.ptr, text.len, 65536, false);
    wb_buf_release(&text);
    return found;
}

/* Heads of megabytes: the answer arrives although the client has not sent everything. */
static void test_large_heads(void **state)
{
    struct site site = {0};

    (void)state;
    site_start(&site);
    assert_string_equal(filled(&site, "GET /", "a", 8 << 20, H "\r\n"), "414");
    assert_string_equal(filled(&site, "", "G", 8 << 20, " /" H "\r\n"), "414");
    assert_string_equal(filled(&site, "GET /hello" H "X: ", "a", 8 << 20, "\r\n\r\n"), "431");
    assert_string_equal(filled(&site, "GET /hello" H, "X: y\r\n", 100000, "\r\n"), "431");
    assert_string_equal(filled(&site, "GET /hello" H "Connection: close\r\n", "X: y\r\n", 98, "\r\n"), "200");
    assert_string_equal(filled(&site, "GET /hello" H "Connection: close\r\n", "X: y\r\n", 99, "\r\n"), "431");
    assert_string_equal(filled(&site, "GET /hello?", "a&", 1000, H "Connection: close\r\n\r\n"), "200");
    assert_string_equal(filled(&site, "GET /hello?", "a&", 1001, H "\r\n"), "400");
    assert_string_equal(filled(&site, CHUNKED "3;", "x", 300, "\r\nabc\r\n0\r\n\r\n"), "400");
    assert_string_equal(filled(&site, CHUNKED "0\r\n", "X: y\r\n", 10000, "\r\n"), "400");
    site_stop(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),  cmocka_unit_test(test_fields),         cmocka_unit_test(test_smuggling),
        cmocka_unit_test(test_chunks), cmocka_unit_test(test_garbage_behind), cmocka_unit_test(test_large_heads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
