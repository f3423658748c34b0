/* test_importer.c - what happens to captures and revisits; the store is the twin in memory. */
#include "../seeded.h"
#include "base/date.h"
#include "base/error.h"
#include "ingest/importer.h"
#include "unit/store/twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Its texts live until many more pages were named. */
static void name_page(struct wb_page *page, const char *key)
{
    static char urls[64][64];
    static unsigned next;
    char *url = urls[next++ % 64];

    snprintf(url, sizeof urls[0], "http://%s", key);
    page->url = wb_slice_str(url);
    page->key = wb_slice_str(url + strlen("http://"));
    page->id = wb_pageid_of_key(page->key);
}

static struct wb_import_item page_item(const char *key, const char *body, int64_t time_ms)
{
    struct wb_import_item item = {.kind = WB_IMPORT_PAGE, .records = 1};

    item.page = (struct wb_page){.head = WB_SLICE_LIT("HTTP/1.1 200 OK\r\n"), .type = WB_SLICE_LIT("text/html"),
                                 .charset = WB_SLICE_LIT("utf-8"), .body = wb_slice_str(body),
                                 .body_bytes = strlen(body), .time_ms = time_ms, .status = 200,
                                 .kind = WB_PAGE_RESPONSE};
    name_page(&item.page, key);
    return item;
}

/* A revisit of the same URL, with the digest of body. */
static struct wb_import_item revisit_item(const char *key, const char *body, int64_t time_ms)
{
    struct wb_import_item item = {.kind = WB_IMPORT_REVISIT, .records = 1};

    item.page = (struct wb_page){.head = WB_SLICE_EMPTY, .type = WB_SLICE_EMPTY, .charset = WB_SLICE_EMPTY,
                                 .body = WB_SLICE_EMPTY, .time_ms = time_ms, .kind = WB_PAGE_RESPONSE};
    name_page(&item.page, key);
    item.original = (struct wb_import_original){.known_profile = true, .has_sha1 = true, .id = item.page.id};
    wb_sha1(body, strlen(body), item.original.sha1);
    return item;
}

static void refer_to(struct wb_import_item *item, const char *key)
{
    item->original.elsewhere = true;
    item->original.id = wb_pageid_of_key(wb_slice_str(key));
}

static int set_up(void **state)
{
    static struct wb_importer importer;
    struct wb_import_item item = page_item("h.example/a", "the body", WB_DAY_MS);

    importer = WB_IMPORTER_INIT;
    assert_int_equal(wb_twin_open(&importer.store), 0);
    assert_int_equal(wb_importer_take(&importer, &item), 0);
    *state = &importer;
    return 0;
}

static int tear_down(void **state)
{
    wb_importer_release(*state);
    return 0;
}

/* The page with this key, which borrows from the buffer, or NULL. */
static const struct wb_page *get(struct wb_importer *importer, const char *key, struct wb_page *page,
                                 struct wb_buf *mem)
{
    int err = wb_store_get(importer->store, wb_pageid_of_key(wb_slice_str(key)), page, mem);

    assert_true(err == 0 || err == WB_E_NOTFOUND);
    return err == 0 ? page : NULL;
}

static void take(struct wb_importer *importer, struct wb_import_item *item)
{
    assert_int_equal(wb_importer_take(importer, item), 0);
}

static void test_a_revisit_moves_the_time(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/a", "the body", 2 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    take(importer, &item);
    assert_int_equal(wb_importer_commit(importer), 0);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == 2 * WB_DAY_MS);
    assert_true(wb_slice_equal(page.body, WB_SLICE_LIT("the body")));
    assert_int_equal(importer->revisits, 1);
    assert_int_equal(importer->records, 2);
    assert_int_equal(wb_importer_pages(importer), 1);
    wb_buf_release(&mem);
}

static void test_another_digest_is_another_page(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/a", "another body", 2 * WB_DAY_MS);
    struct wb_store_revisit fact;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    take(importer, &item);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == WB_DAY_MS);
    assert_int_equal(wb_importer_commit(importer), 0);
    assert_int_equal(wb_store_get_revisit(importer->store, item.page.id, &fact), 0);
    assert_true(fact.time_ms == 2 * WB_DAY_MS);
    wb_buf_release(&mem);
}

static void test_a_copy_under_another_url(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("mirror.example/b", "the body", 2 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    refer_to(&item, "h.example/a");
    item.page.head = WB_SLICE_LIT("HTTP/1.1 203 Fine\r\nContent-Type: text/plain\r\n");
    item.page.status = 203;
    item.page.type = WB_SLICE_LIT("text/plain");
    take(importer, &item);
    assert_int_equal(wb_importer_commit(importer), 0);
    assert_non_null(get(importer, "mirror.example/b", &page, &mem));
    assert_true(wb_slice_equal(page.body, WB_SLICE_LIT("the body")));
    assert_true(wb_slice_equal(page.type, WB_SLICE_LIT("text/plain")));
    assert_true(wb_slice_equal(page.url, WB_SLICE_LIT("http://mirror.example/b")));
    assert_int_equal(page.status, 203);
    assert_true(page.time_ms == 2 * WB_DAY_MS);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == WB_DAY_MS);
    assert_int_equal(wb_importer_pages(importer), 2);
    wb_buf_release(&mem);
}

static void test_a_copy_without_a_head_has_the_originals(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("mirror.example/c", "the body", 2 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    refer_to(&item, "h.example/a");
    take(importer, &item);
    assert_non_null(get(importer, "mirror.example/c", &page, &mem));
    assert_true(wb_slice_equal(page.head, WB_SLICE_LIT("HTTP/1.1 200 OK\r\n")));
    assert_int_equal(page.status, 200);
    wb_buf_release(&mem);
}

static void test_not_modified_needs_the_page(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/a", "", 3 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    item.original.has_sha1 = false;
    item.original.not_modified = true;
    item.page.head = WB_SLICE_LIT("HTTP/1.1 304 Not Modified\r\n");
    item.page.status = 304;
    take(importer, &item);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == 3 * WB_DAY_MS);
    assert_int_equal(page.status, 200);

    name_page(&item.page, "h.example/unknown");
    item.original.id = item.page.id;
    take(importer, &item);
    assert_null(get(importer, "h.example/unknown", &page, &mem));
    assert_int_equal(importer->revisits, 2);
    wb_buf_release(&mem);
}

static void test_without_a_digest_the_date_decides(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/a", "", 3 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    item.original.has_sha1 = false;
    item.original.time_ms = WB_DAY_MS - 5000;
    take(importer, &item);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == WB_DAY_MS);
    item.original.time_ms = WB_DAY_MS + 500;
    take(importer, &item);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == 3 * WB_DAY_MS);
    wb_buf_release(&mem);
}

static void test_an_unknown_profile_means_nothing(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/a", "the body", 2 * WB_DAY_MS);
    struct wb_store_revisit fact;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    item.original.known_profile = false;
    take(importer, &item);
    assert_int_equal(wb_importer_commit(importer), 0);
    assert_int_equal(importer->revisits, 1);
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(page.time_ms == WB_DAY_MS);
    assert_int_equal(wb_store_get_revisit(importer->store, item.page.id, &fact), WB_E_NOTFOUND);
    wb_buf_release(&mem);
}

static void test_counts(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item newer = page_item("h.example/a", "newer", 2 * WB_DAY_MS);
    struct wb_import_item older = page_item("h.example/a", "older", 0);
    struct wb_import_item error = {.kind = WB_IMPORT_ERROR, .records = 2, .fatal = true};
    struct wb_import_item file = {.kind = WB_IMPORT_FILE, .records = 1};

    assert_int_equal(wb_importer_commit(importer), 0);
    take(importer, &newer);
    take(importer, &older);
    take(importer, &error);
    take(importer, &file);
    assert_true(importer->uncommitted > 0);
    assert_int_equal(wb_importer_commit(importer), 0);
    assert_int_equal(importer->uncommitted, 0);
    assert_int_equal(wb_importer_pages(importer), 2);
    assert_int_equal(importer->commit.replaced, 1);
    assert_int_equal(importer->commit.older, 1); /* the policy keeps the newest version only */
    assert_int_equal(importer->records, 6);
    assert_int_equal(importer->errors, 1);
    assert_int_equal(importer->unreadable, 1);
    assert_int_equal(importer->files, 1);
}

/* ---- versions ------------------------------------------------------------------------------------------------ */

static int set_up_history(void **state)
{
    const struct wb_store_history all = {.keep = WB_STORE_KEEP_ALL};

    assert_int_equal(set_up(state), 0);
    assert_int_equal(wb_importer_commit(*state), 0);
    return wb_store_set_history(((struct wb_importer *)*state)->store, &all);
}

/* The versions of a page, as "first-last*captures" in days. */
static void expect_versions(struct wb_importer *importer, const char *key, const char *expected)
{
    struct wb_store_timeline timeline;
    struct wb_buf text = WB_BUF_INIT;

    assert_int_equal(wb_importer_commit(importer), 0);
    assert_int_equal(wb_importer_commit(importer), 0); /* copies that were put after the first one */
    int err = wb_store_timeline(importer->store, wb_pageid_of_key(wb_slice_str(key)), &timeline);
    if (err == WB_E_NOTFOUND) {
        assert_string_equal(expected, "");
        return;
    }
    assert_int_equal(err, 0);
    for (size_t i = 0; i < timeline.count; i++)
        assert_int_equal(wb_buf_printf(&text, "%s%lld-%lld*%zu", i ? " " : "",
                                       (long long)timeline.versions[i].time_ms / WB_DAY_MS,
                                       (long long)timeline.versions[i].last_ms / WB_DAY_MS,
                                       timeline.versions[i].captures), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    assert_string_equal(text.ptr, expected);
    wb_buf_release(&text);
    wb_store_timeline_release(&timeline);
}

static void take_at(struct wb_importer *importer, const char *key, const char *body, int day)
{
    struct wb_import_item item = page_item(key, body, day * WB_DAY_MS);

    take(importer, &item);
}

static void test_captures_in_any_order(void **state)
{
    struct wb_importer *importer = *state;

    take_at(importer, "h.example/a", "other", 5);
    take_at(importer, "h.example/a", "the body", 3);
    take_at(importer, "h.example/a", "oldest", 0);
    take_at(importer, "h.example/a", "the body", 7);
    expect_versions(importer, "h.example/a", "0-0*1 1-3*2 5-5*1 7-7*1");
    assert_int_equal(wb_importer_pages(importer), 4);
    assert_int_equal(importer->commit.added, 1);
    assert_int_equal(importer->commit.replaced, 2);
    assert_int_equal(importer->commit.past, 1);
    assert_int_equal(importer->commit.captures, 1);
    /* The same again changes nothing. */
    take_at(importer, "h.example/a", "the body", 3);
    take_at(importer, "h.example/a", "oldest", 0);
    expect_versions(importer, "h.example/a", "0-0*1 1-3*2 5-5*1 7-7*1");
    assert_int_equal(wb_importer_pages(importer), 4);
    assert_int_equal(importer->commit.captures, 1);
    assert_int_equal(importer->commit.older, 2);
}

static void test_an_old_content_returns_by_a_revisit(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/a", "the body", 3 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    take_at(importer, "h.example/a", "other", 2);
    take(importer, &item);
    expect_versions(importer, "h.example/a", "1-1*1 2-2*1 3-3*1");
    assert_non_null(get(importer, "h.example/a", &page, &mem));
    assert_true(wb_slice_equal(page.body, WB_SLICE_LIT("the body")));
    wb_buf_release(&mem);
}

static void test_a_revisit_waits_for_its_original(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("h.example/late", "content", 4 * WB_DAY_MS);

    take(importer, &item);
    expect_versions(importer, "h.example/late", "");
    take_at(importer, "h.example/late", "other", 3);
    expect_versions(importer, "h.example/late", "3-3*1");
    take_at(importer, "h.example/late", "content", 1);
    expect_versions(importer, "h.example/late", "1-1*1 3-3*1 4-4*1");
}

/* The original has another URL, and comes after the revisit, and after a restart. */
static void test_a_copy_of_what_arrives_later(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item item = revisit_item("mirror.example/late", "content", 4 * WB_DAY_MS);
    struct wb_import_item other = revisit_item("mirror.example/other", "never", 4 * WB_DAY_MS);
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;

    refer_to(&item, "h.example/late");
    refer_to(&other, "h.example/late");
    take(importer, &item);
    take(importer, &other);
    expect_versions(importer, "mirror.example/late", "");
    importer->waiting = false;
    assert_int_equal(wb_importer_begin(importer), 0);
    assert_true(importer->waiting);
    take_at(importer, "h.example/late", "something else", 2);
    expect_versions(importer, "mirror.example/late", "");
    take_at(importer, "h.example/late", "content", 1);
    expect_versions(importer, "mirror.example/late", "4-4*1");
    expect_versions(importer, "mirror.example/other", "");
    assert_non_null(get(importer, "mirror.example/late", &page, &mem));
    assert_true(wb_slice_equal(page.body, WB_SLICE_LIT("content")));
    assert_true(wb_slice_equal(page.url, WB_SLICE_LIT("http://mirror.example/late")));
    wb_buf_release(&mem);
}

/* A newer version of the original came in between: committed or not, the revisit finds the old one. */
static void test_a_copy_of_an_old_version(void **state)
{
    struct wb_importer *importer = *state;
    struct wb_import_item first = revisit_item("mirror.example/1", "the body", 4 * WB_DAY_MS);
    struct wb_import_item second = revisit_item("mirror.example/2", "", 5 * WB_DAY_MS);

    refer_to(&first, "h.example/a");
    refer_to(&second, "h.example/a");
    second.original.has_sha1 = false;
    second.original.time_ms = WB_DAY_MS + 400;
    take_at(importer, "h.example/a", "newer", 2);
    take(importer, &first);
    expect_versions(importer, "mirror.example/1", "4-4*1");
    take_at(importer, "h.example/a", "newest", 3);
    take(importer, &second);
    expect_versions(importer, "mirror.example/2", "5-5*1");
    assert_int_equal(importer->revisits, 2);
}

/* ---- the same captures in any order, as pages and as revisits -------------------------------------------------- */

enum { PAGES = 3, DAYS = 24, CONTENTS = 3 };

/* What is seen on a day: 0 nothing, or a content from 1. */
struct diary {
    int seen[PAGES][DAYS];
};

static void content_of(int page, int content, char text[32])
{
    /* The second page is a mirror of the first. */
    snprintf(text, 32, "content %d of %d", content, page == 1 ? 0 : page);
}

static void key_of_page(int page, char key[32])
{
    snprintf(key, 32, "h.example/%d", page);
}

/* The first time that a content is seen it comes as a page; later, at random, as a revisit. */
static void take_capture(struct wb_importer *importer, const struct diary *diary, int page, int day, uint64_t *chance)
{
    char key[32], elsewhere[32], body[32];
    struct wb_import_item item;
    int first = 0;

    key_of_page(page, key);
    key_of_page(0, elsewhere);
    content_of(page, diary->seen[page][day], body);
    while (diary->seen[page][first] != diary->seen[page][day])
        first++;
    bool mirrored = page == 1 && chance_one_in(chance, 2);
    for (int i = 0; mirrored && diary->seen[0][i] != diary->seen[1][day]; i++)
        mirrored = i + 1 < DAYS; /* only what the first page has too can refer to it */
    if (mirrored || (first < day && chance_one_in(chance, 2))) {
        item = revisit_item(key, body, (day + 1) * WB_DAY_MS);
        if (mirrored)
            refer_to(&item, elsewhere);
    } else {
        item = page_item(key, body, (day + 1) * WB_DAY_MS);
    }
    take(importer, &item);
    if (chance_one_in(chance, 9))
        assert_int_equal(wb_importer_commit(importer), 0);
}

static void expect_diary(struct wb_importer *importer, const struct diary *diary, int page)
{
    struct wb_buf expected = WB_BUF_INIT;
    char key[32];

    for (int day = 0, end; day < DAYS; day = end) {
        int content = diary->seen[page][day], last = day, captures = 0;
        for (end = day; end < DAYS && (diary->seen[page][end] == 0 || diary->seen[page][end] == content); end++)
            if (diary->seen[page][end]) {
                last = end;
                captures++;
            }
        if (content == 0)
            end = day + 1;
        else
            assert_int_equal(wb_buf_printf(&expected, "%s%d-%d*%d", expected.len ? " " : "", day + 1, last + 1,
                                           captures), 0);
    }
    assert_int_equal(wb_buf_terminate(&expected), 0);
    key_of_page(page, key);
    expect_versions(importer, key, expected.ptr);
    wb_buf_release(&expected);
}

static void test_any_order_and_form(void **state)
{
    struct wb_importer *importer = *state;
    uint64_t chance = test_seed();
    struct diary diary;
    int order[PAGES * DAYS];

    for (int page = 0; page < PAGES; page++)
        for (int day = 0; day < DAYS; day++)
            diary.seen[page][day] = chance_one_in(&chance, 3) ? 0 : 1 + (int)chance_below(&chance, CONTENTS);
    for (int i = 0; i < PAGES * DAYS; i++) {
        int at = (int)chance_below(&chance, (uint64_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    /* Twice: the second time changes nothing, whatever is a page and whatever is a revisit. */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PAGES * DAYS; i++)
            if (diary.seen[order[i] / DAYS][order[i] % DAYS])
                take_capture(importer, &diary, order[i] / DAYS, order[i] % DAYS, &chance);
        for (int page = 0; page < PAGES; page++)
            expect_diary(importer, &diary, page);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
#define TEST_HISTORY(function) cmocka_unit_test_setup_teardown(function, set_up_history, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_revisit_moves_the_time),
        TEST(test_another_digest_is_another_page),
        TEST(test_a_copy_under_another_url),
        TEST(test_a_copy_without_a_head_has_the_originals),
        TEST(test_not_modified_needs_the_page),
        TEST(test_without_a_digest_the_date_decides),
        TEST(test_an_unknown_profile_means_nothing),
        TEST(test_counts),
        TEST_HISTORY(test_captures_in_any_order),
        TEST_HISTORY(test_an_old_content_returns_by_a_revisit),
        TEST_HISTORY(test_a_revisit_waits_for_its_original),
        TEST_HISTORY(test_a_copy_of_what_arrives_later),
        TEST_HISTORY(test_a_copy_of_an_old_version),
        TEST_HISTORY(test_any_order_and_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
