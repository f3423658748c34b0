/*
 * transfer_plan.c - the first step of a transfer: lists the pages that wait. Reads the catalog of the update nodes
 * only. The list takes 120 bytes for each page.
 */
#include "base/check.h"
#include "move/transfer.h"

#include <stdlib.h>

enum { PART_PAGES = 2 }; /* in a part of the list, if ids are spread evenly */

_Static_assert(sizeof(struct wb_transfer_page) <= 120, "the list takes no more for each page");

static int list_page(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_transfer *t = context;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(entry->place.segment > 0);
    struct wb_transfer_page page = {
        .id = id,
        .entry = *entry,
        .plain = wb_transfer_has_bytes(&entry->place),
        .known = !wb_transfer_has_bytes(&entry->place),
    };
    return wb_vec_push(&t->pages, page);
}

/* Pasts come in the order of ids; those of pages without an entry are put behind the others, and sorted later. */
struct past_listing {
    struct wb_transfer *t;
    struct wb_history history;
    size_t entries, next; /* the number of pages that have entries, and the first one that was not passed */
};

/* The older versions say whether readers know the page, and whether more of it than the latest must be brought. */
static int list_past(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct past_listing *l = context;
    struct wb_transfer *t = l->t;
    uint64_t ignored;
    int err = wb_history_decode(bytes, &l->history, &ignored);

    while (l->next < l->entries && wb_pageid_compare(t->pages.items[l->next].id, id) < 0)
        l->next++;
    bool has_entry = l->next < l->entries && wb_pageid_equal(t->pages.items[l->next].id, id);
    if (err == 0 && !has_entry)
        err = wb_vec_push(&t->pages, (struct wb_transfer_page){.id = id});
    if (err < 0)
        return err;
    struct wb_transfer_page *page = &t->pages.items[has_entry ? l->next : t->pages.count - 1];
    for (size_t i = 0; i < l->history.versions.count; i++) {
        const struct wb_history_version *version = &l->history.versions.items[i];
        if (version->ceased == 0) /* its entry has its place */
            continue;
        bool bytes_here = wb_transfer_has_bytes(&version->place);
        page->known = page->known || !bytes_here;
        page->plain = page->plain && (!bytes_here || wb_catalog_place_equal(&version->place, &page->entry.place));
    }
    return 0;
}

static int compare_pages(const void *a, const void *b)
{
    return wb_pageid_compare(((const struct wb_transfer_page *)a)->id, ((const struct wb_transfer_page *)b)->id);
}

int wb_transfer_list(struct wb_transfer *t)
{
    struct past_listing pasts = {.t = t};
    int err = wb_vec_reserve(&t->pages, (size_t)wb_catalog_count(&t->waiting, WB_CATALOG_PAGES));

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    if (err == 0)
        err = wb_catalog_entry_each(&t->waiting, list_page, t);
    pasts.entries = t->pages.count;
    if (err == 0)
        err = wb_catalog_history_each(&t->waiting, (struct wb_pageid){0}, list_past, &pasts);
    wb_history_release(&pasts.history);
    if (err == 0 && t->pages.count > pasts.entries)
        qsort(t->pages.items, t->pages.count, sizeof *t->pages.items, compare_pages);
    for (size_t i = 0; i < t->pages.count && err == 0; i++)
        t->known += t->pages.items[i].known;
    if (err == 0)
        err = wb_site_names_add(&t->waiting, &t->sites);
    return err < 0 ? err : wb_transfer_divide(t);
}

/* ---- finding a page ---------------------------------------------------------------------------------------- */

/* The part of the list in which a page with this id is. */
static size_t part_of(const struct wb_transfer *t, struct wb_pageid id)
{
    WB_CHECK(t->part_bits > 0 && t->part_bits < 64);
    return (size_t)(id.hi >> (64 - t->part_bits));
}

int wb_transfer_divide(struct wb_transfer *t)
{
    size_t parts, part = 0;

    WB_CHECK(t->pages.count < UINT32_MAX);
    for (size_t i = 1; i < t->pages.count; i++)
        WB_CHECK(compare_pages(&t->pages.items[i - 1], &t->pages.items[i]) < 0);
    for (t->part_bits = 1; t->part_bits < 31 && (size_t)PART_PAGES << t->part_bits < t->pages.count;)
        t->part_bits++;
    parts = (size_t)1 << t->part_bits;
    wb_vec_clear(&t->starts);
    if (wb_vec_reserve(&t->starts, parts + 1) < 0)
        return WB_E_NOMEM;
    for (size_t i = 0; i < t->pages.count; i++)
        for (size_t mine = part_of(t, t->pages.items[i].id); part <= mine; part++)
            t->starts.items[part] = (uint32_t)i;
    for (; part <= parts; part++)
        t->starts.items[part] = (uint32_t)t->pages.count;
    t->starts.count = parts + 1;
    return 0;
}

void wb_transfer_foresee(const struct wb_transfer *t, struct wb_pageid id)
{
    WB_CHECK(t->starts.count > 0);
    __builtin_prefetch(t->pages.items + t->starts.items[part_of(t, id)]);
}

struct wb_transfer_page *wb_transfer_find(const struct wb_transfer *t, struct wb_pageid id)
{
    WB_CHECK(t->starts.count > 0);

    size_t part = part_of(t, id), low = t->starts.items[part], high = t->starts.items[part + 1];

    /* Ids are hashes, so there are few pages in a part; but somebody may have chosen them. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = wb_pageid_compare(t->pages.items[middle].id, id);
        if (order == 0)
            return &t->pages.items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
