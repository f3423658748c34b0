/* docid_table.c - finds the docids of pages by their ids, which are hashes already (stream_own.h). */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "stream/stream_own.h"

int wb_docid_table_init(struct wb_docid_table *table, struct wb_index *index)
{
    uint64_t pages = wb_index_info(index)->pages, slots = 8;
    const void *ids = NULL;
    int err = wb_index_fact(index, WB_FACT_ID, &ids);

    *table = (struct wb_docid_table){.ids = ids};
    if (err < 0)
        return err;
    while (slots * 3 / 4 < pages)
        slots *= 2;
    table->slots = wb_alloc_zero(slots, sizeof *table->slots);
    if (!table->slots)
        return WB_E_NOMEM;
    table->mask = slots - 1;
    for (uint64_t docid = 0; docid < pages; docid++) {
        uint64_t at = wb_pageid_get(table->ids + docid * WB_PAGEID_BYTES).lo;
        while (table->slots[at & table->mask])
            at++;
        table->slots[at & table->mask] = (uint32_t)docid + 1;
    }
    return 0;
}

void wb_docid_table_release(struct wb_docid_table *table)
{
    wb_free(table->slots);
    *table = (struct wb_docid_table){NULL, 0, NULL};
}

uint32_t wb_docid_table_find(const struct wb_docid_table *table, struct wb_pageid id)
{
    if (!table->slots)
        return WB_DOCID_NONE;
    for (uint64_t at = id.lo;; at++) {
        uint32_t slot = table->slots[at & table->mask];
        if (slot == 0)
            return WB_DOCID_NONE;
        if (wb_pageid_equal(wb_pageid_get(table->ids + (uint64_t)(slot - 1) * WB_PAGEID_BYTES), id))
            return slot - 1;
    }
}
