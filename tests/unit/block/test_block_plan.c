/*
 * test_block_plan.c - frames on top of each other: whatever a version is based on, and whichever version is the latest,
 * no more than two frames are below another, so that every block that is written can be read.
 */
#include "block_support.h"
#include "../children.h"
#include "block/block_plan.h"

/* ---- through wb_block_rewrite() -------------------------------------------------------------------------- */

/* All versions of page 1 in these tests, the oldest one first. */
enum { DROPPED, OLDEST, MIDDLE, NEWEST };

static void add_page_version(struct block *block, uint32_t version, uint32_t newest)
{
    add_version(block, &(struct spec){.site = 1, .number = 1, .time_ms = 1000, .size = 3000, .variant = 1}, version,
                newest);
}

static size_t entry_of(const struct block *block, uint16_t slot)
{
    size_t at;

    must(wb_block_find_slot(&block->index, slot, &at));
    return at;
}

/* The number of frames below the one that has a slot. */
static int depth_of_slot(const struct block *block, uint16_t slot)
{
    int depth = 0;

    for (int32_t f = block->index.frames.items[block->index.entries.items[entry_of(block, slot)].frame].base; f >= 0;
         f = block->index.frames.items[f].base)
        depth++;
    return depth;
}

/* Replaces the bytes of a block. extra: pages of the block from this one on are added. */
static void rewrite_all(struct block *block, struct wb_block_change *change, size_t extra)
{
    struct wb_buf after = WB_BUF_INIT;

    change->extra = block->pages + extra;
    change->extra_count = block->count - extra;
    must_ok(wb_block_rewrite(builder, reader, &block->index, block->bytes.ptr, change, &after));
    wb_buf_release(&block->bytes);
    block->bytes = after;
    must_ok(check(block)); /* an error if frames are too deep */
}

/*
 * Makes a block with a page to be dropped, and three versions of another page on top of each other; then `others` more
 * pages. Every slot is the number of the page in block->pages.
 */
static void make_pile(struct block *block, unsigned others)
{
    bool dead[PAGES_MAX] = {false};
    struct wb_block_change change = {.dead = dead};

    add_record(block, 3000);
    add_page_version(block, 0, 0);
    add_page_version(block, 1, OLDEST + 1);
    build(block);
    assert_int_equal(depth_of_slot(block, MIDDLE), 1);
    size_t first = block->count;
    add_page_version(block, 2, (uint32_t)entry_of(block, MIDDLE) + 1);
    for (unsigned i = 0; i < others; i++)
        add_record(block, 20000);
    rewrite_all(block, &change, first);
    assert_int_equal(depth_of_slot(block, NEWEST), 2);
}

/*
 * The page that is dropped is in the frame below, so everything is compressed again. The version on top of the pile is
 * the latest now, and comes first.
 */
static void turn_around(struct block *block)
{
    bool dead[PAGES_MAX] = {false}, old[PAGES_MAX] = {false};
    struct wb_block_change change = {.dead = dead, .old = old, .scrub = true};

    dead[entry_of(block, DROPPED)] = true;
    old[entry_of(block, OLDEST)] = old[entry_of(block, MIDDLE)] = true;
    rewrite_all(block, &change, block->count);
    assert_int_equal(check_pages(block, block->bytes.ptr, block->bytes.len), block->count - 1);
    check_walk(block);
}

/* A version that is the latest once more is planned before what it is based on, which then turns out to be deep. */
static void test_latest_again(void **state)
{
    struct block block = {0};

    (void)state;
    make_pile(&block, 2);
    turn_around(&block);
    assert_int_equal(depth_of_slot(&block, OLDEST), 1); /* there is a lead below it now, made of the others */
    assert_int_equal(depth_of_slot(&block, MIDDLE), 2);
    block_release(&block);
}

/* A block without a lead names its first frame as one. If that has two frames below it, nothing can be based on it. */
static void test_deep_first_frame(void **state)
{
    struct block block = {0};
    bool dead[PAGES_MAX] = {false};
    struct wb_block_change change = {.dead = dead};

    (void)state;
    make_pile(&block, 0);
    turn_around(&block);
    assert_int_equal(block.index.head.lead, 0);
    assert_int_equal(entry_of(&block, NEWEST), 0);
    assert_int_equal(depth_of_slot(&block, NEWEST), 2);
    size_t first = block.count;
    add_page_version(&block, 3, (uint32_t)entry_of(&block, NEWEST) + 1);
    add_record(&block, 500);
    rewrite_all(&block, &change, first);
    assert_int_equal(check_pages(&block, block.bytes.ptr, block.bytes.len), block.count - 1);
    check_walk(&block);
    block_release(&block);
}

/* ---- plans ------------------------------------------------------------------------------------------------ */

enum { PLANNED_MAX = 12 };

/* A plan of `count` items; newest[i] is the item of which item i is an older version, or -1. All have own frames. */
static void make_plan(struct block *block, const int32_t *newest, size_t count, struct wb_block_plan *plan)
{
    assert_true(count <= PLANNED_MAX);
    *plan = (struct wb_block_plan){.lead = -1, .next_slot = (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        add_record(block, WB_BLOCK_FRAME_RAW);
        struct wb_block_item item = wb_block_item_of(block->pages[i].record);
        item.id = block->pages[i].id;
        item.newest = newest[i];
        item.slot = (uint16_t)i;
        item.page = &block->pages[i];
        must_ok(wb_vec_push(&plan->items, item));
    }
}

/* Any way in which versions can be based on each other without a circle makes a block that can be read. */
static void test_any_order(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        struct block block = {0};
        struct wb_block_plan plan;
        int32_t newest[PLANNED_MAX], order[PLANNED_MAX];
        size_t count = 2 + chance_below(&chance, PLANNED_MAX - 1);
        for (size_t i = 0; i < count; i++) { /* a random order, in which each is based on nothing or an earlier one */
            size_t at = chance_below(&chance, i + 1);
            order[i] = order[at];
            order[at] = (int32_t)i;
        }
        for (size_t i = 0; i < count; i++)
            newest[order[i]] = i == 0 || chance_one_in(&chance, 3) ? -1 : order[chance_below(&chance, i)];
        make_plan(&block, newest, count, &plan);
        must_ok(wb_block_plan_all(&plan));
        must_ok(wb_block_plan_write(builder, &plan, &block.bytes));
        wb_block_stamp(block.bytes.ptr, 64, 3);
        must_ok(check(&block));
        assert_int_equal(check_pages(&block, block.bytes.ptr, block.bytes.len), count);
        wb_block_plan_release(&plan);
        block_release(&block);
    }
}

/* In a child process: plans two versions that are each based on the other. */
static int plan_circle(void *context)
{
    static const int32_t newest[] = {1, 0, -1};
    struct block block = {0};
    struct wb_block_plan plan;

    (void)context;
    make_plan(&block, newest, COUNT(newest), &plan);
    return wb_block_plan_all(&plan) < 0;
}

/* A circle is a bug of ours, and ends at once. */
static void test_circle(void **state)
{
    unsigned seconds = child_seconds;

    (void)state;
    child_seconds = 60; /* without the assertion it would never end */
    assert_true(is_stopped(plan_circle, NULL));
    child_seconds = seconds;
}

/* In a block from outside it is damage: frames that are based on each other, or on themselves. */
static void test_circle_on_disk(void **state)
{
    (void)state;
    for (uint16_t length = 1; length <= 3; length++) {
        struct block block = {0};
        make_example(&block);
        char *row = block.bytes.ptr + WB_BLOCK_HEADER_BYTES;
        for (uint16_t i = 0; i < length; i++)
            wb_put16(row + i * FRAME_ROW_BYTES + FRAME_BASE_AT, (uint16_t)((i + 1) % length));
        mend(&block);
        assert_int_equal(check(&block), WB_E_CORRUPT);
        block_release(&block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latest_again), cmocka_unit_test(test_deep_first_frame), cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_circle),       cmocka_unit_test(test_circle_on_disk),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
