/*
 * vec.c - the one place where arrays grow.
 *
 * Capacity doubles, so that appending n items one by one moves O(n) items in total. An array never shrinks, and its
 * items are only moved, never read.
 */
#include "base/vec.h"

#include <stdint.h>

enum { CAP_MIN = 8 };

int wb_grow_array(void *items_at, size_t *cap_at, size_t want, size_t item_bytes)
{
    size_t cap_max = (size_t)PTRDIFF_MAX / item_bytes; /* no object in C is larger */
    size_t cap = *cap_at <= cap_max / 2 ? *cap_at * 2 : cap_max;
    void *items = NULL;

    WB_CHECK(want > *cap_at);
    if (want > cap_max)
        return wb_fail_nomem();
    if (cap < CAP_MIN && CAP_MIN <= cap_max)
        cap = CAP_MIN;
    if (cap < want)
        cap = want;
    /* Copied byte by byte, because *items_at is a pointer of another type than void *. */
    memcpy(&items, items_at, sizeof items);
    items = wb_realloc(items, cap * item_bytes);
    if (!items)
        return WB_E_NOMEM;
    memcpy(items_at, &items, sizeof items);
    *cap_at = cap;
    return 0;
}
