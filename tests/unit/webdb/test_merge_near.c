/*
 * test_merge_near.c - near duplicates, compared with a naive twin that looks at every pair of pages, for random webs.
 * The result must not depend on the order in which pages arrived, nor on how the work was divided into updates.
 */
#include "../journal/edit_support.h"
#include "webdb/webdb.h"

enum { PAGES_MAX = 400, NEAR_BITS = 3 };

struct one {
    uint64_t simhash, bytes;
    unsigned flags;
    bool content;
};

/* URLs sort in the same order as the numbers of their pages. */
static void url_of(size_t number, char url_out[64])
{
    snprintf(url_out, 64, "http://h%zu.example/%06zu", number % 7, number);
}

static int compare_urls(const void *a, const void *b)
{
    /* "example,h3)/000010": by site, then by path. */
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x % 7 != y % 7 ? (x % 7 < y % 7 ? -1 : 1) : x < y ? -1 : x > y;
}

static void add(struct wb_webdb_writer *writer, const struct one *web, size_t number)
{
    char url[64];
    struct wb_webdb_page page = {.flags = web[number].flags,
                                 .has_content = web[number].content,
                                 .simhash = web[number].simhash,
                                 .bytes = web[number].bytes,
                                 .first_seen_ms = 1,
                                 .last_seen_ms = 2,
                                 .last_tried_ms = 2,
                                 .status = 200};

    url_of(number, url);
    page.url = wb_slice_str(url);
    memcpy(page.md5, &number, sizeof number);
    assert_int_equal(wb_webdb_add_page(writer, &page), 0);
}

static bool counts(const struct one *one)
{
    return one->content && one->simhash && one->bytes >= 512 &&
           !(one->flags & (WB_PAGE_GONE | WB_PAGE_BARRED | WB_PAGE_LOADED));
}

/* By the definition: the first page before it that is near, or SIZE_MAX. */
static size_t expected(const struct one *web, const size_t *order, size_t at)
{
    const struct one *own = &web[order[at]];

    for (size_t i = 0; counts(own) && i < at; i++) {
        const struct one *other = &web[order[i]];
        if (counts(other) && __builtin_popcountll(other->simhash ^ own->simhash) <= NEAR_BITS)
            return order[i];
    }
    return SIZE_MAX;
}

static void compare(const char *dir, const struct one *web, size_t count)
{
    static size_t order[PAGES_MAX];
    struct wb_webdb *webdb;
    struct wb_webdb_page page;
    struct wb_buf near = WB_BUF_INIT;
    char url[64], want[64];

    for (size_t i = 0; i < count; i++)
        order[i] = i;
    qsort(order, count, sizeof *order, compare_urls);
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    for (size_t i = 0; i < count; i++) {
        size_t to = expected(web, order, i);
        url_of(order[i], url);
        assert_int_equal(wb_webdb_get_page(webdb, wb_slice_str(url), &page), 0);
        if (page.near != (to != SIZE_MAX))
            print_error("%s: near is %d, not %d\n", url, page.near, to != SIZE_MAX);
        assert_int_equal(page.near, to != SIZE_MAX);
        if (!page.near)
            continue;
        url_of(to, want);
        assert_int_equal(wb_webdb_page_url(webdb, page.near_number, &near), 0);
        assert_true(wb_slice_equal(wb_buf_slice(&near), wb_slice_str(want)));
    }
    wb_buf_release(&near);
    wb_webdb_close(webdb);
}

static struct wb_webdb_writer *open_writer(const char *dir)
{
    struct wb_webdb_writer *writer;

    assert_int_equal(wb_webdb_writer_open(dir, NULL, &writer), 0);
    return writer;
}

/* Random families around a few centres, and some pages that belong to none. */
static void make_web(uint64_t *chance, struct one *web, size_t count)
{
    uint64_t centres[8];

    for (size_t i = 0; i < COUNT(centres); i++)
        centres[i] = chance_next(chance);
    for (size_t i = 0; i < count; i++) {
        struct one one = {.simhash = chance_next(chance), .bytes = 5000, .content = true};
        if (chance_below(chance, 3))
            one.simhash = centres[chance_below(chance, COUNT(centres))];
        for (uint64_t flips = chance_below(chance, 5); flips > 0; flips--)
            one.simhash ^= UINT64_C(1) << chance_below(chance, 64);
        switch (chance_below(chance, 12)) {
        case 0:
            one.bytes = chance_below(chance, 1024);
            break;
        case 1:
            one.simhash = 0;
            break;
        case 2:
            one.content = false;
            break;
        case 3:
            one.flags = chance_below(chance, 2) ? WB_PAGE_GONE : WB_PAGE_BARRED;
            break;
        default:
            break;
        }
        web[i] = one;
    }
}

static void test_model(void **state)
{
    uint64_t chance = test_seed();
    static struct one web[PAGES_MAX];

    (void)state;
    for (int round = 0; round < 12; round++) {
        const char *dir = new_dir();
        size_t count = 1 + chance_below(&chance, PAGES_MAX), order[PAGES_MAX];
        unsigned updates = 1 + (unsigned)chance_below(&chance, 4);
        make_web(&chance, web, count);
        for (size_t i = 0; i < count; i++)
            order[i] = i;
        for (size_t i = count; i > 1; i--) {
            size_t k = chance_below(&chance, i), held = order[i - 1];
            order[i - 1] = order[k];
            order[k] = held;
        }
        for (unsigned u = 0; u < updates; u++) {
            struct wb_webdb_writer *writer = open_writer(dir);
            for (size_t i = count * u / updates; i < count * (u + 1) / updates; i++)
                add(writer, web, order[i]);
            assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
        }
        compare(dir, web, count);
    }
}

/* A page that changes leaves its family, and another one may become the first. */
static void test_changes(void **state)
{
    const char *dir = new_dir();
    struct one web[4] = {{.simhash = 0xf0f0, .bytes = 600, .content = true},
                         {.simhash = 0xf0f1, .bytes = 600, .content = true},
                         {.simhash = 0xf0f3, .bytes = 600, .content = true},
                         {.simhash = UINT64_MAX, .bytes = 600, .content = true}};
    struct wb_webdb_writer *writer = open_writer(dir);

    (void)state;
    for (size_t i = 0; i < COUNT(web); i++)
        add(writer, web, i);
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    compare(dir, web, COUNT(web));
    web[0].simhash = ~web[0].simhash;
    writer = open_writer(dir);
    add(writer, web, 0);
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    compare(dir, web, COUNT(web));
    web[1].flags = WB_PAGE_GONE;
    writer = open_writer(dir);
    add(writer, web, 1);
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    compare(dir, web, COUNT(web));
}

/*
 * A family that is larger than the number of pages that each page is compared with, all with one fingerprint: the first
 * page is found all the same.
 */
static void test_large_families(void **state)
{
    static struct one web[PAGES_MAX];
    const char *dir = new_dir();
    struct wb_webdb_writer *writer = open_writer(dir);

    (void)state;
    for (size_t i = 0; i < PAGES_MAX; i++) {
        web[i] = (struct one){.simhash = 0x123456789abcdef, .bytes = 9000, .content = true};
        if (i < PAGES_MAX / 2) /* one bit off, and one more: two apart from each other, in a block of their own */
            web[i].simhash ^= i ? UINT64_C(1) << (52 + i % 12) : 0;
        add(writer, web, i);
    }
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    compare(dir, web, PAGES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_large_families),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
