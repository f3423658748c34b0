/*
 * log_live.c - which pages of a segment are live, before it is compacted.
 *
 * Asking the catalog page by page in the order of the file means a random walk
 * through its tree, and took a third of a compaction's time. So the directories of
 * all blocks are read first, and the catalog is asked roughly in order of id, leaf
 * after leaf.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/log.h"

enum {
    FIRST_READ_BYTES = 8 << 10, /* header and directory of most blocks */
    BUCKET_BITS = 12,
    BUCKETS = 1 << BUCKET_BITS,
};

/* An entry of some directory. */
struct item {
    struct wb_pageid id;
    uint64_t logical;
    uint16_t slot, flags;
};

struct gathering {
    struct item *items;
    size_t count, cap;
    struct wb_buf bytes;
};

static int add_items(struct gathering *g, const struct wb_block_head *head, const char *directory)
{
    if (g->cap - g->count < head->count) {
        size_t cap = g->cap * 2 > g->count + head->count ? g->cap * 2 : g->count + head->count;
        struct item *grown = wb_realloc(g->items, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        g->items = grown;
        g->cap = cap;
    }
    for (size_t i = 0; i < head->count; i++) {
        struct wb_block_entry entry = wb_block_entry_read(directory, i);
        g->items[g->count++] = (struct item){entry.id, head->logical, entry.slot, entry.flags};
    }
    return 0;
}

/* Header and directory of the block at `at`, checked. */
static int gather_block(struct gathering *g, const struct wb_segment *segment, uint64_t at, struct wb_block_head *head_out)
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

static int gather(struct gathering *g, const struct wb_segment *segment, uint64_t end)
{
    struct wb_block_head head;
    int err = 0;

    for (uint64_t at = WB_SEGMENT_HEADER_BYTES; at < end && err == 0; at += head.bytes)
        err = gather_block(g, segment, at, &head);
    return err;
}

/* The items' numbers, those whose ids start alike next to each other. */
static int order_by_id(const struct gathering *g, uint32_t **order_out)
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

struct judging {
    struct wb_txn *txn;
    uint32_t segment;
    const struct gathering *gathering;
    const uint32_t *order;
    bool *dead;
};

static int is_at(struct wb_txn *txn, enum wb_table table, struct wb_pageid id, const struct wb_place *place, bool *at_out)
{
    struct wb_entry entry;
    int err = wb_entry_get(txn, table, id, &entry);

    *at_out = err == 0 && wb_place_equal(&entry.place, place);
    return err == WB_E_NOTFOUND ? 0 : err;
}

static int judge(const struct judging *j)
{
    for (size_t i = 0; i < j->gathering->count; i++) {
        const struct item *item = &j->gathering->items[j->order[i]];
        struct wb_place place = {j->segment, item->slot, item->logical};
        bool live = false, dead_already = item->flags & WB_ENTRY_DEAD;
        int err = dead_already ? 0 : is_at(j->txn, WB_TABLE_PAGES, item->id, &place, &live);
        if (err == 0 && !live && !dead_already)
            err = is_at(j->txn, WB_TABLE_OLD, item->id, &place, &live);
        if (err < 0)
            return err;
        j->dead[j->order[i]] = !live;
    }
    return 0;
}

int wb_log_live_read(struct wb_txn *txn, const struct wb_segment *segment, const struct wb_segment_row *row,
                     struct wb_log_live *live_out)
{
    struct gathering g = {0};
    struct judging j = {.txn = txn, .segment = row->number, .gathering = &g};
    uint32_t *order = NULL;
    int err = gather(&g, segment, row->version ? row->map_at : row->bytes);

    *live_out = (struct wb_log_live){0};
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
    *live = (struct wb_log_live){0};
}
