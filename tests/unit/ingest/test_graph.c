/* test_graph.c - names of vertices: from SURTs, and to URLs. */
#include "base/error.h"
#include "ingest/vertexname.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_hosts_of_surts(void **state)
{
    static const char *const cases[][2] = {
        {"com,example)/a/b", "com.example"},
        {"com,example,www:8080)/", "com.example.www"},
        {"192.0.2.9)/x", "192.0.2.9"},
        {"192.0.2.9:81)/x", "192.0.2.9"},
        {"[2001:db8::1])/", "[2001:db8::1]"},
        {"[2001:db8::1]:81)/", "[2001:db8::1]"},
        {"localhost)/", "localhost"},
        {"com,example)/a)b:c", "com.example"},
    };
    struct wb_buf name = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wb_buf_clear(&name);
        assert_int_equal(wb_graph_host(wb_slice_str(cases[i][0]), &name), 0);
        assert_true(wb_slice_equal(wb_buf_slice(&name), wb_slice_str(cases[i][1])));
    }
    wb_buf_release(&name);
}

static void test_urls_of_names(void **state)
{
    static const char *const cases[][2] = {
        {"com.example", "http://example.com/"},
        {"com.example.www", "http://www.example.com/"},
        {"localhost", "http://localhost/"},
        {"192.0.2.9", "http://192.0.2.9/"},
        {"[2001:db8::1]", "http://[2001:db8::1]/"},
        {"https://example.com/a?b#c", "https://example.com/a?b#c"},
        {"jp.co.xn--e1aybc", "http://xn--e1aybc.co.jp/"},
    };
    static const char *const bad[] = {"mailto:x@y", "com.example/path", "com.example:80", "a@b", "x?y", ""};
    struct wb_buf url = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wb_buf_clear(&url);
        assert_int_equal(wb_graph_url(wb_slice_str(cases[i][0]), &url), 0);
        assert_true(wb_slice_equal(wb_buf_slice(&url), wb_slice_str(cases[i][1])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(wb_graph_url(wb_slice_str(bad[i]), &url), WB_E_PROTO);
    assert_int_equal(wb_graph_url(wb_slice("x\0y", 3), &url), WB_E_PROTO);
    wb_buf_release(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_of_surts),
        cmocka_unit_test(test_urls_of_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
