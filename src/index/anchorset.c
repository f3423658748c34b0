/* anchorset.c - counts the texts of links. */
#include "index/anchorset.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

#include <stdlib.h>

enum { TEXTS_MAX = 4096 }; /* different texts that are counted for one URL; further ones are left out */

void wb_anchorset_clear(struct wb_anchorset *set)
{
    wb_arena_clear(&set->texts);
    wb_map_clear(&set->table);
    wb_vec_clear(&set->anchors);
}

void wb_anchorset_release(struct wb_anchorset *set)
{
    wb_arena_release(&set->texts);
    wb_map_release(&set->table);
    wb_vec_release(&set->anchors);
}

int wb_anchorset_add(struct wb_anchorset *set, struct wb_slice text)
{
    struct wb_anchor_entry *entry = NULL;
    struct wb_anchor anchor = {.links = 1};

    text = wb_slice_trim(text);
    if (text.len == 0)
        return 0;
    uint64_t hash = wb_hash64_seeded(text.ptr, text.len, (uint64_t)(uintptr_t)set);
    while ((entry = wb_map_next(&set->table, hash, entry)))
        if (wb_slice_equal(set->anchors.items[entry->anchor].text, text)) {
            set->anchors.items[entry->anchor].links++;
            return 0;
        }
    if (set->anchors.count >= TEXTS_MAX)
        return 0;
    int err = wb_arena_copy(&set->texts, text, &anchor.text);
    if (err == 0)
        err = wb_vec_push(&set->anchors, anchor);
    entry = err == 0 ? wb_map_add(&set->table, hash) : NULL;
    if (!entry)
        return WB_E_NOMEM;
    entry->anchor = (uint32_t)set->anchors.count - 1;
    return 0;
}

static int by_links(const void *a, const void *b)
{
    const struct wb_anchor *x = a, *y = b;

    if (x->links != y->links)
        return x->links > y->links ? -1 : 1;
    return wb_slice_compare(x->text, y->text);
}

/* What counts of a number of links: see wb_docwords_anchors(). */
static unsigned size_class(uint32_t links)
{
    WB_CHECK(links > 0);
    return 32 - (unsigned)__builtin_clz(links);
}

uint64_t wb_anchorset_finish(struct wb_anchorset *set)
{
    uint64_t sum[3] = {0};

    if (set->anchors.count)
        qsort(set->anchors.items, set->anchors.count, sizeof *set->anchors.items, by_links);
    if (set->anchors.count > WB_ANCHORSET_TEXTS)
        set->anchors.count = WB_ANCHORSET_TEXTS;
    for (size_t i = 0; i < set->anchors.count; i++) {
        const struct wb_anchor *anchor = &set->anchors.items[i];
        WB_CHECK(i == 0 || by_links(anchor - 1, anchor) < 0); /* each text is there once */
        sum[1] = wb_hash64(anchor->text.ptr, anchor->text.len);
        sum[2] = size_class(anchor->links);
        sum[0] = wb_hash64(sum, sizeof sum);
    }
    return set->anchors.count && sum[0] == 0 ? 1 : sum[0];
}
