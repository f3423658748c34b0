/*
 * test_map.c - the hash table: a model test against a linear search (with hashes that collide), allocations that fail,
 * and keys that a stranger chose to fall onto one place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocfail.h"
#include "../seeded.h"
#include "base/error.h"
#include "base/map.h"

enum { KEYS = 400, STEPS = 60000, MANY = 20000 };

struct entry {
    uint64_t hash;
    uint32_t key, value;
};

union entry_map WB_MAP_OF(struct entry);

/* Few different hashes, so that many keys share one; 0 is among them. */
static uint64_t weak_hash(uint32_t key)
{
    return key % 37;
}

static struct entry *find_entry(union entry_map *map, uint32_t key)
{
    struct entry *entry = NULL;

    while ((entry = wb_map_next(map, weak_hash(key), entry)))
        if (entry->key == key)
            return entry;
    return NULL;
}

static void check_equal(union entry_map *map, const uint32_t *values)
{
    size_t count = 0, walked = 0;

    for (uint32_t key = 0; key < KEYS; key++) {
        const struct entry *entry = find_entry(map, key);
        assert_int_equal(entry ? entry->value : 0, values[key]);
        count += values[key] != 0;
    }
    for (struct entry *entry = NULL; (entry = wb_map_each(map, entry)); walked++)
        assert_int_equal(entry->value, values[entry->key]);
    assert_int_equal(walked, count);
    assert_int_equal(wb_map_count(map), count);
}

/* values: the value of each key, 0 if it is not in the table. */
static void take_step(uint64_t *chance, union entry_map *map, uint32_t *values)
{
    uint32_t key = (uint32_t)chance_below(chance, KEYS);
    struct entry *entry = find_entry(map, key);

    assert_int_equal(entry != NULL, values[key] != 0);
    if (chance_one_in(chance, 5000)) {
        wb_map_clear(map);
        memset(values, 0, KEYS * sizeof *values);
    } else if (entry && chance_one_in(chance, 2)) {
        wb_map_remove(map, entry);
        values[key] = 0;
    } else {
        if (!entry)
            entry = wb_map_add(map, weak_hash(key));
        assert_non_null(entry);
        assert_true(values[key] || (entry->key == 0 && entry->value == 0));
        entry->key = key;
        entry->value = values[key] = 1 + (uint32_t)chance_below(chance, 1000);
    }
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    union entry_map map = WB_MAP_INIT(chance_next(&chance));
    static uint32_t values[KEYS];

    (void)state;
    for (unsigned i = 0; i < STEPS; i++) {
        take_step(&chance, &map, values);
        if (i % 500 == 0)
            check_equal(&map, values);
    }
    check_equal(&map, values);
    wb_map_release(&map);
    assert_int_equal(wb_map_count(&map), 0);
    assert_null(wb_map_next(&map, 1, NULL));
    assert_null(wb_map_each(&map, NULL));
    wb_map_clear(&map);
}

/* Every failed allocation leaves the table as it was. */
static void test_no_memory(void **state)
{
    union entry_map map = WB_MAP_INIT(0);
    uint32_t refused = 0;

    (void)state;
    for (uint32_t key = 1; key <= KEYS; key++) {
        alloc_fail_nth(0);
        struct entry *entry = wb_map_add(&map, key);
        alloc_fail_none();
        if (!entry) {
            refused++;
            assert_int_equal(wb_map_count(&map), key - 1);
            for (uint32_t was = 1; was < key; was++)
                assert_non_null(wb_map_next(&map, was, NULL));
            entry = wb_map_add(&map, key);
        }
        assert_non_null(entry);
    }
    assert_in_range(refused, 3, 10);
    assert_int_equal(wb_map_reserve(&map, 10 * KEYS), 0);
    alloc_fail_all();
    for (uint32_t key = KEYS + 1; key <= 10 * KEYS; key++)
        assert_non_null(wb_map_add(&map, key));
    assert_int_equal(wb_map_reserve(&map, 1000 * KEYS), WB_E_NOMEM);
    alloc_fail_none();
    assert_int_equal(wb_map_reserve(&map, SIZE_MAX / 2), WB_E_NOMEM);
    assert_int_equal(wb_map_count(&map), 10 * KEYS);
    wb_map_release(&map);
}

/* The sum over all entries of how far each is from where its search begins. */
static size_t total_distance(const union entry_map *map)
{
    size_t sum = 0;

    for (const struct entry *entry = NULL; (entry = wb_map_each(map, entry));)
        sum += ((size_t)(entry - map->entry) - wb_map_place(entry->hash, map->map.seed, map->map.cap)) &
               (map->map.cap - 1);
    return sum;
}

/* Hashes that agree in their low bits or in their high bits, or that are evenly spaced, are still found at once. */
static void test_hostile(void **state)
{
    uint64_t chance = test_seed();
    const uint64_t steps[] = {1, 2, UINT64_C(1) << 20, UINT64_C(1) << 32, UINT64_C(1) << 48, 1000003,
                              UINT64_C(0x9e3779b97f4a7c15)};

    (void)state;
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        union entry_map map = WB_MAP_INIT(chance_next(&chance));
        for (uint64_t i = 1; i <= MANY; i++)
            assert_non_null(wb_map_add(&map, i * steps[s]));
        /* A random table that is three quarters full has 1.5 on average; one that walks has thousands. */
        assert_true(total_distance(&map) < 20 * (size_t)MANY);
        wb_map_release(&map);
    }
}

/* After a huge use, clearing a few entries does not touch the memory of that use again. */
static void test_clear(void **state)
{
    union entry_map map = WB_MAP_INIT(7);

    (void)state;
    for (uint64_t i = 1; i <= MANY; i++)
        assert_non_null(wb_map_add(&map, i));
    wb_map_clear(&map);
    assert_true(map.map.cap >= MANY);
    assert_null(wb_map_next(&map, 5, NULL));
    assert_non_null(wb_map_add(&map, 5));
    wb_map_clear(&map);
    assert_int_equal(map.map.cap, 0);
    assert_int_equal(map.map.seed, 7);
    assert_non_null(wb_map_add(&map, 5));
    assert_int_equal(wb_map_count(&map), 1);
    wb_map_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_hostile), cmocka_unit_test(test_clear)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
