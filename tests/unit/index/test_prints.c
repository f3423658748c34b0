/* test_prints.c - the search for near fingerprints against a comparison with all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "base/bytes.h"
#include "index/prints.h"

enum { COUNT_MAX = 3000, ROUNDS = 300, BITS = 3 };

struct near_list {
    uint32_t docids[COUNT_MAX];
    unsigned distances[COUNT_MAX];
    size_t count;
    bool first_only; /* of those with one fingerprint */
};

static int note(void *context, uint32_t docid, unsigned distance)
{
    struct near_list *list = context;

    list->docids[list->count] = docid;
    list->distances[list->count++] = distance;
    return list->first_only;
}

static int by_print(const void *a, const void *b)
{
    uint64_t x = wb_get64(a), y = wb_get64(b);
    uint32_t d = wb_get32((const char *)a + 8), e = wb_get32((const char *)b + 8);

    return x != y ? (x < y ? -1 : 1) : d < e ? -1 : d > e;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Fingerprints of all kinds: at random, near each other, equal, with equal upper halves, and at both ends. */
static uint64_t any_print(uint64_t *chance, uint64_t known)
{
    switch (chance_below(chance, 6)) {
    case 0:
        return known;
    case 1:
        return known ^ UINT64_C(1) << chance_below(chance, 64) ^ UINT64_C(1) << chance_below(chance, 64);
    case 2:
        return known ^ UINT64_C(1) << chance_below(chance, 64) ^ UINT64_C(1) << chance_below(chance, 64) ^
               UINT64_C(1) << chance_below(chance, 64) ^ UINT64_C(1) << chance_below(chance, 64);
    case 3:
        return (known & ~UINT64_C(0xffffffff)) | chance_below(chance, UINT32_MAX);
    case 4:
        return chance_below(chance, 2) ? UINT64_MAX - chance_below(chance, 9) : chance_below(chance, 9);
    }
    return chance_next(chance);
}

static void test_against_all(void **state)
{
    static char records[COUNT_MAX * WB_PRINT_BYTES];
    static struct near_list found, firsts;
    uint64_t chance = test_seed();

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t known = chance_next(&chance), print = any_print(&chance, known);
        size_t count = chance_below(&chance, round % 8 ? 200 : COUNT_MAX), near = 0, kinds = 0;
        for (size_t i = 0; i < count; i++) {
            wb_put64(records + i * WB_PRINT_BYTES, any_print(&chance, known));
            wb_put32(records + i * WB_PRINT_BYTES + 8, (uint32_t)i);
        }
        qsort(records, count, WB_PRINT_BYTES, by_print);
        found.count = firsts.count = 0;
        firsts.first_only = true;
        assert_int_equal(wb_prints_near(records, count, print, BITS, note, &found), 0);
        assert_int_equal(wb_prints_near(records, count, print, BITS, note, &firsts), 0);
        qsort(found.docids, found.count, sizeof *found.docids, by_number);
        for (size_t i = 0; i < count; i++) {
            const char *record = records + i * WB_PRINT_BYTES;
            uint32_t docid = wb_get32(record + 8);
            if (__builtin_popcountll(wb_get64(record) ^ print) > BITS)
                continue;
            near++;
            kinds += i == 0 || wb_get64(record) != wb_get64(record - WB_PRINT_BYTES);
            assert_non_null(bsearch(&docid, found.docids, found.count, sizeof docid, by_number));
        }
        assert_int_equal(found.count, near);
        assert_int_equal(firsts.count, kinds);
    }
}

struct steps {
    uint64_t calls;
};

static int count_call(void *context, uint32_t docid, unsigned distance)
{
    (void)docid;
    assert_true(distance <= BITS);
    ((struct steps *)context)->calls++;
    return 1;
}

/* As many pages as memory holds with one fingerprint, and all that differ in up to two bits: one call for each. */
static void test_many_alike(void **state)
{
    size_t count = 200000 + 1 + 64 + 64 * 63 / 2, at = 0;
    char *records = malloc(count * WB_PRINT_BYTES);
    const uint64_t print = UINT64_C(0x0123456789abcdef);
    struct steps steps = {0};

    (void)state;
    assert_non_null(records);
    for (unsigned i = 0; i < 64; i++)
        for (unsigned k = 0; k <= i; k++)
            wb_put64(records + at++ * WB_PRINT_BYTES, print ^ UINT64_C(1) << i ^ (k < i ? UINT64_C(1) << k : 0));
    while (at < count)
        wb_put64(records + at++ * WB_PRINT_BYTES, print);
    for (size_t i = 0; i < count; i++)
        wb_put32(records + i * WB_PRINT_BYTES + 8, (uint32_t)i);
    qsort(records, count, WB_PRINT_BYTES, by_print);
    assert_int_equal(wb_prints_near(records, count, print, BITS, count_call, &steps), 0);
    assert_int_equal(steps.calls, 1 + 64 + 64 * 63 / 2);
    free(records);
}

static void test_check(void **state)
{
    const uint64_t prints[] = {7, 0, 5, 7};
    static const struct {
        uint64_t print;
        uint32_t docid;
    } good[] = {{5, 2}, {7, 0}, {7, 3}};
    char records[3 * WB_PRINT_BYTES];
    uint64_t record;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        wb_put64(records + i * WB_PRINT_BYTES, good[i].print);
        wb_put32(records + i * WB_PRINT_BYTES + 8, good[i].docid);
    }
    assert_null(wb_prints_check(records, 3, prints, 4, &record));
    assert_string_equal(wb_prints_check(records, 2, prints, 4, &record), "the fingerprint of a page is missing");
    wb_put32(records + 2 * WB_PRINT_BYTES + 8, 0);
    assert_string_equal(wb_prints_check(records, 3, prints, 4, &record), "a fingerprint is out of order");
    assert_int_equal(record, 2);
    wb_put32(records + 2 * WB_PRINT_BYTES + 8, 4);
    assert_string_equal(wb_prints_check(records, 3, prints, 4, &record), "a fingerprint is not that of its page");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_all),
        cmocka_unit_test(test_many_alike),
        cmocka_unit_test(test_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
