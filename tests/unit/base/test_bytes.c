/* test_bytes.c - numbers as bytes: fixed widths, both byte orders, varints at their limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

static void test_fixed(void **state)
{
    uint8_t b[8];

    (void)state;
    wb_put16(b, 0x1234);
    assert_memory_equal(b, "\x34\x12", 2);
    assert_int_equal(wb_get16(b), 0x1234);
    wb_put32(b, 0x89abcdef);
    assert_memory_equal(b, "\xef\xcd\xab\x89", 4);
    assert_int_equal(wb_get32(b), 0x89abcdef);
    wb_put64(b, 0xfedcba9876543210);
    assert_memory_equal(b, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
    assert_true(wb_get64(b) == 0xfedcba9876543210);
    wb_put64_be(b, 0xfedcba9876543210);
    assert_memory_equal(b, "\xfe\xdc\xba\x98\x76\x54\x32\x10", 8);
    assert_true(wb_get64_be(b) == 0xfedcba9876543210);
    wb_put32_be(b, 0x89abcdef);
    assert_memory_equal(b, "\x89\xab\xcd\xef", 4);
    assert_int_equal(wb_get32_be(b), 0x89abcdef);
}

static void check_varint(uint64_t v)
{
    char b[WB_VARINT_MAX];
    size_t len = wb_put_varint(b, v);
    const char *p = b;
    uint64_t read;

    assert_true(len >= 1 && len <= WB_VARINT_MAX);
    assert_true(wb_get_varint(&p, b + len, &read));
    assert_true(read == v && p == b + len);
    p = b;
    assert_false(wb_get_varint(&p, b + len - 1, &read));
    assert_int_equal(read, 0);
}

static void test_varint(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++) {
        check_varint((uint64_t)1 << shift);
        check_varint(((uint64_t)1 << shift) - 1);
    }
    check_varint(UINT64_MAX);
}

static void test_varint_too_large(void **state)
{
    static const char *const wrong[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                                        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                        "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"};
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *p = wrong[i];
        assert_false(wb_get_varint(&p, p + strlen(p), &v));
        assert_true(p <= wrong[i] + WB_VARINT_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fixed), cmocka_unit_test(test_varint),
                                       cmocka_unit_test(test_varint_too_large)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
