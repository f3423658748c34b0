/*
 * log_live.c - which pages of a segment are live, before it is compacted.
 *
 * Asking the catalog page by page in the order of the file means a random walk
 * through its tree, and took a third of a compaction's time. So the directories of
 * all blocks are read first, and the catalog is asked roughly in order of id, leaf
 * after leaf.
 *
 * Where a block's header or directory is damaged nobody can say which pages it holds. Then, and only then, the whole catalog
 * is walked for pages that lie there: those are live.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/log.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_READ_BYTES = 8 << 10, /* header and directory of most blocks */
    BUCKET_BITS = 12,
    BUCKETS = 1 << BUCKET_BITS,
};

/* An entry of some directory. */
struct live_item {
    struct wb_pageid id;
    uint64_t logical;
    uint16_t slot, flags;
};

struct live_gathering {
    struct live_item *items;
    size_t count, cap;
    struct wb_buf bytes;
    struct wb_log_live *live; /* where damage is noted */
};

static int add_items(struct live_gathering *g, const struct wb_block_head *head, const char *directory)
{
    if (g->cap - g->count < head->count) {
        size_t cap = g->cap * 2 > g->count + head->count ? g->cap * 2 : g->count + head->count;
        struct live_item *grown = wb_realloc(g->items, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        g->items = grown;
        g->cap = cap;
    }
    for (size_t i = 0; i < head->count; i++) {
        struct wb_block_entry entry = wb_block_entry_read(directory, i);
        g->items[g->count++] = (struct live_item){entry.id, head->logical, entry.slot, entry.flags};
    }
    return 0;
}

/* Header and directory of the block at `at`, checked. */
static int gather_block(struct live_gathering *g, const struct wb_segment *segment, uint64_t at, struct wb_block_head *head_out)
{
    size_t got;
    int err;

    err = wb_buf_reserve(&g->bytes, FIRST_READ_BYTES);
    if (err == 0)
        err = wb_file_read_at(&segment->file, at, g->bytes.ptr, FIRST_READ_BYTES, &got);
    if (err == 0 && got < WB_BLOCK_HEADER_BYTES)
        err = wb_fail(WB_E_CORRUPT, "%s ends inside the block at %llu", segment->file.path, (unsigned long long)at);
    if (err == 0)
        err = wb_block_head_read(g->bytes.ptr, head_out);
    if (err < 0)
        return err;
    size_t need = wb_block_directory_end(head_out);
    if (got < need) {
        err = wb_buf_reserve(&g->bytes, need);
        if (err == 0)
            err = wb_file_read_exact(&segment->file, at, g->bytes.ptr, need);
    }
    if (err == 0)
        err = wb_block_directory_check(head_out, g->bytes.ptr + WB_BLOCK_HEADER_BYTES);
    return err < 0 ? err : add_items(g, head_out, g->bytes.ptr + WB_BLOCK_HEADER_BYTES);
}

static int add_damage(struct wb_log_live *live, const struct wb_segment *segment, uint64_t at, uint64_t end)
{
    struct wb_log_damage *grown = wb_realloc(live->damages, (live->damage_count + 1) * sizeof *grown);
    char place[WB_ERROR_MESSAGE_MAX];
    const char *why = wb_error_message();

    if (!grown)
        return WB_E_NOMEM;
    live->damages = grown;
    struct wb_log_damage *damage = &grown[live->damage_count++];
    *damage = (struct wb_log_damage){.at = at, .end = end};
    /* The report names file and offset itself: leave them out of the reason. */
    int len = snprintf(place, sizeof place, "%s at %llu: ", segment->file.path, (unsigned long long)at);
    if (len > 0 && strncmp(why, place, (size_t)len) == 0)
        why += len;
    snprintf(damage->why, sizeof damage->why, "%s", why);
    return 0;
}

/* The block at `at` is damaged: notes how far that goes, as the walk will find it that copies the blocks. */
static int pass_damage(struct live_gathering *g, const struct wb_segment *segment, uint64_t at, uint64_t end, uint64_t *next_out)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t place;

    wb_segment_walk_init(&walk, segment, end);
    walk.next = at;
    int err = wb_segment_walk_next(&walk, &head, &block, &place);
    if (err >= 0)
        err = wb_fail(WB_E_IO, "%s at %llu: read twice, with different results", segment->file.path, (unsigned long long)at);
    else if (err == WB_E_CORRUPT)
        err = add_damage(g->live, segment, at, walk.next);
    *next_out = walk.next;
    wb_segment_walk_release(&walk);
    return err;
}

static int gather(struct live_gathering *g, const struct wb_segment *segment, uint64_t end)
{
    struct wb_block_head head;
    uint64_t place;
    int err = 0;

    for (uint64_t at = WB_SEGMENT_HEADER_BYTES; at < end && err == 0;) {
        size_t before = g->count;
        err = gather_block(g, segment, at, &head);
        bool sound = err == 0 && head.bytes <= end - at && wb_segment_locate(segment, head.logical, &place) == 0 && place == at;
        if (sound) {
            at += head.bytes;
        } else if (err == 0 || err == WB_E_CORRUPT) {
            g->count = before;
            err = pass_damage(g, segment, at, end, &at);
        }
    }
    return err;
}

/* The items' numbers, those whose ids start alike next to each other. */
static int order_by_id(const struct live_gathering *g, uint32_t **order_out)
{
    size_t *starts = wb_alloc_zero(BUCKETS + 1, sizeof *starts);
    uint32_t *order = wb_alloc((g->count + 1) * sizeof *order);

    *order_out = NULL;
    if (!starts || !order) {
        wb_free(starts);
        wb_free(order);
        return WB_E_NOMEM;
    }
    for (size_t i = 0; i < g->count; i++)
        starts[(g->items[i].id.hi >> (64 - BUCKET_BITS)) + 1]++;
    for (size_t i = 0; i < BUCKETS; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < g->count; i++)
        order[starts[g->items[i].id.hi >> (64 - BUCKET_BITS)]++] = (uint32_t)i;
    wb_free(starts);
    *order_out = order;
    return 0;
}

struct live_judging {
    struct wb_catalog_txn *txn;
    uint32_t segment;
    const struct live_gathering *gathering;
    const uint32_t *order;
    bool *dead;
};

static int is_at(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id, const struct wb_catalog_place *place, bool *at_out)
{
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(txn, table, id, &entry);

    *at_out = err == 0 && wb_catalog_place_equal(&entry.place, place);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int judge(const struct live_judging *j)
{
    for (size_t i = 0; i < j->gathering->count; i++) {
        const struct live_item *item = &j->gathering->items[j->order[i]];
        struct wb_catalog_place place = {j->segment, item->slot, item->logical};
        bool live = false, dead_already = item->flags & WB_BLOCK_ENTRY_DEAD;
        int err = dead_already ? 0 : is_at(j->txn, WB_CATALOG_PAGES, item->id, &place, &live);
        if (err == 0 && !live && !dead_already)
            err = is_at(j->txn, WB_CATALOG_OLD, item->id, &place, &live);
        if (err < 0)
            return err;
        j->dead[j->order[i]] = !live;
    }
    return 0;
}

/* ---- live pages in damaged parts ------------------------------------------------------------------ */

struct live_claims {
    struct wb_catalog_txn *txn;
    const struct wb_segment *segment;
    struct wb_log_live *live;
    size_t cap;
};

static struct wb_log_damage *damage_at(const struct wb_log_live *live, uint64_t physical)
{
    for (size_t i = 0; i < live->damage_count; i++)
        if (physical >= live->damages[i].at && physical < live->damages[i].end)
            return &live->damages[i];
    return NULL;
}

static int claim_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct live_claims *c = context;
    struct wb_log_live *live = c->live;
    uint64_t physical;

    (void)id;
    if (entry->place.segment != c->segment->number)
        return 0;
    if (wb_segment_locate(c->segment, entry->place.logical, &physical) < 0) {
        live->nowhere++;
        return 0;
    }
    struct wb_log_damage *damage = damage_at(live, physical);
    if (!damage)
        return 0;
    damage->pages++;
    for (size_t i = live->block_count; i > 0; i--)
        if (live->blocks[i - 1].physical == physical)
            return 0;
    if (live->block_count == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        struct wb_segment_map_entry *grown = wb_realloc(live->blocks, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        live->blocks = grown;
        c->cap = cap;
    }
    live->blocks[live->block_count++] = (struct wb_segment_map_entry){entry->place.logical, physical};
    return 0;
}

static int claim_all(struct live_claims *c)
{
    int err = wb_catalog_entry_each(c->txn, WB_CATALOG_PAGES, claim_entry, c);

    return err < 0 ? err : wb_catalog_entry_each(c->txn, WB_CATALOG_OLD, claim_entry, c);
}

static int compare_blocks(const void *a, const void *b)
{
    const struct wb_segment_map_entry *x = a, *y = b;

    return x->physical < y->physical ? -1 : x->physical > y->physical;
}

static int find_claims(struct wb_catalog_txn *txn, const struct wb_segment *segment, struct wb_log_live *live)
{
    struct live_claims c = {.txn = txn, .segment = segment, .live = live};
    size_t at = 0;

    if (live->damage_count == 0)
        return 0;
    int err = claim_all(&c);
    if (err == 0 && live->block_count)
        qsort(live->blocks, live->block_count, sizeof *live->blocks, compare_blocks);
    for (size_t i = 0; err == 0 && i < live->damage_count; i++) {
        struct wb_log_damage *damage = &live->damages[i];
        damage->first = at;
        while (at < live->block_count && live->blocks[at].physical < damage->end)
            at++;
        damage->count = at - damage->first;
        WB_CHECK((damage->count == 0) == (damage->pages == 0));
    }
    return err;
}

int wb_log_live_read(struct wb_catalog_txn *txn, const struct wb_segment *segment, const struct wb_catalog_segment *row,
                     struct wb_log_live *live_out)
{
    struct live_gathering g = {.live = live_out};
    struct live_judging j = {.txn = txn, .segment = row->number, .gathering = &g};
    uint32_t *order = NULL;
    int err;

    *live_out = (struct wb_log_live){0};
    err = gather(&g, segment, row->revision ? row->map_at : row->bytes);
    if (err == 0)
        err = find_claims(txn, segment, live_out);
    if (err == 0)
        err = order_by_id(&g, &order);
    if (err == 0) {
        live_out->dead = wb_alloc_zero(g.count + 1, sizeof *live_out->dead);
        err = live_out->dead ? 0 : WB_E_NOMEM;
    }
    j.order = order;
    j.dead = live_out->dead;
    if (err == 0)
        err = judge(&j);
    live_out->count = g.count;
    wb_free(order);
    wb_free(g.items);
    wb_buf_release(&g.bytes);
    if (err < 0)
        wb_log_live_release(live_out);
    return err;
}

void wb_log_live_release(struct wb_log_live *live)
{
    wb_free(live->dead);
    wb_free(live->damages);
    wb_free(live->blocks);
    *live = (struct wb_log_live){0};
}
