/* test_xcrawl.c - HTTP heads are rewritten for export, and undoing that restores them. */
#include "warc_support.h"

#include "warc/xcrawl.h"

static const struct {
    const char *head;
    uint64_t body_len;
    const char *written;
} cases[] = {
    {"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n", 5, "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nZ: z\r\n", 9,
     "HTTP/1.1 200 OK\r\nX-Crawl-Content-Length: 5\r\nContent-Length: 9\r\nZ: z\r\n"},
    {"HTTP/1.1 200 OK\r\ncontent-ENCODING: gzip\r\nTransfer-Encoding: chunked\r\n", 9,
     "HTTP/1.1 200 OK\r\nX-Crawl-content-ENCODING: gzip\r\nX-Crawl-Transfer-Encoding: chunked\r\n"},
    {"HTTP/1.1 200 OK\r\nContent-Length: x\r\nContent-Length: 7\r\n", 7,
     "HTTP/1.1 200 OK\r\nX-Crawl-Content-Length: x\r\nContent-Length: 7\r\nContent-Length: 7\r\n"},
    {"HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\nno colon\r\n", 0, "HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\nno colon\r\n"},
    {"HTTP/1.1 301 Content-Length: 5\r\n", 0, "HTTP/1.1 301 Content-Length: 5\r\n"},
};

static void test_write_and_undo(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wb_buf written = WB_BUF_INIT, undone = WB_BUF_INIT;
        assert_int_equal(wb_xcrawl_write(wb_slice_str(cases[i].head), cases[i].body_len, &written), 0);
        if (!wb_slice_equal(wb_buf_slice(&written), wb_slice_str(cases[i].written)))
            fail_msg("case %zu: '%.*s'", i, WB_SLICE_ARG(wb_buf_slice(&written)));
        assert_int_equal(wb_xcrawl_undo(wb_buf_slice(&written), &undone), 0);
        if (!wb_slice_equal(wb_buf_slice(&undone), wb_slice_str(cases[i].head)))
            fail_msg("case %zu: back it is '%.*s'", i, WB_SLICE_ARG(wb_buf_slice(&undone)));
        assert_int_equal(wb_xcrawl_has(wb_buf_slice(&written)), strstr(cases[i].written, "X-Crawl-") != NULL);
        wb_buf_release(&written);
        wb_buf_release(&undone);
    }
}

static void test_line_ends(void **state)
{
    (void)state;
    struct wb_buf written = WB_BUF_INIT;

    assert_int_equal(wb_xcrawl_write(WB_SLICE_LIT("HTTP/1.0 200 OK\nA: b\r\nContent-Length: 3\nlast"), 3, &written), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&written),
                               WB_SLICE_LIT("HTTP/1.0 200 OK\r\nA: b\r\nContent-Length: 3\r\nlast\r\n")));
    wb_buf_clear(&written);
    assert_int_equal(wb_xcrawl_write(WB_SLICE_LIT("HTTP/1.0 200 OK\n\r"), 3, &written), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&written), WB_SLICE_LIT("HTTP/1.0 200 OK\r\n")));
    wb_buf_release(&written);
}

/* Common Crawl's names are restored; names that only look similar are left alone. */
static void test_undo(void **state)
{
    (void)state;
    struct wb_slice head =
        WB_SLICE_LIT("HTTP/1.1 200 OK\r\nx-crawl-content-encoding: gzip\r\nX-Crawl-Content-Length: 77\r\n"
                     "Content-Length: 140\r\nX-Crawl-Other: 1\r\nX-Crawler-Content-Encoding: br\r\n");
    struct wb_buf undone = WB_BUF_INIT;

    assert_true(wb_xcrawl_has(head));
    assert_int_equal(wb_xcrawl_undo(head, &undone), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&undone),
                               WB_SLICE_LIT("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nContent-Length: 77\r\n"
                                            "X-Crawl-Other: 1\r\nX-Crawler-Content-Encoding: br\r\n")));
    wb_buf_release(&undone);
    assert_false(
        wb_xcrawl_has(WB_SLICE_LIT("HTTP/1.1 200 OK\r\nX-Crawler-Content-Encoding: br\r\nX-Crawl-Other: 1\r\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_and_undo),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_undo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
