/* test_httpd_limits.c - slow clients, many clients, and more requests than workers. */
#include "httpd_support.h"

#include "base/error.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define END " HTTP/1.1\r\nHost: x\r\n\r\n"
#define LAST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static const char *hello(struct site *site)
{
    return statuses_of(site, "GET /hello" LAST, strlen("GET /hello" LAST), 100, false);
}

/* Hears what a connection gets until it is closed. */
static void expect_end(int fd, const char *status)
{
    struct wb_buf reply = WB_BUF_INIT;

    assert_true(hear_all(fd, &reply));
    if (status)
        assert_true(has(&reply, status));
    else
        assert_int_equal(reply.len, 0);
    wb_buf_release(&reply);
    close(fd);
}

/* A head that never ends, a body that never ends, and a client that says nothing. */
static void test_slow_writers(void **state)
{
    struct site site = {.options.limits = {.head_ms = 150, .body_ms = 150, .idle_ms = 150}};

    (void)state;
    site_start(&site);
    int head = dial(&site), body = dial(&site), chunks = dial(&site), silent = dial(&site), late = dial(&site);
    say(head, "GET /hello HTTP/1.1\r\nX");
    say(body, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
    say(chunks, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n");
    say(late, "GET /hello" END);
    expect_end(head, "HTTP/1.1 408 ");
    expect_end(body, "HTTP/1.1 408 ");
    expect_end(chunks, "HTTP/1.1 408 ");
    expect_end(silent, NULL);
    expect_end(late, "hello\n");
    await_connections(&site, 0);
    site_stop(&site);
}

/* Bytes that keep arriving do not extend the time for a head. */
static void test_dribble(void **state)
{
    struct site site = {.options.limits = {.head_ms = 100}};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    say(fd, "GET /hello HTTP/1.1\r\nHost: x\r\nX: ");
    while (recv(fd, &(char){0}, 1, MSG_DONTWAIT | MSG_PEEK) < 0) {
        say(fd, "a");
        usleep(5000);
    }
    expect_end(fd, "HTTP/1.1 408 ");
    wb_buf_release(&reply);
    site_stop(&site);
}

/* Idle connections, and those with half a head, make room for new ones; the oldest goes first. */
static void test_too_many(void **state)
{
    struct site site = {.options.limits = {.connections = 20}};
    struct wb_httpd_stat stat;
    int fds[60];

    (void)state;
    site_start(&site);
    for (size_t i = 0; i < 60; i++) {
        fds[i] = dial(&site);
        if (i % 2)
            say(fds[i], "GET /hello HTTP/1.1\r\nX-A: ");
    }
    expect_end(fds[0], NULL);
    assert_string_equal(hello(&site), "200");
    say(fds[58], "GET /hello" LAST);
    expect_end(fds[58], "hello\n");
    for (size_t i = 1; i < 58; i++)
        close(fds[i]);
    close(fds[59]);
    await_connections(&site, 0);
    wb_httpd_stat(site.httpd, &stat);
    assert_int_equal(stat.accepted, 61);
    assert_int_equal(stat.refused, 41);
    site_stop(&site);
}

/* If all connections are busy, a new one is closed at once. The limit of one client is enforced in the same way. */
static void test_all_busy(void **state)
{
    (void)state;
    for (unsigned per_peer = 0; per_peer < 2; per_peer++) {
        struct site site = {.options = {.workers = 4}};
        int fds[3];
        *(per_peer ? &site.options.limits.connections_per_peer : &site.options.limits.connections) = 3;
        site_start(&site);
        for (size_t i = 0; i < 3; i++) {
            fds[i] = dial(&site);
            say(fds[i], "GET /hold" LAST);
        }
        await_held(&site, 3);
        int fd = dial(&site);
        expect_end(fd, NULL);
        release_held(&site, 3);
        for (size_t i = 0; i < 3; i++)
            expect_end(fds[i], "HTTP/1.1 200 ");
        await_connections(&site, 0);
        assert_string_equal(hello(&site), "200");
        site_stop(&site);
    }
}

/* Sends requests that wait in their handlers, and waits until `running` of them do. */
static void begin_holding(struct site *site, const char *request, int *fds, size_t count, unsigned running)
{
    for (size_t i = 0; i < count; i++) {
        fds[i] = dial(site);
        say(fds[i], request);
        if (i < running)
            await_held(site, (unsigned)i + 1);
    }
}

/* Requests that may be slow take at most half of the workers; the rest wait for a while, and then get 503. */
static void test_slow_requests(void **state)
{
    struct site site = {.options = {.workers = 4, .limits = {.turn_ms = 100}}};
    struct wb_httpd_stat stat;
    int fds[5];

    (void)state;
    site_start(&site);
    begin_holding(&site, "GET /hold?slow" LAST, fds, 5, 2);
    for (size_t i = 2; i < 5; i++)
        expect_end(fds[i], "Retry-After: ");
    assert_int_equal(site.running, 2);
    assert_string_equal(hello(&site), "200");
    assert_string_equal(statuses_of(&site, "GET /pieces?count=20" LAST, strlen("GET /pieces?count=20" LAST), 99, false),
                        "200");
    wb_httpd_stat(site.httpd, &stat);
    assert_int_equal(stat.waiting, 0);
    release_held(&site, 2);
    expect_end(fds[0], "HTTP/1.1 200 ");
    expect_end(fds[1], "HTTP/1.1 200 ");
    site_stop(&site);
}

/* One that waits gets its turn when another is done. */
static void test_turns(void **state)
{
    struct site site = {.options = {.workers = 4}};
    int fds[5];

    (void)state;
    site_start(&site);
    begin_holding(&site, "GET /hold?slow" LAST, fds, 5, 2);
    assert_string_equal(hello(&site), "200");
    assert_int_equal(site.running, 2);
    release_held(&site, 5);
    for (size_t i = 0; i < 5; i++)
        expect_end(fds[i], "HTTP/1.1 200 ");
    await_connections(&site, 0);
    site_stop(&site);
}

/* Replies that clients do not take cost memory: then there is no room for further ones that may be large. */
static void test_replies_not_taken(void **state)
{
    struct site site = {.options.limits = {.held_bytes = 1 << 20}};
    static const char slow[] = "GET /hello?slow" LAST;

    (void)state;
    site_start(&site);
    int fd = dial(&site);
    say(fd, "GET /big?bytes=50000000" LAST);
    while (strcmp(statuses_of(&site, slow, strlen(slow), 100, false), "503") != 0)
        continue; /* the large reply is not being sent yet */
    assert_string_equal(hello(&site), "200");
    expect_end(fd, "HTTP/1.1 200 ");
    await_connections(&site, 0);
    assert_string_equal(statuses_of(&site, slow, strlen(slow), 100, false), "200");
    site_stop(&site);
}

/* More requests than workers and queue: 503, and the connection stays usable. */
static void test_queue(void **state)
{
    struct site site = {.options = {.workers = 1, .limits = {.queue = 2}}};
    struct wb_buf reply = WB_BUF_INIT;
    struct wb_httpd_stat stat;
    int fds[3];

    (void)state;
    site_start(&site);
    begin_holding(&site, "GET /hold" LAST, fds, 3, 1);
    do
        wb_httpd_stat(site.httpd, &stat);
    while (stat.waiting < 2);
    int fd = dial(&site);
    say(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    assert_true(hear_text(fd, "busy\"}\n", &reply));
    assert_true(has(&reply, "HTTP/1.1 503 ") && has(&reply, "Retry-After: 1\r\n"));
    release_held(&site, 3);
    for (size_t i = 0; i < 3; i++)
        expect_end(fds[i], "HTTP/1.1 200 ");
    say(fd, "GET /hello" LAST);
    expect_end(fd, "hello\n");
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A request whose client leaves before a worker is free is never handled. */
static void test_left_the_queue(void **state)
{
    struct site site = {.options.workers = 1};
    struct wb_httpd_stat stat;

    (void)state;
    site_start(&site);
    int held = dial(&site), leaver = dial(&site);
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    say(held, "GET /hold" LAST);
    await_held(&site, 1);
    say(leaver, "GET /hello" LAST);
    do
        wb_httpd_stat(site.httpd, &stat);
    while (stat.waiting < 1);
    setsockopt(leaver, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(leaver);
    do
        wb_httpd_stat(site.httpd, &stat);
    while (stat.waiting > 0);
    release_held(&site, 1);
    expect_end(held, "HTTP/1.1 200 ");
    assert_int_equal(site.handled, 1);
    site_stop(&site);
}

/* The bodies of all requests together are bounded. */
static void test_body_bytes(void **state)
{
    struct site site = {.options.limits = {.body_bytes = 150000}};
    struct wb_buf body = WB_BUF_INIT;
    int fds[3];

    (void)state;
    site_start(&site);
    for (unsigned i = 0; i < 60000; i++)
        wb_buf_append_char(&body, 'b');
    for (size_t i = 0; i < 3; i++) {
        fds[i] = dial(&site);
        say(fds[i], "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 60001\r\n\r\n");
        say_bytes(fds[i], body.ptr, body.len, 8192);
    }
    struct wb_buf reply = WB_BUF_INIT;
    unsigned refused = 0;
    await_count(site.served, 1); /* one of them is refused; the other two may end */
    for (size_t i = 0; i < 3; i++) {
        say(fds[i], "b");
        wb_buf_clear(&reply);
        hear_all(fds[i], &reply); /* the one that was refused may end with a reset, because of the last byte */
        refused += has(&reply, "HTTP/1.1 503 ");
        assert_true(has(&reply, "HTTP/1.1 503 ") || has(&reply, "HTTP/1.1 200 "));
        close(fds[i]);
    }
    assert_int_equal(refused, 1);
    wb_buf_release(&reply);
    wb_buf_release(&body);
    site_stop(&site);
}

/* Many connections that do nothing beside one that works. */
static void test_idle_crowd(void **state)
{
    struct site site = {0};
    static int fds[900];

    (void)state;
    site_start(&site);
    for (size_t i = 0; i < 900; i++)
        fds[i] = dial(&site);
    await_connections(&site, 900);
    for (unsigned i = 0; i < 20; i++)
        assert_string_equal(hello(&site), "200");
    for (size_t i = 0; i < 900; i++)
        close(fds[i]);
    await_connections(&site, 0);
    site_stop(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_writers),      cmocka_unit_test(test_dribble),
        cmocka_unit_test(test_too_many),          cmocka_unit_test(test_all_busy),
        cmocka_unit_test(test_slow_requests),     cmocka_unit_test(test_turns),
        cmocka_unit_test(test_replies_not_taken), cmocka_unit_test(test_queue),
        cmocka_unit_test(test_left_the_queue),    cmocka_unit_test(test_body_bytes),
        cmocka_unit_test(test_idle_crowd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
