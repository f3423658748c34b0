/* test_slice.c - borrowed bytes: comparing, trimming, reading numbers and lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/slice.h"

static bool equal(struct wb_slice s, const char *text)
{
    return wb_slice_equal(s, wb_slice_str(text));
}

static void test_trim(void **state)
{
    (void)state;
    assert_true(equal(wb_slice_trim(WB_SLICE_LIT(" \t\r\na b\n ")), "a b"));
    assert_true(equal(wb_slice_trim(WB_SLICE_LIT("a")), "a"));
    assert_int_equal(wb_slice_trim(WB_SLICE_LIT(" \n")).len, 0);
    assert_int_equal(wb_slice_trim(WB_SLICE_EMPTY).len, 0);
}

static void test_starts_and_ends(void **state)
{
    (void)state;
    assert_true(wb_slice_starts(WB_SLICE_LIT("abc"), WB_SLICE_LIT("ab")));
    assert_false(wb_slice_starts(WB_SLICE_LIT("ab"), WB_SLICE_LIT("abc")));
    assert_true(wb_slice_starts(WB_SLICE_LIT("ab"), WB_SLICE_EMPTY));
    assert_true(wb_slice_ends(WB_SLICE_LIT("abc"), WB_SLICE_LIT("bc")));
    assert_false(wb_slice_ends(WB_SLICE_LIT("bc"), WB_SLICE_LIT("abc")));
    assert_true(wb_slice_starts_nocase(WB_SLICE_LIT("HTTP/1.1"), WB_SLICE_LIT("http/")));
    assert_true(wb_slice_ends_nocase(WB_SLICE_LIT("a.GZ"), WB_SLICE_LIT(".gz")));
    assert_false(wb_slice_ends_nocase(WB_SLICE_LIT("gz"), WB_SLICE_LIT(".gz")));
    assert_true(wb_slice_equal_nocase(WB_SLICE_LIT("aBc1"), WB_SLICE_LIT("AbC1")));
    /* Only ASCII letters have a case here. */
    assert_false(wb_slice_equal_nocase(WB_SLICE_LIT("a\xc3\x84"), WB_SLICE_LIT("a\xc3\xa4")));
}

static void test_compare(void **state)
{
    static const char *const sorted[] = {"", "a", "a\x01", "aa", "ab", "b", "\x7f", "\x80", "\xff"};

    (void)state;
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++)
        for (size_t j = 0; j < sizeof sorted / sizeof *sorted; j++) {
            int order = wb_slice_compare(wb_slice_str(sorted[i]), wb_slice_str(sorted[j]));
            assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
}

static void test_numbers(void **state)
{
    static const char *const bad[] = {"18446744073709551616", "99999999999999999999", "", "-1", "1 ", "0x1"};
    uint64_t v;

    (void)state;
    assert_true(wb_slice_to_u64(WB_SLICE_LIT("18446744073709551615"), &v));
    assert_true(v == UINT64_MAX);
    assert_true(wb_slice_to_u64(WB_SLICE_LIT("007"), &v));
    assert_int_equal(v, 7);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(wb_slice_to_u64(wb_slice_str(bad[i]), &v));
        assert_int_equal(v, 0);
    }
}

static void test_lines(void **state)
{
    struct wb_slice rest = WB_SLICE_LIT("one\n\nthree"), line;

    (void)state;
    assert_true(wb_slice_next_line(&rest, &line) && equal(line, "one"));
    assert_true(wb_slice_next_line(&rest, &line) && equal(line, ""));
    assert_true(wb_slice_next_line(&rest, &line) && equal(line, "three"));
    assert_false(wb_slice_next_line(&rest, &line));
    rest = WB_SLICE_LIT("\n");
    assert_true(wb_slice_next_line(&rest, &line) && equal(line, ""));
    assert_false(wb_slice_next_line(&rest, &line));
}

static void test_text_lines(void **state)
{
    static const struct {
        const char *text, *lines; /* what is expected, each line in brackets */
    } cases[] = {
        {"", ""},
        {"a", "[a]"},
        {"a\nb", "[a][b]"},
        {"a\rb\r", "[a][b]"},
        {"a\r\nb\r\n", "[a][b]"},
        {"\r", "[]"},
        {"\n\r", "[][]"},
        {"\r\r\n\n", "[][][]"},
        {"a\r\n\r\nb", "[a][][b]"},
        {"a\n\n\nb\r", "[a][][][b]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wb_slice rest = wb_slice_str(cases[i].text), line;
        char found[64] = "";
        while (wb_slice_next_text_line(&rest, &line))
            snprintf(found + strlen(found), sizeof found - strlen(found), "[%.*s]", WB_SLICE_ARG(line));
        assert_string_equal(found, cases[i].lines);
        assert_int_equal(rest.len, 0);
        assert_int_equal(line.len, 0);
        assert_ptr_equal(rest.ptr, cases[i].text + strlen(cases[i].text));
    }
}

static void test_ascii(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
        assert_int_equal(wb_ascii_is_letter((char)c), upper || lower);
        assert_int_equal(wb_ascii_is_digit((char)c), c >= '0' && c <= '9');
        assert_int_equal(wb_ascii_is_space((char)c), c > 0 && strchr(" \t\n\f\r", c) != NULL);
        assert_int_equal((uint8_t)wb_ascii_lower((char)c), upper ? c + 32 : c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trim),    cmocka_unit_test(test_starts_and_ends),
                                       cmocka_unit_test(test_compare), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_lines),   cmocka_unit_test(test_text_lines),
                                       cmocka_unit_test(test_ascii)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
