/* test_httpd_source.c - bodies that are made piece by piece, and clients that read slowly, late, or not at all. */
#include "httpd_support.h"

#include "base/error.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LAST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
#define END " HTTP/1.1\r\nHost: x\r\n\r\n"

static void ask(struct site *site, const char *text, struct wb_buf *reply, bool clean)
{
    int fd = dial(site);

    wb_buf_clear(reply);
    say(fd, text);
    assert_int_equal(hear_all(fd, reply), clean);
    close(fd);
}

/* The body is what the pieces are, whatever their size. */
static void test_pieces(void **state)
{
    static const size_t sizes[] = {1, 10, 70000, 1 << 20};
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT, body = WB_BUF_INIT;
    char text[128];

    (void)state;
    site_start(&site);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(text, sizeof text, "GET /pieces?count=30&bytes=%zu%s", sizes[i], LAST);
        ask(&site, text, &reply, true);
        wb_buf_clear(&body);
        assert_true(has(&reply, "\r\nTransfer-Encoding: chunked\r\n") && !has(&reply, "Content-Length"));
        assert_true(unchunk(wb_buf_slice(&reply), &body));
        assert_int_equal(body.len, 30 * sizes[i]);
        for (size_t at = 0; at < body.len; at++)
            if (body.ptr[at] != (char)('a' + at / sizes[i] % 26))
                fail_msg("byte %zu of pieces of %zu", at, sizes[i]);
    }
    ask(&site, "GET /pieces?count=0" LAST, &reply, true);
    wb_buf_clear(&body);
    assert_true(unchunk(wb_buf_slice(&reply), &body));
    assert_int_equal(body.len, 0);
    wb_buf_release(&body);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A client of HTTP/1.0 knows no chunks: the body ends with the connection. */
static void test_old_client(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    ask(&site, "GET /pieces?count=3&bytes=2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &reply, true);
    assert_true(has(&reply, "\r\n\r\naabbcc") && !has(&reply, "chunked") && has(&reply, "Connection: close\r\n"));
    /* There a source that fails must end with a reset, or the body would look complete. */
    ask(&site, "GET /fail?count=3&bytes=2 HTTP/1.0\r\n\r\n", &reply, false);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A source that fails midway: what was made arrives, and the body does not end. */
static void test_fails(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT, body = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    ask(&site, "GET /fail?count=3&bytes=100000" END "GET /hello" END, &reply, true);
    assert_false(unchunk(wb_buf_slice(&reply), &body));
    assert_int_equal(body.len, 300000);
    assert_false(has(&reply, "hello"));
    ask(&site, "GET /fail?count=0" END, &reply, true);
    wb_buf_clear(&body);
    assert_false(unchunk(wb_buf_slice(&reply), &body));
    assert_int_equal(site.sources_closed, 2);
    wb_buf_release(&body);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* Clients that do not read: each source makes what fits into the buffers and then stops, and others are served. */
static void test_stalled(void **state)
{
    struct site site = {.options = {.workers = 2}};
    struct wb_buf reply = WB_BUF_INIT;
    int fds[20], small = 4096;

    (void)state;
    site_start(&site);
    for (size_t i = 0; i < 20; i++) {
        fds[i] = dial(&site);
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        say(fds[i], "GET /pieces?count=100000&bytes=100000" LAST);
    }
    await_count(site.sources_open, 20);
    unsigned before;
    do { /* until nothing moves: the buffers are full */
        before = site.pieces;
        usleep(200000);
    } while (site.pieces != before);
    assert_true(before < 20 * 200); /* of 2,000,000 */
    ask(&site, "GET /hello" LAST, &reply, true);
    assert_true(has(&reply, "hello\n"));
    ask(&site, "GET /pieces?count=50&bytes=100000" LAST, &reply, true);
    struct wb_httpd_stat stat;
    wb_httpd_stat(site.httpd, &stat);
    assert_int_equal(stat.sources, 20);
    for (size_t i = 0; i < 20; i++)
        close(fds[i]);
    await_count(site.sources_open, 0);
    await_connections(&site, 0);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A stalled client is cut after stall_ms, and its source is closed. */
static void test_stall_limit(void **state)
{
    struct site site = {.options.limits.stall_ms = 100};
    int small = 4096;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    say(fd, "GET /pieces?count=100000&bytes=100000" LAST);
    int plain = dial(&site);
    setsockopt(plain, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    say(plain, "GET /big?bytes=50000000" LAST);
    await_count(site.sources_closed, 1);
    await_connections(&site, 0);
    await_count(site.served, 2);
    close(plain);
    close(fd);
    site_stop(&site);
}

/* A client that leaves in the middle: the source is closed. */
static void test_abandoned(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    for (unsigned i = 0; i < 20; i++) {
        int fd = dial(&site);
        say(fd, "GET /pieces?count=1000000&bytes=5000" LAST);
        wb_buf_clear(&reply);
        hear(fd, 1 + i * 3000, &reply);
        close(fd);
    }
    await_count(site.sources_closed, 20);
    await_connections(&site, 0);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* Sources without anything to say are asked again when they are woken. */
static void test_later(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;
    int fds[5];

    (void)state;
    site_start(&site);
    for (size_t i = 0; i < 5; i++) {
        fds[i] = dial(&site);
        say(fds[i], "GET /later" END);
    }
    await_count(site.sources_open, 5);
    for (unsigned round = 1; round <= 50; round++) {
        feed_later(&site);
        await_count(site.pieces, 5 * round);
    }
    for (size_t i = 0; i < 5; i++) {
        wb_buf_clear(&reply);
        assert_true(hear_text(fds[i], "a\r\nxxxxxxxxxx\r\n", &reply)); /* the last of the 50: 'a' + 49 % 26 */
        assert_true(has(&reply, "a\r\naaaaaaaaaa\r\na\r\nbbbbbbbbbb\r\n"));
    }
    for (size_t i = 0; i < 5; i++)
        close(fds[i]); /* a client that closes while its source has nothing is noticed too */
    await_count(site.sources_closed, 5);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A client that sends endlessly while its source has nothing is cut: nobody would notice when it leaves. */
static void test_talks_too_much(void **state)
{
    struct site site = {.options.limits.head_bytes = 4096};
    struct wb_buf reply = WB_BUF_INIT, talk = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    for (unsigned i = 0; i < 20000; i++)
        wb_buf_append_char(&talk, 'x');
    int fd = dial(&site);
    say(fd, "GET /later" END);
    await_count(site.sources_open, 1);
    say_bytes(fd, talk.ptr, talk.len, 1000);
    hear_all(fd, &reply);
    await_count(site.sources_closed, 1);
    close(fd);
    wb_buf_release(&talk);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A client that has closed its side still gets what a source makes; if that is nothing for long, it is gone. */
static void test_half_closed(void **state)
{
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    say(fd, "GET /later" END);
    shutdown(fd, SHUT_WR);
    await_count(site.sources_open, 1);
    for (unsigned round = 1; round <= 3; round++) {
        feed_later(&site);
        await_count(site.pieces, round);
    }
    assert_true(hear_text(fd, "a\r\ncccccccccc\r\n", &reply));
    hear_all(fd, &reply);
    assert_int_equal(site.pieces, 3);
    await_count(site.sources_closed, 1);
    close(fd);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* Plain requests are answered while more streams than workers are under way, and the streams end. */
static void test_side_by_side(void **state)
{
    struct site site = {.options = {.workers = 2}};
    struct wb_buf reply = WB_BUF_INIT;
    int fds[6];

    (void)state;
    site_start(&site);
    for (size_t i = 0; i < 6; i++) {
        fds[i] = dial(&site);
        say(fds[i], "GET /pieces?count=100&bytes=65536" LAST);
    }
    int fd = dial(&site);
    for (unsigned i = 0; i < 200; i++) {
        wb_buf_clear(&reply);
        say(fd, "GET /hello" END);
        assert_true(hear_text(fd, "hello\n", &reply));
    }
    for (size_t i = 0; i < 6; i++) {
        wb_buf_clear(&reply);
        assert_true(hear_all(fds[i], &reply));
        assert_true(reply.len > 6553600);
        close(fds[i]);
    }
    close(fd);
    wb_buf_release(&reply);
    site_stop(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),       cmocka_unit_test(test_old_client),  cmocka_unit_test(test_fails),
        cmocka_unit_test(test_stalled),      cmocka_unit_test(test_stall_limit), cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_later),        cmocka_unit_test(test_half_closed), cmocka_unit_test(test_talks_too_much),
        cmocka_unit_test(test_side_by_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
