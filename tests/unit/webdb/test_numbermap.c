/* test_numbermap.c - sets of numbers: they come back in order, each once, however many there are. */
#include "../allocfail.h"
#include "../journal/edit_support.h"
#include "webdb/numbermap.h"

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Different random numbers, in random order. */
static void make_numbers(uint64_t *chance, uint64_t limit, uint32_t *numbers, size_t count)
{
    uint64_t step = limit / count, at = 0;

    assert_true(step > 0);
    for (size_t i = 0; i < count; i++, at += step)
        numbers[i] = (uint32_t)(at + chance_below(chance, step));
    if (count)
        numbers[count - 1] = (uint32_t)(limit - 1);
    for (size_t i = count; i > 1; i--) {
        size_t j = chance_below(chance, i);
        uint32_t held = numbers[i - 1];
        numbers[i - 1] = numbers[j];
        numbers[j] = held;
    }
}

static int fill(struct wb_numberset *set, const uint32_t *numbers, size_t count)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < count; i++)
        err = wb_numberset_add(set, numbers[i]);
    return err < 0 ? err : wb_numberset_sort(set);
}

/* numbers: sorted. */
static void expect(struct wb_numberset *set, const uint32_t *numbers, size_t count)
{
    const uint32_t *found;
    size_t n, at = 0;

    while (wb_numberset_next(set, &found, &n)) {
        assert_true(n > 0 && n <= count - at);
        assert_memory_equal(found, numbers + at, n * sizeof *numbers);
        at += n;
    }
    assert_int_equal(at, count);
    assert_int_equal(wb_numberset_next(set, &found, &n), 0);
}

static const struct {
    uint64_t limit;
    size_t count;
    bool bits;
} sizes[] = {
    {1, 1, false},
    {1, 0, false},
    {100, 100, false},
    {1ull << 32, 257, false},
    {70000, 65536, false},
    {70000, 70000, true},
    {1 << 20, 1 << 20, true},
    {1ull << 32, 300000, false},
    {20000000, 1100000, true},
    {3000, 500, false},
    {2048, 2048, false},
    {1 << 22, 131072, false},
};

/* One set is used again and again, as a walk over all targets does. */
static void test_sets(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct wb_numberset set = {.dir = new_dir(), .limit = sizes[i].limit};
        uint32_t *numbers = wb_alloc_zero(sizes[i].count + 1, sizeof *numbers);
        for (int round = 0; round < 3; round++) {
            size_t count = round == 1 ? sizes[i].count / 3 : sizes[i].count;
            if (count)
                make_numbers(&chance, sizes[i].limit, numbers, count);
            assert_int_equal(fill(&set, numbers, count), 0);
            if (round == 0)
                assert_int_equal(set.bits != NULL, sizes[i].bits);
            if (count)
                qsort(numbers, count, sizeof *numbers, compare_numbers);
            expect(&set, numbers, count);
        }
        wb_free(numbers);
        wb_numberset_release(&set);
    }
}

/* A number that comes twice is noticed, in the array and in the bits. */
static void test_twice(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct wb_numberset set = {.dir = new_dir(), .limit = sizes[i].limit};
        uint32_t *numbers = wb_alloc_zero(sizes[i].count + 1, sizeof *numbers);
        if (sizes[i].count) {
            make_numbers(&chance, sizes[i].limit, numbers, sizes[i].count);
            numbers[sizes[i].count] = numbers[chance_below(&chance, sizes[i].count)];
            assert_int_equal(fill(&set, numbers, sizes[i].count + 1), WB_E_CORRUPT);
        }
        wb_free(numbers);
        wb_numberset_release(&set);
    }
}

static void test_no_memory(void **state)
{
    uint64_t chance = 1;
    uint32_t *numbers = wb_alloc_zero(200000, sizeof *numbers);
    const char *dir = new_dir();
    int err = WB_E_NOMEM;

    (void)state;
    make_numbers(&chance, 200000, numbers, 200000);
    for (size_t nth = 0; err == WB_E_NOMEM; nth++) {
        struct wb_numberset set = {.dir = dir, .limit = 1ull << 32};
        alloc_fail_nth(nth);
        err = fill(&set, numbers, 200000);
        bool failed = alloc_has_failed();
        wb_alloc_should_fail = NULL;
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        wb_numberset_release(&set);
        assert_true(nth < 100);
    }
    for (uint64_t nth = 1;; nth++) { /* there is no room for the bits */
        struct wb_numberset set = {.dir = dir, .limit = 200000};
        wb_fault_arm(WB_FAULT_ANY, nth, ENOSPC);
        err = fill(&set, numbers, 200000);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        wb_numberset_release(&set);
        if (!struck)
            break;
    }
    wb_free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
