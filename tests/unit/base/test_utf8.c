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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_code_points), cmocka_unit_test(test_all_sequences),
                                       cmocka_unit_test(test_four_bytes), cmocka_unit_test(test_valid)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
