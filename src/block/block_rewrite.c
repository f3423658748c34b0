/*
 * block_rewrite.c - copies a block without its dead pages, and adds older versions to it.
 * For each frame it decides: leave it out, copy it as it is, or compress it again without
 * its dead pages. It works on bytes in memory and knows neither files nor the catalog.
 */
#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "block/block.h"
#include "block/block_bytes.h"
#include "block/block_plan.h"

enum block_fate {
    FRAME_DROP,
    FRAME_COPY,
    FRAME_AGAIN, /* compressed again, without its dead pages */
};

/* What becomes of a frame of the old block. */
struct frame_fate {
    enum block_fate fate;
    bool is_base;      /* of a frame that stays, or of an extra page */
    uint32_t live;     /* entries */
    uint32_t latest;   /* ... that are the latest versions of their pages */
    uint64_t dead_raw; /* bytes of dead pages, decompressed */
    uint64_t old_raw;  /* bytes of live pages that are not the latest versions */
    int32_t planned;   /* its number in the plan, or -1 */
    bool read;
    struct wb_slice raw; /* if read: the frame decompressed; empty if it is lost */
};

struct block_rewriting {
    struct wb_block_builder *builder;
    struct wb_block_reader *reader;
    const struct wb_block_index *index;
    struct wb_block_change *change;
    struct frame_fate *fates;
    int32_t *items; /* the item of each entry of the old block, or -1 */
    bool mixed;     /* some live entries are the latest versions of their pages, and others are not */
    struct wb_block_plan plan;
    struct wb_arena bytes; /* decompressed frames */
};

static bool is_dead(const struct block_rewriting *r, size_t entry)
{
    return r->change->dead[entry] || r->index->entries.items[entry].flags & WB_BLOCK_ENTRY_DEAD;
}

/* Whether an entry is not the latest version of its page. */
static bool is_old(const struct block_rewriting *r, size_t entry)
{
    return r->change->old ? r->change->old[entry] : (r->index->entries.items[entry].flags & WB_BLOCK_ENTRY_OLD) != 0;
}

/* ---- deciding --------------------------------------------------------------------------- */

static void count_dead(struct block_rewriting *r)
{
    bool latest = false, old = false;

    WB_CHECK(r->index->entries.count > 0);
    for (size_t i = 0; i < r->index->entries.count; i++) {
        const struct wb_block_entry *entry = &r->index->entries.items[i];
        struct frame_fate *f = &r->fates[entry->frame];
        WB_CHECK(entry->frame < r->index->frames.count);
        uint64_t raw = (uint64_t)entry->head_bytes + entry->body_bytes;
        f->live += !is_dead(r, i);
        f->latest += !is_dead(r, i) && !is_old(r, i);
        if (is_dead(r, i))
            f->dead_raw += raw;
        else if (is_old(r, i))
            f->old_raw += raw;
        latest = latest || f->latest;
        old = old || f->old_raw;
    }
    r->mixed = latest && old;
    for (size_t i = 0; i < r->change->extra_count; i++) {
        uint32_t newest = r->change->extra[i].newest;
        WB_CHECK(newest <= r->index->entries.count);
        if (newest > 0)
            r->fates[r->index->entries.items[newest - 1].frame].is_base = true;
    }
}

/* The number of frames below a frame. */
static int depth_of(const struct wb_block_index *index, size_t frame)
{
    int depth = 0;

    WB_CHECK(frame < index->frames.count);
    for (int32_t f = index->frames.items[frame].base; f >= 0; f = index->frames.items[f].base)
        WB_CHECK(++depth < WB_BLOCK_DEPTH_MAX); /* wb_block_index_read() has checked it */
    return depth;
}

/* Bytes of a frame that a reader of the latest versions decompresses for nothing. */
static uint64_t waste_of(const struct frame_fate *f)
{
    return f->dead_raw + (f->latest ? f->old_raw : 0);
}

/* What compressing again must save at least, as a fraction of the block: below that, it takes longer than it is worth.
 */
enum { WORTH_AN_NTH = 4 };

/*
 * Frames are compressed again only if that makes the block noticeably smaller, because
 * before the first one of a block its base must be decompressed and indexed. Otherwise
 * their dead pages keep their bytes until more have died.
 */
static void weigh(struct block_rewriting *r)
{
    uint64_t freed = 0, all = 0;

    WB_CHECK(!r->change->scrub);
    for (size_t i = 0; i < r->index->frames.count; i++) {
        freed += r->fates[i].fate == FRAME_AGAIN ? waste_of(&r->fates[i]) : 0;
        all += r->fates[i].fate == FRAME_DROP ? 0 : r->index->frames.items[i].raw_bytes;
    }
    WB_CHECK(freed <= all);
    for (size_t i = 0; i < r->index->frames.count && freed * WORTH_AN_NTH < all; i++)
        if (r->fates[i].fate == FRAME_AGAIN)
            r->fates[i].fate = FRAME_COPY;
}

/* Decides about each frame, those at the top first, because a frame is needed if one above it is. */
static void decide(struct block_rewriting *r)
{
    WB_CHECK(r->index->frames.count > 0);
    for (int depth = WB_BLOCK_DEPTH_MAX - 1; depth >= 0; depth--)
        for (size_t i = 0; i < r->index->frames.count; i++) {
            const struct wb_block_frame *frame = &r->index->frames.items[i];
            struct frame_fate *f = &r->fates[i];
            if (depth_of(r->index, i) != depth)
                continue;
            if (f->live == 0 && !f->is_base)
                continue;
            uint64_t waste = waste_of(f);
            bool again = (r->change->scrub && f->dead_raw > 0) || (waste > 0 && 2 * waste >= frame->raw_bytes);
            f->fate = again && !f->is_base ? FRAME_AGAIN : FRAME_COPY;
            if (frame->base >= 0)
                r->fates[frame->base].is_base = true;
        }
    if (!r->change->scrub)
        weigh(r);
}

/*
 * Whether everything is to be compressed again: a base with bytes that must go, or bases of
 * which more is dead than is alive in the whole block.
 */
static bool all_again(const struct block_rewriting *r)
{
    uint64_t dead_bases = 0, live = 0;

    WB_CHECK(r->index->frames.count > 0);
    for (size_t i = 0; i < r->index->frames.count; i++) {
        const struct frame_fate *f = &r->fates[i];
        live += r->index->frames.items[i].raw_bytes - f->dead_raw;
        if (f->fate != FRAME_COPY || f->dead_raw == 0)
            continue;
        if (r->change->scrub)
            return true;
        dead_bases += f->is_base ? f->dead_raw : 0;
    }
    return dead_bases > live;
}

/* ---- records of the old block ------------------------------------------------------------- */

/* Adds an item for an entry of the old block; without its bytes, which are in a frame that is copied. */
static int add_copied(struct block_rewriting *r, size_t at)
{
    const struct wb_block_entry *entry = &r->index->entries.items[at];
    struct wb_block_item item = {
        .id = entry->id,
        .digests = entry->digests,
        .head_bytes = entry->head_bytes,
        .body_bytes = entry->body_bytes,
        .newest = -1,
        .slot = entry->slot,
        .dead = is_dead(r, at),
        .old = is_old(r, at),
    };

    r->items[at] = (int32_t)r->plan.items.count;
    r->change->kept_dead += item.dead;
    return wb_vec_push(&r->plan.items, item);
}

/* Adds an item for an entry whose frame is decompressed in raw; or a "lost" record if raw or the entry is empty. */
static int add_read(struct block_rewriting *r, size_t at, struct wb_slice raw)
{
    static const char lost[] = "lost";
    const struct wb_block_entry *entry = &r->index->entries.items[at];
    struct wb_block_item item = {.digests = entry->digests, .newest = -1, .head = lost, .head_bytes = sizeof lost - 1};

    WB_CHECK(raw.len == 0 || (uint64_t)entry->body_at + entry->body_bytes <= raw.len);
    item.body = lost;
    if (raw.len == 0 || entry->head_bytes + (uint64_t)entry->body_bytes == 0) {
        r->change->lost += raw.len == 0;
    } else {
        item.head = raw.ptr + entry->head_at;
        item.head_bytes = entry->head_bytes;
        item.body = raw.ptr + entry->body_at;
        item.body_bytes = entry->body_bytes;
    }
    item.id = entry->id;
    item.slot = entry->slot;
    item.old = is_old(r, at);
    item.apart = item.old && r->mixed;
    r->items[at] = (int32_t)r->plan.items.count;
    return wb_vec_push(&r->plan.items, item);
}

/* Decompresses a frame of the old block into memory that stays until the end. */
static int keep_frame(struct block_rewriting *r, uint32_t frame, struct wb_slice *raw_out)
{
    WB_CHECK(frame < r->index->frames.count);
    struct wb_slice raw;
    int err = wb_block_read_frame(r->reader, frame, &raw);

    *raw_out = WB_SLICE_EMPTY;
    return err < 0 ? err : wb_arena_copy(&r->bytes, raw, raw_out);
}

/*
 * The same for a frame that is given up if it cannot be read, which the caller must be
 * ready for: *raw_out is empty then. If its base cannot be read, it is not: WB_E_CORRUPT.
 */
static int keep_or_lose(struct block_rewriting *r, uint32_t frame, struct wb_slice *raw_out)
{
    int32_t base = r->index->frames.items[frame].base;
    struct wb_slice below;
    int err = base >= 0 ? wb_block_read_frame(r->reader, (uint32_t)base, &below) : 0;

    WB_CHECK(r->change->scrub);
    WB_CHECK(!r->fates[frame].is_base);
    *raw_out = WB_SLICE_EMPTY;
    if (err < 0)
        return err;
    err = keep_frame(r, frame, raw_out);
    return err == WB_E_CORRUPT ? 0 : err;
}

/* ---- everything again ------------------------------------------------------------------------ */

/* The item of which an entry's page is an older version: the same page, in the frame below. -1 if there is none. */
static int32_t newest_of(const struct block_rewriting *r, size_t at)
{
    const struct wb_block_entry *entry = &r->index->entries.items[at];
    int32_t base = r->index->frames.items[entry->frame].base;

    WB_CHECK(at < r->index->entries.count);
    if (base < 0)
        return -1;
    const struct wb_block_frame *below = &r->index->frames.items[base];
    for (size_t i = below->first; i < below->first + below->count; i++)
        if (wb_pageid_equal(r->index->entries.items[i].id, entry->id) && r->items[i] >= 0)
            return r->items[i];
    return -1;
}

/* Adds the live entries of the old block that are the latest versions of their pages, or those that are not. */
static int add_all(struct block_rewriting *r, bool old)
{
    int err = 0;

    WB_CHECK(r->index->entries.count > 0);
    for (size_t i = 0; i < r->index->entries.count && err == 0; i++) {
        uint32_t frame = r->index->entries.items[i].frame;
        struct frame_fate *f = &r->fates[frame];
        if (is_dead(r, i) || is_old(r, i) != old)
            continue;
        if (!f->read) {
            bool losable = r->change->scrub && !f->is_base;
            err = losable ? keep_or_lose(r, frame, &f->raw) : keep_frame(r, frame, &f->raw);
            f->read = err == 0;
        }
        if (err == 0)
            err = add_read(r, i, f->raw);
    }
    return err;
}

/*
 * Plans a new block from all its live records, the latest versions first. A base that cannot be read makes all
 * pages above it unreadable, which is WB_E_CORRUPT. Other frames may be lost if the change
 * is a scrub.
 */
static int plan_again(struct block_rewriting *r)
{
    WB_CHECK(r->plan.items.count == 0);

    int err = add_all(r, false);

    if (err == 0)
        err = add_all(r, true);
    for (size_t i = 0; i < r->index->entries.count && err == 0; i++)
        if (r->items[i] >= 0)
            r->plan.items.items[r->items[i]].newest = newest_of(r, i);
    return err;
}

/* ---- frame by frame ---------------------------------------------------------------------------- */

/*
 * Adds a frame that is compressed again, without those pages that are moved to frames of their own. If it cannot be
 * read: copies it, or gives its pages up in a scrub.
 */
static int plan_reread(struct block_rewriting *r, uint32_t number)
{
    const struct wb_block_frame *frame = &r->index->frames.items[number];
    struct frame_fate *f = &r->fates[number];
    struct wb_block_plan_frame planned = {.first = r->plan.items.count, .base = -1};
    int err = r->change->scrub ? keep_or_lose(r, number, &f->raw) : keep_frame(r, number, &f->raw);

    WB_CHECK(!f->is_base);
    WB_CHECK(f->live > 0);
    if (err == WB_E_CORRUPT && !r->change->scrub) {
        f->fate = FRAME_COPY;
        return 0;
    }
    for (size_t i = frame->first; i < frame->first + frame->count && err == 0; i++)
        if (!is_dead(r, i) && !(is_old(r, i) && f->latest))
            err = add_read(r, i, f->raw);
    planned.count = r->plan.items.count - planned.first;
    planned.base = frame->base >= 0 && f->raw.len > 0 ? r->fates[frame->base].planned : -1;
    return err < 0 ? err : wb_vec_push(&r->plan.frames, planned);
}

/* Adds the pages that plan_reread() has left out. */
static int add_old(struct block_rewriting *r)
{
    int err = 0;

    WB_CHECK(r->plan.items.count > 0);
    for (size_t i = 0; i < r->index->entries.count && err == 0; i++) {
        const struct frame_fate *f = &r->fates[r->index->entries.items[i].frame];
        if (f->fate == FRAME_AGAIN && f->latest && is_old(r, i) && !is_dead(r, i))
            err = add_read(r, i, f->raw);
    }
    return err;
}

static int plan_copied(struct block_rewriting *r, uint32_t number)
{
    const struct wb_block_frame *frame = &r->index->frames.items[number];
    struct wb_block_plan_frame planned = {.first = r->plan.items.count, .count = frame->count, .from = frame};
    int err = 0;

    WB_CHECK(r->fates[number].fate == FRAME_COPY);
    for (size_t i = frame->first; i < frame->first + frame->count && err == 0; i++)
        err = add_copied(r, i);
    planned.base = frame->base >= 0 ? r->fates[frame->base].planned : -1;
    WB_CHECK(frame->base < 0 || planned.base >= 0);
    return err < 0 ? err : wb_vec_push(&r->plan.frames, planned);
}

/* Plans the frames of the old block in their order. Their numbers are known before, because some have later bases. */
static int plan_frames(struct block_rewriting *r)
{
    int32_t n = 0;
    int err = 0;

    WB_CHECK(r->plan.frames.count == 0);
    for (size_t i = 0; i < r->index->frames.count; i++)
        r->fates[i].planned = r->fates[i].fate == FRAME_DROP ? -1 : n++;
    for (uint32_t i = 0; i < r->index->frames.count && err == 0; i++) {
        if (r->fates[i].fate == FRAME_AGAIN)
            err = plan_reread(r, i);
        if (err == 0 && r->fates[i].fate == FRAME_COPY)
            err = plan_copied(r, i);
    }
    WB_CHECK(err < 0 || r->plan.frames.count == (size_t)n);
    r->plan.lead = r->fates[r->index->head.lead].planned;
    return err;
}

/* Decompresses copied frames that are bases of frames to be compressed. One that cannot be read is no base. */
static int read_bases(struct block_rewriting *r)
{
    int err = 0;

    WB_CHECK(r->plan.frames.count > 0);
    for (size_t i = 0; i < r->plan.frames.count && err == 0; i++) {
        struct wb_block_plan_frame *frame = &r->plan.frames.items[i];
        struct wb_block_plan_frame *base = frame->base < 0 ? NULL : &r->plan.frames.items[frame->base];
        if (frame->from || !base || !base->from || base->raw.len > 0)
            continue;
        err = keep_frame(r, (uint32_t)(base->from - r->index->frames.items), &base->raw);
        if (err == WB_E_CORRUPT) {
            frame->base = -1;
            err = 0;
        }
    }
    return err;
}

/* ---- the whole -------------------------------------------------------------------------------------- */

/* Adds the extra pages, under new slots, those of one page next to each other if the caller has them so. */
static int add_extra(struct block_rewriting *r)
{
    int err = 0;

    WB_CHECK(r->plan.next_slot <= BLOCK_SLOTS_MAX);
    if (r->change->extra_count > WB_BLOCK_PAGES_MAX - r->plan.items.count ||
        r->change->extra_count > BLOCK_SLOTS_MAX - r->plan.next_slot)
        return wb_fail(WB_E_LIMIT, "a block cannot hold %zu more pages", r->change->extra_count);
    for (size_t i = 0; i < r->change->extra_count && err == 0; i++) {
        struct wb_block_page *page = &r->change->extra[i];
        struct wb_block_item item = wb_block_item_of(page->record);
        item.id = page->id;
        item.newest = page->newest ? r->items[page->newest - 1] : -1;
        item.slot = (uint16_t)r->plan.next_slot++;
        item.old = page->newest > 0;
        item.page = page;
        err = wb_vec_push(&r->plan.items, item);
    }
    return err;
}

static int make_plan(struct block_rewriting *r)
{
    const struct wb_block_index *index = r->index;
    bool again;
    int err;

    WB_CHECK(index->entries.count > 0);
    WB_CHECK(r->plan.items.count == 0);
    count_dead(r);
    decide(r);
    again = all_again(r);
    err = again ? plan_again(r) : plan_frames(r);
    size_t framed = r->plan.items.count;
    if (err == 0 && !again && framed > 0)
        err = add_old(r);
    if (err == 0)
        err = add_extra(r);
    if (err < 0 || r->plan.items.count == 0)
        return err;
    if (again)
        return wb_block_plan_all(&r->plan);
    err = wb_block_plan_rest(&r->plan, framed, r->plan.lead);
    return err < 0 ? err : read_bases(r);
}

int wb_block_rewrite(struct wb_block_builder *builder, struct wb_block_reader *reader,
                     const struct wb_block_index *index, const char *block, struct wb_block_change *change,
                     struct wb_buf *block_out)
{
    struct block_rewriting r = {.builder = builder, .reader = reader, .index = index, .change = change};

    WB_CHECK(index->entries.count > 0);
    WB_CHECK(index->frames.count > 0);
    change->kept_dead = change->lost = 0;
    r.plan = (struct wb_block_plan){
        .lead = -1,
        .next_slot = index->head.next_slot,
        .site = index->head.site,
        .logical = index->head.logical,
        .commit = index->head.commit,
        .block = block,
    };
    r.fates = wb_alloc_zero(index->frames.count, sizeof *r.fates);
    r.items = wb_alloc(index->entries.count * sizeof *r.items);
    int err = r.fates && r.items ? 0 : WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < index->entries.count; i++)
        r.items[i] = -1;
    wb_block_reader_open_bytes(reader, index, block);
    if (err == 0)
        err = make_plan(&r);
    if (err == 0 && r.plan.items.count > 0)
        err = wb_block_plan_write(builder, &r.plan, block_out);
    wb_block_plan_release(&r.plan);
    wb_arena_release(&r.bytes);
    wb_free(r.fates);
    wb_free(r.items);
    return err;
}
