/* catalog_range.c - sets of page ids, as arithmetic on the first bits of an id (catalog_range.h). */
#include "catalog/catalog_range.h"
#include "base/bytes.h"
#include "base/check.h"

enum { WORDS = WB_CELLS / 64, IN_CELL_BITS = 64 - WB_CELL_BITS };

/* ---- cells -------------------------------------------------------------------------------------------------- */

void wb_cells_add(struct wb_cells *cells, uint32_t cell)
{
    WB_CHECK(cell < WB_CELLS);
    cells->words[cell / 64] |= (uint64_t)1 << cell % 64;
}

void wb_cells_remove(struct wb_cells *cells, uint32_t cell)
{
    WB_CHECK(cell < WB_CELLS);
    cells->words[cell / 64] &= ~((uint64_t)1 << cell % 64);
}

/* How many bits of a word are set. Most words have none or all. */
static uint32_t count_bits(uint64_t word)
{
    return word == 0 ? 0 : word == UINT64_MAX ? 64 : (uint32_t)__builtin_popcountll(word);
}

/* How many of the first `end` cells are in the set. */
static uint32_t count_before(const struct wb_cells *cells, uint32_t end)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < end / 64; i++)
        count += count_bits(cells->words[i]);
    if (end % 64)
        count += count_bits(cells->words[end / 64] & (((uint64_t)1 << end % 64) - 1));
    return count;
}

uint32_t wb_cells_count(const struct wb_cells *cells)
{
    return count_before(cells, WB_CELLS);
}

void wb_cells_write(const struct wb_cells *cells, char bytes_out[WB_CELLS_BYTES])
{
    for (size_t i = 0; i < WORDS; i++)
        wb_put64(bytes_out + 8 * i, cells->words[i]);
}

void wb_cells_read(const char bytes[WB_CELLS_BYTES], struct wb_cells *cells_out)
{
    for (size_t i = 0; i < WORDS; i++)
        cells_out->words[i] = wb_get64(bytes + 8 * i);
}

/* ---- ranges ------------------------------------------------------------------------------------------------- */

/* One word of the set of cells that a prefix has: it is one cell, a part of one word, or some words. */
static uint64_t prefix_word(uint64_t prefix, uint32_t bits, size_t word)
{
    uint32_t first = wb_cell_of(prefix), count = bits < WB_CELL_BITS ? (uint32_t)WB_CELLS >> bits : 1;

    if (count >= 64)
        return word >= first / 64 && word < (first + count) / 64 ? ~(uint64_t)0 : 0;
    return word == first / 64 ? (((uint64_t)1 << count) - 1) << first % 64 : 0;
}

void wb_catalog_range_cells(const struct wb_catalog_range *range, struct wb_cells *cells_out)
{
    for (size_t i = 0; i < WORDS; i++)
        cells_out->words[i] = prefix_word(range->prefix, range->bits, i) & ~range->gaps.words[i];
}

bool wb_catalog_range_is_valid(const struct wb_catalog_range *range)
{
    uint64_t outside = 0, left = 0;

    if (range->bits > 64 || (range->prefix & ~wb_catalog_range_mask(range)) != 0)
        return false;
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t cells = prefix_word(range->prefix, range->bits, i);
        outside |= range->gaps.words[i] & ~cells;
        left |= cells & ~range->gaps.words[i];
    }
    return outside == 0 && left != 0;
}

int wb_catalog_range_compare(const struct wb_catalog_range *a, const struct wb_catalog_range *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    if (a->bits != b->bits)
        return a->bits < b->bits ? -1 : 1;
    for (size_t i = 0; i < WORDS; i++)
        if (a->gaps.words[i] != b->gaps.words[i])
            return a->gaps.words[i] < b->gaps.words[i] ? -1 : 1;
    return 0;
}

bool wb_catalog_range_equal(const struct wb_catalog_range *a, const struct wb_catalog_range *b)
{
    return wb_catalog_range_compare(a, b) == 0;
}

bool wb_catalog_range_within(const struct wb_catalog_range *inner, const struct wb_catalog_range *outer)
{
    struct wb_cells own, other;

    if (inner->bits > WB_CELL_BITS || outer->bits > WB_CELL_BITS) /* at least one of them is a part of a cell */
        return outer->bits <= inner->bits && wb_catalog_range_has(outer, (struct wb_pageid){.hi = inner->prefix});
    wb_catalog_range_cells(inner, &own);
    wb_catalog_range_cells(outer, &other);
    for (size_t i = 0; i < WORDS; i++)
        if (own.words[i] & ~other.words[i])
            return false;
    return true;
}

struct wb_catalog_range wb_catalog_range_of_cells(const struct wb_cells *cells, uint32_t step)
{
    struct wb_catalog_range range = {.prefix = 0}, narrower;

    WB_CHECK(step > 0);
    WB_CHECK(wb_cells_count(cells) > 0);
    (void)wb_catalog_range_keep(&range, cells);
    uint64_t first = wb_catalog_range_first(&range), last = wb_catalog_range_last(&range);
    while (range.bits + step <= WB_CELL_BITS && (first ^ last) >> (64 - range.bits - step) == 0 &&
           wb_catalog_range_part(&range, first, range.bits + step, &narrower))
        range = narrower;
    return range;
}

bool wb_catalog_range_keep(struct wb_catalog_range *range, const struct wb_cells *cells)
{
    struct wb_catalog_range kept = *range;

    for (size_t i = 0; i < WORDS; i++)
        kept.gaps.words[i] |= prefix_word(range->prefix, range->bits, i) & ~cells->words[i];
    if (!wb_catalog_range_is_valid(&kept))
        return false;
    *range = kept;
    return true;
}

bool wb_catalog_range_part(const struct wb_catalog_range *range, uint64_t hi, uint32_t bits,
                           struct wb_catalog_range *part_out)
{
    struct wb_catalog_range part = {.bits = bits};

    WB_CHECK(bits >= range->bits && bits <= 64);
    WB_CHECK((hi & wb_catalog_range_mask(range)) == range->prefix);
    part.prefix = hi & wb_catalog_range_mask(&part);
    for (size_t i = 0; i < WORDS; i++)
        part.gaps.words[i] = range->gaps.words[i] & prefix_word(part.prefix, bits, i);
    *part_out = part;
    return wb_catalog_range_is_valid(&part);
}

/* ---- counting ----------------------------------------------------------------------------------------------- */

unsigned __int128 wb_catalog_range_size(const struct wb_catalog_range *range)
{
    unsigned __int128 whole = (unsigned __int128)1 << (64 - range->bits);

    return whole - ((unsigned __int128)wb_cells_count(&range->gaps) << IN_CELL_BITS);
}

unsigned __int128 wb_catalog_range_before(const struct wb_catalog_range *range, uint64_t hi)
{
    uint32_t cell = wb_cell_of(hi);

    if (hi < range->prefix)
        return 0;
    if (hi > (range->prefix | ~wb_catalog_range_mask(range)))
        return wb_catalog_range_size(range);
    if (wb_cells_has(&range->gaps, cell))
        hi = (uint64_t)cell << IN_CELL_BITS;
    return hi - range->prefix - ((uint64_t)count_before(&range->gaps, cell) << IN_CELL_BITS);
}

uint64_t wb_catalog_range_at(const struct wb_catalog_range *range, uint64_t before)
{
    uint64_t cells = before >> IN_CELL_BITS, word = 0;
    size_t i = 0;

    WB_CHECK(before < wb_catalog_range_size(range));
    if (range->bits > WB_CELL_BITS) /* a part of one cell */
        return range->prefix + before;
    for (;; i++) {
        WB_CHECK(i < WORDS);
        word = prefix_word(range->prefix, range->bits, i) & ~range->gaps.words[i];
        if (cells < count_bits(word))
            break;
        cells -= count_bits(word);
    }
    for (; cells > 0; cells--)
        word &= word - 1;
    uint64_t cell = i * 64 + (uint64_t)__builtin_ctzll(word);
    return cell << IN_CELL_BITS | (before & (((uint64_t)1 << IN_CELL_BITS) - 1));
}

uint64_t wb_catalog_range_first(const struct wb_catalog_range *range)
{
    return wb_catalog_range_at(range, 0);
}

uint64_t wb_catalog_range_last(const struct wb_catalog_range *range)
{
    return wb_catalog_range_at(range, (uint64_t)(wb_catalog_range_size(range) - 1));
}
