/*
 * merge_near.c - stage 5 of the merge: near duplicates.
 *
 * Two pages are near each other if the fingerprints of their texts (SimHash, 64 bits) differ in at most NEAR_BITS bits.
 * A page is recorded as near the first such page in the order of URLs, if that page comes before it. So the first page
 * of a family is near no other page, and the result depends on the pages alone: not on the order in which they arrived,
 * and not on how the work was divided into updates.
 *
 *   fingerprints, by page -> equal ones are found by sorting; only the first page of each goes on
 *                         -> ten sorts, each by two of five blocks of bits; entries that agree on both are compared
 *                         -> the pages that were set apart are near whatever the first of them is near
 *
 * NEAR_BITS differing bits touch at most three of the five blocks, so near fingerprints agree on at least two. A sort
 * is two stable passes by 13 bits, so the pages of a group stay in order; the first pass serves all pairs with the same
 * lower block. A group has one or two entries, unless somebody makes it large on purpose. Therefore each entry is
 * compared only with the first GROUP_MAX entries of its group; near duplicates that this misses are simply not
 * recorded.
 *
 * Texts without words have no fingerprint, and very short pages say too little: they belong to no family. Neither do
 * pages that are gone or were taken down, because nobody can look at them instead of the others.
 */
#include "base/bytes.h"
#include "os/nameless.h"
#include "webdb/writer.h"

#include <stdlib.h>

enum {
    NEAR_BITS = 3,         /* near fingerprints differ in at most so many bits */
    BLOCKS = 5,
    BLOCK_BITS = 13,       /* the last block has 12 */
    GROUP_MAX = 64,        /* how many entries of its group an entry is compared with */
    PAGE_BYTES_MIN = 512,  /* shorter pages are alike by chance or by template */
};

_Static_assert(sizeof(struct wb_merge_near_entry) == 16, "entries are moved as two words");
_Static_assert(BLOCKS * BLOCK_BITS >= 64, "the blocks cover a fingerprint");
_Static_assert(BLOCKS >= NEAR_BITS + 2, "near fingerprints agree on two blocks");

/* ---- fingerprints ---------------------------------------------------------------------------- */

int wb_merge_near_open(struct wb_webdb_writer *writer)
{
    void *memory = NULL;
    int err = 0;

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(!writer->prints);
    WB_CHECK(writer->print_count == 0);
    writer->print_cap = writer->old.count.fetched + writer->content_edit_count;
    if (writer->print_cap)
        err = wb_nameless_map(writer->root, writer->print_cap * sizeof *writer->prints, &memory);
    writer->prints = memory;
    return err;
}

void wb_merge_near_close(struct wb_webdb_writer *writer)
{
    WB_CHECK(writer->print_count <= writer->print_cap);
    if (writer->prints)
        wb_nameless_unmap(writer->prints, writer->print_cap * sizeof *writer->prints);
    writer->prints = NULL;
    writer->print_count = writer->print_cap = 0;
}

int wb_merge_near_add(struct wb_webdb_writer *writer, const struct wb_webdb_page *page, uint64_t number)
{
    const unsigned excluded = WB_PAGE_LOADED | WB_PAGE_GONE | WB_PAGE_BARRED;

    WB_CHECK(number <= WB_NUMBERS_MAX);
    if (!page->has_content || (page->flags & excluded) || page->simhash == 0 || page->bytes < PAGE_BYTES_MIN)
        return 0;
    if (writer->print_count == writer->print_cap)
        return wb_fail(WB_E_CORRUPT, "%s: there are more pages with content than the manifest says", writer->root);
    WB_CHECK(writer->print_count == 0 || writer->prints[writer->print_count - 1].page < number);
    struct wb_merge_near_entry entry = {.simhash = page->simhash, .page = (uint32_t)number};
    writer->prints[writer->print_count++] = entry;
    return 0;
}

/* ---- sorting --------------------------------------------------------------------------------- */

static unsigned block_of(uint64_t simhash, unsigned block)
{
    return (unsigned)(simhash >> (block * BLOCK_BITS)) & ((1u << BLOCK_BITS) - 1);
}

/* One pass of a radix sort: sorts by one block and is stable. */
static void sort_pass(const struct wb_merge_near_entry *from, struct wb_merge_near_entry *to, uint64_t count,
                      unsigned block)
{
    uint64_t starts[1u << BLOCK_BITS] = {0}, sum = 0;

    WB_CHECK(from != to);
    WB_CHECK(block < BLOCKS);
    for (uint64_t i = 0; i < count; i++)
        starts[block_of(from[i].simhash, block)]++;
    for (unsigned i = 0; i < 1u << BLOCK_BITS; i++) {
        uint64_t here = starts[i];
        starts[i] = sum;
        sum += here;
    }
    WB_CHECK(sum == count); /* every entry has its place */
    for (uint64_t i = 0; i < count; i++)
        to[starts[block_of(from[i].simhash, block)]++] = from[i];
}

struct near_stage {
    struct wb_webdb_writer *writer;
    struct wb_merge_near_entry *a, *b; /* work space for as many entries as there are */
    struct wb_numbermap near;          /* by page number: the page that it is near */
};

/* What is true whenever a function of this stage is entered. */
static void check_stage(const struct near_stage *s)
{
    WB_CHECK(wb_writer_is(s->writer, WB_WRITER_MERGING));
    WB_CHECK(s->near.count == s->writer->next.rows);
    WB_CHECK(s->writer->print_count <= s->writer->print_cap);
}

static void note_near(struct near_stage *s, uint32_t page, uint32_t to)
{
    WB_CHECK(to < page);
    WB_CHECK(page < s->near.count);
    if (to < s->near.numbers[page])
        s->near.numbers[page] = to;
}

/*
 * The entries are sorted by two blocks. Returns the end of the group of entries that agree on both with the first one.
 */
static uint64_t group_end(const struct wb_merge_near_entry *sorted, uint64_t count, uint64_t first, unsigned high,
                          unsigned low)
{
    const uint64_t block = (1u << BLOCK_BITS) - 1, mask = block << (high * BLOCK_BITS) | block << (low * BLOCK_BITS);
    uint64_t end = first + 1;

    WB_CHECK(first < count);
    WB_CHECK(low < high);
    WB_CHECK(high < BLOCKS);
    while (end < count && ((sorted[end].simhash ^ sorted[first].simhash) & mask) == 0)
        end++;
    return end;
}

static int compare_entries(const void *a, const void *b)
{
    const struct wb_merge_near_entry *x = a, *y = b;

    if (x->simhash != y->simhash)
        return x->simhash < y->simhash ? -1 : 1;
    return x->page < y->page ? -1 : x->page > y->page;
}

/* Pages with equal fingerprints are near the first of them. */
static void note_equal(struct near_stage *s)
{
    uint64_t count = s->writer->print_count, end;

    check_stage(s);
    WB_CHECK(s->a != NULL);
    WB_CHECK(s->b != NULL);
    sort_pass(s->writer->prints, s->a, count, 0);
    sort_pass(s->a, s->b, count, 1);
    for (uint64_t at = 0; at < count; at = end) {
        end = group_end(s->b, count, at, 1, 0);
        if (end - at > 1)
            qsort(s->b + at, end - at, sizeof *s->b, compare_entries);
        for (uint64_t i = at + 1, first = at; i < end; i++) {
            if (s->b[i].simhash == s->b[first].simhash)
                note_near(s, s->b[i].page, s->b[first].page);
            else
                first = i;
        }
    }
}

/*
 * Keeps the first page of each fingerprint in the list and moves the others behind its end. Returns how many these are.
 */
static uint64_t set_equal_apart(struct near_stage *s)
{
    struct wb_merge_near_entry *entries = s->writer->prints;
    uint64_t count = s->writer->print_count, kept = 0, others = 0;

    check_stage(s);
    WB_CHECK(count <= s->writer->print_cap);
    for (uint64_t i = 0; i < count; i++) {
        if (s->near.numbers[entries[i].page] == WB_NO_NUMBER)
            entries[kept++] = entries[i];
        else
            s->a[others++] = entries[i];
    }
    WB_CHECK(kept + others == count);
    memcpy(entries + kept, s->a, others * sizeof *entries);
    s->writer->print_count = kept;
    return others;
}

/* Pages that were set apart are near whatever the first page with their fingerprint is near. */
static void follow_first(struct near_stage *s, uint64_t others)
{
    const struct wb_merge_near_entry *entries = s->writer->prints + s->writer->print_count;

    check_stage(s);
    for (uint64_t i = 0; i < others; i++) {
        uint32_t first = s->near.numbers[entries[i].page];
        WB_CHECK(first < entries[i].page);
        if (s->near.numbers[first] != WB_NO_NUMBER)
            s->near.numbers[entries[i].page] = s->near.numbers[first];
    }
}

/* The entries agree on two blocks and are in the order of pages: compares each with the first ones before it. */
static void compare_group(struct near_stage *s, const struct wb_merge_near_entry *group, uint64_t count)
{
    WB_CHECK(count >= 1);
    WB_CHECK(count <= s->writer->print_count);
    for (uint64_t i = 1; i < count; i++) {
        uint64_t others = i < GROUP_MAX ? i : GROUP_MAX;
        for (uint64_t k = 0; k < others; k++)
            if (__builtin_popcountll(group[i].simhash ^ group[k].simhash) <= NEAR_BITS) {
                note_near(s, group[i].page, group[k].page);
                break;
            }
    }
}

/* Compares entries for all pairs of blocks of which this is the lower one. */
static int find_near(struct near_stage *s, unsigned low)
{
    uint64_t count = s->writer->print_count, end;

    check_stage(s);
    WB_CHECK(low + 1 < BLOCKS);
    sort_pass(s->writer->prints, s->a, count, low);
    for (unsigned high = low + 1; high < BLOCKS; high++) {
        sort_pass(s->a, s->b, count, high);
        for (uint64_t at = 0; at < count; at = end) {
            end = group_end(s->b, count, at, high, low);
            compare_group(s, s->b + at, end - at);
        }
    }
    return wb_writer_progress(s->writer, "near duplicates", 0, 0);
}

/* ---- the stage ------------------------------------------------------------------------------- */

static int find_families(struct near_stage *s)
{
    uint64_t count = s->writer->print_count, others = 0;
    void *a = NULL, *b = NULL;
    int err;

    check_stage(s);
    if (count < 2)
        return 0;
    err = wb_nameless_map(s->writer->root, count * sizeof *s->a, &a);
    if (err == 0)
        err = wb_nameless_map(s->writer->root, count * sizeof *s->b, &b);
    s->a = a;
    s->b = b;
    if (err == 0) {
        note_equal(s);
        others = set_equal_apart(s);
    }
    for (unsigned low = 0; err == 0 && low + 1 < BLOCKS; low++)
        err = find_near(s, low);
    if (err == 0)
        follow_first(s, others);
    if (a)
        wb_nameless_unmap(a, count * sizeof *s->a);
    if (b)
        wb_nameless_unmap(b, count * sizeof *s->b);
    return err;
}

static int write_column(struct near_stage *s)
{
    struct wb_column_writer *column = NULL;
    uint8_t bytes[sizeof(uint32_t)];
    int err = wb_writer_create_column(s->writer, WB_NEAR_FILE, WB_NEAR_KIND, sizeof bytes, &column);

    check_stage(s);
    for (uint64_t i = 0; err == 0 && i < s->near.count; i++) {
        wb_put32(bytes, s->near.numbers[i]);
        err = wb_column_add(column, bytes);
    }
    if (err == 0)
        err = wb_column_finish(column, NULL);
    else
        wb_column_abandon(column);
    return err;
}

int wb_merge_near(struct wb_webdb_writer *writer)
{
    struct near_stage s = {.writer = writer};

    WB_CHECK(wb_writer_is(writer, WB_WRITER_MERGING));
    WB_CHECK(writer->print_count <= writer->next.count.pages);
    int err = wb_numbermap_open(writer->root, writer->next.rows, &s.near);

    if (err == 0 && s.near.count)
        memset(s.near.numbers, 0xff, s.near.count * sizeof *s.near.numbers);
    if (err == 0)
        err = find_families(&s);
    if (err == 0)
        err = write_column(&s);
    wb_numbermap_close(&s.near);
    wb_merge_near_close(writer);
    return err;
}
