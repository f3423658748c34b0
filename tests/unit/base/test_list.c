/* test_list.c - linked lists: a model test against an array of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../seeded.h"
#include "base/list.h"

enum { ITEMS = 30, STEPS = 20000 };

struct item {
    size_t number;
    struct wb_list_node node;
};

/* The twin: the numbers of the items in the list, in order. */
struct order {
    size_t numbers[ITEMS], count;
};

static void check_equal(const struct wb_list *list, const struct order *order)
{
    size_t i = 0;
    struct wb_list_node *last = NULL;

    for (struct wb_list_node *node = list->first; node; last = node, node = node->next, i++) {
        assert_true(i < order->count && node->prev == last);
        assert_int_equal(WB_CONTAINER_OF(node, struct item, node)->number, order->numbers[i]);
    }
    assert_int_equal(i, order->count);
    assert_ptr_equal(list->last, last);
}

static size_t find_number(const struct order *order, size_t number)
{
    size_t i = 0;

    while (i < order->count && order->numbers[i] != number)
        i++;
    return i;
}

static void remove_at(struct order *order, size_t at)
{
    order->count--;
    memmove(&order->numbers[at], &order->numbers[at + 1], (order->count - at) * sizeof *order->numbers);
}

static void take_step(uint64_t *chance, struct wb_list *list, struct item *items, struct order *order)
{
    struct item *item = &items[chance_below(chance, ITEMS)];
    size_t at = find_number(order, item->number);

    if (at < order->count) {
        wb_list_remove(list, &item->node);
        remove_at(order, at);
    } else if (chance_one_in(chance, 4)) {
        struct wb_list_node *first = wb_list_pop(list);
        assert_ptr_equal(first, order->count ? &items[order->numbers[0]].node : NULL);
        if (first)
            remove_at(order, 0);
    } else if (chance_one_in(chance, 2)) {
        wb_list_append(list, &item->node);
        order->numbers[order->count++] = item->number;
    } else {
        wb_list_prepend(list, &item->node);
        memmove(&order->numbers[1], order->numbers, order->count++ * sizeof *order->numbers);
        order->numbers[0] = item->number;
    }
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    struct wb_list list = WB_LIST_INIT;
    struct item items[ITEMS] = {{0}};
    struct order order = {{0}, 0};

    (void)state;
    for (size_t i = 0; i < ITEMS; i++)
        items[i].number = i;
    for (unsigned i = 0; i < STEPS; i++) {
        take_step(&chance, &list, items, &order);
        check_equal(&list, &order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_model)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
