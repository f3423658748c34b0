/* test_httpd_fault.c - memory runs out, once, at every place: a request may fail then, but nothing else does. */
#include "httpd_support.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define END " HTTP/1.1\r\nHost: x\r\n\r\n"
#define LAST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static atomic_llong left = -1; /* allocations that succeed before one fails; negative: none fails */
static _Thread_local bool spared;

/* Asked before each allocation. The client, which is this thread, does not run out of memory. */
static bool fails_now(void)
{
    return !spared && left >= 0 && atomic_fetch_sub(&left, 1) == 0;
}

static const char *hello(struct site *site)
{
    return statuses_of(site, "GET /hello" LAST, strlen("GET /hello" LAST), 100, false);
}

static void test_every_allocation(void **state)
{
    static const char text[] =
        "GET /fields?a=b&c=d HTTP/1.1\r\nHost: x\r\nX-Test: y\r\n\r\n"
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nbody"
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        "GET /pieces?count=5&bytes=3000" END "HEAD /pieces?count=5" END "GET /broken" END "GET /big?bytes=300000" LAST;
    struct site site = {.options.workers = 1};
    unsigned n = 0, complete = 0;
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    spared = true;
    wb_alloc_should_fail = fails_now;
    site_start(&site);
    assert_string_equal(hello(&site), "200"); /* it runs: no allocation of the start may fail here */
    for (bool struck = true; struck; n++) {
        int fd = dial(&site);
        wb_buf_clear(&reply);
        left = n;
        say_bytes(fd, text, sizeof text - 1, 40);
        hear_all(fd, &reply);
        struck = left < 0;
        left = -1;
        complete = reply.len > 300000 + 15000 ? complete + 1 : complete;
        close(fd);
        assert_string_equal(hello(&site), "200");
    }
    assert_true(n > 20 && complete >= 1);
    await_connections(&site, 0);
    site_stop(&site);
    wb_alloc_should_fail = NULL;
    wb_buf_release(&reply);
}

/* A server that cannot be made says so, and leaves nothing behind. */
static void test_new(void **state)
{
    struct site site = {0};
    struct wb_httpd *httpd = NULL;
    unsigned n = 0;

    (void)state;
    site_start(&site);
    struct wb_httpd_options options = site.options;
    site_stop(&site);
    spared = false;
    wb_alloc_should_fail = fails_now;
    for (bool struck = true; struck; n++) {
        left = n;
        int err = wb_httpd_new(&options, &httpd);
        struck = left < 0;
        left = -1;
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        assert_true(struck == (httpd == NULL));
    }
    assert_true(n > 2);
    wb_httpd_free(httpd);
    wb_alloc_should_fail = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
