/*
 * test_catalog_range.c - sets of page ids, compared with what their rules say about single ids.
 */
#include "../must.h"
#include "../seeded.h"
#include "catalog/catalog_range.h"

bool in_child;

static struct wb_pageid id_of(uint64_t hi)
{
    return (struct wb_pageid){.hi = hi};
}

static struct wb_cells random_cells(uint64_t *chance)
{
    struct wb_cells cells = {.words = {0}};
    uint64_t sparse = 1 + chance_below(chance, 4);
    bool take = chance_one_in(chance, 2);

    for (uint32_t cell = 0; cell < WB_CELLS; cell++) {
        if (chance_one_in(chance, 30 * sparse))
            take = !take;
        if (take || chance_one_in(chance, 300))
            wb_cells_add(&cells, cell);
    }
    return cells;
}

static struct wb_catalog_range random_range(uint64_t *chance)
{
    struct wb_catalog_range range = {.bits = (uint32_t)chance_below(chance, chance_one_in(chance, 3) ? 65 : 8)};
    struct wb_cells cells = random_cells(chance);

    range.prefix = chance_next(chance) & wb_catalog_range_mask(&range);
    if (chance_one_in(chance, 4) || !wb_catalog_range_keep(&range, &cells))
        return range;
    return range;
}

/* An id that is probably near the edges of something. */
static uint64_t random_hi(uint64_t *chance, const struct wb_catalog_range *range)
{
    uint64_t hi = range->prefix | (chance_next(chance) & ~wb_catalog_range_mask(range));

    switch (chance_below(chance, 5)) {
    case 0:
        return chance_next(chance);
    case 1:
        return hi >> 54 << 54;
    case 2:
        return hi | (((uint64_t)1 << 54) - 1);
    case 3:
        return chance_one_in(chance, 2) ? range->prefix : range->prefix | ~wb_catalog_range_mask(range);
    default:
        return hi;
    }
}

/* Counting: the ids of a range have the numbers 0, 1 and so on, and any other one that of the next. */
static void test_counting(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        struct wb_catalog_range range = random_range(&chance);
        unsigned __int128 size = wb_catalog_range_size(&range);
        uint64_t first = wb_catalog_range_first(&range), last = wb_catalog_range_last(&range);
        must(wb_catalog_range_is_valid(&range) && size > 0);
        must(wb_catalog_range_has(&range, id_of(first)) && wb_catalog_range_has(&range, id_of(last)));
        must(wb_catalog_range_before(&range, first) == 0 && wb_catalog_range_before(&range, last) == size - 1);
        for (unsigned k = 0; k < 20; k++) {
            uint64_t hi = random_hi(&chance, &range);
            unsigned __int128 before = wb_catalog_range_before(&range, hi);
            bool has = wb_catalog_range_has(&range, id_of(hi));
            must(before <= size);
            must(!has || (first <= hi && hi <= last));
            must(before < size || hi > last);
            if (before < size) {
                uint64_t at = wb_catalog_range_at(&range, (uint64_t)before);
                must(has ? at == hi : at > hi);
                must(wb_catalog_range_has(&range, id_of(at)));
            }
            if (hi < UINT64_MAX)
                must(wb_catalog_range_before(&range, hi + 1) == before + has);
        }
    }
}

/* Parts by bits, and parts by cells: each id is in exactly one of them. */
static void test_parts(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        struct wb_catalog_range range = random_range(&chance), rest = range, kept = range, part;
        struct wb_cells cells = random_cells(&chance), others;
        for (size_t i = 0; i < WB_CELLS / 64; i++)
            others.words[i] = ~cells.words[i];
        bool some = wb_catalog_range_keep(&kept, &cells), left = wb_catalog_range_keep(&rest, &others);
        must(some || left);
        must(!some || (wb_catalog_range_is_valid(&kept) && wb_catalog_range_within(&kept, &range)));
        must(some || wb_catalog_range_equal(&kept, &range));
        must(!(some && left) || !wb_catalog_range_within(&range, &kept));
        uint32_t bits = range.bits + (uint32_t)chance_below(&chance, 65 - range.bits);
        for (unsigned k = 0; k < 20; k++) {
            uint64_t hi = random_hi(&chance, &range);
            bool has = wb_catalog_range_has(&range, id_of(hi));
            must(has ==
                 ((some && wb_catalog_range_has(&kept, id_of(hi))) + (left && wb_catalog_range_has(&rest, id_of(hi)))));
            if ((hi & wb_catalog_range_mask(&range)) != range.prefix)
                continue;
            bool there = wb_catalog_range_part(&range, hi, bits, &part);
            must(there || !has);
            must(!there || (wb_catalog_range_is_valid(&part) && wb_catalog_range_within(&part, &range)));
            must(wb_catalog_range_has(&part, id_of(hi)) == has);
        }
    }
}

/* A set of cells as a range has the same ids, and the longest prefix. */
static void test_of_cells(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        struct wb_catalog_range range = random_range(&chance), again;
        struct wb_cells cells, same;
        char bytes[WB_CELLS_BYTES];
        if (range.bits > WB_CELL_BITS)
            continue;
        wb_catalog_range_cells(&range, &cells);
        must(wb_cells_count(&cells) * ((unsigned __int128)1 << 54) == wb_catalog_range_size(&range));
        again = wb_catalog_range_of_cells(&cells, 4);
        must(wb_catalog_range_is_valid(&again) && again.bits % 4 == 0);
        must(wb_catalog_range_within(&again, &range) && wb_catalog_range_within(&range, &again));
        wb_catalog_range_cells(&again, &same);
        must(memcmp(&same, &cells, sizeof cells) == 0);
        must(again.bits + 4 > WB_CELL_BITS ||
             (wb_catalog_range_first(&range) ^ wb_catalog_range_last(&range)) >> (60 - again.bits) != 0);
        wb_cells_write(&cells, bytes);
        wb_cells_read(bytes, &same);
        must(memcmp(&same, &cells, sizeof cells) == 0);
    }
}

static void test_order(void **state)
{
    struct wb_catalog_range all = {.bits = 0}, low = {.bits = 1}, high = {.prefix = (uint64_t)1 << 63, .bits = 1};
    struct wb_catalog_range holey = low;
    struct wb_cells cells = {.words = {1}};

    (void)state;
    must(wb_catalog_range_compare(&all, &low) < 0 && wb_catalog_range_compare(&low, &high) < 0);
    must(wb_catalog_range_keep(&holey, &cells));
    must(wb_catalog_range_compare(&low, &holey) < 0 && wb_catalog_range_compare(&holey, &high) < 0);
    must(wb_catalog_range_equal(&holey, &holey) && !wb_catalog_range_equal(&holey, &low));
    must(!wb_catalog_range_keep(&high, &cells) && high.bits == 1 && wb_cells_count(&high.gaps) == 0);
}

/* What a damaged file may say. */
static void test_invalid(void **state)
{
    struct wb_catalog_range range = {.bits = 65};

    (void)state;
    must(!wb_catalog_range_is_valid(&range));
    range = (struct wb_catalog_range){.prefix = 1, .bits = 2};
    must(!wb_catalog_range_is_valid(&range));
    range = (struct wb_catalog_range){.bits = 1};
    wb_cells_add(&range.gaps, 511);
    must(wb_catalog_range_is_valid(&range));
    wb_cells_add(&range.gaps, 512); /* not of this prefix */
    must(!wb_catalog_range_is_valid(&range));
    range = (struct wb_catalog_range){.bits = 10};
    wb_cells_add(&range.gaps, 0); /* nothing is left */
    must(!wb_catalog_range_is_valid(&range));
    wb_cells_remove(&range.gaps, 0);
    must(wb_catalog_range_is_valid(&range));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counting), cmocka_unit_test(test_parts),   cmocka_unit_test(test_of_cells),
        cmocka_unit_test(test_order),    cmocka_unit_test(test_invalid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
