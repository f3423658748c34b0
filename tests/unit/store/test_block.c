/* test_block.c - blocks as bytes: what was built can be read, and every rule of the format is checked. */
#include "store_support.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "store/block_bytes.h"

enum { PAGES_MAX = 200 };

struct block {
    struct wb_block_page pages[PAGES_MAX];
    struct wb_buf records[PAGES_MAX];
    size_t count;
    struct wb_buf bytes;
};

static struct wb_block_builder *builder;
static struct wb_block_reader *reader;

static int set_up(void **state)
{
    (void)state;
    return wb_block_builder_new(&builder) < 0 || wb_block_reader_new(&reader) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_block_builder_free(builder);
    wb_block_reader_free(reader);
    return 0;
}

static void add_record(struct block *block, uint32_t size)
{
    struct spec spec = {
        .site = 1, .number = (uint32_t)block->count, .time_ms = 1000, .size = size, .variant = (uint32_t)block->count};
    struct wb_buf *record = &block->records[block->count];
    struct made made;

    make_page(&spec, &made);
    wb_page_digest(&made.page);
    must_ok(wb_page_encode(&made.page, record));
    block->pages[block->count++] =
        (struct wb_block_page){.id = made.page.id, .record = wb_buf_slice(record), .site = 5};
    made_release(&made);
}

static void build(struct block *block, bool slots_given)
{
    must_ok(wb_block_build(builder, block->pages, block->count, slots_given, &block->bytes));
    wb_block_stamp(block->bytes.ptr, 64, 3);
}

static void block_release(struct block *block)
{
    for (size_t i = 0; i < block->count; i++)
        wb_buf_release(&block->records[i]);
    wb_buf_release(&block->bytes);
    *block = (struct block){0};
}

/* Every page that is not dead is read as it was written. Returns how many there are. */
static size_t check_pages(const struct block *block, const char *bytes, size_t len)
{
    struct wb_block_head head;
    struct wb_buf lead = WB_BUF_INIT, record = WB_BUF_INIT;
    size_t came = 0;

    must_ok(wb_block_head_read(bytes, &head));
    assert_int_equal(head.bytes, len);
    const char *directory = bytes + WB_BLOCK_HEADER_BYTES;
    must_ok(wb_block_directory_check(&head, directory));
    if (head.lead_count)
        must_ok(wb_block_read_lead(reader, &head, bytes + wb_block_directory_end(&head), &lead));
    for (size_t i = 0; i < block->count; i++) {
        size_t index;
        if (!wb_block_find_slot(&head, directory, block->pages[i].slot, &index))
            continue;
        struct wb_block_entry entry = wb_block_entry_read(directory, index);
        if (entry.flags & WB_BLOCK_ENTRY_DEAD)
            continue;
        assert_true(wb_pageid_equal(entry.id, block->pages[i].id));
        if (entry.flags & WB_BLOCK_ENTRY_LEAD)
            must_ok(wb_block_lead_record(&entry, wb_buf_slice(&lead), wb_block_lead_at(directory, index), &record));
        else
            must_ok(wb_block_read_frame(reader, &entry, bytes + wb_block_frame_at(&head, directory, index),
                                        wb_buf_slice(&lead), &record));
        assert_true(wb_slice_equal(wb_buf_slice(&record), block->pages[i].record));
        came++;
    }
    wb_buf_release(&lead);
    wb_buf_release(&record);
    return came;
}

static void check_sizes(const uint32_t *sizes, size_t count)
{
    struct block block = {0};

    for (size_t i = 0; i < count; i++)
        add_record(&block, sizes[i]);
    build(&block, false);
    assert_int_equal(check_pages(&block, block.bytes.ptr, block.bytes.len), count);
    block_release(&block);
}

static void test_round_trip(void **state)
{
    static const uint32_t sizes[][8] = {
        {0}, {5}, {3 << 20}, {10, 20, 30}, {2000000, 10, 20, 2000000, 30}, {300000, 300000, 300000},
        {40000, 1, 70000, 100}, {0, 0, 0, 0}, {9, 5 << 20},
    };
    static const size_t counts[] = {1, 1, 1, 3, 5, 3, 4, 4, 2};
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        check_sizes(sizes[i], counts[i]);
    for (unsigned i = 0; i < 20; i++) {
        uint32_t some[PAGES_MAX];
        size_t count = 1 + chance_below(&chance, PAGES_MAX);
        for (size_t j = 0; j < count; j++)
            some[j] = (uint32_t)chance_below(&chance, chance_one_in(&chance, 20) ? 400000 : 8000);
        check_sizes(some, count);
    }
}

static void test_header(void **state)
{
    struct wb_block_head head;
    struct block block = {0};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        add_record(&block, 50);
    build(&block, false);
    must_ok(wb_block_head_read(block.bytes.ptr, &head));
    assert_int_equal(head.count, 3);
    assert_int_equal(head.logical, 64);
    assert_int_equal(head.commit, 3);
    assert_int_equal(head.site, 5);
    assert_int_equal(head.lead_count, 3);
    block_release(&block);
    /* A block with pages of several sites names no site. A block of one page has no lead. */
    add_record(&block, 50);
    add_record(&block, 50);
    block.pages[1].site = 6;
    build(&block, false);
    must_ok(wb_block_head_read(block.bytes.ptr, &head));
    assert_int_equal(head.site, 0);
    block_release(&block);
    add_record(&block, 50);
    build(&block, false);
    must_ok(wb_block_head_read(block.bytes.ptr, &head));
    assert_int_equal(head.lead_count, 0);
    block_release(&block);
}

/* ---- thinning out ------------------------------------------------------------------------------------ */

static void test_thinning(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 30; round++) {
        struct block block = {0};
        struct wb_buf thin = WB_BUF_INIT, thinner = WB_BUF_INIT;
        struct wb_block_head head;
        bool dead[PAGES_MAX];
        size_t count = 1 + chance_below(&chance, 60), live = 0;
        for (size_t i = 0; i < count; i++) {
            add_record(&block, (uint32_t)chance_below(&chance, 9000));
            block.pages[i].slot = (uint16_t)(i * 3 + 1);
        }
        build(&block, true);
        must_ok(wb_block_head_read(block.bytes.ptr, &head));
        for (size_t i = 0; i < count; i++) {
            dead[i] = chance_one_in(&chance, 1 + round % 4);
            live += !dead[i];
        }
        must_ok(wb_block_thin(&head, block.bytes.ptr, dead, &thin));
        assert_int_equal(thin.len > 0, live > 0);
        if (live) {
            assert_true(thin.len <= block.bytes.len);
            assert_int_equal(check_pages(&block, thin.ptr, thin.len), live);
            /* Thinned once more, with nothing else dead: the same bytes. */
            must_ok(wb_block_head_read(thin.ptr, &head));
            for (size_t i = 0; i < head.count; i++)
                dead[i] = wb_block_entry_read(thin.ptr + WB_BLOCK_HEADER_BYTES, i).flags & WB_BLOCK_ENTRY_DEAD;
            must_ok(wb_block_thin(&head, thin.ptr, dead, &thinner));
            assert_true(wb_slice_equal(wb_buf_slice(&thin), wb_buf_slice(&thinner)));
        }
        wb_buf_release(&thin);
        wb_buf_release(&thinner);
        block_release(&block);
    }
}

/* ---- the rules ------------------------------------------------------------------------------------------- */

static char *entry_at(struct block *block, size_t index)
{
    return block->bytes.ptr + WB_BLOCK_HEADER_BYTES + index * WB_BLOCK_ENTRY_BYTES;
}

/* Corrects the checksums of header and directory after a change. */
static void mend(struct block *block)
{
    size_t count = wb_get16(block->bytes.ptr + HEAD_COUNT_AT);

    if (WB_BLOCK_HEADER_BYTES + count * WB_BLOCK_ENTRY_BYTES <= block->bytes.len)
        wb_put64(block->bytes.ptr + HEAD_DIRECTORY_CHECK_AT,
                 wb_hash64(block->bytes.ptr + WB_BLOCK_HEADER_BYTES, count * WB_BLOCK_ENTRY_BYTES));
    wb_block_stamp(block->bytes.ptr, 64, 3);
}

static int check(struct block *block)
{
    struct wb_block_head head;
    int err = wb_block_head_read(block->bytes.ptr, &head);

    return err < 0 ? err : wb_block_directory_check(&head, block->bytes.ptr + WB_BLOCK_HEADER_BYTES);
}

enum rule {
    RULE_NONE,
    MAGIC,
    VERSION,
    COUNT_ZERO,
    COUNT_TOO_MANY,
    LEAD_MORE_THAN_COUNT,
    LEAD_WITHOUT_BYTES,
    LEAD_TOO_LARGE,
    BYTES_TOO_FEW,
    BYTES_TOO_MANY,
    SLOTS_EQUAL,
    SLOTS_DECREASE,
    FLAG_WITHOUT_LEAD,
    LEAD_WITH_FRAME,
    DEAD_OUTSIDE_LEAD,
    LEAD_COUNT_WRONG,
    LEAD_RAW_WRONG,
    STORED_WRONG,
    RULES,
};

/* The lead is somewhere in the middle; the last page of the example is not in it. */
static size_t first_in_lead(const struct block *block)
{
    size_t i = 0;

    while (i < block->count &&
           !(wb_block_entry_read(block->bytes.ptr + WB_BLOCK_HEADER_BYTES, i).flags & WB_BLOCK_ENTRY_LEAD))
        i++;
    assert_true(i < block->count);
    return i;
}

static void break_rule(struct block *block, enum rule rule)
{
    char *head = block->bytes.ptr, *in_lead = entry_at(block, first_in_lead(block)),
         *own = entry_at(block, block->count - 1);

    switch (rule) {
    case MAGIC: head[0] = 'X'; break;
    case VERSION: wb_put16(head + HEAD_FORMAT_AT, 2); break;
    case COUNT_ZERO: wb_put16(head + HEAD_COUNT_AT, 0); break;
    case COUNT_TOO_MANY: wb_put16(head + HEAD_COUNT_AT, WB_BLOCK_PAGES_MAX + 1); break;
    case LEAD_MORE_THAN_COUNT: wb_put16(head + HEAD_LEAD_COUNT_AT, (uint16_t)(block->count + 1)); break;
    case LEAD_WITHOUT_BYTES: wb_put32(head + HEAD_LEAD_STORED_AT, 0); break;
    case LEAD_TOO_LARGE: wb_put32(head + HEAD_LEAD_RAW_AT, LEAD_RAW_MAX + 1); break;
    case BYTES_TOO_FEW: wb_put64(head + HEAD_BYTES_AT, WB_BLOCK_HEADER_BYTES); break;
    case BYTES_TOO_MANY: wb_put64(head + HEAD_BYTES_AT, block->bytes.len + 1); break;
    case SLOTS_EQUAL: wb_put16(own + ENTRY_SLOT_AT, (uint16_t)(block->count - 2)); break;
    case SLOTS_DECREASE: wb_put16(in_lead + ENTRY_SLOT_AT, 999); break;
    case FLAG_WITHOUT_LEAD: wb_put16(own + ENTRY_FLAGS_AT, WB_BLOCK_ENTRY_LEAD); break;
    case LEAD_WITH_FRAME: wb_put32(in_lead + ENTRY_STORED_AT, 5); break;
    case DEAD_OUTSIDE_LEAD: wb_put16(own + ENTRY_FLAGS_AT, WB_BLOCK_ENTRY_DEAD); break;
    case LEAD_COUNT_WRONG: wb_put16(head + HEAD_LEAD_COUNT_AT, 1); break;
    case LEAD_RAW_WRONG: wb_put32(in_lead + ENTRY_RAW_AT, wb_get32(in_lead + ENTRY_RAW_AT) + 1); break;
    case STORED_WRONG: wb_put32(own + ENTRY_STORED_AT, wb_get32(own + ENTRY_STORED_AT) + 1); break;
    case RULE_NONE:
    case RULES: break;
    }
    mend(block);
}

static void make_example(struct block *block)
{
    for (size_t i = 0; i < 8; i++) /* four or five fill the lead, the others have frames of their own */
        add_record(block, WB_BLOCK_LEAD_MIN / 4);
    build(block, false);
    assert_int_equal(wb_block_entry_read(block->bytes.ptr + WB_BLOCK_HEADER_BYTES, 0).flags, 0);
    assert_true(first_in_lead(block) < 7);
    assert_int_equal(wb_block_entry_read(block->bytes.ptr + WB_BLOCK_HEADER_BYTES, 7).flags, 0);
}

static void test_rules(void **state)
{
    (void)state;
    for (enum rule rule = RULE_NONE; rule < RULES; rule++) {
        struct block block = {0};
        make_example(&block);
        break_rule(&block, rule);
        int expected = rule == RULE_NONE ? 0 : rule == VERSION ? WB_E_NEWER : WB_E_CORRUPT;
        if (check(&block) != expected)
            fail_msg("rule %d: %d", rule, check(&block));
        block_release(&block);
    }
}

/* Checksums cover every byte: changes all bytes of header and directory, and some of the frames. */
static void test_checksums(void **state)
{
    struct block block = {0};

    (void)state;
    make_example(&block);
    size_t directory_end = WB_BLOCK_HEADER_BYTES + block.count * WB_BLOCK_ENTRY_BYTES;
    for (size_t at = 0; at < block.bytes.len; at += at < directory_end ? 1 : 29) {
        struct wb_block_head head;
        struct wb_buf lead = WB_BUF_INIT, record = WB_BUF_INIT;
        block.bytes.ptr[at] ^= 1;
        int err = check(&block);
        if (err == 0) {
            must_ok(wb_block_head_read(block.bytes.ptr, &head));
            const char *directory = block.bytes.ptr + WB_BLOCK_HEADER_BYTES;
            err = wb_block_read_lead(reader, &head, block.bytes.ptr + wb_block_directory_end(&head), &lead);
            for (size_t i = 0; i < head.count && err == 0; i++) {
                struct wb_block_entry entry = wb_block_entry_read(directory, i);
                if (!(entry.flags & WB_BLOCK_ENTRY_LEAD))
                    err = wb_block_read_frame(reader, &entry, block.bytes.ptr + wb_block_frame_at(&head, directory, i),
                                              wb_buf_slice(&lead), &record);
            }
        }
        if (err != WB_E_CORRUPT)
            fail_msg("byte %zu may change", at);
        block.bytes.ptr[at] ^= 1;
        wb_buf_release(&lead);
        wb_buf_release(&record);
    }
    block_release(&block);
}

/* A frame with a correct checksum that is not zstd, or has another length, is damage too. */
static void test_frames(void **state)
{
    struct block block = {0};
    struct wb_buf record = WB_BUF_INIT;

    (void)state;
    make_example(&block);
    struct wb_block_entry entry = wb_block_entry_read(block.bytes.ptr + WB_BLOCK_HEADER_BYTES, 7);
    char garbage[16] = "not zstd at all";
    entry.stored_bytes = sizeof garbage;
    entry.check = wb_hash32(garbage, sizeof garbage);
    assert_int_equal(wb_block_read_frame(reader, &entry, garbage, WB_SLICE_EMPTY, &record), WB_E_CORRUPT);
    block_release(&block);
    add_record(&block, 500);
    build(&block, false);
    const char *frame = block.bytes.ptr + WB_BLOCK_HEADER_BYTES + WB_BLOCK_ENTRY_BYTES;
    entry = wb_block_entry_read(block.bytes.ptr + WB_BLOCK_HEADER_BYTES, 0);
    assert_int_equal(wb_block_read_frame(reader, &entry, frame, WB_SLICE_EMPTY, &record), 0);
    entry.raw_bytes++;
    assert_int_equal(wb_block_read_frame(reader, &entry, frame, WB_SLICE_EMPTY, &record), WB_E_CORRUPT);
    entry.raw_bytes -= 2;
    assert_int_equal(wb_block_read_frame(reader, &entry, frame, WB_SLICE_EMPTY, &record), WB_E_CORRUPT);
    block_release(&block);
    wb_buf_release(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_thinning),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_frames),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
