/* test_hash.c - the values of the hashes: checksums and ids on disk depend on them, so they must never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static void test_values(void **state)
{
    static const struct {
        const char *text;
        uint64_t hash, hi, lo;
    } known[] = {
        {"", 0x2d06800538d394c2, 0x99aa06d3014798d8, 0x6001c324468d497f},
        {"a", 0xe6c632b61e964e1f, 0xa96faf705af16834, 0xe6c632b61e964e1f},
        {"example.com/", 0x636237347358a4d4, 0x226bad41e2eb0278, 0x4fb563679c34218d},
        {"0123456789012345678901234567890123456789", 0x13f02ebc1d293ad2, 0x4b8d663661c563a2, 0x2fb12c8ecf7c62f6},
    };
    uint64_t hi, lo;

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i].text);
        assert_true(wb_hash64(known[i].text, len) == known[i].hash);
        assert_true(wb_hash32(known[i].text, len) == (uint32_t)known[i].hash);
        wb_hash128(known[i].text, len, &hi, &lo);
        assert_true(hi == known[i].hi && lo == known[i].lo);
    }
}

/* The seed changes the hash of any key, so that keys that collide under one seed do not collide under another. */
static void test_seeds(void **state)
{
    (void)state;
    assert_true(wb_hash64_seeded("abc", 3, 1) != wb_hash64_seeded("abc", 3, 2));
    assert_true(wb_hash64_seeded("abc", 3, 1) == wb_hash64_seeded("abc", 3, 1));
    assert_true(wb_hash64_seeded("abc", 3, 0) == wb_hash64("abc", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_seeds)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
