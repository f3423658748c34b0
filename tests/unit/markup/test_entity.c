/* test_entity.c - character references, in addition to those in the cases of the tokenizer. */
#include "markup/entity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *input, bool in_attribute, size_t taken, const char *utf8)
{
    char out[WB_ENTITY_UTF8_MAX];
    size_t len, got;
    /* A copy of the exact size, so that a sanitizer notices a read past the end. */
    char *exact = malloc(strlen(input));

    assert_non_null(exact);
    memcpy(exact, input, strlen(input));
    got = wb_entity_read(exact, exact + strlen(input), in_attribute, out, &len);
    free(exact);
    if (got != taken || !wb_slice_equal(wb_slice(out, len), wb_slice_str(utf8)))
        fail_msg("'%s': want %zu '%s', got %zu '%.*s'", input, taken, utf8, got, (int)len, out);
}

static void names(void **state)
{
    (void)state;
    expect("&amp;", false, 5, "&");
    expect("&amp", false, 4, "&");
    expect("&ampere", false, 4, "&");
    expect("&notin;", false, 7, "\xe2\x88\x89");
    expect("&notin", false, 4, "\xc2\xac");
    expect("&notit;", false, 4, "\xc2\xac");
    expect("&nGt;", false, 5, "\xe2\x89\xab\xe2\x83\x92");
    expect("&CounterClockwiseContourIntegral;", false, 33, "\xe2\x88\xb3");
    expect("&CounterClockwiseContourIntegral", false, 0, "");
    expect("&CounterClockwiseContourIntegralX;", false, 0, "");
    expect("&Tab;", false, 5, "\t");
    expect("&zopf;", false, 6, "\xf0\x9d\x95\xab");
    expect("&AMP", false, 4, "&");
    expect("&Amp;", false, 0, "");
    expect("&", false, 0, "");
    expect("&;", false, 0, "");
    expect("& amp;", false, 0, "");
    expect("&nosuchname;", false, 0, "");
    expect("&&amp;", false, 0, "");
}

static void names_in_attributes(void **state)
{
    (void)state;
    expect("&copy=1", true, 0, "");
    expect("&copy=1", false, 5, "\xc2\xa9");
    expect("&copyx", true, 0, "");
    expect("&copy1", true, 0, "");
    expect("&copy;=1", true, 6, "\xc2\xa9");
    expect("&copy&", true, 5, "\xc2\xa9");
    expect("&copy", true, 5, "\xc2\xa9");
    expect("&notit;", true, 0, "");
}

static void numbers(void **state)
{
    (void)state;
    expect("&#65;", false, 5, "A");
    expect("&#65", false, 4, "A");
    expect("&#65x", true, 4, "A");
    expect("&#x41;", false, 6, "A");
    expect("&#X1f600;", false, 9, "\xf0\x9f\x98\x80");
    expect("&#0;", false, 4, "\xef\xbf\xbd");
    expect("&#xD800;", false, 8, "\xef\xbf\xbd");
    expect("&#xDFFF;", false, 8, "\xef\xbf\xbd");
    expect("&#x10FFFF;", false, 10, "\xf4\x8f\xbf\xbf");
    expect("&#x110000;", false, 10, "\xef\xbf\xbd");
    expect("&#4294967361;", false, 13, "\xef\xbf\xbd"); /* 'A' if it wrapped at 32 bits */
    expect("&#99999999999999999999;", false, 23, "\xef\xbf\xbd");
    expect("&#0000000065;", false, 13, "A");
    expect("&#128;", false, 6, "\xe2\x82\xac");
    expect("&#129;", false, 6, "\xc2\x81");
    expect("&#x9F;", false, 6, "\xc5\xb8");
    expect("&#13;", false, 5, "\r");
    expect("&#", false, 0, "");
    expect("&#;", false, 0, "");
    expect("&#x", false, 0, "");
    expect("&#xg", false, 0, "");
    expect("&#a", false, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(names_in_attributes),
                                       cmocka_unit_test(numbers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
