/* test_block.c - blocks as bytes: what was built can be read, and every rule of the format is checked. */
#include "block_support.h"

static void check_sizes(const uint32_t *sizes, size_t count)
{
    struct block block = {0};

    for (size_t i = 0; i < count; i++)
        add_record(&block, sizes[i]);
    build(&block);
    assert_int_equal(check_pages(&block, block.bytes.ptr, block.bytes.len), count);
    check_walk(&block);
    block_release(&block);
}

static void test_round_trip(void **state)
{
    static const uint32_t sizes[][8] = {
        {0},
        {5},
        {3 << 20},
        {10, 20, 30},
        {2000000, 10, 20, 2000000, 30},
        {300000, 300000, 300000},
        {40000, 1, 70000, 100},
        {0, 0, 0, 0},
        {9, 5 << 20},
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
    struct block block = {0};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        add_record(&block, 50);
    build(&block);
    assert_int_equal(block.index.head.count, 3);
    assert_int_equal(block.index.head.logical, 64);
    assert_int_equal(block.index.head.commit, 3);
    assert_int_equal(block.index.head.site, 5);
    assert_int_equal(block.index.head.next_slot, 3);
    assert_int_equal(block.index.frames.count, 1);
    assert_int_equal(block.index.frames.items[0].base, -1);
    block_release(&block);
    /* A block with pages of several sites names no site. */
    add_record(&block, 50);
    add_record(&block, 50);
    block.pages[1].site = 6;
    build(&block);
    assert_int_equal(block.index.head.site, 0);
    block_release(&block);
}

/* ---- the rules ------------------------------------------------------------------------------------------- */

enum rule {
    RULE_NONE,
    MAGIC,
    FORMAT,
    COUNT_ZERO,
    COUNT_TOO_MANY,
    COUNT_WRONG,
    FRAMES_ZERO,
    FRAMES_TOO_MANY,
    LEAD_TOO_LARGE,
    DIRECTORY_TOO_SHORT,
    DIRECTORY_TOO_LONG,
    NEXT_SLOT_TOO_SMALL,
    NEXT_SLOT_USED,
    NEXT_SLOT_TOO_LARGE,
    ZERO_NOT_ZERO,
    LAST_ZERO_NOT_ZERO,
    BYTES_TOO_FEW,
    BYTES_TOO_MANY,
    STORED_ZERO,
    STORED_WRONG,
    RAW_WRONG,
    HEADS_ZERO,
    HEADS_TOO_MANY,
    ENTRIES_ZERO,
    ENTRIES_WRONG,
    BASE_UNKNOWN,
    BASE_ITSELF,
    BASES_IN_A_CIRCLE,
    BASES_TOO_DEEP,
    FLAGS_UNKNOWN,
    FIRST_LIKE_BEFORE,
    SLOT_DECREASES,
    RULES,
};

static void break_row(char *row, char *next, enum rule rule)
{
    switch (rule) {
    case STORED_ZERO:
        wb_put32(row + FRAME_STORED_AT, 0);
        break;
    case STORED_WRONG:
        wb_put32(row + FRAME_STORED_AT, wb_get32(row + FRAME_STORED_AT) + 1);
        break;
    case RAW_WRONG:
        wb_put32(row + FRAME_RAW_AT, wb_get32(row + FRAME_RAW_AT) + 1);
        break;
    case HEADS_ZERO:
        wb_put32(row + FRAME_HEADS_AT, 0);
        break;
    case HEADS_TOO_MANY:
        wb_put32(row + FRAME_HEADS_AT, wb_get32(row + FRAME_STORED_AT) + 1);
        break;
    case ENTRIES_ZERO:
        wb_put16(row + FRAME_COUNT_AT, 0);
        break;
    case ENTRIES_WRONG:
        wb_put16(row + FRAME_COUNT_AT, (uint16_t)(wb_get16(row + FRAME_COUNT_AT) + 1));
        break;
    case BASE_UNKNOWN:
        wb_put16(row + FRAME_BASE_AT, 900);
        break;
    case BASE_ITSELF:
        wb_put16(row + FRAME_BASE_AT, 0);
        break;
    case BASES_IN_A_CIRCLE:
        wb_put16(row + FRAME_BASE_AT, 1);
        wb_put16(next + FRAME_BASE_AT, 0);
        break;
    default:
        break;
    }
}

static void break_entry(char *first, char *second, enum rule rule)
{
    switch (rule) {
    case FLAGS_UNKNOWN:
        first[0] = (char)(first[0] | 16);
        break;
    case FIRST_LIKE_BEFORE:
        first[0] = (char)(first[0] | ENTRY_SAME_PAGE);
        break;
    case NEXT_SLOT_USED:
    case SLOT_DECREASES: /* it would be 1 */
        second[0] = (char)(second[0] | ENTRY_SLOT);
        second[1] = rule == SLOT_DECREASES ? 0 : 100;
        break;
    default:
        break;
    }
}

static void break_rule(struct block *block, enum rule rule)
{
    char *head = block->bytes.ptr, *row = head + WB_BLOCK_HEADER_BYTES, *next = row + FRAME_ROW_BYTES;
    char *entry = row + block->index.frames.count * FRAME_ROW_BYTES;
    uint16_t count = (uint16_t)block->index.entries.count, frames = (uint16_t)block->index.frames.count;
    uint32_t directory = block->index.head.directory_bytes;

    switch (rule) {
    case MAGIC:
        head[0] = 'X';
        break;
    case FORMAT:
        wb_put16(head + HEAD_FORMAT_AT, 2);
        break;
    case COUNT_ZERO:
        wb_put16(head + HEAD_COUNT_AT, 0);
        break;
    case COUNT_TOO_MANY:
        wb_put16(head + HEAD_COUNT_AT, WB_BLOCK_PAGES_MAX + 1);
        break;
    case COUNT_WRONG:
        wb_put16(head + HEAD_COUNT_AT, (uint16_t)(count - 1));
        break;
    case FRAMES_ZERO:
        wb_put16(head + HEAD_FRAMES_AT, 0);
        break;
    case FRAMES_TOO_MANY:
        wb_put16(head + HEAD_FRAMES_AT, (uint16_t)(frames + 1));
        break;
    case LEAD_TOO_LARGE:
        wb_put16(head + HEAD_LEAD_AT, frames);
        break;
    case DIRECTORY_TOO_SHORT:
        wb_put32(head + HEAD_DIRECTORY_BYTES_AT, directory - 1);
        break;
    case DIRECTORY_TOO_LONG:
        wb_put32(head + HEAD_DIRECTORY_BYTES_AT, UINT32_MAX);
        break;
    case NEXT_SLOT_TOO_SMALL:
        wb_put32(head + HEAD_NEXT_SLOT_AT, count - 1u);
        break;
    case NEXT_SLOT_TOO_LARGE:
        wb_put32(head + HEAD_NEXT_SLOT_AT, BLOCK_SLOTS_MAX + 1);
        break;
    case ZERO_NOT_ZERO:
        head[HEAD_ZERO_AT] = 1;
        break;
    case LAST_ZERO_NOT_ZERO:
        head[HEAD_DIRECTORY_CHECK_AT + 8] = 1;
        break;
    case BYTES_TOO_FEW:
        wb_put64(head + HEAD_BYTES_AT, WB_BLOCK_HEADER_BYTES);
        break;
    case BYTES_TOO_MANY:
        wb_put64(head + HEAD_BYTES_AT, block->bytes.len + 1);
        break;
    case BASES_TOO_DEEP: /* frames 3 <- 0 <- lead; now the lead is based on a frame too */
        wb_put16(row + block->index.head.lead * FRAME_ROW_BYTES + FRAME_BASE_AT, 2);
        wb_put16(row + 2 * FRAME_ROW_BYTES + FRAME_BASE_AT, BLOCK_NO_BASE);
        break;
    default:
        break_row(row, next, rule);
        break_entry(entry, entry + (block->index.entries.items[0].digests - entry) + WB_RECORD_DIGEST_BYTES, rule);
        break;
    }
    mend(block);
}

static void test_rules(void **state)
{
    (void)state;
    for (enum rule rule = RULE_NONE; rule < RULES; rule++) {
        struct block block = {0};
        make_example(&block);
        break_rule(&block, rule);
        int expected = rule == RULE_NONE ? 0 : rule == FORMAT ? WB_E_NEWER : WB_E_CORRUPT;
        if (check(&block) != expected)
            fail_msg("rule %d: %d", rule, check(&block));
        if (rule == FORMAT)
            assert_string_equal(wb_error_message(), "the block has format 2; this program reads format 1");
        block_release(&block);
    }
}

/* Checksums cover every byte: changes all bytes of header and directory, and some of the frames. */
static void test_checksums(void **state)
{
    struct block block = {0};

    (void)state;
    make_example(&block);
    size_t directory_end = wb_block_directory_end(&block.index.head);
    for (size_t at = 0; at < block.bytes.len; at += at < directory_end ? 1 : 29) {
        block.bytes.ptr[at] ^= 1;
        int err = check(&block), facts = err;
        struct wb_page page;
        if (err == 0) {
            wb_block_reader_open_bytes(reader, &block.index, block.bytes.ptr);
            for (size_t i = 0; i < block.index.entries.count && facts == 0; i++)
                facts = wb_block_read_facts(reader, i, &page);
            for (size_t i = 0; i < block.index.entries.count && err == 0; i++)
                err = wb_block_read_page(reader, i, &page);
        }
        if (err != WB_E_CORRUPT || facts != WB_E_CORRUPT)
            fail_msg("byte %zu may change", at);
        block.bytes.ptr[at] ^= 1;
    }
    block_release(&block);
}

/* A frame with a correct checksum that is not zstd, or has another length, is damage too. */
static void test_frames(void **state)
{
    struct block block = {0};
    struct wb_page page;

    (void)state;
    make_example(&block);
    for (size_t i = 0; i < block.index.entries.count; i++)
        for (int change = 0; change < 5; change++) {
            must_ok(check(&block));
            struct wb_block_entry *entry = &block.index.entries.items[i];
            struct wb_block_frame *frame = &block.index.frames.items[entry->frame];
            char *stored = block.bytes.ptr + frame->at;
            char first = stored[0];
            int expected = WB_E_CORRUPT;
            switch (change) {
            case 0:
                stored[0] ^= 1;
                break;
            case 1:
                frame->raw_bytes++;
                break;
            case 2:
                frame->heads_raw++;
                expected = 0;
                break;
            case 3:
                frame->heads_stored--;
                expected = 0;
                break;
            default:
                frame->base = frame->base < 0 ? 4 : -1;
                break;
            }
            frame->check = wb_hash32(stored, frame->stored_bytes);
            wb_block_reader_open_bytes(reader, &block.index, block.bytes.ptr);
            /* A reader of the whole page does not depend on where the heads end. */
            if (change < 4 || frame->base != 4)
                assert_int_equal(wb_block_read_page(reader, i, &page), expected);
            wb_block_reader_open_bytes(reader, &block.index, block.bytes.ptr);
            if (change == 0 || change == 3)
                assert_int_equal(wb_block_read_facts(reader, i, &page), WB_E_CORRUPT);
            stored[0] = first;
        }
    block_release(&block);
}

/*
 * A single page is decompressed without the pages after it in its frame: damage behind it,
 * under a correct checksum, does not matter. Then more pages of the frame can be read in any order.
 */
static void test_part_of_frame(void **state)
{
    enum { PAGES = 40 };
    struct block block = {0};
    struct wb_buf record = WB_BUF_INIT;
    size_t divided = 0;

    (void)state;
    for (size_t i = 0; i < PAGES; i++)
        add_record(&block, 6000);
    build(&block);
    for (size_t i = 0; i < block.index.frames.count; i++) {
        struct wb_block_frame *frame = &block.index.frames.items[i];
        char *last = block.bytes.ptr + frame->at + frame->stored_bytes - 1, byte = *last;
        size_t end = frame->first + frame->count - 1;
        if (frame->count < 3 || wb_block_is_base(&block.index, (uint32_t)i))
            continue;
        *last = (char)(byte ^ 0x55);
        frame->check = wb_hash32(block.bytes.ptr + frame->at, frame->stored_bytes);
        wb_block_reader_open_bytes(reader, &block.index, block.bytes.ptr);
        must_ok(wb_block_read_record(reader, frame->first, &record));
        assert_true(wb_slice_equal(wb_buf_slice(&record), block.pages[frame->first].record));
        /* Inside the frame the damage is an error, or, in bytes that zstd stored as they are, another record. */
        int err = wb_block_read_record(reader, end, &record);
        assert_true(err == WB_E_CORRUPT ||
                    (err == 0 && !wb_slice_equal(wb_buf_slice(&record), block.pages[end].record)));
        *last = byte;
        frame->check = wb_hash32(block.bytes.ptr + frame->at, frame->stored_bytes);
        divided++;
    }
    assert_true(divided > 1);
    wb_block_reader_open_bytes(reader, &block.index, block.bytes.ptr);
    for (size_t n = 0; n < 2 * PAGES; n++) {
        size_t at = n * 7 % PAGES;
        must_ok(wb_block_read_record(reader, at, &record));
        assert_true(wb_slice_equal(wb_buf_slice(&record), block.pages[at].record));
    }
    wb_buf_release(&record);
    block_release(&block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_header), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_checksums),  cmocka_unit_test(test_frames), cmocka_unit_test(test_part_of_frame),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
