/* test_delivery.c - what clients ask for in Accept-Encoding, If-None-Match and Range. */
#include "serve/delivery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_encodings(void **state)
{
    static const char *const takes[] = {
        "gzip",   "GZIP",        "x-gzip", "br, gzip", "gzip;q=0.5, br", "*", "identity, *;q=0.1", "deflate,gzip ; q=1",
        ",,gzip", "gzip;q=0.001"};
    static const char *const does_not[] = {"",      "identity", "br",     "gzip;q=0", "gzip; q=0.000, *",
                                           "*;q=0", "gzipped",  "x gzip", "gzip;Q=0", ",",
                                           ";",     "\"gzip\""};

    (void)state;
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
        if (!wb_delivery_takes_gzip(wb_slice_str(takes[i])))
            fail_msg("'%s' takes gzip", takes[i]);
    for (size_t i = 0; i < sizeof does_not / sizeof *does_not; i++)
        if (wb_delivery_takes_gzip(wb_slice_str(does_not[i])))
            fail_msg("'%s' does not take gzip", does_not[i]);
    assert_false(wb_delivery_takes_gzip((struct wb_slice){NULL, 0}));
}

static void test_tags(void **state)
{
    static const char *const has[] = {"\"a,b\"", "W/\"a,b\"", "\"x\", \"a,b\"", "\"x\",W/\"a,b\" , \"y\"", "*"};
    static const char *const has_not[] = {"", "a,b", "\"a\"", "\"b\"", "\"a,b", "\"a,b\"\"", "W/*x"};

    (void)state;
    for (size_t i = 0; i < sizeof has / sizeof *has; i++)
        if (!wb_delivery_has_tag(wb_slice_str(has[i]), WB_SLICE_LIT("\"a,b\"")))
            fail_msg("%s has the tag", has[i]);
    for (size_t i = 0; i < sizeof has_not / sizeof *has_not; i++)
        if (wb_delivery_has_tag(wb_slice_str(has_not[i]), WB_SLICE_LIT("\"a,b\"")))
            fail_msg("%s does not have the tag", has_not[i]);
    assert_false(wb_delivery_has_tag((struct wb_slice){NULL, 0}, WB_SLICE_LIT("\"a\"")));
}

static void test_ranges(void **state)
{
    static const struct {
        const char *range;
        uint64_t size;
        enum wb_delivery_part part;
        uint64_t from, count;
    } cases[] = {
        {"bytes=0-99", 5000, WB_DELIVERY_PART, 0, 100},
        {"Bytes=0-0", 5000, WB_DELIVERY_PART, 0, 1},
        {"bytes= 4999- ", 5000, WB_DELIVERY_PART, 4999, 1},
        {"bytes=0-", 5000, WB_DELIVERY_PART, 0, 5000},
        {"bytes=4000-9999", 5000, WB_DELIVERY_PART, 4000, 1000},
        {"bytes=0-18446744073709551615", 5000, WB_DELIVERY_PART, 0, 5000},
        {"bytes=-50", 5000, WB_DELIVERY_PART, 4950, 50},
        {"bytes=-9999", 5000, WB_DELIVERY_PART, 0, 5000},
        {"bytes=-1", 1, WB_DELIVERY_PART, 0, 1},
        {"bytes=5000-", 5000, WB_DELIVERY_BEYOND, 0, 5000},
        {"bytes=9000-9100", 5000, WB_DELIVERY_BEYOND, 0, 5000},
        {"bytes=-0", 5000, WB_DELIVERY_BEYOND, 0, 5000},
        {"bytes=0-0", 0, WB_DELIVERY_BEYOND, 0, 0},
        {"bytes=-5", 0, WB_DELIVERY_BEYOND, 0, 0},
        /* Ignored: several parts, other units, and what is not a range. */
        {"bytes=0-1,3-4", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"lines=0-1", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"bytes=5-4", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"bytes=-", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"bytes=", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"bytes=1", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"bytes=--1", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"bytes=0-99999999999999999999", 5000, WB_DELIVERY_WHOLE, 0, 5000},
        {"", 5000, WB_DELIVERY_WHOLE, 0, 5000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t from, count;
        enum wb_delivery_part part = wb_delivery_range(wb_slice_str(cases[i].range), cases[i].size, &from, &count);
        if (part != cases[i].part || from != cases[i].from || count != cases[i].count)
            fail_msg("'%s' of %u: %d, %u from %u", cases[i].range, (unsigned)cases[i].size, part, (unsigned)count,
                     (unsigned)from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
