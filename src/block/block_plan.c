/*
 * block_plan.c - decides which records of a block share a frame, and which frame is the
 * dictionary of which. It compresses nothing (block_build.c does).
 */
#include "block/block_plan.h"
#include "base/check.h"

/* The items that form the lead: first, first + 1, ..., first + count - 1. */
struct lead_run {
    size_t first, count;
    size_t bytes; /* of their records */
};

struct wb_block_item wb_block_item_of(struct wb_slice record)
{
    struct wb_page page;

    WB_CHECK(record.len > WB_RECORD_DIGEST_BYTES);
    WB_CHECK(record.len <= UINT32_MAX);
    /* A record that cannot be read is stored as it is, as a head without a body. */
    size_t body = wb_page_decode(record, &page) == 0 ? page.body.len : 0;
    return (struct wb_block_item){
        .digests = record.ptr,
        .head = record.ptr + WB_RECORD_DIGEST_BYTES,
        .body = record.ptr + record.len - body,
        .head_bytes = (uint32_t)(record.len - WB_RECORD_DIGEST_BYTES - body),
        .body_bytes = (uint32_t)body,
        .newest = -1,
    };
}

static size_t item_bytes(const struct wb_block_item *item)
{
    return (size_t)item->head_bytes + item->body_bytes;
}

/* Whether an item is an older version in a frame of its own kind. */
static bool is_apart(const struct wb_block_item *item)
{
    return item->newest >= 0 || item->apart;
}

/*
 * Finds the first run of items in [from, to) that reaches WB_BLOCK_LEAD_MIN without
 * containing an older version or a page that is too large for a lead. If there is none,
 * returns the longest run there is.
 */
static struct lead_run find_run(const struct wb_block_item *items, size_t from, size_t to)
{
    struct lead_run run = {from, 0, 0}, best = run;

    WB_CHECK(to <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(from <= to);
    for (size_t i = from; i < to && run.bytes < WB_BLOCK_LEAD_MIN; i++) {
        if (item_bytes(&items[i]) > WB_BLOCK_LEAD_PAGE_MAX || is_apart(&items[i])) {
            run = (struct lead_run){i + 1, 0, 0};
            continue;
        }
        if (run.count > 0 && items[i].slot < items[i - 1].slot)
            run = (struct lead_run){i, 0, 0};
        run.count++;
        run.bytes += item_bytes(&items[i]);
        if (run.bytes > best.bytes)
            best = run;
    }
    WB_CHECK(best.first + best.count <= to);
    return best;
}

/*
 * Takes the lead from the middle of the block, where it is closest to all other pages:
 * the block becomes 2 % smaller than with a lead from its start. If no run in the second
 * half is long enough, looks in the first half too. A block of one page has no use for
 * a lead.
 */
static struct lead_run choose_lead(const struct wb_block_item *items, size_t count)
{
    size_t bytes = 0, before = 0, middle = 0, pages = 0;

    WB_CHECK(count > 0);
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        pages += items[i].newest < 0; /* those apart can be based on a lead, too */
        bytes += is_apart(&items[i]) ? 0 : item_bytes(&items[i]);
    }
    if (pages < 2)
        return (struct lead_run){0, 0, 0};
    for (; before + WB_BLOCK_LEAD_MIN / 2 < bytes / 2; middle++)
        before += is_apart(&items[middle]) ? 0 : item_bytes(&items[middle]);
    struct lead_run run = find_run(items, middle, count);
    if (run.bytes < WB_BLOCK_LEAD_MIN && middle > 0) {
        struct lead_run earlier = find_run(items, 0, middle);
        if (earlier.bytes > run.bytes)
            run = earlier;
    }
    WB_CHECK(run.count <= count);
    return run;
}

static int add_frame(struct wb_block_plan *plan, size_t first, size_t count, int32_t base)
{
    WB_CHECK(count > 0);
    WB_CHECK(first + count <= plan->items.count);
    return wb_vec_push(&plan->frames, (struct wb_block_plan_frame){.first = first, .count = count, .base = base});
}

/* How many items from `first` on, but not from `end` on, share a frame: a run of pages, or of versions of one page. */
static size_t frame_length(const struct wb_block_plan *plan, size_t first, size_t end)
{
    const struct wb_block_item *items = plan->items.items;
    size_t limit = items[first].newest < 0 ? WB_BLOCK_FRAME_RAW : WB_BLOCK_HISTORY_RAW, bytes = 0, i = first;

    WB_CHECK(first < end);
    WB_CHECK(end <= plan->items.count);
    do
        bytes += item_bytes(&items[i++]);
    while (i < end && bytes < limit && items[i].newest == items[first].newest && items[i].apart == items[first].apart &&
           items[i].slot > items[i - 1].slot);
    return i - first;
}

/* Divides the items [first, end) into frames. Frames of older versions get their base later. */
static int cut_frames(struct wb_block_plan *plan, size_t first, size_t end, int32_t base)
{
    int err = 0;

    WB_CHECK(end <= plan->items.count);
    while (first < end && err == 0) {
        size_t count = frame_length(plan, first, end);
        err = add_frame(plan, first, count, base);
        first += count;
    }
    return err;
}

/* The frame that has an item. */
static int32_t frame_of(const struct wb_block_plan *plan, int32_t item)
{
    WB_CHECK(item >= 0);
    WB_CHECK((size_t)item < plan->items.count);
    for (size_t i = 0; i < plan->frames.count; i++)
        if ((size_t)item >= plan->frames.items[i].first &&
            (size_t)item < plan->frames.items[i].first + plan->frames.items[i].count)
            return (int32_t)i;
    return -1;
}

/*
 * The number of frames that must be decompressed before this one. Plans are made by our own code, of blocks that were
 * checked, so a frame that is below itself is a bug: it must not become an endless loop.
 */
static int frames_below(const struct wb_block_plan *plan, size_t frame)
{
    int depth = 0;

    WB_CHECK(frame < plan->frames.count);
    for (int32_t f = plan->frames.items[frame].base; f >= 0; f = plan->frames.items[f].base) {
        WB_CHECK((size_t)f < plan->frames.count);
        WB_CHECK((size_t)++depth < plan->frames.count);
    }
    return depth;
}

/* Bases the frames of older versions, from frame `from` on, on the frames that have their pages. */
static void base_history(struct wb_block_plan *plan, size_t from, int32_t lead)
{
    WB_CHECK(from <= plan->frames.count);
    WB_CHECK(lead < (int32_t)plan->frames.count);
    for (size_t i = from; i < plan->frames.count; i++) {
        struct wb_block_plan_frame *frame = &plan->frames.items[i];
        int32_t newest = plan->items.items[frame->first].newest;
        if (frame->from || newest < 0)
            continue;
        int32_t base = frame_of(plan, newest);
        frame->base = base < 0 ? lead : base;
    }
    /*
     * At most two frames below. A version that has become the latest once more may come first, and be based on what
     * is itself based on another page, so all bases must be known before depths can be counted. A block that has no
     * lead names its first frame as one, which may have frames below it: that is no base for others.
     */
    int32_t ground = lead >= 0 && plan->frames.items[lead].base < 0 ? lead : -1;
    for (size_t i = from; i < plan->frames.count; i++)
        if (!plan->frames.items[i].from && frames_below(plan, i) >= WB_BLOCK_DEPTH_MAX)
            plan->frames.items[i].base = ground == (int32_t)i ? -1 : ground;
}

int wb_block_plan_rest(struct wb_block_plan *plan, size_t first, int32_t lead)
{
    size_t frames = plan->frames.count;

    WB_CHECK(first <= plan->items.count);
    WB_CHECK(lead < (int32_t)frames);
    int err = cut_frames(plan, first, plan->items.count, lead);

    if (err == 0)
        base_history(plan, frames, lead);
    return err;
}

int wb_block_plan_all(struct wb_block_plan *plan)
{
    WB_CHECK(plan->items.count > 0);
    WB_CHECK(plan->frames.count == 0);

    struct lead_run run = choose_lead(plan->items.items, plan->items.count);
    int err = cut_frames(plan, 0, run.first, -1);

    plan->lead = -1;
    if (err == 0 && run.count) {
        plan->lead = (int32_t)plan->frames.count;
        err = add_frame(plan, run.first, run.count, -1);
    }
    if (err == 0)
        err = cut_frames(plan, run.first + run.count, plan->items.count, -1);
    for (size_t i = 0; i < plan->frames.count && err == 0; i++)
        if ((int32_t)i != plan->lead)
            plan->frames.items[i].base = plan->lead;
    if (err == 0)
        base_history(plan, 0, plan->lead);
    return err;
}

void wb_block_plan_release(struct wb_block_plan *plan)
{
    WB_CHECK(plan->items.count <= plan->items.cap);
    wb_vec_release(&plan->items);
    wb_vec_release(&plan->frames);
}
