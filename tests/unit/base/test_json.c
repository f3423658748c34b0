/* test_json.c - what is written is JSON, as another reader sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocfail.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"

#include <jansson.h>
#include <math.h>

static void test_shape(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;
    struct wb_json j;

    (void)state;
    wb_json_init(&j, &buf);
    wb_json_object(&j);
    wb_json_field_str(&j, "a", "x");
    wb_json_field_u64(&j, "b", UINT64_MAX);
    wb_json_field_i64(&j, "c", INT64_MIN);
    wb_json_field_bool(&j, "d", true);
    wb_json_key(&j, "e");
    wb_json_array(&j);
    wb_json_array(&j);
    wb_json_array_end(&j);
    wb_json_null(&j);
    wb_json_object(&j);
    wb_json_object_end(&j);
    wb_json_array_end(&j);
    wb_json_object_end(&j);
    assert_int_equal(wb_json_line(&j), 0);
    wb_json_bool(&j, false);
    assert_int_equal(wb_json_line(&j), 0);
    assert_int_equal(wb_buf_terminate(&buf), 0);
    assert_string_equal(buf.ptr, "{\"a\":\"x\",\"b\":18446744073709551615,\"c\":-9223372036854775808,\"d\":true,"
                                 "\"e\":[[],null,{}]}\nfalse\n");
    wb_buf_release(&buf);
}

static void test_numbers(void **state)
{
    const double numbers[] = {0, -1.5, 1e300, 1.0 / 3, 123456.7, -0.0, INFINITY, -INFINITY, NAN};
    struct wb_buf buf = WB_BUF_INIT;
    struct wb_json j;

    (void)state;
    wb_json_init(&j, &buf);
    wb_json_array(&j);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        wb_json_double(&j, numbers[i]);
    wb_json_object(&j);
    wb_json_field_double(&j, "a", 2);
    wb_json_object_end(&j);
    wb_json_array_end(&j);
    assert_int_equal(wb_json_line(&j), 0);
    assert_int_equal(wb_buf_terminate(&buf), 0);
    assert_string_equal(buf.ptr, "[0,-1.5,1e+300,0.333333,123457,-0,null,null,null,{\"a\":2}]\n");
    json_t *read = json_loadb(buf.ptr, buf.len, 0, NULL);
    assert_non_null(read);
    json_decref(read);
    wb_buf_release(&buf);
}

static void test_numbers_that_are_read_again(void **state)
{
    const double numbers[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -123456789.125, 0.1 + 0.2};
    const size_t count = sizeof numbers / sizeof *numbers;
    struct wb_buf buf = WB_BUF_INIT;
    struct wb_json j;

    (void)state;
    wb_json_init(&j, &buf);
    wb_json_array(&j);
    for (size_t i = 0; i < count; i++)
        wb_json_double_exact(&j, numbers[i]);
    wb_json_double_exact(&j, NAN);
    wb_json_array_end(&j);
    assert_int_equal(wb_json_line(&j), 0);
    json_t *read = json_loadb(buf.ptr, buf.len, 0, NULL);
    assert_int_equal(json_array_size(read), count + 1);
    for (size_t i = 0; i < count; i++)
        assert_true(json_real_value(json_array_get(read, i)) == numbers[i]);
    assert_true(json_is_null(json_array_get(read, count)));
    assert_memory_equal(buf.ptr, "[0.1,", 5);
    json_decref(read);
    wb_buf_release(&buf);
}

static void check_text(struct wb_slice text, const char *expected)
{
    struct wb_buf buf = WB_BUF_INIT;
    struct wb_json j;
    json_error_t error;

    wb_json_init(&j, &buf);
    wb_json_array(&j);
    wb_json_slice(&j, text);
    wb_json_array_end(&j);
    assert_int_equal(wb_json_line(&j), 0);
    json_t *read = json_loadb(buf.ptr, buf.len, JSON_ALLOW_NUL, &error);
    if (!read)
        fail_msg("%s: %.*s", error.text, WB_SLICE_ARG(wb_buf_slice(&buf)));
    if (expected)
        assert_string_equal(json_string_value(json_array_get(read, 0)), expected);
    json_decref(read);
    wb_buf_release(&buf);
}

static void test_text(void **state)
{
    char all[256], two[2];

    (void)state;
    check_text(WB_SLICE_LIT("plain"), "plain");
    check_text(WB_SLICE_LIT("\"\\/\n\r\t\x01\x7f"), "\"\\/\n\r\t\x01\x7f");
    check_text(WB_SLICE_LIT("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    check_text(WB_SLICE_LIT("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd");
    check_text(WB_SLICE_LIT("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)i;
    check_text(wb_slice(all, sizeof all), NULL);
    for (unsigned i = 0; i < 65536; i++) {
        two[0] = (char)(i >> 8);
        two[1] = (char)i;
        check_text(wb_slice(two, 2), NULL);
    }
}

/* If memory ran out once, wb_json_line() reports it, although later values found memory again. */
static void test_no_memory(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;
    struct wb_json j;

    (void)state;
    wb_json_init(&j, &buf);
    alloc_fail_all();
    wb_json_object(&j);
    alloc_fail_none();
    wb_json_field_u64(&j, "a", 1);
    wb_json_object_end(&j);
    assert_int_equal(wb_json_line(&j), WB_E_NOMEM);
    wb_buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shape), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_numbers_that_are_read_again), cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
