/* test_pageid.c - page ids: their value is part of every repository on disk and must never change. */
#include "support.h"

static void test_values(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "99aa06d3014798d86001c324468d497f"},
        {"www.example.org/a/b", "0a85a0905987c830eab029197ab231c3"},
        {"h/a-key-that-is-longer-than-the-short-paths-of-the-hash-function/which-ends-at-240-bytes?q=1",
         "c56278ca5ce1977b1d87ee979edcee36"},
    };
    char text[WB_PAGEID_HEX + 1];

    for (size_t i = 0; i < COUNT(cases); i++) {
        wb_pageid_hex(wb_pageid_of_key(wb_slice_str(cases[i][0])), text);
        assert_string_equal(text, cases[i][1]);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static const uint8_t bytes[WB_PAGEID_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff};
    struct wb_pageid id = wb_pageid_get(bytes);
    uint8_t again[WB_PAGEID_BYTES] = {0};
    char text[WB_PAGEID_HEX + 1];

    assert_int_equal(id.hi, UINT64_C(0x0102030405060708));
    assert_int_equal(id.lo, UINT64_C(0x090a0b0c0d0e0fff));
    wb_pageid_put(id, again);
    assert_memory_equal(bytes, again, sizeof bytes);
    wb_pageid_hex(id, text);
    assert_string_equal(text, "0102030405060708090a0b0c0d0e0fff");
}

static void test_order(void **state)
{
    (void)state;
    struct wb_pageid a = {1, 2}, b = {1, 3}, c = {2, 0};

    assert_true(wb_pageid_compare(a, b) < 0 && wb_pageid_compare(b, a) > 0);
    assert_true(wb_pageid_compare(b, c) < 0 && wb_pageid_compare(c, a) > 0);
    assert_int_equal(wb_pageid_compare(a, a), 0);
    assert_true(wb_pageid_equal(a, a) && !wb_pageid_equal(a, b) && !wb_pageid_equal(a, c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
