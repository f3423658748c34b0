/* test_import_journal.c - what the journal says after an import, read back as update reads it. */
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "ingest/importer.h"
#include "unit/store/twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TIME_MS 1767323045678ll
#define OK_HEAD                                                                                                        \
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"v1\"\r\nLast-Modified: Fri, 02 Jan 2026 03:04:05 GMT\r\n"

static char folder[64];

static int set_up(void **state)
{
    struct wb_import_journal *journal;

    snprintf(folder, sizeof folder, "/tmp/webbase-journal-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(wb_import_journal_open(folder, 3, &journal), 0);
    *state = journal;
    return 0;
}

static int tear_down(void **state)
{
    char text[96];

    wb_import_journal_close(*state);
    snprintf(text, sizeof text, "rm -rf '%s'", folder);
    return system(text);
}

/* ---- in -------------------------------------------------------------------------------- */

static struct wb_import_item *page_item(const char *url, unsigned status, const char *head, const char *body)
{
    struct wb_import_item *item = wb_import_item_new(WB_IMPORT_PAGE, 4096);

    assert_non_null(item);
    item->page = (struct wb_page){.url = wb_import_item_copy(item, wb_slice_str(url)), .head = wb_slice_str(head),
                                  .type = WB_SLICE_LIT("text/html"), .charset = WB_SLICE_EMPTY,
                                  .body = wb_import_item_copy(item, wb_slice_str(body)), .body_bytes = strlen(body),
                                  .time_ms = TIME_MS, .lifetime = 7, .status = (uint16_t)status,
                                  .kind = WB_PAGE_RESPONSE};
    size_t scheme = strstr(url, "//") ? (size_t)(strstr(url, "//") + 2 - url) : 0;
    item->page.key = wb_slice(item->page.url.ptr + scheme, item->page.url.len - scheme);
    item->page.id = wb_pageid_of_key(item->page.key);
    return item;
}

static void tell(struct wb_import_journal *journal, struct wb_import_item *list)
{
    struct wb_import_item *back = NULL;

    assert_int_equal(wb_import_journal_begin(journal, list), 0);
    assert_true(wb_import_journal_busy(journal));
    assert_int_equal(wb_import_journal_take(journal, true, &back), 0);
    assert_ptr_equal(back, list);
    assert_false(wb_import_journal_busy(journal));
    while (back) {
        struct wb_import_item *next = back->next;
        assert_true(back->kind != WB_IMPORT_PAGE || back->page.digested);
        wb_free(back);
        back = next;
    }
}

/* ---- out --------------------------------------------------------------------------------- */

struct told {
    struct wb_journal_reader *reader;
    struct wb_edit_place at;
    struct wb_edit edit;
};

static void read_first(struct told *told)
{
    *told = (struct told){.at = WB_EDIT_NOWHERE};
    assert_int_equal(wb_journal_reader_open(folder, &told->reader), 0);
    assert_int_equal(wb_journal_reader_next(told->reader, &told->at, &told->edit), 1);
    assert_int_equal(told->edit.kind, WB_EDIT_PAGE);
}

/* The only record. */
static const struct wb_edit_page *read_only(struct told *told)
{
    struct wb_edit_place at;
    struct wb_edit edit;

    read_first(told);
    at = told->at;
    assert_int_equal(wb_journal_reader_next(told->reader, &at, &edit), 0);
    wb_journal_reader_close(told->reader);
    read_first(told);
    return &told->edit.page;
}

static void assert_text(struct wb_slice text, const char *expected)
{
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.ptr, expected, text.len);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_a_page_and_its_links(void **state)
{
    static const char body[] = "<title>T</title><p>some words of a page</p><a href='/b#part'>first</a>"
                               "<a href='b'>second</a><a rel=nofollow href=http://o.example/>other</a>"
                               "<a href='mailto:x@y'>mail</a><img src=i.png alt=picture>";
    static const struct {
        const char *url, *anchor;
        unsigned tag, flags;
    } expected[] = {
        {"http://h.example/b", "first", WB_EXTRACT_LINK_A, WB_PAGELINK_FOLLOW},
        {"http://o.example/", "other", WB_EXTRACT_LINK_A, WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW},
        {"http://h.example/i.png", "picture", WB_EXTRACT_LINK_IMG, 0},
    };
    struct wb_import_item *item = page_item("http://h.example/a", 200, OK_HEAD, body);
    struct wb_page copy = {.body = wb_slice_str(body)};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pagelink link;
    struct told told;
    size_t at = 0;

    tell(*state, item);
    assert_int_equal(wb_import_journal_sync(*state), 0);
    const struct wb_edit_page *page = read_only(&told);
    assert_true(told.edit.site == wb_edit_site(WB_SLICE_LIT("h.example")));
    assert_true(told.edit.time_ms == TIME_MS);
    assert_int_equal(told.edit.prev.log, 0);
    assert_text(page->url, "http://h.example/a");
    assert_int_equal(page->outcome, WB_OUTCOME_STORED);
    assert_int_equal(page->status, 200);
    assert_int_equal(page->depth.links, 0);
    assert_int_equal(page->lifetime, 7);
    assert_int_equal(page->bytes, sizeof body - 1);
    wb_page_digest(&copy);
    assert_true(page->has_content);
    assert_memory_equal(page->md5, copy.md5, WB_MD5_BYTES);
    assert_true(page->simhash != 0 && page->title_hash != 0);
    assert_text(page->type, "text/html");
    assert_text(page->etag, "\"v1\"");
    assert_text(page->modified, "Fri, 02 Jan 2026 03:04:05 GMT");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(wb_edit_links_next(&told.edit, &at, &mem, &link), 1);
        assert_text(link.url, expected[i].url);
        assert_text(link.anchor, expected[i].anchor);
        assert_int_equal(link.tag, expected[i].tag);
        assert_int_equal(link.flags, expected[i].flags);
    }
    assert_int_equal(wb_edit_links_next(&told.edit, &at, &mem, &link), 0);
    wb_buf_release(&mem);
    wb_journal_reader_close(told.reader);
}

static void test_the_outcome_follows_from_the_status(void **state)
{
    static const struct {
        unsigned status;
        const char *head;
        enum wb_edit_outcome outcome;
        const char *reason, *location;
        bool truncated;
    } expected[] = {
        {200, OK_HEAD, WB_OUTCOME_TRUNCATED, "", "", true},
        {301, "HTTP/1.1 301 Moved\r\nLocation: ../to#x\r\n", WB_OUTCOME_REDIRECT, "", "http://h.example/to", false},
        {302, "HTTP/1.1 302 Found\r\n", WB_OUTCOME_ERROR, "location", "", false},
        {307, "HTTP/1.1 307 Go\r\nLocation: mailto:x@y\r\n", WB_OUTCOME_ERROR, "location", "", false},
        {304, "HTTP/1.1 304 Not Modified\r\n", WB_OUTCOME_ERROR, "status", "", false},
        {404, "HTTP/1.1 404 No\r\n", WB_OUTCOME_GONE, "", "", false},
        {410, "HTTP/1.1 410 Gone\r\n", WB_OUTCOME_GONE, "", "", false},
        {503, "HTTP/1.1 503 Later\r\n", WB_OUTCOME_ERROR, "status", "", false},
    };
    struct wb_import_item *list = NULL, **tail = &list;
    size_t count = sizeof expected / sizeof *expected;
    struct told told;
    char url[64];

    for (size_t i = 0; i < count; i++) {
        snprintf(url, sizeof url, "http://h.example/%zu/x", i);
        *tail = page_item(url, expected[i].status, expected[i].head, "<a href=/y>y</a>");
        (*tail)->page.truncated = expected[i].truncated;
        tail = &(*tail)->next;
    }
    tell(*state, list);
    assert_int_equal(wb_import_journal_finish(*state), 0);
    read_first(&told);
    /* The list is one job, so the records are in its order. */
    for (size_t i = 0; i < count; i++) {
        const struct wb_edit_page *page = &told.edit.page;
        snprintf(url, sizeof url, "http://h.example/%zu/x", i);
        assert_text(page->url, url);
        assert_int_equal(page->outcome, expected[i].outcome);
        assert_int_equal(page->status, expected[i].status);
        assert_text(page->reason, expected[i].reason);
        assert_text(page->location, expected[i].location);
        assert_int_equal(page->has_content, i == 0);
        assert_int_equal(page->link_count, i == 0);
        assert_int_equal(wb_journal_reader_next(told.reader, &told.at, &told.edit), i + 1 < count);
    }
    wb_journal_reader_close(told.reader);
}

static void test_only_http_pages_are_journaled(void **state)
{
    struct wb_import_item *list = page_item("ftp://h.example/a", 200, "", "x");

    list->next = page_item("dns:h.example", 200, "", "x");
    list->next->next = wb_import_item_new(WB_IMPORT_FILE, 0);
    tell(*state, list);
    assert_int_equal(wb_import_journal_finish(*state), 0);
    /* Nothing was written, so there is no journal. */
    struct wb_edit_place at = WB_EDIT_NOWHERE;
    struct wb_journal_reader *reader;
    struct wb_edit edit;
    assert_int_equal(wb_journal_reader_open(folder, &reader), 0);
    assert_int_equal(wb_journal_reader_next(reader, &at, &edit), 0);
    wb_journal_reader_close(reader);
}

/* Several lists at once, in threads: each page is there once, with the links of its own body. */
static void test_many_pages(void **state)
{
    enum { LISTS = 7, PAGES = 300 };
    struct wb_import_item *lists[LISTS] = {NULL}, *back = NULL;
    static unsigned seen[LISTS * PAGES];
    char url[64], body[96];
    struct told told;
    struct wb_buf mem = WB_BUF_INIT;
    int got = 1;

    for (size_t l = 0; l < LISTS; l++) {
        for (size_t i = PAGES; i-- > 0;) {
            snprintf(url, sizeof url, "http://h.example/%zu", l * PAGES + i);
            snprintf(body, sizeof body, "<p>page %zu</p><a href='/to/%zu'>go</a>", i, l * PAGES + i);
            struct wb_import_item *item = page_item(url, 200, OK_HEAD, body);
            item->next = lists[l];
            lists[l] = item;
        }
        assert_int_equal(wb_import_journal_begin(*state, lists[l]), 0);
    }
    for (size_t l = 0; l < LISTS; l++) {
        assert_int_equal(wb_import_journal_take(*state, true, &back), 0);
        assert_ptr_equal(back, lists[l]);
        for (struct wb_import_item *next; back; back = next) {
            next = back->next;
            wb_free(back);
        }
    }
    assert_int_equal(wb_import_journal_finish(*state), 0);
    memset(seen, 0, sizeof seen);
    for (read_first(&told); got == 1; got = wb_journal_reader_next(told.reader, &told.at, &told.edit)) {
        struct wb_pagelink link;
        uint64_t number, target;
        size_t at = 0;
        struct wb_slice name = wb_slice(told.edit.page.url.ptr + 17, told.edit.page.url.len - 17);
        assert_true(wb_slice_to_u64(name, &number) && number < LISTS * PAGES);
        assert_int_equal(wb_edit_links_next(&told.edit, &at, &mem, &link), 1);
        assert_true(wb_slice_to_u64(wb_slice(link.url.ptr + 20, link.url.len - 20), &target));
        assert_int_equal(target, number);
        seen[number]++;
    }
    assert_int_equal(got, 0);
    for (size_t i = 0; i < LISTS * PAGES; i++)
        assert_int_equal(seen[i], 1);
    wb_buf_release(&mem);
    wb_journal_reader_close(told.reader);
}

/* A revisit of the same URL means unchanged content, one of another URL means a copy. Neither has links. */
static void test_revisits(void **state)
{
    static const char body[] = "<title>T</title><p>words of the original page</p><a href=/b>b</a>";
    struct wb_importer importer = WB_IMPORTER_INIT;
    struct wb_import_item *original = page_item("http://h.example/a", 200, OK_HEAD, body), *back = NULL;
    struct wb_import_item again = {.kind = WB_IMPORT_REVISIT, .records = 1}, copy;
    struct wb_edit_page first;
    struct told told;

    importer.journal = *state;
    assert_int_equal(wb_twin_open(&importer.store), 0);
    assert_int_equal(wb_import_journal_begin(*state, original), 0);
    assert_int_equal(wb_import_journal_take(*state, true, &back), 0);
    assert_int_equal(wb_importer_take(&importer, original), 0);

    again.page = (struct wb_page){.url = original->page.url, .key = original->page.key, .id = original->page.id,
                                  .head = WB_SLICE_EMPTY, .type = WB_SLICE_EMPTY, .charset = WB_SLICE_EMPTY,
                                  .body = WB_SLICE_EMPTY, .time_ms = TIME_MS + 5000,
                                  .kind = WB_PAGE_RESPONSE};
    again.original = (struct wb_import_original){.known_profile = true, .has_sha1 = true, .id = again.page.id};
    wb_sha1(body, sizeof body - 1, again.original.sha1);
    assert_int_equal(wb_importer_take(&importer, &again), 0);
    copy = again;
    copy.original.elsewhere = true;
    copy.page.url = WB_SLICE_LIT("https://mirror.example/a");
    copy.page.key = WB_SLICE_LIT("mirror.example/a");
    copy.page.id = wb_pageid_of_key(copy.page.key);
    assert_int_equal(wb_importer_take(&importer, &copy), 0);
    copy.original.sha1[0] ^= 1; /* the original of this one is unknown, so it does not become a page */
    assert_int_equal(wb_importer_take(&importer, &copy), 0);
    assert_int_equal(wb_importer_commit(&importer), 0);

    read_first(&told);
    first = told.edit.page;
    assert_int_equal(first.outcome, WB_OUTCOME_STORED);
    assert_int_equal(wb_journal_reader_next(told.reader, &told.at, &told.edit), 1);
    for (int i = 0; i < 2; i++) {
        const struct wb_edit_page *page = &told.edit.page;
        assert_true(told.edit.time_ms == TIME_MS + 5000);
        assert_text(page->url, i == 0 ? "http://h.example/a" : "https://mirror.example/a");
        assert_int_equal(page->outcome, i == 0 ? WB_OUTCOME_UNCHANGED : WB_OUTCOME_DUPLICATE);
        assert_true(page->has_content);
        assert_memory_equal(page->md5, first.md5, WB_MD5_BYTES);
        assert_true(page->simhash == first.simhash && page->title_hash == first.title_hash);
        assert_int_equal(page->link_count, 0);
        assert_int_equal(wb_journal_reader_next(told.reader, &told.at, &told.edit), i == 0);
    }
    wb_journal_reader_close(told.reader);
    importer.journal = NULL; /* closed by tear_down */
    wb_importer_release(&importer);
    wb_free(original);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_page_and_its_links),
        TEST(test_the_outcome_follows_from_the_status),
        TEST(test_only_http_pages_are_journaled),
        TEST(test_many_pages),
        TEST(test_revisits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
