/* test_heap.c - the heap: a model test against a search through an array, keys that move, and failing allocations. */
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
#include "base/heap.h"

enum { ITEMS = 200, STEPS = 40000 };

struct item {
    bool queued;
    int64_t key;
    struct wb_heap_node node; /* not the first member, so that WB_CONTAINER_OF has something to do */
};

static int64_t least_key(const struct item *items)
{
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < ITEMS; i++)
        if (items[i].queued && items[i].key < least)
            least = items[i].key;
    return least;
}

/* One random operation. Returns by how many items the heap grew. */
static int take_step(uint64_t *chance, struct wb_heap *heap, struct item *items)
{
    struct item *item = &items[chance_below(chance, ITEMS)];
    struct wb_heap_node *first = wb_heap_first(heap);
    int64_t key = (int64_t)chance_below(chance, 100) - 50;

    if (first && chance_one_in(chance, 4)) {
        item = WB_CONTAINER_OF(first, struct item, node);
        assert_int_equal(item->key, least_key(items));
    }
    assert_int_equal(wb_heap_contains(heap, &item->node), item->queued);
    if (!item->queued) {
        assert_int_equal(wb_heap_reserve(heap, heap->count + 1), 0);
        wb_heap_add(heap, &item->node, key);
        item->key = key;
        item->queued = true;
        return 1;
    }
    if (chance_one_in(chance, 2)) {
        wb_heap_move(&item->node, key);
        item->key = key;
        return 0;
    }
    wb_heap_remove(&item->node);
    item->queued = false;
    return -1;
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    struct wb_heap heap = WB_HEAP_INIT;
    static struct item items[ITEMS];
    int count = 0;

    (void)state;
    assert_null(wb_heap_first(&heap));
    for (unsigned i = 0; i < STEPS; i++) {
        count += take_step(&chance, &heap, items);
        assert_int_equal(heap.count, count);
        if (count)
            assert_int_equal(wb_heap_first(&heap)->key, least_key(items));
        if (i % 1000 == 0) {
            wb_heap_shift(&heap, 5);
            for (size_t k = 0; k < ITEMS; k++)
                items[k].key += 5;
        }
    }
    int64_t last = INT64_MIN;
    for (struct wb_heap_node *node; (node = wb_heap_first(&heap)); wb_heap_remove(node)) {
        assert_true(node->key >= last);
        last = node->key;
    }
    wb_heap_release(&heap);
}

static void test_no_memory(void **state)
{
    struct wb_heap heap = WB_HEAP_INIT;
    static struct item items[ITEMS];

    (void)state;
    alloc_fail_all();
    assert_int_equal(wb_heap_reserve(&heap, 1), WB_E_NOMEM);
    alloc_fail_none();
    assert_int_equal(wb_heap_reserve(&heap, ITEMS), 0);
    alloc_fail_all();
    for (int i = 0; i < ITEMS; i++)
        wb_heap_add(&heap, &items[i].node, ITEMS - i); /* there is room: nothing is allocated */
    assert_int_equal(wb_heap_reserve(&heap, 10 * ITEMS), WB_E_NOMEM);
    alloc_fail_none();
    assert_int_equal(heap.count, ITEMS);
    assert_ptr_equal(wb_heap_first(&heap), &items[ITEMS - 1].node);
    assert_int_equal(wb_heap_reserve(&heap, SIZE_MAX / 2), WB_E_NOMEM);
    wb_heap_release(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model), cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
