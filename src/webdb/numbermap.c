/*
 * numbermap.c - a set of numbers in bounded memory: see numbermap.h.
 *
 * When the array is full and has ARRAY_MIN numbers, and one for every PART possible ones, the numbers move to the bits,
 * which then take no more bytes. This file never looks at what the numbers mean.
 */
#include "webdb/numbermap.h"
#include "base/mem.h"

#include <string.h>

enum {
    ARRAY_MIN = 1 << 16,
    PART = 32,
    INSERT_MAX = 32,  /* so many numbers are sorted by insertion, more by their digits */
    SHORT_MAX = 8192, /* so many have small digits, because counting all values of a large one takes longer */
    SHORT_DIGIT = 8,
    RETURN_MAX = 4096, /* from the bits at once */
    CAP_MIN = 8192,
    DIGIT = 11,
    DIGITS = 1 << DIGIT,
};

_Static_assert(CAP_MIN >= RETURN_MAX + 64, "what the bits return fits into the array, and one word more");

static void check_set(const struct wb_numberset *set)
{
    WB_CHECK(set->dir != NULL);
    WB_CHECK(set->limit <= 1ull << 32);
    WB_CHECK(set->count <= set->cap);
}

static uint64_t bit_words(const struct wb_numberset *set)
{
    WB_CHECK(set->limit > 0);
    return set->limit / 64 + 1;
}

static int twice(void)
{
    return wb_fail(WB_E_CORRUPT, "a list of links has a page twice");
}

/* Moves the numbers from the array to the bits. */
static int move_to_bits(struct wb_numberset *set)
{
    void *memory = NULL;

    check_set(set);
    if (!set->bits) {
        int err = wb_nameless_map(set->dir, bit_words(set) * sizeof *set->bits, &memory);
        if (err < 0)
            return err;
        set->bits = memory;
    }
    set->in_bits = true;
    WB_CHECK(set->bits != NULL);
    for (size_t i = 0; i < set->count; i++) {
        uint64_t *word = &set->bits[set->numbers[i] / 64], bit = 1ull << set->numbers[i] % 64;
        if (*word & bit)
            return twice();
        *word |= bit;
    }
    set->count = 0;
    return 0;
}

static int grow(struct wb_numberset *set)
{
    size_t cap = set->cap ? 2 * set->cap : CAP_MIN;
    uint32_t *numbers = wb_realloc(set->numbers, cap * sizeof *numbers);

    check_set(set);
    if (!numbers)
        return WB_E_NOMEM;
    set->numbers = numbers;
    set->cap = cap;
    WB_CHECK(set->cap > set->count);
    return 0;
}

int wb_numberset_add(struct wb_numberset *set, uint32_t number)
{
    WB_CHECK(number < set->limit);
    WB_CHECK(!set->sorted);
    WB_CHECK(set->count <= set->cap);
    if (set->count == set->cap) {
        bool full = set->count >= ARRAY_MIN && set->count >= set->limit / PART;
        int err = full ? move_to_bits(set) : grow(set);
        if (err < 0)
            return err;
    }
    set->numbers[set->count++] = number;
    return 0;
}

/* ---- sorting ---------------------------------------------------------------------------------- */

static void insert_sort(uint32_t *numbers, size_t count)
{
    WB_CHECK(numbers || count == 0);
    WB_CHECK(count <= INSERT_MAX);
    for (size_t i = 1; i < count; i++) {
        uint32_t number = numbers[i];
        size_t at = i;
        for (; at > 0 && numbers[at - 1] > number; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
}

/* Sorts by one digit of so many bits: from the array into the spare one. Then they change places. */
static void sort_by_digit(struct wb_numberset *set, unsigned shift, unsigned bits)
{
    uint32_t starts[DIGITS], sum = 0, mask = (1u << bits) - 1;

    WB_CHECK(set->spare_cap >= set->count);
    WB_CHECK(bits <= DIGIT);
    memset(starts, 0, (mask + 1) * sizeof *starts);
    for (size_t i = 0; i < set->count; i++)
        starts[set->numbers[i] >> shift & mask]++;
    for (size_t i = 0; i <= mask; i++) {
        uint32_t here = starts[i];
        starts[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < set->count; i++)
        set->spare[starts[set->numbers[i] >> shift & mask]++] = set->numbers[i];
    uint32_t *sorted = set->spare;
    size_t cap = set->spare_cap;
    set->spare = set->numbers;
    set->spare_cap = set->cap;
    set->numbers = sorted;
    set->cap = cap;
}

static int sort_array(struct wb_numberset *set)
{
    WB_CHECK(!set->in_bits);
    check_set(set);
    if (set->count <= INSERT_MAX) {
        insert_sort(set->numbers, set->count);
        return 0;
    }
    if (set->spare_cap < set->cap) {
        wb_free(set->spare);
        set->spare = wb_alloc(set->cap * sizeof *set->spare);
        set->spare_cap = set->spare ? set->cap : 0;
        if (!set->spare)
            return WB_E_NOMEM;
    }
    unsigned bits = set->count <= SHORT_MAX ? SHORT_DIGIT : DIGIT;
    for (unsigned shift = 0; shift < 32 && (set->limit - 1) >> shift; shift += bits)
        sort_by_digit(set, shift, bits);
    return 0;
}

int wb_numberset_sort(struct wb_numberset *set)
{
    check_set(set);
    WB_CHECK(!set->sorted);
    int err = set->in_bits ? move_to_bits(set) : sort_array(set);
    for (size_t i = 1; err == 0 && i < set->count; i++)
        if (set->numbers[i] <= set->numbers[i - 1])
            err = twice();
    set->sorted = err == 0;
    set->bit_at = 0;
    return err;
}

/* ---- returning ------------------------------------------------------------------------------- */

/* Takes the next numbers out of the bits, into the array. */
static void take_bits(struct wb_numberset *set)
{
    check_set(set);
    WB_CHECK(set->cap >= RETURN_MAX + 64);
    set->count = 0;
    for (; set->bit_at < bit_words(set) && set->count < RETURN_MAX; set->bit_at++) {
        uint64_t word = set->bits[set->bit_at];
        if (word)
            set->bits[set->bit_at] = 0;
        for (; word; word &= word - 1)
            set->numbers[set->count++] = (uint32_t)(set->bit_at * 64 + (unsigned)__builtin_ctzll(word));
    }
}

int wb_numberset_next(struct wb_numberset *set, const uint32_t **numbers_out, size_t *count_out)
{
    check_set(set);
    *numbers_out = NULL;
    *count_out = 0;
    if (!set->sorted)
        return 0;
    if (set->in_bits)
        take_bits(set);
    WB_CHECK(set->numbers || set->count == 0);
    *numbers_out = set->numbers;
    *count_out = set->count;
    bool more = set->count > 0;
    set->sorted = set->in_bits = more && set->in_bits; /* an array is returned at once */
    set->count = 0;
    return more;
}

void wb_numberset_release(struct wb_numberset *set)
{
    WB_CHECK(set->limit > 0 || !set->bits);
    WB_CHECK(set->count <= set->cap);
    if (set->bits)
        wb_nameless_unmap(set->bits, bit_words(set) * sizeof *set->bits);
    wb_free(set->numbers);
    wb_free(set->spare);
    *set = (struct wb_numberset){.dir = NULL};
}
