/*
 * pick.c - a heap of limited size with the least urgent item on top. It knows nothing about pages except their numbers.
 *
 * It does not use base/heap.h, because it keeps its items by value: there may be a hundred million of them, at 24 bytes
 * each, and none is ever removed from the middle.
 */
#include "cycle/pick.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"

#include <math.h>

_Static_assert(sizeof(struct wb_pick_item) == 24, "24 bytes per picked page");

bool wb_pick_item_before(const struct wb_pick_item *a, const struct wb_pick_item *b)
{
    if (a->tier != b->tier)
        return a->tier < b->tier;
    if (a->value != b->value)
        return a->value > b->value;
    return a->number < b->number;
}

static void sink(struct wb_pick *pick, size_t at)
{
    WB_CHECK(at < pick->count);
    struct wb_pick_item item = pick->items[at];

    for (size_t child; (child = 2 * at + 1) < pick->count; at = child) {
        if (child + 1 < pick->count && wb_pick_item_before(&pick->items[child], &pick->items[child + 1]))
            child++;
        if (!wb_pick_item_before(&item, &pick->items[child]))
            break;
        pick->items[at] = pick->items[child];
    }
    pick->items[at] = item;
}

static void rise(struct wb_pick *pick, size_t at)
{
    WB_CHECK(at < pick->count);
    struct wb_pick_item item = pick->items[at];

    while (at > 0 && wb_pick_item_before(&pick->items[(at - 1) / 2], &item)) {
        pick->items[at] = pick->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    pick->items[at] = item;
}

int wb_pick_offer(struct wb_pick *pick, const struct wb_pick_item *item)
{
    /* The least urgent one is on top: nobody has sorted the items meanwhile. */
    WB_CHECK(pick->count == 0 || !wb_pick_item_before(&pick->items[0], &pick->items[pick->count - 1]));
    WB_CHECK(!isnan(item->value)); /* or there would be no order */
    if (pick->count >= pick->max) {
        if (pick->count == 0 || !wb_pick_item_before(item, &pick->items[0]))
            return 0;
        pick->items[0] = *item;
        sink(pick, 0);
        return 0;
    }
    if (wb_vec_push(pick, *item) < 0)
        return WB_E_NOMEM;
    rise(pick, pick->count - 1);
    return 0;
}

void wb_pick_trim(struct wb_pick *pick, uint64_t max)
{
    WB_CHECK(pick->count == 0 || !wb_pick_item_before(&pick->items[0], &pick->items[pick->count - 1]));
    while (pick->count > max) {
        pick->items[0] = pick->items[--pick->count];
        if (pick->count)
            sink(pick, 0);
    }
}

void wb_pick_release(struct wb_pick *pick)
{
    wb_free(pick->items);
    *pick = (struct wb_pick){0};
}
