/* idtable.c - open addressing, at most half full. */
#include "index/idtable.h"
#include "base/check.h"
#include "os/nameless.h"

enum { SLOTS_MIN = 1024 };

/* The slot of an id: its own, or the free one where it belongs. */
static uint32_t *find_slot(const struct wb_idtable *table, struct wb_pageid id)
{
    uint64_t at = id.lo & table->mask;

    WB_CHECK(table->slots != NULL);
    while (table->slots[at] &&
           !wb_pageid_equal(wb_pageid_get(table->ids + (size_t)(table->slots[at] - 1) * WB_PAGEID_BYTES), id))
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

int wb_idtable_open(const char *temp_dir, const void *ids, uint64_t count, struct wb_idtable *table)
{
    uint64_t room = SLOTS_MIN;
    void *memory;

    WB_CHECK(count < WB_DOCID_NONE);
    while (room < 2 * count)
        room *= 2;
    *table = (struct wb_idtable){.mask = room - 1, .bytes = room * sizeof *table->slots, .ids = ids};
    int err = wb_nameless_map(temp_dir, table->bytes, &memory);
    if (err < 0)
        return err;
    table->slots = memory;
    for (uint64_t docid = 0; docid < count; docid++)
        *find_slot(table, wb_pageid_get(table->ids + docid * WB_PAGEID_BYTES)) = (uint32_t)docid + 1;
    return 0;
}

void wb_idtable_close(struct wb_idtable *table)
{
    if (table->slots)
        wb_nameless_unmap(table->slots, table->bytes);
    *table = (struct wb_idtable){.slots = NULL};
}

uint32_t wb_idtable_find(const struct wb_idtable *table, struct wb_pageid id)
{
    uint32_t slot = *find_slot(table, id);

    return slot ? slot - 1 : WB_DOCID_NONE;
}
