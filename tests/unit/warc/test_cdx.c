/* test_cdx.c - lines of CDX indexes. */
#include "../expect.h"
#include "warc_support.h"

#include "warc/cdx.h"

static void times(void **state)
{
    char text[WB_CDX_TIME_MAX];

    (void)state;
    wb_cdx_time(1767323045678, text);
    assert_string_equal(text, "20260102030405");
    wb_cdx_time(INT64_MAX, text);
    assert_string_equal(text, "99991231235959");
    wb_cdx_time(INT64_MIN, text);
    assert_string_equal(text, "00000101000000");
}

static const struct wb_cdx whole = {
    .urlkey = WB_SLICE_LIT("com,example)/a b"),
    .time_ms = 1767323045678,
    .url = WB_SLICE_LIT("http://example.com/a b\"\t"),
    .mime = WB_SLICE_LIT("text/html"),
    .status = 301,
    .digest = WB_SLICE_LIT("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    .redirect = WB_SLICE_LIT("/n x"),
    .filename = WB_SLICE_LIT("data.warc.gz"),
    .length = 512,
    .offset = 0,
};

static const struct wb_cdx bare = {
    .urlkey = WB_SLICE_LIT("com,example)/"),
    .url = WB_SLICE_LIT("http://example.com/"),
    .mime = WB_SLICE_LIT("warc/revisit"),
    .digest = {"", 0},
    .redirect = {"", 0},
    .filename = {"", 0},
    .offset = 7,
};

static void lines_of_json(void **state)
{
    struct wb_buf lines = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_cdx_append_json(&whole, &lines), 0);
    assert_int_equal(wb_cdx_append_json(&bare, &lines), 0);
    expect(wb_buf_slice(&lines),
           "com,example)/a%20b 20260102030405 {\"url\":\"http://example.com/a b\\\"\\t\",\"mime\":\"text/html\","
           "\"status\":\"301\",\"digest\":\"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567\",\"length\":\"512\","
           "\"offset\":\"0\",\"filename\":\"data.warc.gz\",\"redirect\":\"/n x\"}\n"
           "com,example)/ 19700101000000 {\"url\":\"http://example.com/\",\"mime\":\"warc/revisit\"}\n");
    wb_buf_release(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),
        cmocka_unit_test(lines_of_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
