/* test_httpd_stop.c - stopping: idle, with requests under way, with streams, and under load. */
#include "httpd_support.h"

#include "base/error.h"
#include "os/clock.h"

#include <string.h>
#include <unistd.h>

#define END " HTTP/1.1\r\nHost: x\r\n\r\n"

static void *end_site(void *context)
{
    site_stop(context);
    return NULL;
}

/* Requests under way are answered; idle connections and half requests are closed. */
static void test_requests_finish(void **state)
{
    struct site site = {.options.limits.stop_ms = 60000};
    struct wb_buf reply = WB_BUF_INIT;
    pthread_t thread;

    (void)state;
    site_start(&site);
    int held = dial(&site), idle = dial(&site), half = dial(&site), later = dial(&site);
    say(later, "GET /later" END);
    await_count(site.sources_made, 1);
    say(half, "GET /hello HTT");
    say(held, "GET /hold" END);
    await_held(&site, 1);
    await_connections(&site, 4);
    pthread_create(&thread, NULL, end_site, &site);
    assert_true(hear_all(idle, &reply));
    hear_all(half, &reply);
    assert_int_equal(reply.len, 0);
    hear_all(later, &reply); /* a source that waits for something could wait for ever */
    struct wb_buf body = WB_BUF_INIT;
    assert_false(unchunk(wb_buf_slice(&reply), &body));
    release_held(&site, 1);
    wb_buf_clear(&reply);
    assert_true(hear_all(held, &reply));
    assert_true(has(&reply, "HTTP/1.1 200 ") && has(&reply, "Connection: close\r\n"));
    close(held); /* the server waits a moment for this */
    pthread_join(thread, NULL);
    close(idle);
    close(half);
    close(later);
    wb_buf_release(&body);
    wb_buf_release(&reply);
}

/*
 * An answer that is held back leaves later, and neither holds up others nor occupies a worker; a client that does not
 * wait costs nothing, and when the server stops, it leaves at once.
 */
static void test_held_back(void **state)
{
    struct site site = {.options.workers = 1};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int64_t began_ns = wb_clock_mono_ns();
    int soon = dial(&site), other = dial(&site), late = dial(&site), gone = dial(&site);
    say(soon, "POST /echo?delay=300 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
    say(late, "GET /pieces?count=3&bytes=10&delay=3600000" END);
    say(gone, "GET /big?bytes=100&delay=3600000" END);
    await_count(site.handled, 3);
    close(gone);
    say(other, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_true(hear_all(other, &reply));
    assert_true(has(&reply, "hello\n"));
    wb_buf_clear(&reply);
    assert_true(hear_all(soon, &reply));
    assert_true(has(&reply, "HTTP/1.1 200 ") && has(&reply, "abc"));
    assert_true(wb_clock_mono_ns() - began_ns >= 300 * 1000000ll);
    pthread_t thread;
    pthread_create(&thread, NULL, end_site, &site);
    wb_buf_clear(&reply);
    assert_true(hear_all(late, &reply));
    assert_true(has(&reply, "HTTP/1.1 200 "));
    close(soon);
    close(other);
    close(late);
    pthread_join(thread, NULL);
    wb_buf_release(&reply);
}

/* What does not finish in time is cut, and no body that is cut looks complete. */
static void test_cut(void **state)
{
    struct site site = {.options.limits.stop_ms = 50};
    struct wb_buf reply = WB_BUF_INIT, body = WB_BUF_INIT;

    (void)state;
    site_start(&site);
    int stream = dial(&site), old = dial(&site), slow = dial(&site);
    say(stream, "GET /pieces?count=1000000&bytes=100000" END);
    say(old, "GET /pieces?count=1000000&bytes=100000 HTTP/1.0\r\n\r\n");
    say(slow, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
    await_count(site.sources_made, 2);
    await_connections(&site, 3);
    site_stop(&site);
    hear_all(stream, &reply);
    assert_false(unchunk(wb_buf_slice(&reply), &body));
    wb_buf_clear(&reply);
    assert_false(hear_all(old, &reply));
    wb_buf_clear(&reply);
    hear_all(slow, &reply);
    assert_int_equal(reply.len, 0);
    close(stream);
    close(old);
    close(slow);
    wb_buf_release(&body);
    wb_buf_release(&reply);
}

static void *load(void *context)
{
    struct site *site = context;
    struct wb_buf reply = WB_BUF_INIT;
    int fd = dial(site);

    for (unsigned i = 0;; i++) {
        wb_buf_clear(&reply);
        say(fd, i % 3 ? "GET /hello" END : "GET /pieces?count=20&bytes=50" END);
        if (!hear_text(fd, i % 3 ? "hello\n" : "\r\n0\r\n\r\n", &reply))
            break;
    }
    close(fd);
    wb_buf_release(&reply);
    return NULL;
}

static void test_under_load(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        struct site site = {0};
        pthread_t threads[8];
        site_start(&site);
        for (size_t i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, load, &site);
        while (site.handled < 300)
            usleep(1000);
        site_stop(&site);
        for (size_t i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(site.running, 0);
    }
}

/* A stop before the start, and a server that never runs. */
static void test_early(void **state)
{
    struct site site = {0};
    struct wb_httpd *httpd;

    (void)state;
    site_start(&site);
    assert_int_equal(wb_httpd_new(&site.options, &httpd), 0);
    wb_httpd_free(httpd);
    assert_int_equal(wb_httpd_new(&site.options, &httpd), 0);
    wb_httpd_stop(httpd);
    assert_int_equal(wb_httpd_run(httpd), 0);
    wb_httpd_free(httpd);
    site_stop(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_finish),
        cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_under_load),
        cmocka_unit_test(test_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
