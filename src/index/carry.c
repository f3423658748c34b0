/*
 * carry.c - matches the URLs of two generations by their page ids.
 *
 * Old ids go into a hash table of old docids: 4 bytes each, at most half full. Ids are hashes already.
 */
#include "index/carry.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/build.h"
#include "os/nameless.h"

enum { TABLE_MIN = 1024 };

/* Old docids + 1 by page id; 0 is free. */
struct id_table {
    uint32_t *slots;
    uint64_t mask;
    size_t bytes;
    const char *ids; /* of the old generation, by docid */
};

static int open_table(const char *temp_dir, uint64_t urls, struct id_table *table)
{
    uint64_t room = TABLE_MIN;
    void *memory;

    while (room < 2 * urls)
        room *= 2;
    table->bytes = room * sizeof *table->slots;
    int err = wb_nameless_map(temp_dir, table->bytes, &memory);
    table->slots = err == 0 ? memory : NULL;
    table->mask = room - 1;
    return err;
}

static struct wb_pageid old_id(const struct id_table *table, uint32_t docid)
{
    return wb_pageid_get(table->ids + (size_t)docid * WB_PAGEID_BYTES);
}

/* The slot of an id: its own, or the free one where it belongs. */
static uint32_t *find_slot(const struct id_table *table, struct wb_pageid id)
{
    uint64_t at = id.lo & table->mask;

    while (table->slots[at] && !wb_pageid_equal(old_id(table, table->slots[at] - 1), id))
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

/* What is kept of an old document that is `docid` now. */
static enum wb_keep judge(const struct wb_build *build, const struct wb_index *old, uint32_t old_docid,
                          const struct wb_roster_url *url)
{
    bool was_page = old_docid < old->manifest.info.pages, is_page = url->page != WB_DOCID_NONE;

    if (!was_page && !is_page)
        return WB_KEEP_ALL;
    if (!was_page || !is_page)
        return WB_KEEP_NOTHING;
    return build->roster.pages[url->page].epoch > old->manifest.info.epoch ? WB_KEEP_NOTHING : WB_KEEP_ALL;
}

static void match(const struct wb_build *build, const struct id_table *table, struct wb_carry *carry)
{
    const struct wb_roster *roster = &build->roster;

    for (uint64_t number = 0; number < roster->url_count; number++) {
        const struct wb_roster_url *url = &roster->urls[number];
        uint32_t slot = *find_slot(table, url->id), docid = wb_docmap_docid(&roster->docmap, number);
        carry->from[docid] = slot ? slot - 1 : WB_DOCID_NONE;
        if (!slot)
            continue;
        carry->keep[slot - 1] = (uint8_t)judge(build, carry->old, slot - 1, url);
        carry->docid[slot - 1] = carry->keep[slot - 1] == WB_KEEP_NOTHING ? WB_DOCID_NONE : docid;
    }
}

static int map_array(struct wb_build *build, uint64_t count, size_t bytes, void *pointer_out)
{
    void *memory = NULL;
    int err = wb_nameless_map(build->root, (count + 1) * bytes, &memory);

    memcpy(pointer_out, &memory, sizeof memory);
    return err;
}

int wb_carry_make(struct wb_build *build, struct wb_index *old, struct wb_carry *carry)
{
    struct id_table table = {.slots = NULL};
    const void *ids = NULL;

    *carry = (struct wb_carry){.old = old};
    if (!old)
        return 0;
    carry->old_urls = old->manifest.info.urls;
    carry->new_urls = build->roster.url_count;
    int err = wb_index_fact(old, WB_FACT_ID, &ids);
    if (err == 0)
        err = open_table(build->root, carry->old_urls, &table);
    if (err == 0)
        err = map_array(build, carry->old_urls, sizeof *carry->docid, &carry->docid);
    if (err == 0)
        err = map_array(build, carry->old_urls, sizeof *carry->keep, &carry->keep);
    if (err == 0)
        err = map_array(build, carry->new_urls, sizeof *carry->from, &carry->from);
    table.ids = ids;
    for (uint64_t docid = 0; err == 0 && docid < carry->old_urls; docid++) {
        carry->docid[docid] = WB_DOCID_NONE;
        carry->keep[docid] = WB_KEEP_NOTHING;
        *find_slot(&table, old_id(&table, (uint32_t)docid)) = (uint32_t)docid + 1;
    }
    if (err == 0)
        match(build, &table, carry);
    if (table.slots)
        wb_nameless_unmap(table.slots, table.bytes);
    return err;
}

void wb_carry_release(struct wb_carry *carry)
{
    if (carry->docid)
        wb_nameless_unmap(carry->docid, (carry->old_urls + 1) * sizeof *carry->docid);
    if (carry->keep)
        wb_nameless_unmap(carry->keep, (carry->old_urls + 1) * sizeof *carry->keep);
    if (carry->from)
        wb_nameless_unmap(carry->from, (carry->new_urls + 1) * sizeof *carry->from);
    wb_index_close(carry->old);
    *carry = (struct wb_carry){.old = NULL};
}

bool wb_carry_anchors_changed(struct wb_carry *carry, uint32_t docid, uint64_t hash)
{
    const void *values = NULL;

    if (wb_carry_is_fresh(carry, docid))
        return true;
    uint32_t from = carry->from[docid];
    /* The column was checked when the last generation was opened for this build. */
    int err = wb_index_fact(carry->old, WB_FACT_ANCHORS, &values);
    WB_CHECK(err == 0);
    if (((const uint64_t *)values)[from] == hash)
        return false;
    carry->keep[from] = WB_KEEP_NO_ANCHOR;
    return true;
}

void wb_carry_drop_anchors(struct wb_carry *carry, const uint64_t *anchors)
{
    for (uint64_t docid = 0; carry->old && docid < carry->new_urls; docid++)
        if (anchors[docid] == 0)
            wb_carry_anchors_changed(carry, (uint32_t)docid, 0);
}
