/* test_codec.c - hexadecimal, base32 and base64: RFC 4648's examples, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/codec.h"

static void test_hex(void **state)
{
    uint8_t bytes[4] = {0, 0x1f, 0xa0, 0xff}, back[4];
    char text[9];

    (void)state;
    wb_hex_encode(bytes, 4, text);
    assert_string_equal(text, "001fa0ff");
    assert_true(wb_hex_decode(WB_SLICE_LIT("001FA0fF"), back, 4));
    assert_memory_equal(back, bytes, 4);
    assert_false(wb_hex_decode(WB_SLICE_LIT("001fa0f"), back, 4));
    assert_false(wb_hex_decode(WB_SLICE_LIT("001fa0fff"), back, 4));
    assert_false(wb_hex_decode(WB_SLICE_LIT("001fa0fg"), back, 4));
    assert_false(wb_hex_decode(WB_SLICE_LIT("0x1fa0ff"), back, 4));
    for (int c = 0; c < 256; c++)
        assert_int_equal(wb_hex_digit((char)c) >= 0, c < 128 && c > 0 && strchr("0123456789abcdefABCDEF", c) != NULL);
}

static void test_base32(void **state)
{
    static const struct {
        const char *bytes, *text;
    } known[] = {{"", ""},
                 {"f", "MY"},
                 {"fo", "MZXQ"},
                 {"foo", "MZXW6"},
                 {"foob", "MZXW6YQ"},
                 {"fooba", "MZXW6YTB"},
                 {"foobar", "MZXW6YTBOI"}};
    char text[40];
    uint8_t back[20];

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i].bytes);
        wb_base32_encode(known[i].bytes, len, text);
        assert_string_equal(text, known[i].text);
        assert_true(wb_base32_decode(wb_slice_str(text), back, len));
        assert_memory_equal(back, known[i].bytes, len);
    }
    assert_true(wb_base32_decode(WB_SLICE_LIT("mzxw6ytb"), back, 5));
    assert_false(wb_base32_decode(WB_SLICE_LIT("MZXW6YT1"), back, 5));
    assert_false(wb_base32_decode(WB_SLICE_LIT("MZXW6YT"), back, 5));
    assert_false(wb_base32_decode(WB_SLICE_LIT("MZXW6==="), back, 3));
    assert_false(wb_base32_decode(WB_SLICE_LIT("MZXW7"), back, 3)); /* the bits that are left over are not zero */
}

/* Texts of every length are decoded to the same bytes. */
static void test_lengths(void **state)
{
    uint8_t bytes[64], back[64];
    char text[140];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 200);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        wb_base32_encode(bytes, len, text);
        assert_true(wb_base32_decode(wb_slice_str(text), back, len));
        assert_memory_equal(back, bytes, len);
        wb_hex_encode(bytes, len, text);
        assert_true(wb_hex_decode(wb_slice_str(text), back, len));
        assert_memory_equal(back, bytes, len);
    }
}

static void test_base64url(void **state)
{
    static const struct {
        const char *bytes, *text;
    } known[] = {{"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
                 {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xff\xef\xbe", "_---"}};
    static const char *const wrong[] = {"Z", "Zm9vY", "Zh", "Zm9", "Zg==", "Zm8+", "Zm/v", "Zm 9v", "Zm9v\n"};
    char text[40], back[40];

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i].bytes), chars = strlen(known[i].text);
        assert_int_equal(WB_BASE64_CHARS(len), chars);
        assert_int_equal(WB_BASE64_BYTES(chars), len);
        wb_base64url_encode(known[i].bytes, len, text);
        assert_memory_equal(text, known[i].text, chars);
        assert_true(wb_base64url_decode(wb_slice_str(known[i].text), back));
        assert_memory_equal(back, known[i].bytes, len);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(wb_base64url_decode(wb_slice_str(wrong[i]), back));
}

/* The examples of RFC 4648, and everything that is almost base64. */
static void test_base64(void **state)
{
    static const char *const good[][2] = {{"", ""},         {"Zg==", "f"},       {"Zm8=", "fo"},
                                          {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"+/+/", "\xfb\xff\xbf"}};
    static const char *const bad[] = {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "=", "Zg==Zg==", "Zm9v\n", "Zm 9",
                                      "-_-_", "Z===", "Zm9vYg=", "=Zm9"};
    char bytes[16];
    size_t len;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(wb_base64_decode(wb_slice_str(good[i][0]), bytes, &len));
        assert_int_equal(len, strlen(good[i][1]));
        assert_memory_equal(bytes, good[i][1], len);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(wb_base64_decode(wb_slice_str(bad[i]), bytes, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hex), cmocka_unit_test(test_base32),
                                       cmocka_unit_test(test_base64url), cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_base64)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
