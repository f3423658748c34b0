/* test_guestanswer.c - the parts of an answer: what is said arrives, and nothing else is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "base/bytes.h"
#include "base/error.h"
#include "guest/guestwire.h"

static struct wb_slice part(struct wb_buf *bytes, char kind, struct wb_slice name, struct wb_slice value)
{
    char head[WB_GUEST_PART_BYTES] = {kind};

    wb_put32(head + 1, (uint32_t)name.len);
    wb_put32(head + 5, (uint32_t)value.len);
    wb_buf_clear(bytes);
    assert_int_equal(wb_buf_append(bytes, head, sizeof head), 0);
    assert_int_equal(wb_buf_append_slice(bytes, name), 0);
    assert_int_equal(wb_buf_append_slice(bytes, value), 0);
    return wb_buf_slice(bytes);
}

static int next(char kind, struct wb_slice name, struct wb_slice value, struct wb_guest_part *out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_slice rest = part(&bytes, kind, name, value);
    int more = wb_guest_next(&rest, out);

    if (more == 1)
        assert_int_equal(rest.len, 0);
    wb_buf_release(&bytes);
    return more;
}

static void test_said(void **state)
{
    struct wb_guest_part got;
    char time[8];

    (void)state;
    wb_put64(time, (uint64_t)-5);
    assert_int_equal(next('T', WB_SLICE_EMPTY, WB_SLICE_LIT("text"), &got), 1);
    assert_int_equal(got.kind, WB_GUEST_TEXT);
    assert_int_equal(got.value.len, 4);
    assert_int_equal(next('L', WB_SLICE_LIT("/a"), WB_SLICE_LIT("anchor"), &got), 1);
    assert_int_equal(got.name.len, 2);
    assert_int_equal(next('P', WB_SLICE_EMPTY, wb_slice(time, 8), &got), 1);
    assert_true(got.time_ms == -5);
    assert_int_equal(next('F', WB_SLICE_LIT("a.B-c_9"), WB_SLICE_LIT(""), &got), 1);
}

static void test_refused(void **state)
{
    static const char long_value[WB_GUEST_FACT_VALUE_MAX + 1], long_name[WB_GUEST_FACT_NAME_MAX + 1] = "x";
    struct wb_guest_part got;

    (void)state;
    assert_int_equal(next('?', WB_SLICE_EMPTY, WB_SLICE_EMPTY, &got), WB_E_PROTO);
    assert_int_equal(next('T', WB_SLICE_LIT("x"), WB_SLICE_EMPTY, &got), WB_E_PROTO);
    assert_int_equal(next('P', WB_SLICE_EMPTY, WB_SLICE_LIT("1234567"), &got), WB_E_PROTO);
    assert_int_equal(next('F', WB_SLICE_EMPTY, WB_SLICE_LIT("v"), &got), WB_E_PROTO);
    assert_int_equal(next('F', WB_SLICE_LIT("a b"), WB_SLICE_LIT("v"), &got), WB_E_PROTO);
    assert_int_equal(next('F', WB_SLICE_LIT("a\0"), WB_SLICE_LIT("v"), &got), WB_E_PROTO);
    assert_int_equal(next('F', WB_SLICE_LIT("../a"), WB_SLICE_LIT("v"), &got), WB_E_PROTO);
    assert_int_equal(next('F', wb_slice(long_name, sizeof long_name), WB_SLICE_LIT("v"), &got), WB_E_PROTO);
    assert_int_equal(next('F', WB_SLICE_LIT("a"), wb_slice(long_value, sizeof long_value), &got), WB_E_PROTO);
}

/* Every answer that is cut off is refused, or ends where a part ends; a length that is too large, too. */
static void test_cut(void **state)
{
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_slice whole = part(&bytes, 'L', WB_SLICE_LIT("/a"), WB_SLICE_LIT("anchor"));
    struct wb_guest_part got;

    (void)state;
    for (size_t len = 0; len < whole.len; len++) {
        struct wb_slice rest = wb_slice(whole.ptr, len);
        assert_int_equal(wb_guest_next(&rest, &got), len ? WB_E_PROTO : 0);
    }
    memset(bytes.ptr + 5, 0xff, 4);
    struct wb_slice rest = wb_buf_slice(&bytes);
    assert_int_equal(wb_guest_next(&rest, &got), WB_E_PROTO);
    memset(bytes.ptr + 1, 0xff, 4);
    rest = wb_buf_slice(&bytes);
    assert_int_equal(wb_guest_next(&rest, &got), WB_E_PROTO);
    wb_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_said),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
