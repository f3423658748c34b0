/*
 * segment_live.c - finds out which pages of a segment are alive, before they are moved (segment_live.h). A page
 * is alive if the catalog knows a version of it, the latest or an older one, at exactly this place.
 *
 * Page ids are hashes. Looking them up in the order of the file would be a random walk
 * through the catalog's tree, and took a third of a compaction's time. So we read the
 * directories of all blocks first and sort the ids. If the segment has a good part of all pages,
 * we then walk over ids and catalog side by side; otherwise we look up each, one leaf
 * of the tree after the other. The past of a page is only read if it can matter.
 *
 * If the header or directory of a block is damaged, the file cannot tell which pages are
 * in it. Then, and only then, we walk over the whole catalog and collect the entries
 * that point there: those pages are alive. This file changes nothing.
 */
#include "pagefile/segment_live.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_READ_BYTES = 8 << 10, /* enough for the header and directory of most blocks */
    BUCKET_BITS = 16,
    BUCKETS = 1 << BUCKET_BITS,
    BUCKET_SMALL = 32,
    WALK_WORTH = 8, /* walking over the whole catalog costs as much as looking up this fraction of its pages */
};

/* An entry of one of the directories. */
struct live_item {
    struct wb_pageid id;
    uint64_t logical;
    uint16_t slot, flags;
};

/* All entries of all directories, in the order of the file. */
struct live_gathering {
    WB_VEC(struct live_item) items;
    struct wb_buf bytes; /* header and directory of the current block */
    struct wb_block_index index;
    struct wb_segment_live *live; /* where damage is recorded */
};

/* Adds the entries of the current block. */
static int add_items(struct live_gathering *g)
{
    int err = wb_vec_reserve(&g->items, g->items.count + g->index.entries.count);

    for (size_t i = 0; i < g->index.entries.count && err == 0; i++) {
        const struct wb_block_entry *entry = &g->index.entries.items[i];
        err = wb_vec_push(&g->items, (struct live_item){entry->id, g->index.head.logical, entry->slot, entry->flags});
    }
    return err;
}

/* Reads and checks the header and directory of the block at `at`, and adds its entries. */
static int gather_block(struct live_gathering *g, const struct wb_segment *segment, uint64_t at,
                        struct wb_block_head *head_out)
{
    size_t got;
    int err;

    WB_CHECK(at >= WB_SEGMENT_HEADER_BYTES);
    err = wb_buf_reserve(&g->bytes, FIRST_READ_BYTES);
    if (err == 0)
        err = wb_node_file_read_at(&segment->file, at, g->bytes.ptr, FIRST_READ_BYTES, &got);
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
            err = wb_node_file_read_exact(&segment->file, at, g->bytes.ptr, need);
    }
    if (err == 0)
        err = wb_block_index_read(head_out, g->bytes.ptr + WB_BLOCK_HEADER_BYTES, &g->index);
    return err < 0 ? err : add_items(g);
}

/* Records a damaged part of the file. The current error message says why. */
static int add_damage(struct wb_segment_live *live, const struct wb_segment *segment, uint64_t at, uint64_t end)
{
    struct wb_segment_damage damage = {.at = at, .end = end};
    char place[WB_ERROR_MESSAGE_MAX];
    const char *why = wb_error_message();

    WB_CHECK(at < end);
    WB_CHECK(live->damages.count == 0 || live->damages.items[live->damages.count - 1].end <= at);
    /* The caller that reports the damage names the file and the offset, so leave them out of the reason. */
    int len = snprintf(place, sizeof place, "%s at %llu: ", segment->file.path, (unsigned long long)at);
    if (len > 0 && strncmp(why, place, (size_t)len) == 0)
        why += len;
    snprintf(damage.why, sizeof damage.why, "%s", why);
    return wb_vec_push(&live->damages, damage);
}

/*
 * The block at `at` is damaged. Finds out where the damage ends, with the same walk with
 * which compaction will copy the blocks later, so that both agree.
 */
static int pass_damage(struct live_gathering *g, const struct wb_segment *segment, uint64_t at, uint64_t end,
                       uint64_t *next_out)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t place;

    WB_CHECK(at < end);
    wb_segment_walk_init(&walk, segment, end);
    walk.next = at;
    int err = wb_segment_walk_next(&walk, &head, &block, &place);
    if (err >= 0)
        err = wb_fail(WB_E_IO, "%s at %llu: read twice, with different results", segment->file.path,
                      (unsigned long long)at);
    else if (err == WB_E_CORRUPT)
        err = add_damage(g->live, segment, at, walk.next);
    *next_out = walk.next;
    wb_segment_walk_release(&walk);
    return err;
}

/* Collects the entries of all blocks up to `end`. */
static int gather(struct live_gathering *g, const struct wb_segment *segment, uint64_t end)
{
    struct wb_block_head head;
    uint64_t place;
    int err = 0;

    WB_CHECK(g->items.count == 0);
    for (uint64_t at = WB_SEGMENT_HEADER_BYTES; (at = wb_segment_pass_map(segment, at, end)) < end && err == 0;) {
        size_t before = g->items.count;
        err = gather_block(g, segment, at, &head);
        bool sound = err == 0 && head.bytes <= wb_segment_stretch_end(segment, at, end) - at &&
                     wb_segment_locate(segment, head.logical, &place) == 0 && place == at;
        if (sound) {
            at += head.bytes;
        } else if (err == 0 || err == WB_E_CORRUPT) {
            g->items.count = before;
            err = pass_damage(g, segment, at, end, &at);
        }
    }
    return err;
}

/* ---- asking the catalog --------------------------------------------------------------------------- */

/* An item, for the order of ids. */
struct live_question {
    struct wb_pageid id;
    uint64_t logical;
    uint32_t item; /* its number in the order of the file */
    uint16_t slot, flags;
};

/* The questions which of the items are alive, in the order of their ids. */
struct live_judging {
    struct wb_pageview_judge judge;
    uint32_t segment; /* the number that their places have */
    struct live_question *questions;
    size_t count, next;           /* those before `next` were answered */
    struct wb_segment_live *live; /* the answers */
};

static size_t bucket_of(struct wb_pageid id)
{
    return (size_t)(id.hi >> (64 - BUCKET_BITS));
}

static int compare_questions(const void *a, const void *b)
{
    const struct live_question *x = a, *y = b;
    int order = wb_pageid_compare(x->id, y->id);

    return order ? order : x->item < y->item ? -1 : x->item > y->item;
}

/* Ids are hashes, so buckets are small, and moving each past the few that are greater is fast. */
static void sort_bucket(struct live_question *questions, size_t count)
{
    if (count > BUCKET_SMALL) {
        qsort(questions, count, sizeof *questions, compare_questions);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct live_question moving = questions[i];
        size_t k = i;
        for (; k > 0 && compare_questions(&questions[k - 1], &moving) > 0; k--)
            questions[k] = questions[k - 1];
        questions[k] = moving;
    }
}

/* Sorts the items by id: a counting sort by the first BUCKET_BITS bits, then bucket by bucket. */
static int order_by_id(const struct live_gathering *g, struct live_question **questions_out)
{
    size_t *ends = wb_alloc_zero(BUCKETS + 1, sizeof *ends), count = g->items.count;
    struct live_question *questions = wb_alloc((count + 1) * sizeof *questions);

    WB_CHECK(count <= UINT32_MAX);
    *questions_out = NULL;
    if (!ends || !questions) {
        wb_free(ends);
        wb_free(questions);
        return WB_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++)
        ends[bucket_of(g->items.items[i].id) + 1]++;
    for (size_t i = 0; i < BUCKETS; i++)
        ends[i + 1] += ends[i];
    WB_CHECK(ends[BUCKETS] == count);
    for (size_t i = 0; i < count; i++) {
        const struct live_item *item = &g->items.items[i];
        questions[ends[bucket_of(item->id)]++] =
            (struct live_question){item->id, item->logical, (uint32_t)i, item->slot, item->flags};
    }
    for (size_t i = 0; i < BUCKETS; i++)
        sort_bucket(questions + (i ? ends[i - 1] : 0), ends[i] - (i ? ends[i - 1] : 0));
    wb_free(ends);
    *questions_out = questions;
    return 0;
}

/* Answers the next question. entry is that of the page, or NULL if it has none. */
static int answer(struct live_judging *j, const struct wb_catalog_entry *entry)
{
    const struct live_question *q = &j->questions[j->next];
    struct wb_catalog_place place = {j->segment, q->slot, q->logical};
    bool live, latest;

    WB_CHECK(j->next < j->count);
    int err = wb_pageview_ask(&j->judge, q->id, entry, &place, &live, &latest);
    j->live->dead[q->item] = !live || q->flags & WB_BLOCK_ENTRY_DEAD;
    j->live->old[q->item] = live && !latest;
    j->next++;
    return err;
}

/* Answers the questions about pages up to this one. */
static int answer_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct live_judging *j = context;
    int order = -1, err = 0;

    while (err == 0 && j->next < j->count && (order = wb_pageid_compare(j->questions[j->next].id, id)) <= 0)
        err = answer(j, order == 0 ? entry : NULL);
    return err < 0 ? err : j->next == j->count; /* 1 ends the walk */
}

/* Looks every page up. */
static int answer_each(struct live_judging *j)
{
    struct wb_catalog_entry entry;
    int err = 0;

    while (j->next < j->count && err == 0) {
        err = wb_catalog_entry_get(j->judge.txn, j->questions[j->next].id, &entry);
        bool found = err == 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
        if (err == 0)
            err = answer(j, found ? &entry : NULL);
    }
    return err;
}

static int judge(struct live_judging *j)
{
    struct wb_catalog_summary summary;
    int err = wb_catalog_summary_get(j->judge.txn, &summary);

    WB_CHECK(j->judge.txn->kind == WB_CATALOG_TXN_HELD);
    if (err < 0)
        return err;
    j->judge.any_gone = summary.gone > 0;
    j->live->epoch = summary.epoch;
    if (j->count < summary.pages / WALK_WORTH)
        return answer_each(j);
    err = wb_catalog_entry_each(j->judge.txn, answer_entry, j);
    while (j->next < j->count && err == 0) /* pages after the last entry */
        err = answer(j, NULL);
    return err < 0 ? err : 0;
}

/* ---- live pages in damaged parts ------------------------------------------------------------------ */

/* A walk over the catalog for entries that point into damaged parts. */
struct live_claims {
    const struct wb_segment *segment;
    const struct wb_catalog_range *range; /* of the segment */
    struct wb_segment_live *live;
};

static struct wb_segment_damage *damage_at(const struct wb_segment_live *live, uint64_t physical)
{
    for (size_t i = 0; i < live->damages.count; i++)
        if (physical >= live->damages.items[i].at && physical < live->damages.items[i].end)
            return &live->damages.items[i];
    return NULL;
}

/* A version is stored at this place. */
static int claim(struct live_claims *c, struct wb_pageid id, const struct wb_catalog_place *place)
{
    struct wb_segment_live *live = c->live;
    uint64_t physical;

    if (place->segment != c->segment->origin || !wb_catalog_range_has(c->range, id))
        return 0;
    if (wb_segment_locate(c->segment, place->logical, &physical) < 0) {
        live->nowhere++;
        return 0;
    }
    struct wb_segment_damage *damage = damage_at(live, physical);
    if (!damage)
        return 0;
    damage->pages++;
    for (size_t i = live->blocks.count; i > 0; i--)
        if (live->blocks.items[i - 1].physical == physical)
            return 0;
    return wb_vec_push(&live->blocks, (struct wb_segment_map_entry){place->logical, physical});
}

/* Several versions of a page may have the same place, which counts once. */
static int claim_page(void *context, struct wb_pageview *view)
{
    const struct wb_history_version *versions = view->history.versions.items;
    size_t count = view->history.versions.count;
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        bool counted = false;
        for (size_t k = i + 1; k < count && !counted; k++)
            counted = wb_catalog_place_equal(&versions[k].place, &versions[i].place);
        if (!counted)
            err = claim(context, view->id, &versions[i].place);
    }
    return err;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct wb_segment_map_entry *x = a, *y = b;

    return x->physical < y->physical ? -1 : x->physical > y->physical;
}

/* Finds the live pages in damaged parts, and gives each part its range of blocks. */
static int find_claims(struct wb_catalog_txn *txn, const struct wb_segment *segment,
                       const struct wb_catalog_range *range, struct wb_segment_live *live)
{
    struct live_claims c = {.segment = segment, .range = range, .live = live};
    size_t at = 0;

    WB_CHECK(live->blocks.count == 0);
    if (live->damages.count == 0)
        return 0;
    int err = wb_pageview_each(txn, (struct wb_pageid){0}, WB_PAGEVIEW_LAST, claim_page, &c);
    if (err == 0 && live->blocks.count)
        qsort(live->blocks.items, live->blocks.count, sizeof *live->blocks.items, compare_blocks);
    for (size_t i = 0; err == 0 && i < live->damages.count; i++) {
        struct wb_segment_damage *damage = &live->damages.items[i];
        damage->first = at;
        while (at < live->blocks.count && live->blocks.items[at].physical < damage->end)
            at++;
        damage->count = at - damage->first;
        WB_CHECK((damage->count == 0) == (damage->pages == 0));
    }
    return err;
}

static int read_live(struct wb_catalog_txn *txn, const struct wb_segment *segment, const struct wb_catalog_segment *row,
                     struct wb_segment_live *live)
{
    struct live_gathering g = {.live = live};
    struct live_judging j = {.judge = {.txn = txn}, .segment = segment->origin, .live = live};
    int err = gather(&g, segment, wb_segment_blocks_end(row));

    if (err == 0)
        err = find_claims(txn, segment, &row->range, live);
    if (err == 0)
        err = order_by_id(&g, &j.questions);
    if (err == 0) {
        live->dead = wb_alloc_zero(g.items.count + 1, sizeof *live->dead);
        live->old = wb_alloc_zero(g.items.count + 1, sizeof *live->old);
        err = live->dead && live->old ? 0 : WB_E_NOMEM;
    }
    j.count = live->count = g.items.count;
    if (err == 0)
        err = judge(&j);
    wb_free(j.questions);
    wb_pageview_release(&j.judge.view);
    wb_vec_release(&g.items);
    wb_buf_release(&g.bytes);
    wb_block_index_release(&g.index);
    return err;
}

/* ---- the walk -------------------------------------------------------------------------------------- */

int wb_segment_live_begin(struct wb_segment_live_walk *walk, struct wb_catalog_txn *txn,
                          const struct wb_segment *segment, const struct wb_catalog_segment *row)
{
    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    WB_CHECK(segment->number == row->number);
    WB_CHECK(segment->revision == row->revision);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_HELD);
    *walk = (struct wb_segment_live_walk){0};
    wb_segment_walk_init(&walk->walk, segment, wb_segment_blocks_end(row));
    return read_live(txn, segment, row, &walk->live);
}

void wb_segment_live_release(struct wb_segment_live_walk *walk)
{
    wb_segment_walk_release(&walk->walk);
    wb_free(walk->live.dead);
    wb_free(walk->live.old);
    wb_vec_release(&walk->live.damages);
    wb_vec_release(&walk->live.blocks);
}

/* The file is read twice: to judge its pages, and now. */
static int differs(const struct wb_segment_live_walk *walk, uint64_t at)
{
    return wb_fail(WB_E_CORRUPT, "%s at %llu: read twice, with different results", walk->walk.segment->file.path,
                   (unsigned long long)at);
}

int wb_segment_live_next(struct wb_segment_live_walk *walk, const char **block_out, uint64_t *at_out)
{
    const struct wb_segment_live *live = &walk->live;
    struct wb_block_head head;
    int got = wb_segment_walk_next(&walk->walk, &head, block_out, at_out);

    walk->damage = NULL;
    if (got > 0) {
        if (head.count > live->count - walk->judged)
            return differs(walk, *at_out);
        walk->dead = live->dead + walk->judged;
        walk->old = live->old + walk->judged;
        walk->judged += head.count;
    } else if (got == WB_E_CORRUPT) {
        walk->damage = walk->damages < live->damages.count ? &live->damages.items[walk->damages++] : NULL;
        if (!walk->damage || walk->damage->at != walk->walk.error_at || walk->damage->end != walk->walk.next)
            return differs(walk, walk->walk.error_at);
    } else if (got == 0 && (walk->judged < live->count || walk->damages < live->damages.count)) {
        return differs(walk, walk->walk.next);
    }
    return walk->damage ? 1 : got;
}
