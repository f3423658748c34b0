/* test_utf8.c - every code point comes back; every other sequence of up to three bytes is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static void test_code_points(void **state)
{
    char bytes[4];

    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        if (cp == 0xd800)
            cp = 0xe000;
        size_t n = wb_utf8_encode(cp, bytes);
        assert_int_equal(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        assert_int_equal(wb_utf8_length(bytes, n), n);
        assert_int_equal(wb_utf8_decode(bytes, n), cp);
        for (size_t cut = 0; cut < n; cut++)
            assert_int_equal(wb_utf8_length(bytes, cut), 0);
    }
}

/* Whatever is accepted is what encoding its code point gives: no overlong forms, no surrogates. */
static void test_all_sequences(void **state)
{
    char bytes[4], again[4];
    unsigned accepted = 0;

    (void)state;
    for (uint32_t i = 0; i < 1 << 24; i++) {
        bytes[0] = (char)(i >> 16);
        bytes[1] = (char)(i >> 8);
        bytes[2] = (char)i;
        size_t n = wb_utf8_length(bytes, 3);
        if (n == 0)
            continue;
        uint32_t cp = wb_utf8_decode(bytes, n);
        if (cp >= 0xd800 && cp < 0xe000)
            fail_msg("the surrogate %x is accepted", cp);
        if (wb_utf8_encode(cp, again) != n || memcmp(again, bytes, n) != 0)
            fail_msg("%06x is accepted", i);
        accepted += n == 3;
    }
    assert_int_equal(accepted, 0x10000 - 0x800 - 0x800);
}

static void test_four_bytes(void **state)
{
    (void)state;
    assert_int_equal(wb_utf8_length("\xf0\x8f\xbf\xbf", 4), 0);
    assert_int_equal(wb_utf8_length("\xf4\x90\x80\x80", 4), 0);
    assert_int_equal(wb_utf8_length("\xf5\x80\x80\x80", 4), 0);
    assert_int_equal(wb_utf8_length("\xf4\x8f\xbf\xbf", 4), 4);
    assert_int_equal(wb_utf8_length("\xf1\x80\x80\xc0", 4), 0);
}

static void test_valid(void **state)
{
    (void)state;
    assert_true(wb_utf8_valid(WB_SLICE_EMPTY));
    assert_true(wb_utf8_valid(WB_SLICE_LIT("caf\xc3\xa9")));
    assert_false(wb_utf8_valid(WB_SLICE_LIT("caf\xc3")));
    assert_false(wb_utf8_valid(WB_SLICE_LIT("\xa9")));
}

static void check_utf16(struct wb_slice utf16, bool big_endian, size_t limit, struct wb_slice want)
{
    struct wb_buf utf8 = WB_BUF_INIT;

    assert_int_equal(wb_utf8_from_utf16(utf16, big_endian, limit, &utf8), 0);
    assert_int_equal(utf8.len, want.len);
    assert_memory_equal(wb_buf_slice(&utf8).ptr, want.ptr, want.len);
    wb_buf_release(&utf8);
}

static void test_from_utf16(void **state)
{
    (void)state;
    check_utf16(WB_SLICE_LIT("\xff\xfe" "a\0\xe9\0\xac\x20"), false, 100, WB_SLICE_LIT("a\xc3\xa9\xe2\x82\xac"));
    check_utf16(WB_SLICE_LIT("\xfe\xff\0a\xd8\x34\xdd\x1e"), true, 100, WB_SLICE_LIT("a\xf0\x9d\x84\x9e"));
    /* surrogates without their partner, in either order, and half a unit at the end */
    check_utf16(WB_SLICE_LIT("\xdd\x1e\0b\xd8\x34\0c\xd8\x34"), true, 100,
                WB_SLICE_LIT("\xef\xbf\xbd" "b\xef\xbf\xbd" "c\xef\xbf\xbd"));
    check_utf16(WB_SLICE_LIT("\0d\0"), true, 100, WB_SLICE_LIT("d\xef\xbf\xbd"));
    check_utf16(WB_SLICE_LIT("a\0\xac\x20" "b\0"), false, 3, WB_SLICE_LIT("a"));
    check_utf16(WB_SLICE_EMPTY, true, 3, WB_SLICE_EMPTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_code_points), cmocka_unit_test(test_all_sequences),
                                       cmocka_unit_test(test_four_bytes), cmocka_unit_test(test_valid),
                                       cmocka_unit_test(test_from_utf16)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
