/* test_buf.c - growing buffers, and memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocfail.h"
#include "../expect.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

static void test_append(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_buf_slice(&buf).len, 0);
    assert_non_null(wb_buf_slice(&buf).ptr);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(wb_buf_append_char(&buf, (char)i), 0);
    assert_int_equal(buf.len, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf.ptr[i], (char)i);
    wb_buf_clear(&buf);
    assert_int_equal(wb_buf_append_str(&buf, "ab"), 0);
    assert_int_equal(wb_buf_append(&buf, NULL, 0), 0);
    assert_int_equal(wb_buf_append_slice(&buf, WB_SLICE_LIT("c")), 0);
    assert_int_equal(wb_buf_printf(&buf, "%d-%s", 42, "x"), 0);
    assert_int_equal(wb_buf_terminate(&buf), 0);
    assert_int_equal(buf.len, 7);
    assert_string_equal(buf.ptr, "abc42-x");
    struct wb_buf taken = wb_buf_take(&buf);
    assert_null(buf.ptr);
    assert_int_equal(buf.len + buf.cap, 0);
    assert_string_equal(taken.ptr, "abc42-x");
    wb_buf_release(&taken);
    assert_null(taken.ptr);
    wb_buf_release(&taken);
}

static void test_escaped(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_buf_append_escaped(&buf, WB_SLICE_LIT("azAZ09-_ /\xc3\xa9%\0"), "-/"), 0);
    expect(wb_buf_slice(&buf), "azAZ09-%5F%20/%C3%A9%25%00");
    wb_buf_release(&buf);
}

/* Appending is linear: the buffer grows by at least half. */
static void test_growth(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;
    unsigned moves = 0;
    size_t cap = 0;

    (void)state;
    for (int i = 0; i < 1000000; i++) {
        assert_int_equal(wb_buf_append_char(&buf, 'x'), 0);
        moves += buf.cap != cap;
        cap = buf.cap;
    }
    assert_true(moves < 40);
    wb_buf_release(&buf);
}

static void test_trim(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;

    (void)state;
    wb_buf_trim(&buf, 0);
    assert_null(buf.ptr);
    assert_int_equal(wb_buf_reserve(&buf, 1000), 0);
    wb_buf_trim(&buf, 2000);
    assert_int_equal(buf.cap, 1000);
    wb_buf_trim(&buf, 0); /* empty: keeps its memory */
    assert_int_equal(buf.cap, 1000);
    assert_int_equal(wb_buf_append_str(&buf, "abc"), 0);
    alloc_fail_all();
    wb_buf_trim(&buf, 100);
    alloc_fail_none();
    assert_int_equal(buf.cap, 1000);
    wb_buf_trim(&buf, 100);
    assert_int_equal(buf.cap, 100);
    wb_buf_trim(&buf, 0);
    assert_int_equal(buf.cap, 3);
    assert_true(wb_slice_equal(wb_buf_slice(&buf), WB_SLICE_LIT("abc")));
    wb_buf_release(&buf);
}

static void test_no_memory(void **state)
{
    struct wb_buf buf = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_buf_append_str(&buf, "kept"), 0);
    assert_int_equal(wb_buf_reserve(&buf, SIZE_MAX), WB_E_NOMEM);
    assert_int_equal(wb_buf_reserve(&buf, SIZE_MAX / 2), WB_E_NOMEM);
    alloc_fail_all();
    assert_int_equal(wb_buf_reserve(&buf, 1000), WB_E_NOMEM);
    assert_int_equal(wb_buf_printf(&buf, "%1000d", 1), WB_E_NOMEM);
    assert_string_equal(wb_error_message(), "out of memory");
    assert_null(wb_strdup("x"));
    assert_null(wb_alloc_zero(1, 1));
    alloc_fail_none();
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.ptr, "kept", 4);
    wb_buf_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_append), cmocka_unit_test(test_escaped),
                                       cmocka_unit_test(test_growth), cmocka_unit_test(test_trim),
                                       cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
