/*
 * test_bitpack.c - numbers come back from packs, of any count and width; no hostile pack is read beyond its end.
 */
#include "postings_support.h"

static void round_trip(const uint32_t *numbers, unsigned n)
{
    uint8_t room[BITPACK_BYTES + 16];
    uint32_t back[BITPACK_MAX];

    memset(room, 0xaa, sizeof room);
    size_t len = wb_bitpack(numbers, n, room);
    assert_true(len <= (n <= BITPACK_PLAIN ? 5 * n : BITPACK_BYTES));
    for (size_t i = len; i < sizeof room; i++)
        assert_int_equal(room[i], 0xaa);
    /* At the end of an allocation, so that a sanitizer notices a read beyond it. */
    uint8_t *bytes = malloc(len ? len : 1);
    assert_non_null(bytes);
    memcpy(bytes, room, len);
    assert_ptr_equal(wb_bitunpack(bytes, bytes + len, n, back), bytes + len);
    assert_memory_equal(back, numbers, n * sizeof *numbers);
    assert_ptr_equal(wb_bitpack_skip(bytes, bytes + len, n), bytes + len);
    for (size_t cut = 0; cut < len; cut += 1 + len / 20)
        assert_null(wb_bitpack_skip(bytes, bytes + cut, n));
    free(bytes);
}

static void test_round_trip(void **state)
{
    uint64_t chance = test_seed();
    uint32_t numbers[BITPACK_MAX];

    (void)state;
    for (unsigned n = 1; n <= BITPACK_MAX; n++)
        for (unsigned width = 0; width <= 32; width++) {
            unsigned one_in = 1 + (unsigned)chance_below(&chance, 40);
            for (unsigned i = 0; i < n; i++) {
                numbers[i] = (uint32_t)(chance_next(&chance) & ((1ull << width) - 1));
                if (chance_one_in(&chance, one_in + 4))
                    numbers[i] = (uint32_t)chance_next(&chance) >> chance_below(&chance, 32);
            }
            round_trip(numbers, n);
        }
}

static void test_edges(void **state)
{
    uint32_t numbers[BITPACK_MAX];

    (void)state;
    for (unsigned bit = 0; bit < 32; bit++)
        for (int below = 0; below < 2; below++) {
            for (unsigned i = 0; i < BITPACK_MAX; i++)
                numbers[i] = (1u << bit) - (uint32_t)below;
            round_trip(numbers, BITPACK_MAX);
            round_trip(numbers, 127);
            numbers[77] = UINT32_MAX;
            round_trip(numbers, BITPACK_MAX);
            round_trip(numbers, 100);
        }
}

/* A single large number does not make all of them large. */
static void test_exceptions_pay(void **state)
{
    uint32_t numbers[BITPACK_MAX] = {0};
    uint8_t bytes[BITPACK_BYTES];

    (void)state;
    for (unsigned i = 0; i < BITPACK_MAX; i++)
        numbers[i] = i % 4;
    assert_int_equal(wb_bitpack(numbers, BITPACK_MAX, bytes), 1 + 32);
    numbers[5] = 1000000;
    assert_int_equal(wb_bitpack(numbers, BITPACK_MAX, bytes), 1 + 2 + 32 + 1 + 3);
}

static void test_hostile(void **state)
{
    uint64_t chance = test_seed();
    uint32_t back[BITPACK_MAX];

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        size_t len = chance_below(&chance, 60);
        uint8_t *bytes = malloc(len ? len : 1);
        unsigned n = 1 + (unsigned)chance_below(&chance, BITPACK_MAX);
        assert_non_null(bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)(chance_below(&chance, 2) ? chance_below(&chance, 8) : chance_next(&chance));
        const uint8_t *end = wb_bitunpack(bytes, bytes + len, n, back);
        assert_true(end == NULL || (end > bytes && end <= bytes + len));
        if (end)
            assert_ptr_equal(wb_bitpack_skip(bytes, bytes + len, n), end);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_exceptions_pay),
        cmocka_unit_test(test_hostile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
