/* test_loadrow.c - reads lines of JSON and of tables as named texts. */
#include "base/error.h"
#include "ingest/loadrow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int read_line(struct wb_loadrow *row, const char *line)
{
    return wb_loadrow_read(row, wb_slice_str(line));
}

static void assert_cell(const struct wb_loadrow *row, const char *name, const char *expected)
{
    struct wb_slice text = wb_loadrow_text(row, name);

    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.ptr, expected, text.len);
}

static void test_json(void **state)
{
    struct wb_loadrow row = {.count = 0};

    (void)state;
    assert_int_equal(read_line(&row, "{\"a\":\"x\\u00e4\\ty\",\"b\":12,\"c\":0.25,\"d\":true,\"e\":false,\"f\":null,"
                                     "\"g\":[\"p\",\"q\"],"
                                     "\"h\":[{\"t\":\"1\",\"s\":2},{\"t\":\"3\",\"s\":4}],\"i\":\"\"}"), 1);
    assert_cell(&row, "a", "x\xc3\xa4\ty");
    assert_cell(&row, "b", "12");
    assert_cell(&row, "c", "0.25");
    assert_cell(&row, "d", "1");
    assert_cell(&row, "e", "0");
    assert_cell(&row, "f", "");
    assert_cell(&row, "g", "p,q");
    assert_cell(&row, "h", "1 2; 3 4");
    assert_cell(&row, "i", "");
    assert_cell(&row, "none", "");
    assert_true(wb_loadrow_has(&row, "f") && !wb_loadrow_has(&row, "none"));
    /* A bad line does not harm the next one. */
    assert_int_equal(read_line(&row, "{\"a\":"), WB_E_PROTO);
    assert_int_equal(read_line(&row, "[1]"), WB_E_PROTO);
    assert_int_equal(read_line(&row, "{\"a\":1,\"a\":2}"), WB_E_PROTO);
    assert_int_equal(read_line(&row, ""), 0);
    assert_int_equal(read_line(&row, "{\"b\":\"new\"}"), 1);
    assert_cell(&row, "b", "new");
    assert_false(wb_loadrow_has(&row, "a"));
    wb_loadrow_release(&row);
}

static void test_tabs(void **state)
{
    struct wb_loadrow row = {.count = 0};

    (void)state;
    assert_int_equal(read_line(&row, "url\tscore\tempty"), 0);
    assert_int_equal(read_line(&row, "http://a/\t7\t"), 1);
    assert_cell(&row, "url", "http://a/");
    assert_cell(&row, "score", "7");
    assert_cell(&row, "empty", "");
    assert_int_equal(read_line(&row, "http://a/\t7"), WB_E_PROTO);
    assert_int_equal(read_line(&row, "http://a/\t7\t\t"), WB_E_PROTO);
    assert_int_equal(read_line(&row, "\t\t{"), 1);
    assert_cell(&row, "empty", "{");
    wb_loadrow_release(&row);
}

static void test_too_many_columns(void **state)
{
    struct wb_loadrow row = {.count = 0};
    struct wb_buf line = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 2 * WB_LOADROW_CELLS; i++)
        assert_int_equal(wb_buf_printf(&line, "%sc%d", i ? "\t" : "", i), 0);
    assert_int_equal(wb_loadrow_read(&row, wb_buf_slice(&line)), WB_E_LIMIT);
    assert_true(wb_loadrow_read(&row, wb_buf_slice(&line)) < 0);
    wb_loadrow_release(&row);
    wb_buf_clear(&line);
    for (int i = 0; i < 2 * WB_LOADROW_CELLS; i++)
        assert_int_equal(wb_buf_printf(&line, "%s\"c%d\":1", i ? "," : "{", i), 0);
    assert_int_equal(wb_buf_append_char(&line, '}'), 0);
    assert_int_equal(wb_loadrow_read(&row, wb_buf_slice(&line)), WB_E_PROTO);
    wb_loadrow_release(&row);
    wb_buf_release(&line);
}

static void test_values(void **state)
{
    struct wb_loadrow row = {.count = 0};
    uint64_t number;
    uint8_t bytes[2];
    double real;
    int64_t time_ms;
    bool there;

    (void)state;
    assert_int_equal(read_line(&row, "{\"n\":70000,\"neg\":-1,\"r\":\"2.5e3\",\"inf\":\"inf\","
                                     "\"t\":\"2026-01-02T03:04:05.678Z\",\"h\":\"0aF1\",\"w\":\"word\"}"), 1);
    assert_int_equal(wb_loadrow_number(&row, "n", UINT32_MAX, &number), 0);
    assert_int_equal(number, 70000);
    assert_int_equal(wb_loadrow_number(&row, "n", UINT16_MAX, &number), WB_E_PROTO);
    assert_int_equal(wb_loadrow_number(&row, "neg", UINT16_MAX, &number), WB_E_PROTO);
    assert_int_equal(wb_loadrow_number(&row, "none", UINT16_MAX, &number), 0);
    assert_int_equal(number, 0);
    assert_int_equal(wb_loadrow_double(&row, "r", &real), 0);
    assert_true(real > 2499.9 && real < 2500.1);
    assert_int_equal(wb_loadrow_double(&row, "inf", &real), WB_E_PROTO);
    assert_int_equal(wb_loadrow_double(&row, "w", &real), WB_E_PROTO);
    assert_non_null(strstr(wb_error_message(), "w should be a number"));
    assert_int_equal(wb_loadrow_time(&row, "t", &time_ms), 0);
    assert_true(time_ms == 1767323045678ll);
    assert_int_equal(wb_loadrow_time(&row, "w", &time_ms), WB_E_PROTO);
    assert_int_equal(wb_loadrow_hex(&row, "h", bytes, sizeof bytes, &there), 0);
    assert_true(there && bytes[0] == 0x0a && bytes[1] == 0xf1);
    assert_int_equal(wb_loadrow_hex(&row, "w", bytes, sizeof bytes, &there), WB_E_PROTO);
    assert_int_equal(wb_loadrow_hex(&row, "none", bytes, sizeof bytes, &there), 0);
    assert_false(there);
    wb_loadrow_release(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_tabs),
        cmocka_unit_test(test_too_many_columns),
        cmocka_unit_test(test_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
