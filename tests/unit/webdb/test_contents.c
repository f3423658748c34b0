/* test_contents.c - finds contents by MD5: always the first entry, and nothing for other MD5s. */
#include "../journal/edit_support.h"
#include "base/bytes.h"
#include "webdb/edition.h"

enum { ENTRIES = 3000 };

static struct wb_content entries[ENTRIES];
static const char *dir;

static int compare_contents(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct wb_content));
}

/* Looks at one entry after the other. Returns the number of the first entry with this MD5, or count. */
static uint64_t find_slowly(size_t count, const uint8_t md5[WB_MD5_BYTES])
{
    for (size_t i = 0; i < count; i++) {
        if (memcmp(entries[i].md5, md5, WB_MD5_BYTES) == 0)
            return i;
    }
    return count;
}

static void expect_find(const struct wb_column *column, const uint8_t md5[WB_MD5_BYTES])
{
    uint64_t count = column->count, expected = find_slowly(count, md5), found;

    assert_int_equal(wb_contents_find(column, md5, &found), expected < count ? 0 : WB_E_NOTFOUND);
    if (expected < count)
        assert_true(found == expected);
}

/* Writes the first entries as a column and opens it. */
static struct wb_column open_entries(size_t count)
{
    struct wb_column_writer *writer = NULL;
    struct wb_column column = WB_COLUMN_INIT;
    char *path = wb_path_join(dir, WB_CONTENTS_FILE);

    qsort(entries, count, sizeof *entries, compare_contents);
    assert_int_equal(wb_column_create(path, WB_CONTENTS_KIND, sizeof *entries, &writer), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(wb_column_add(writer, &entries[i]), 0);
    assert_int_equal(wb_column_finish(writer, NULL), 0);
    assert_int_equal(wb_column_open(path, WB_CONTENTS_KIND, sizeof *entries, &column), 0);
    wb_free(path);
    return column;
}

/* Looks for every entry, and for the MD5s just before and after each. */
static void expect_finds(size_t count)
{
    struct wb_column column = open_entries(count);
    uint8_t beside[WB_MD5_BYTES];

    for (size_t i = 0; i < count; i += 1 + count / 200) {
        expect_find(&column, entries[i].md5);
        memcpy(beside, entries[i].md5, sizeof beside);
        beside[15]++;
        expect_find(&column, beside);
        beside[15] = (uint8_t)(beside[15] - 2);
        expect_find(&column, beside);
    }
    memset(beside, 0, sizeof beside);
    expect_find(&column, beside);
    memset(beside, 0xff, sizeof beside);
    expect_find(&column, beside);
    wb_column_close(&column);
}

static void put_entry(size_t i, uint64_t high, uint64_t low)
{
    wb_put64_be(entries[i].md5, high);
    wb_put64_be(entries[i].md5 + 8, low);
    wb_put64_be(entries[i].page, i);
}

static void test_even(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t count = 0; count <= ENTRIES; count = count < 20 ? count + 1 : 2 * count + 7) {
        for (size_t i = 0; i < count; i++) {
            uint64_t high = chance_next(&chance);
            put_entry(i, high, chance_next(&chance));
        }
        expect_finds(count);
    }
}

static void test_copies(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < ENTRIES; i++)
        put_entry(i, i % 3 ? 0x8000000000000000 : chance_next(&chance), i % 5 ? 7 : 8);
    expect_finds(ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        put_entry(i, 5, 5);
    expect_finds(ENTRIES);
}

/* Digests that somebody has chosen: crowded at both ends, doubling, different only in the last byte. */
static void test_uneven(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++)
        put_entry(i, i % 2 ? i : UINT64_MAX - i, i);
    expect_finds(ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        put_entry(i, 1ull << i % 64, i);
    expect_finds(ENTRIES);
    for (size_t i = 0; i < ENTRIES; i++)
        put_entry(i, 77, i);
    expect_finds(ENTRIES);
}

static int begin(void **state)
{
    int err = make_root(state);

    dir = err == 0 ? new_dir() : NULL;
    return err;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_even), cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_uneven)};

    return cmocka_run_group_tests(tests, begin, remove_root);
}
