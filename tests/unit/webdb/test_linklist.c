/* test_linklist.c - lists of links as bytes: they come back unchanged, are small, and no bytes cause a crash. */
#include "../journal/edit_support.h"
#include "base/bytes.h"
#include "webdb/linklist.h"

#define LIT WB_SLICE_LIT

static struct wb_linkitem many[WB_LINKLIST_ITEMS];

static struct wb_slice encode(const struct wb_linkitem *items, size_t count, struct wb_buf *piece)
{
    wb_buf_clear(piece);
    assert_int_equal(wb_linklist_encode(items, count, piece), 0);
    return wb_buf_slice(piece);
}

/* The numbers alone are the same, if they are small enough. */
static void expect_numbers(struct wb_slice piece, const struct wb_linkitem *items, size_t count)
{
    static uint32_t numbers[WB_LINKLIST_ITEMS];
    struct wb_linklist list;
    uint64_t last = items[count - 1].number;

    assert_int_equal(wb_linklist_open(&list, piece), 0);
    struct wb_slice tail = wb_linklist_tail(&list);
    int err = wb_linklist_numbers(tail, list.count, 1ull << 32, numbers);
    assert_int_equal(err, last <= UINT32_MAX ? 0 : WB_E_CORRUPT);
    for (size_t i = 0; err == 0 && i < count; i++)
        assert_int_equal(numbers[i], items[i].number);
    if (last < UINT32_MAX) { /* a limit; fewer, more; a byte less */
        assert_int_equal(wb_linklist_numbers(tail, count, last + 1, numbers), 0);
        assert_int_equal(wb_linklist_numbers(tail, count, last, numbers), WB_E_CORRUPT);
        if (count > 1)
            assert_int_equal(wb_linklist_numbers(tail, count - 1, 1ull << 32, numbers), WB_E_CORRUPT);
        if (count < WB_LINKLIST_ITEMS)
            assert_int_equal(wb_linklist_numbers(tail, count + 1, 1ull << 32, numbers), WB_E_CORRUPT);
        assert_int_equal(wb_linklist_numbers(wb_slice(tail.ptr, tail.len - 1), count, 1ull << 32, numbers),
                         WB_E_CORRUPT);
    }
}

static void expect_items(struct wb_slice piece, const struct wb_linkitem *items, size_t count)
{
    struct wb_linklist list;
    struct wb_linkitem item;

    assert_int_equal(wb_linklist_open(&list, piece), 0);
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(wb_linklist_next(&list, &item), 1);
        assert_true(item.number == items[i].number);
        assert_int_equal(item.tag, items[i].tag);
        assert_int_equal(item.flags, items[i].flags);
        assert_true(wb_slice_equal(item.anchor, items[i].anchor));
    }
    assert_int_equal(wb_linklist_next(&list, &item), 0);
    assert_int_equal(wb_linklist_next(&list, &item), 0);
    expect_numbers(piece, items, count);
}

/* Reads a list from any bytes and checks its items; returns how many. *whole_out: the list was valid to its end. */
static size_t walk_any(struct wb_slice piece, bool *whole_out)
{
    struct wb_linklist list;
    struct wb_linkitem item;
    uint64_t last = 0;
    size_t count = 0;
    int more = wb_linklist_open(&list, piece);

    *whole_out = false;
    if (more == 0) {
        while ((more = wb_linklist_next(&list, &item)) == 1) {
            assert_true(count == 0 || item.number > last);
            assert_true(item.anchor.ptr >= piece.ptr && item.anchor.ptr + item.anchor.len <= piece.ptr + piece.len);
            assert_true(item.anchor.len <= 255);
            last = item.number;
            assert_true(++count <= WB_LINKLIST_ITEMS);
        }
        *whole_out = more == 0;
    }
    assert_true(more == 0 || more == WB_E_CORRUPT);
    if (more < 0) /* a damaged list returns no more items */
        assert_int_equal(wb_linklist_next(&list, &item), 0);
    return count;
}

static void expect_damaged(const void *bytes, size_t len)
{
    bool whole;

    walk_any(wb_slice(bytes, len), &whole);
    assert_false(whole);
}

static void test_one_item(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;
    const uint64_t numbers[] = {0, 1, 127, 128, 1u << 31, UINT64_MAX};
    const struct wb_slice anchors[] = {LIT(""), LIT("home"), wb_slice("a\0b", 3)};

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        for (size_t j = 0; j < COUNT(anchors); j++) {
            struct wb_linkitem item = {numbers[i], anchors[j], 1, 1};
            expect_items(encode(&item, 1, &piece), &item, 1);
        }
    }
    wb_buf_release(&piece);
}

/* All possible tags and flags, not only those that are used today. */
static void test_all_kinds(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;

    (void)state;
    for (unsigned flags = 0; flags < 256; flags++) {
        for (unsigned tag = 0; tag < 256; tag++)
            many[tag] = (struct wb_linkitem){tag, LIT("x"), (uint8_t)tag, (uint8_t)flags};
        expect_items(encode(many, 256, &piece), many, 256);
        expect_items(encode(many + flags, 1, &piece), many + flags, 1);
    }
    wb_buf_release(&piece);
}

/* Anchors that repeat in every pattern of three, and the longest anchors. */
static void test_anchors_again(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;
    const struct wb_slice words[] = {LIT("a"), LIT(""), LIT("ccc")};
    static char longest[256];

    (void)state;
    for (unsigned pattern = 0; pattern < 2187; pattern++) {
        unsigned rest = pattern;
        for (size_t i = 0; i < 7; i++, rest /= 3)
            many[i] = (struct wb_linkitem){10 * i, words[rest % 3], 1, 0};
        expect_items(encode(many, 7, &piece), many, 7);
    }
    memset(longest, 'x', sizeof longest);
    for (size_t i = 0; i < 256; i++)
        many[i] = (struct wb_linkitem){i, wb_slice(longest, i), 1, 0};
    expect_items(encode(many, 256, &piece), many, 256);
    wb_buf_release(&piece);
}

static void test_appends(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;
    struct wb_linkitem item = {7, LIT("x"), 1, 1};

    (void)state;
    assert_int_equal(wb_buf_append_str(&piece, "before"), 0);
    assert_int_equal(wb_linklist_encode(&item, 1, &piece), 0);
    assert_memory_equal(piece.ptr, "before", 6);
    expect_items(wb_slice(piece.ptr + 6, piece.len - 6), &item, 1);
    wb_buf_release(&piece);
}

/* If the links to a page have one or two anchors, a link costs hardly more than its number. */
static void test_costs(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < WB_LINKLIST_ITEMS; i++)
        many[i] = (struct wb_linkitem){3 * i, LIT("the home page"), 1, 1};
    assert_true(encode(many, WB_LINKLIST_ITEMS, &piece).len <= WB_LINKLIST_ITEMS + 18);
    expect_items(wb_buf_slice(&piece), many, WB_LINKLIST_ITEMS);
    for (size_t i = 0; i < WB_LINKLIST_ITEMS; i++)
        many[i].anchor = i % 64 == 5 ? LIT("home") : LIT("the home page");
    assert_true(encode(many, WB_LINKLIST_ITEMS, &piece).len <= WB_LINKLIST_ITEMS + WB_LINKLIST_ITEMS / 16);
    expect_items(wb_buf_slice(&piece), many, WB_LINKLIST_ITEMS);
    struct wb_linkitem one = {300, LIT("abc"), 1, 1};
    assert_int_equal(encode(&one, 1, &piece).len, 1 + 1 + 1 + 3 + 2);
    wb_buf_release(&piece);
}

/* Random items: how many, how far apart, how many different anchors and kinds. */
static size_t chance_items(uint64_t *chance, char (*words)[256])
{
    size_t count = 1 + chance_below(chance, chance_below(chance, 8) ? 60 : WB_LINKLIST_ITEMS);
    uint64_t step = 1 + (chance_next(chance) >> (12 + chance_below(chance, 52))) / count,
             number = chance_below(chance, step);
    size_t different = 1 + chance_below(chance, count), kinds = 1 + chance_below(chance, 4);
    bool runs = chance_below(chance, 2);

    for (size_t i = 0; i < count; i++) {
        size_t word = runs && i && chance_below(chance, 10) ? SIZE_MAX : chance_below(chance, different);
        struct wb_slice anchor =
            word == SIZE_MAX ? many[i - 1].anchor : wb_slice(words[word], (uint8_t)words[word][255]);
        unsigned kind = (unsigned)(chance_below(chance, 20) ? 0 : chance_below(chance, kinds));
        many[i] =
            (struct wb_linkitem){number, anchor, (uint8_t)(kind == 3 ? 200 : kind), (uint8_t)(kind == 2 ? 17 : 1)};
        number += 1 + chance_below(chance, step);
    }
    return count;
}

static void test_chance(void **state)
{
    static char words[WB_LINKLIST_ITEMS][256];
    struct wb_buf piece = WB_BUF_INIT;
    uint64_t chance = test_seed();
    bool whole;

    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        size_t len = chance_below(&chance, chance_below(&chance, 50) ? 12 : 255);
        for (size_t j = 0; j < len; j++)
            words[i][j] = (char)('a' + chance_below(&chance, 3));
        words[i][255] = (char)len;
    }
    for (int round = 0; round < 2000; round++) {
        size_t count = chance_items(&chance, words);
        struct wb_slice whole_piece = encode(many, count, &piece);
        expect_items(whole_piece, many, count);
        for (int harm = 0; harm < 20; harm++) {
            size_t at = chance_below(&chance, piece.len);
            char held = piece.ptr[at];
            piece.ptr[at] = (char)chance_next(&chance);
            walk_any(whole_piece, &whole);
            piece.ptr[at] = held;
        }
        /* A copy of exactly this size, so that a sanitizer notices a read past its end. */
        size_t cut = chance_below(&chance, piece.len);
        char *copy = wb_alloc(cut + 1);
        memcpy(copy, piece.ptr, cut);
        expect_damaged(copy, cut);
        wb_free(copy);
    }
    wb_buf_release(&piece);
}

static void test_cut_anywhere(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < 300; i++)
        many[i] = (struct wb_linkitem){i * i,
                                       i % 3   ? LIT("more")
                                       : i % 2 ? LIT("")
                                               : LIT("xyz"),
                                       (uint8_t)(i % 7), (uint8_t)(i % 2)};
    struct wb_slice whole = encode(many, 300, &piece);
    for (size_t cut = 0; cut < whole.len; cut++)
        expect_damaged(whole.ptr, cut);
    assert_int_equal(wb_buf_append_char(&piece, 1), 0);
    expect_damaged(piece.ptr, piece.len); /* one number too many */
    wb_buf_release(&piece);
}

/* Head: (count - 1) << 2 | one anchor | one kind. */
static void test_damage_by_hand(void **state)
{
    uint8_t overflow[] = {1 << 2 | 3, 0x11, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0};

    (void)state;
    assert_int_equal(sizeof overflow, 14);
    expect_damaged(overflow, sizeof overflow); /* the number after UINT64_MAX */
    expect_damaged("\x03\x0f\x01", 3);
    expect_damaged("\x03\x1f\x00\x05", 4);           /* no such kind */
    expect_damaged("\x03\x11\x05" "abc\x07", 7);     /* an anchor longer than the rest */
    expect_damaged("\x01\x01\x01\x11\x01\x00\x07", 7); /* the anchor of the item before the first */
    expect_damaged("\x01\x01\x01\x11\x02\x00\x07", 7); /* the one before that */
    expect_damaged("\x01\x02\x01\x11\x03\x00\x00\x07", 8); /* a position whose anchor was not used yet */
    expect_damaged("\x01\x01\x02\x11\x00\x00\x00\x07", 8); /* anchors that no item uses */
    expect_damaged("\x01\x01\x01\x11\x04\x00\x07", 7);     /* a run longer than the list */
    expect_damaged("\x02\x02\x11\x01\x01" "a\x07", 7);     /* the same of kinds */
    expect_damaged("\x02\x03\x11\x00\x11\x01" "a\x07", 8); /* kinds left over */
    char head[WB_VARINT_MAX];
    size_t len = wb_put_varint(head, (uint64_t)WB_LINKLIST_ITEMS << 2 | 3);
    expect_damaged(head, len); /* too many items */
    expect_damaged("", 0);
}

static void test_keys(void **state)
{
    const uint64_t numbers[] = {0, 1, 255, 256, 1ull << 40, UINT64_MAX};
    char key[WB_LINKLIST_KEY_MAX], before[WB_LINKLIST_KEY_MAX];
    size_t before_len = 0;
    uint64_t number;
    uint32_t piece;

    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        for (uint32_t j = 0; j < 1000; j += 111) {
            size_t len = wb_linklist_key(numbers[i], j, key);
            assert_int_equal(len, j ? 12 : 8);
            assert_true(wb_linklist_key_parse(wb_slice(key, len), &number, &piece));
            assert_true(number == numbers[i] && piece == j);
            int order = memcmp(before, key, before_len < len ? before_len : len);
            assert_true(before_len == 0 || order < 0 || (order == 0 && before_len < len));
            memcpy(before, key, len);
            before_len = len;
        }
    }
    assert_false(wb_linklist_key_parse(wb_slice(key, 7), &number, &piece));
    assert_false(wb_linklist_key_parse(wb_slice(key, 9), &number, &piece));
    memset(key, 0, sizeof key);
    assert_false(wb_linklist_key_parse(wb_slice(key, 12), &number, &piece)); /* the first piece has no number */
}

static void test_out_of_memory(void **state)
{
    struct wb_buf piece = WB_BUF_INIT;
    struct wb_linkitem item = {7, LIT("x"), 1, 1};

    (void)state;
    wb_fault_arm(WB_FAULT_ALLOC, 1, ENOMEM);
    assert_int_equal(wb_linklist_encode(&item, 1, &piece), WB_E_NOMEM);
    wb_fault_disarm();
    assert_int_equal(piece.len, 0);
    wb_buf_release(&piece);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_item),      cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_anchors_again), cmocka_unit_test(test_appends),
        cmocka_unit_test(test_costs),         cmocka_unit_test(test_chance),
        cmocka_unit_test(test_cut_anywhere),  cmocka_unit_test(test_damage_by_hand),
        cmocka_unit_test(test_keys),          cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
