/* test_block_rewrite.c - blocks that change: pages go, and older versions come. */
#include "block_support.h"

/* ---- older versions --------------------------------------------------------------------------------- */

enum { BASIC = 9, VERSIONS = 6 };

static void make_history(struct block *block)
{
    for (uint32_t i = 0; i < BASIC; i++) {
        struct spec spec = {.site = 1, .number = i, .time_ms = 1000, .size = 20000, .variant = i % 3};
        add_version(block, &spec, 0, 0);
    }
    for (uint32_t v = 1; v <= VERSIONS; v++) /* not grouped by page: that is for the builder to do */
        for (uint32_t i = 0; i < BASIC; i += 2) {
            struct spec spec = {.site = 1, .number = i, .time_ms = 1000, .size = 20000, .variant = i % 3};
            add_version(block, &spec, v, i + 1);
        }
    build(block);
}

static uint32_t entry_bytes(const struct block *block)
{
    return block->index.head.directory_bytes - (uint32_t)block->index.frames.count * FRAME_ROW_BYTES;
}

static void test_history(void **state)
{
    struct block block = {0};

    (void)state;
    make_history(&block);
    assert_int_equal(check_pages(&block, block.bytes.ptr, block.bytes.len), block.count);
    check_walk(&block);
    for (size_t i = 0; i < block.count; i++) {
        size_t at;
        assert_true(wb_block_find_slot(&block.index, block.pages[i].slot, &at));
        const struct wb_block_frame *frame = &block.index.frames.items[block.index.entries.items[at].frame];
        if (block.pages[i].newest == 0) {
            assert_int_equal(block.pages[i].slot, i);
            continue;
        }
        /* It is based on the frame with its page, it does not share its frame with another page, and it is small. */
        assert_true(wb_block_find_slot(&block.index, block.pages[block.pages[i].newest - 1].slot, &at));
        assert_int_equal(frame->base, block.index.entries.items[at].frame);
        assert_true(frame->raw_bytes <= WB_BLOCK_HISTORY_RAW + 21000);
        for (size_t j = frame->first; j < frame->first + frame->count; j++)
            assert_true(wb_pageid_equal(block.index.entries.items[j].id, block.pages[i].id));
        assert_true(block.pages[i].stored_bytes < 700);
    }
    /* At most 59 bytes for a page, 42 for a version, and 16 for an id at the start of each group of versions. */
    assert_true(entry_bytes(&block) <= BASIC * 59 + 5 * VERSIONS * 42 + 5 * 16);
    block_release(&block);
}

/* ---- leaving pages out -------------------------------------------------------------------------------- */

/* Rewrites the block without the pages that are marked, and checks the result. */
static void rewrite(const struct block *block, const bool *dead, bool scrub, struct wb_buf *out)
{
    struct wb_block_change change = {.dead = dead, .scrub = scrub};
    struct wb_block_head head;
    struct wb_block_index index = {0};
    size_t live = 0, flagged = 0;

    for (size_t i = 0; i < block->index.entries.count; i++)
        live += !dead[i];
    must_ok(wb_block_rewrite(builder, reader, &block->index, block->bytes.ptr, &change, out));
    assert_int_equal(out->len > 0, live > 0);
    if (live == 0)
        return;
    assert_int_equal(check_pages(block, out->ptr, out->len), live);
    must_ok(wb_block_head_read(out->ptr, &head));
    assert_int_equal(head.logical, block->index.head.logical);
    assert_int_equal(head.commit, block->index.head.commit);
    must_ok(wb_block_index_read(&head, out->ptr + WB_BLOCK_HEADER_BYTES, &index));
    for (size_t i = 0; i < index.entries.count; i++)
        flagged += index.entries.items[i].flags & WB_BLOCK_ENTRY_DEAD;
    assert_int_equal(flagged, change.kept_dead);
    assert_int_equal(index.entries.count, live + flagged);
    assert_int_equal(change.lost, 0);
    if (scrub)
        assert_int_equal(flagged, 0);
    wb_block_index_release(&index);
}

static void test_thinning(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        struct block block = {0}, again = {0};
        struct wb_buf thin = WB_BUF_INIT, thinner = WB_BUF_INIT;
        bool dead[PAGES_MAX];
        size_t count = 1 + chance_below(&chance, 60);
        if (round % 4 == 3) {
            make_history(&block);
            count = block.count;
        } else {
            for (size_t i = 0; i < count; i++)
                add_record(&block, (uint32_t)chance_below(&chance, 9000));
            build(&block);
        }
        for (size_t i = 0; i < count; i++)
            dead[i] = chance_one_in(&chance, 1 + round % 5);
        rewrite(&block, dead, round % 2, &thin);
        if (thin.len > 0 && round % 2 == 0) {
            /* Rewritten once more, with nothing else dead: the same bytes. */
            must_ok(wb_buf_append_slice(&again.bytes, wb_buf_slice(&thin)));
            must_ok(check(&again));
            struct wb_block_change change = {.dead = dead};
            for (size_t i = 0; i < again.index.entries.count; i++)
                dead[i] = again.index.entries.items[i].flags & WB_BLOCK_ENTRY_DEAD;
            must_ok(wb_block_rewrite(builder, reader, &again.index, again.bytes.ptr, &change, &thinner));
            assert_true(wb_slice_equal(wb_buf_slice(&thin), wb_buf_slice(&thinner)));
        }
        wb_buf_release(&thin);
        wb_buf_release(&thinner);
        block_release(&again);
        block_release(&block);
    }
}

/* The fates of a frame: copied with a flag, compressed again, dropped; and a lead is not touched unless it must be. */
static void test_fates(void **state)
{
    static const struct {
        unsigned dead; /* bits */
        bool scrub;
        unsigned entries, flagged;
    } cases[] = {
        {0x001, false, 11, 1}, /* less than half of a frame */
        {0x007, false, 8, 0},  /* more than half */
        {0x00f, false, 7, 0},  /* all of it */
        {0x0f0, false, 11, 4}, /* the lead */
        {0x001, true, 10, 0},  {0x010, true, 10, 0},
        {0x7f7, false, 1, 0}, /* one page is left; the lead is not worth keeping */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct block block = {0}, after = {0};
        bool dead[SHARED];
        make_shared(&block);
        for (size_t j = 0; j < SHARED; j++)
            dead[j] = cases[i].dead >> j & 1;
        rewrite(&block, dead, cases[i].scrub, &after.bytes);
        must_ok(check(&after));
        assert_int_equal(after.index.entries.count, cases[i].entries);
        unsigned flagged = 0;
        for (size_t j = 0; j < after.index.entries.count; j++)
            flagged += after.index.entries.items[j].flags & WB_BLOCK_ENTRY_DEAD;
        assert_int_equal(flagged, cases[i].flagged);
        block_release(&after);
        block_release(&block);
    }
}

/* Rewrites a block whose versions are old or dead as the flags say, by slot, and checks the result. */
static void rewrite_apart(const struct block *all, const struct block *before, const bool *old, const bool *dead,
                          bool scrub, struct block *after)
{
    bool olds[PAGES_MAX], deads[PAGES_MAX];
    struct wb_block_change change = {.dead = deads, .old = olds, .scrub = scrub};
    size_t live = 0;

    for (size_t i = 0; i < before->index.entries.count; i++) {
        const struct wb_block_entry *entry = &before->index.entries.items[i];
        deads[i] = dead[entry->slot];
        olds[i] = old[entry->slot] && !deads[i];
        live += !deads[i];
    }
    must_ok(wb_block_rewrite(builder, reader, &before->index, before->bytes.ptr, &change, &after->bytes));
    if (live == 0)
        return;
    must_ok(check(after));
    assert_int_equal(check_pages(all, after->bytes.ptr, after->bytes.len), live);
    check_walk(after);
    for (size_t i = 0; i < after->index.entries.count; i++) {
        const struct wb_block_entry *entry = &after->index.entries.items[i];
        assert_int_equal((entry->flags & WB_BLOCK_ENTRY_OLD) != 0, old[entry->slot] && !dead[entry->slot]);
    }
}

/* Old versions get frames of their own, and nobody who reads the others decompresses them. */
static void test_apart(void **state)
{
    struct block block = {0}, after = {0}, again = {0};
    bool old[PAGES_MAX] = {false}, dead[PAGES_MAX] = {false};

    (void)state;
    for (size_t i = 0; i < 60; i++)
        add_record(&block, 5000);
    build(&block);
    for (size_t i = 0; i < block.count; i++)
        old[i] = i % 3 != 0;
    rewrite_apart(&block, &block, old, dead, false, &after);
    assert_int_equal(after.index.entries.count, block.count);
    assert_true(block.index.sorted);
    assert_false(after.index.sorted);
    for (size_t i = 1; i < after.index.entries.count; i++) {
        const struct wb_block_entry *entry = &after.index.entries.items[i];
        if (entry->frame == entry[-1].frame && entry->frame != after.index.head.lead)
            assert_int_equal(entry->flags & WB_BLOCK_ENTRY_OLD, entry[-1].flags & WB_BLOCK_ENTRY_OLD);
    }
    /* No two entries have the same slot, even in different frames. */
    size_t at = 1;
    while (after.index.entries.items[at].slot > after.index.entries.items[at - 1].slot)
        at++;
    char *slot = (char *)after.index.entries.items[at - 1].digests + WB_RECORD_DIGEST_BYTES + 1;
    assert_int_equal(*slot, after.index.entries.items[at].slot);
    *slot = 0;
    mend(&after);
    assert_int_equal(check(&after), WB_E_CORRUPT);
    *slot = 1;
    mend(&after);
    must_ok(check(&after));
    /* Once more, with nothing else to do: the same bytes. */
    rewrite_apart(&block, &after, old, dead, false, &again);
    assert_true(wb_slice_equal(wb_buf_slice(&after.bytes), wb_buf_slice(&again.bytes)));
    block_release(&again);
    block_release(&after);
    block_release(&block);
}

/* Versions become old, return and die, in any order; blocks are rewritten again and again. */
static void test_apart_at_random(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        struct block block = {0}, before = {0}, after = {0};
        bool old[PAGES_MAX] = {false}, dead[PAGES_MAX] = {false};
        size_t count = 1 + chance_below(&chance, 60);
        for (size_t i = 0; i < count; i++)
            add_record(&block, (uint32_t)chance_below(&chance, 9000));
        build(&block);
        must_ok(wb_buf_append_slice(&before.bytes, wb_buf_slice(&block.bytes)));
        must_ok(check(&before));
        for (unsigned step = 0; step < 6 && before.bytes.len > 0; step++) {
            for (size_t i = 0; i < count; i++) {
                old[i] = chance_one_in(&chance, 3) ? !old[i] : old[i];
                dead[i] = dead[i] || chance_one_in(&chance, 12);
            }
            rewrite_apart(&block, &before, old, dead, chance_one_in(&chance, 4), &after);
            block_release(&before);
            before = after;
            after = (struct block){0};
        }
        block_release(&before);
        block_release(&block);
    }
}

/* Adds versions to an existing block, twice, and removes pages on the way. Slots stay, and are never used again. */
static void test_extra(void **state)
{
    struct block block = {0}, after = {0}, last = {0};
    bool dead[PAGES_MAX] = {false};

    (void)state;
    make_shared(&block);
    size_t first = block.count;
    for (uint32_t v = 1; v <= 8; v++) {
        struct spec spec = {.site = 1, .number = v / 5 * 9, .time_ms = 1000, .size = 10000, .variant = v / 5 * 9};
        add_version(&block, &spec, v, v / 5 * 9 + 1);
    }
    dead[3] = true;
    struct wb_block_change change = {.dead = dead, .extra = block.pages + first, .extra_count = 8};
    must_ok(wb_block_rewrite(builder, reader, &block.index, block.bytes.ptr, &change, &after.bytes));
    must_ok(check(&after));
    assert_int_equal(check_pages(&block, after.bytes.ptr, after.bytes.len), block.count - 1);
    assert_int_equal(after.index.head.next_slot, block.count);
    assert_int_equal(after.index.frames.count, 5);
    assert_int_equal(after.index.frames.items[3].base, 0);
    assert_int_equal(after.index.frames.items[4].base, 2);
    for (size_t i = 0; i < 3; i++) { /* what was there is copied byte by byte */
        const struct wb_block_frame *old = &block.index.frames.items[i], *new = &after.index.frames.items[i];
        assert_int_equal(old->stored_bytes, new->stored_bytes);
        assert_memory_equal(block.bytes.ptr + old->at, after.bytes.ptr + new->at, old->stored_bytes);
    }
    for (size_t i = first; i < block.count; i++)
        assert_in_range(block.pages[i].stored_bytes, 37, 800);
    /* The last versions go, and others come: under higher slots. */
    struct block more = {0};
    struct spec spec = {.site = 1, .number = 30, .time_ms = 5, .size = 700, .variant = 30};
    add_version(&more, &spec, 0, 0);
    for (size_t i = 0; i < after.index.entries.count; i++)
        dead[i] = i >= 16 || after.index.entries.items[i].flags & WB_BLOCK_ENTRY_DEAD;
    change = (struct wb_block_change){.dead = dead, .scrub = true, .extra = more.pages, .extra_count = 1};
    must_ok(wb_block_rewrite(builder, reader, &after.index, after.bytes.ptr, &change, &last.bytes));
    must_ok(check(&last));
    assert_int_equal(more.pages[0].slot, block.count);
    assert_int_equal(check_pages(&more, last.bytes.ptr, last.bytes.len), 1);
    assert_int_equal(check_pages(&block, last.bytes.ptr, last.bytes.len), 15);
    block_release(&more);
    block_release(&last);
    block_release(&after);
    block_release(&block);
}

/* A frame that cannot be read: copied as it is; given up in a scrub; and nothing can be done if it is the lead. */
static void test_damaged_frames(void **state)
{
    (void)state;
    for (unsigned frame = 0; frame < 3; frame++)
        for (int scrub = 0; scrub < 2; scrub++) {
            struct block block = {0}, after = {0};
            bool dead[SHARED] = {true, true, true, false, false, false, false, false, true, true, false};
            make_shared(&block);
            struct wb_block_change change = {.dead = dead, .scrub = scrub};
            block.bytes.ptr[block.index.frames.items[frame].at + 30] ^= 1;
            int err = wb_block_rewrite(builder, reader, &block.index, block.bytes.ptr, &change, &after.bytes);
            if (frame == 1 && scrub) {
                assert_int_equal(err, WB_E_CORRUPT);
                assert_int_equal(after.bytes.len, 0);
            } else {
                must_ok(err);
                must_ok(check(&after));
                assert_int_equal(change.lost, scrub);
                assert_int_equal(change.kept_dead, scrub ? 0 : frame == 0 ? 3 : frame == 1 ? 5 : 2);
            }
            block_release(&after);
            block_release(&block);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_history),         cmocka_unit_test(test_thinning),       cmocka_unit_test(test_fates),
        cmocka_unit_test(test_extra),           cmocka_unit_test(test_damaged_frames), cmocka_unit_test(test_apart),
        cmocka_unit_test(test_apart_at_random),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
