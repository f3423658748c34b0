/* idmap.c - open addressing, linear probing; ids are hashes already, so they are their own hash. */
#include "store/idmap.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

static struct wb_idmap_slot *find(struct wb_idmap_slot *slots, size_t cap, struct wb_pageid id)
{
    size_t at = (size_t)id.lo & (cap - 1);

    while (slots[at].value_plus_1 && !wb_pageid_equal(slots[at].id, id))
        at = (at + 1) & (cap - 1);
    return &slots[at];
}

bool wb_idmap_get(const struct wb_idmap *map, struct wb_pageid id, uint32_t *value_out)
{
    *value_out = 0;
    if (map->count == 0)
        return false;
    const struct wb_idmap_slot *slot = find(map->slots, map->cap, id);
    if (!slot->value_plus_1)
        return false;
    *value_out = slot->value_plus_1 - 1;
    return true;
}

static int grow(struct wb_idmap *map)
{
    size_t cap = map->cap ? map->cap * 2 : 64;
    struct wb_idmap_slot *slots = wb_alloc_zero(cap, sizeof *slots);

    if (!slots)
        return WB_E_NOMEM;
    for (size_t i = 0; i < map->cap; i++)
        if (map->slots[i].value_plus_1)
            *find(slots, cap, map->slots[i].id) = map->slots[i];
    wb_free(map->slots);
    map->slots = slots;
    map->cap = cap;
    return 0;
}

int wb_idmap_set(struct wb_idmap *map, struct wb_pageid id, uint32_t value)
{
    WB_CHECK(value < UINT32_MAX);
    if ((map->count + 1) * 3 > map->cap * 2) {
        int err = grow(map);
        if (err < 0)
            return err;
    }
    struct wb_idmap_slot *slot = find(map->slots, map->cap, id);
    map->count += !slot->value_plus_1;
    *slot = (struct wb_idmap_slot){id, value + 1};
    return 0;
}

void wb_idmap_clear(struct wb_idmap *map)
{
    if (map->count)
        memset(map->slots, 0, map->cap * sizeof map->slots[0]);
    map->count = 0;
}

void wb_idmap_release(struct wb_idmap *map)
{
    wb_free(map->slots);
    *map = WB_IDMAP_INIT;
}
