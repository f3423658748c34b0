/* test_httpd.c - requests that are fine: what they are answered with, and what becomes of the connection. */
#include "httpd_support.h"

#include "base/error.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define END " HTTP/1.1\r\nHost: x\r\n\r\n"
#define LAST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

/* Sends a text, hears until the server closes, and leaves the answer in reply. */
static void exchange(struct site *site, const char *text, struct wb_buf *reply)
{
    int fd = dial(site);

    wb_buf_clear(reply);
    say(fd, text);
    assert_true(hear_all(fd, reply));
    wb_buf_terminate(reply);
    close(fd);
}

static void test_reply(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    assert_true(wb_httpd_is_loopback(site.httpd));
    exchange(&site, "GET /hello" LAST, &reply);
    assert_true(has(&reply, "HTTP/1.1 200 OK\r\n"));
    assert_true(has(&reply, "\r\nContent-Length: 6\r\n"));
    assert_true(has(&reply, "\r\nServer: webbase\r\n"));
    assert_true(has(&reply, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_true(has(&reply, " GMT\r\n"));
    assert_true(has(&reply, "\r\nConnection: close\r\n"));
    assert_true(has(&reply, "\r\n\r\nhello\n"));
    exchange(&site, "GET /broken" LAST, &reply);
    assert_true(has(&reply, "HTTP/1.1 500 "));
    assert_true(has(&reply, "Content-Type: application/json\r\n"));
    assert_true(has(&reply, "{\"error\":\"this is \\\"broken\\\"\"}\n"));
    exchange(&site, "GET /none" LAST, &reply);
    assert_true(has(&reply, "HTTP/1.1 204 ") && !has(&reply, "Content-Length"));
    exchange(&site, "GET /close" END, &reply);
    assert_true(has(&reply, "HTTP/1.1 200 ") && has(&reply, "Connection: close\r\n"));
    exchange(&site, "GET /nowhere" LAST, &reply);
    assert_true(has(&reply, "HTTP/1.1 404 "));
    await_count(site.served, 5);
    assert_int_equal(site.last_status, 404);
    assert_int_equal(site.last_bytes, reply.len);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* What a handler sees of a request. */
static void test_request(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    exchange(
        &site,
        "GET /fields?a=b+c%21&&d&=e&f=%zz&a=2 HTTP/1.1\r\nHost: x\r\nx-TEST: \t v w \t\r\nConnection: close\r\n\r\n",
        &reply);
    assert_true(has(&reply, "\r\n\r\na=b c!;d=;=e;f=%zz;a=2;v w 127.0.0.1 1 0\n"));
    assert_true(has(&reply, "\r\nX-Echo: v w\r\n"));
    assert_true(has(&reply, "\r\nX-Inject: aEvil: yes\r\n"));
    exchange(&site, "PURGE http://some.host:80/echo?x=1" LAST, &reply);
    assert_true(has(&reply, "\r\n\r\nPURGE /echo?x=1 []\n"));
    exchange(&site, "GET /echo?q=\xc3\xa4" LAST, &reply);
    assert_true(has(&reply, "GET /echo?q=\xc3\xa4 []\n"));
    exchange(&site, "\r\nGET /hello" LAST, &reply); /* some clients send an empty line after a body */
    assert_true(has(&reply, "HTTP/1.1 200 "));
    exchange(&site, "GET /forbidden" LAST, &reply);
    assert_true(has(&reply, "HTTP/1.1 403 ") && has(&reply, "{\"error\":\"not you\"}"));
    wb_buf_release(&reply);
    site_stop(&site);
}

static void test_unescape(void **state)
{
    struct wb_buf out = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_http_unescape(WB_SLICE_LIT("a%20b+c%C3%a4%00"), false, &out), 0);
    assert_int_equal(out.len, 8);
    assert_memory_equal(out.ptr, "a b+c\xc3\xa4", 8);
    wb_buf_clear(&out);
    assert_int_equal(wb_http_unescape(WB_SLICE_LIT("+"), true, &out), 0);
    assert_memory_equal(out.ptr, " ", 1);
    assert_int_equal(wb_http_unescape(WB_SLICE_LIT("x%4"), true, &out), WB_E_INVALID);
    assert_int_equal(wb_http_unescape(WB_SLICE_LIT("%g0"), true, &out), WB_E_INVALID);
    assert_int_equal(out.len, 1);
    wb_buf_release(&out);
}

/* HEAD has the fields of GET, and no body, also for a source, which is not asked for anything. */
static void test_head(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    exchange(&site, "HEAD /hello" LAST, &reply);
    assert_true(has(&reply, "\r\nContent-Length: 6\r\n") && !has(&reply, "hello\n"));
    exchange(&site, "HEAD /pieces?count=5" LAST, &reply);
    assert_true(has(&reply, "\r\nTransfer-Encoding: chunked\r\n"));
    assert_memory_equal(reply.ptr + reply.len - 4, "\r\n\r\n", 4);
    assert_int_equal(site.pieces, 0);
    assert_int_equal(site.sources_closed, 1);
    exchange(&site, "HEAD /hello" END "HEAD /pieces?count=2" END "GET /hello" LAST, &reply);
    assert_true(has(&reply, "hello\n"));
    wb_buf_release(&reply);
    site_stop(&site);
}

static void test_keep_alive(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    for (unsigned i = 0; i < 20; i++) {
        wb_buf_clear(&reply);
        say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
        assert_true(hear_text(fd, "POST /echo [abc]\n", &reply));
        assert_false(has(&reply, "Connection:"));
    }
    close(fd);
    exchange(&site, "GET /hello HTTP/1.0\r\n\r\n", &reply);
    assert_true(has(&reply, "HTTP/1.1 200 ") && has(&reply, "Connection: close\r\n"));
    exchange(&site, "GET /hello HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /hello HTTP/1.0\r\n\r\n", &reply);
    assert_true(has(&reply, "Connection: keep-alive\r\n") && has(&reply, "Connection: close\r\n"));
    exchange(&site, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: x, CLOSE\r\n\r\n", &reply);
    assert_true(has(&reply, "Connection: close\r\n"));
    wb_buf_release(&reply);
    struct wb_httpd_stat stat;
    wb_httpd_stat(site.httpd, &stat);
    assert_int_equal(stat.accepted, 4);
    assert_int_equal(stat.refused, 0);
    site_stop(&site);
}

/* Requests in one packet are answered in order, whatever kinds they are. */
static void test_pipelining(void **state)
{
    static const char requests[] =
        "GET /echo?1" END "POST /echo?2 HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
        "GET /pieces?count=3&bytes=2" END "POST /echo?3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2;x=\"y\"\r\nch\r\n5\r\nunked\r\n0\r\nTrailer: x\r\n\r\n"
        "GET /forbidden" END "GET /echo?4" LAST "GET /echo?never" END;
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    for (size_t step = sizeof requests; step > 0; step = step > 7 ? 7 : step > 1 ? 1 : 0) {
        int fd = dial(&site);
        const char *at = NULL;
        wb_buf_clear(&reply);
        say_bytes(fd, requests, sizeof requests - 1, step);
        assert_true(hear_all(fd, &reply));
        static const char *const order[] = {
            "GET /echo?1 []\n",         "POST /echo?2 [body]\n", "\r\n\r\n2\r\naa\r\n2\r\nbb\r\n2\r\ncc\r\n0\r\n\r\n",
            "POST /echo?3 [chunked]\n", "403 Forbidden",         "GET /echo?4 []\n"};
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
            const char *found = memmem(reply.ptr, reply.len, order[i], strlen(order[i]));
            assert_true(found && found > at);
            at = found;
        }
        assert_false(has(&reply, "never"));
        close(fd);
    }
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A client that closes its side after the request still gets the answer. */
static void test_half_close(void **state)
{
    struct site site = {0};

    (void)state;
    site_start(&site);
    assert_string_equal(statuses_of(&site, "GET /hello" END, strlen("GET /hello" END), 5, true), "200");
    assert_string_equal(statuses_of(&site, "GET /pieces?count=20" END, strlen("GET /pieces?count=20" END), 99, true),
                        "200");
    assert_string_equal(statuses_of(&site, "GET /hel", 8, 99, true), "");
    assert_string_equal(
        statuses_of(&site, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", 54, 99, true), "");
    site_stop(&site);
}

static void test_expect(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    assert_true(hear_text(fd, "HTTP/1.1 100 Continue\r\n\r\n", &reply));
    assert_int_equal(reply.len, strlen("HTTP/1.1 100 Continue\r\n\r\n"));
    say(fd, "abc");
    assert_true(hear_text(fd, "[abc]\n", &reply));
    close(fd);
    /* A body that is too large is not asked for, and one that comes at once needs no answer in between. */
    exchange(&site, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\nExpect: 100-continue\r\n\r\n",
             &reply);
    assert_true(has(&reply, "HTTP/1.1 413 ") && !has(&reply, "HTTP/1.1 100 "));
    exchange(
        &site,
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nabc",
        &reply);
    assert_true(has(&reply, "[abc]\n") && !has(&reply, "HTTP/1.1 100 "));
    exchange(&site, "GET /echo HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n", &reply);
    assert_true(has(&reply, "HTTP/1.1 417 "));
    wb_buf_release(&reply);
    site_stop(&site);
}

/* Bodies as large as they may be, in both framings; one byte more is refused. */
static void test_body_limit(void **state)
{
    struct site site = {0};
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    for (unsigned more = 0; more < 2; more++)
        for (unsigned chunked = 0; chunked < 2; chunked++) {
            unsigned size = BODY_MAX + more;
            wb_buf_clear(&text);
            wb_buf_append_str(&text, "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
            if (chunked)
                wb_buf_printf(&text, "Transfer-Encoding: chunked\r\n\r\n%x\r\n", size);
            else
                wb_buf_printf(&text, "Content-Length: %u\r\n\r\n", size);
            for (unsigned i = 0; i < size; i++)
                wb_buf_append_char(&text, 'y');
            if (chunked)
                wb_buf_append_str(&text, "\r\n0\r\n\r\n");
            assert_string_equal(statuses_of(&site, text.ptr, text.len, 5000, false), more ? "413" : "200");
        }
    wb_buf_release(&text);
    site_stop(&site);
}

/* A large reply to a client that begins to read late. */
static void test_big(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    say(fd, "GET /big?bytes=20000000" LAST);
    await_count(site.handled, 1);
    assert_string_equal(statuses_of(&site, "GET /hello" LAST, strlen("GET /hello" LAST), 99, false), "200");
    assert_true(hear_all(fd, &reply));
    assert_true(reply.len > 20000000);
    close(fd);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A worker that cannot be opened ends the run with its message; the others are closed. */
static void test_worker_fails(void **state)
{
    struct site site = {.worker_fails = true};

    (void)state;
    site_start(&site);
    pthread_join(site.thread, NULL);
    assert_int_equal(site.result, WB_E_IO);
    assert_int_equal(site.workers_open, 0);
    wb_httpd_free(site.httpd);
}

static void test_listen(void **state)
{
    static const char *const bad[] = {
        "", ":", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "host.example:80", "[::1:80", "::1:80"};
    struct site site = {0};

    (void)state;
    site_start(&site);
    struct wb_httpd_options options = site.options;
    struct wb_httpd *other;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.listen = wb_slice_str(bad[i]);
        assert_int_equal(wb_httpd_new(&options, &other), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), bad[i]));
        assert_null(other);
    }
    options.listen = wb_slice_str(wb_httpd_address(site.httpd));
    assert_int_equal(wb_httpd_new(&options, &other), WB_E_IO);
    assert_non_null(strstr(wb_error_message(), wb_httpd_address(site.httpd)));
    options.listen = WB_SLICE_LIT("*:0");
    assert_int_equal(wb_httpd_new(&options, &other), 0);
    assert_false(wb_httpd_is_loopback(other));
    wb_httpd_free(other);
    options.listen = WB_SLICE_LIT("localhost:0");
    assert_int_equal(wb_httpd_new(&options, &other), 0);
    assert_true(wb_httpd_is_loopback(other));
    wb_httpd_free(other);
    site_stop(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reply),      cmocka_unit_test(test_request),    cmocka_unit_test(test_unescape),
        cmocka_unit_test(test_head),       cmocka_unit_test(test_keep_alive), cmocka_unit_test(test_pipelining),
        cmocka_unit_test(test_half_close), cmocka_unit_test(test_expect),     cmocka_unit_test(test_body_limit),
        cmocka_unit_test(test_big),        cmocka_unit_test(test_listen),     cmocka_unit_test(test_worker_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
