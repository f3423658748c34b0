/* test_importer.c - what happens to revisits; the store is the twin in memory. */
#include "base/date.h"
#include "base/error.h"
#include "ingest/importer.h"
#include "unit/store/twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void name_page(struct wb_page *page, const char *key)
{
    page->key = wb_slice_str(key);
    page->url = wb_slice_str(key);
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
    assert_true(wb_slice_equal(page.url, WB_SLICE_LIT("mirror.example/b")));
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
    assert_int_equal(importer->commit.older, 1);
    assert_int_equal(importer->records, 6);
    assert_int_equal(importer->errors, 1);
    assert_int_equal(importer->unreadable, 1);
    assert_int_equal(importer->files, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
