/* test_push.c - announcements as lines and as JSON: what goes to the journal, and what is refused. */
#include "cycle_support.h"

#include "os/fault.h"

#include <errno.h>

static char *write_file(const char *dir, struct wb_slice text)
{
    char *path = wb_path_join(dir, "announced");

    ok(wb_path_replace(path, text));
    return path;
}

/* Pushes text and compares the journal. */
static void check_push(const char *dir, struct wb_slice text, const char *journal, uint64_t refused,
                       const char *warning)
{
    struct wb_buf warnings = WB_BUF_INIT, lines = WB_BUF_INIT;
    struct wb_cycle_sink sink = {NULL, gather_warning, &warnings};
    char *path = write_file(dir, text);
    struct wb_push_stat stat;

    ok(wb_push(dir, path, &sink, &stat));
    read_journal(dir, WB_EDIT_PUSH, &lines);
    assert_string_equal(lines.ptr, journal);
    assert_int_equal(stat.refused, refused);
    ok(wb_buf_terminate(&warnings));
    if (warning)
        assert_non_null(strstr(warnings.ptr, warning));
    else
        assert_int_equal(warnings.len, 0);
    wb_buf_release(&warnings);
    wb_buf_release(&lines);
    free(path);
}

static void test_lines(void **state)
{
    check_push(*state,
               WB_SLICE_LIT("\xef\xbb\xbfHTTP://Example.org/a#part\r\n"
                            "# comment\n\n"
                            "gone https://example.org/b\n"
                            "  new\thttp://example.org/c  \n"
                            "changed http://example.org/d"),
               "1 http://example.org/a\n2 https://example.org/b\n1 http://example.org/c\n1 http://example.org/d\n", 0,
               NULL);
}

static void test_refused_lines(void **state)
{
    check_push(*state, WB_SLICE_LIT("http://h/\nftp://h/x\nnothing\ngone\ngone mailto:x@y\nhttp://h/2\n"),
               "1 http://h/\n1 http://h/2\n", 4, "line 2 ");
}

static void test_warnings_are_few(void **state)
{
    struct wb_buf text = WB_BUF_INIT, warnings = WB_BUF_INIT;
    struct wb_cycle_sink sink = {NULL, gather_warning, &warnings};
    struct wb_push_stat stat;
    size_t lines = 0;

    for (int i = 0; i < 1000; i++)
        ok(wb_buf_append_str(&text, "no URL\n"));
    char *path = write_file(*state, wb_buf_slice(&text));
    ok(wb_push(*state, path, &sink, &stat));
    assert_int_equal(stat.refused, 1000);
    for (size_t i = 0; i < warnings.len; i++)
        lines += warnings.ptr[i] == '\n';
    assert_int_equal(lines, 10);
    wb_buf_release(&text);
    wb_buf_release(&warnings);
    free(path);
}

static void test_indexnow(void **state)
{
    check_push(*state, WB_SLICE_LIT(" {\"host\": \"h\", \"urlList\": [\"http://h/1\", \"http://h/2\", 7, \"x\"]}\n"),
               "1 http://h/1\n1 http://h/2\n", 2, "urlList 3 ");
}

static void test_changed_and_gone(void **state)
{
    check_push(*state, WB_SLICE_LIT("{\"changed\": [\"http://h/1\"], \"gone\": [\"http://h/2\"]}"),
               "1 http://h/1\n2 http://h/2\n", 0, NULL);
}

/* Refused as a whole: the journal says nothing. */
static void check_refused(const char *dir, struct wb_slice text, int code, const char *words)
{
    struct wb_buf lines = WB_BUF_INIT;
    struct wb_push_stat stat;
    char *path = write_file(dir, text);

    assert_int_equal(wb_push(dir, path, NULL, &stat), code);
    assert_non_null(strstr(wb_error_message(), words));
    assert_non_null(strstr(wb_error_message(), path));
    read_journal(dir, WB_EDIT_PUSH, &lines);
    assert_int_equal(lines.len, 0);
    wb_buf_release(&lines);
    free(path);
}

static void test_bad_json(void **state)
{
    check_refused(*state, WB_SLICE_LIT("{\"urlList\": [\"http://h/1\""), WB_E_PROTO, "JSON");
    check_refused(*state, WB_SLICE_LIT("{\"urlList\": [\"http://h/1\"]} trailing"), WB_E_PROTO, "JSON");
    check_refused(*state, WB_SLICE_LIT("{\"urls\": [\"http://h/1\"]}"), WB_E_INVALID, "urlList");
    check_refused(*state, WB_SLICE_LIT("{\"changed\": [\"http://h/1\"], \"gone\": \"http://h/2\"}"), WB_E_INVALID,
                  "gone");
}

static void test_missing_file(void **state)
{
    struct wb_push_stat stat;

    assert_int_equal(wb_push(*state, "/no/such/file", NULL, &stat), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "/no/such/file"));
    assert_int_equal(wb_push("/no/such/repository", "/no/such/file", NULL, &stat), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "/no/such/repository"));
}

/* What update makes of it. */
static void test_pages_are_marked(void **state)
{
    struct wb_webdb_page pages[] = {fetched_page("http://h.test/known", 1000),
                                    fetched_page("http://h.test/gone", 1000)},
                         page;
    struct wb_update_options options = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct wb_webdb_merge merge;
    struct wb_push_stat stat;

    add_pages(*state, pages, 2);
    char *path = write_file(
        *state,
        WB_SLICE_LIT("http://h.test/known\nhttp://h.test/new\ngone http://h.test/gone\ngone http://h.test/never\n"));
    ok(wb_push(*state, path, NULL, &stat));
    ok(wb_update(&options, NULL, &merge, NULL));
    assert_true(get_page(*state, "http://h.test/known", &page) && page.flags & WB_PAGE_PUSHED &&
                !(page.flags & WB_PAGE_PUSHED_GONE));
    assert_true(get_page(*state, "http://h.test/new", &page) && page.flags & WB_PAGE_PUSHED &&
                page.flags & WB_PAGE_WANTED);
    assert_true(get_page(*state, "http://h.test/gone", &page) && page.flags & WB_PAGE_PUSHED_GONE);
    assert_false(get_page(*state, "http://h.test/never", &page));
    free(path);
}

static void check_stat(const struct wb_push_stat *stat, uint64_t stored, uint64_t unchanged, uint64_t barred)
{
    assert_int_equal(stat->pages, stored + unchanged + barred);
    assert_int_equal(stat->stored, stored);
    assert_int_equal(stat->unchanged, unchanged);
    assert_int_equal(stat->barred, barred);
}

/* Whole pages are stored and journaled; a page that was taken down stays away. */
static void test_whole_pages(void **state)
{
    struct wb_slice text = WB_SLICE_LIT("{\"pages\": [{\"url\": \"http://h.test/\", \"html\": \"<a href=/next>n</a>\"},"
                                        "{\"url\": \"http://h.test/b\", \"html\": \"b\"}],"
                                        "\"gone\": [\"http://h.test/c\"]}");
    struct wb_update_options options = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct wb_webdb_page page;
    struct wb_webdb_merge merge;
    struct wb_expunge_stat expunged;
    struct wb_push_stat stat;
    char *path = write_file(*state, text);

    ok(wb_push(*state, path, NULL, &stat));
    check_stat(&stat, 2, 0, 0);
    assert_int_equal(stat.gone, 1);
    ok(wb_update(&options, NULL, &merge, NULL));
    assert_true(get_page(*state, "http://h.test/", &page) && page.status == 200);
    assert_true(get_page(*state, "http://h.test/next", &page));
    ok(wb_push(*state, path, NULL, &stat));
    check_stat(&stat, 0, 2, 0);
    ok(wb_expunge(&options, "http://h.test/", false, NULL, NULL, NULL, &expunged));
    ok(wb_push(*state, path, NULL, &stat));
    check_stat(&stat, 0, 1, 1);
    free(path);
}

static void assert_stored(const char *dir, const char *url)
{
    struct wb_store *store = NULL;
    struct wb_url parsed = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_page page;

    ok(wb_url_parse(wb_slice_str(url), NULL, &parsed));
    ok(wb_url_key(&parsed, &key));
    ok(wb_store_open(dir, WB_STORE_READ, &store));
    ok(wb_store_get(store, wb_pageid_of_key(wb_buf_slice(&key)), &page, &mem));
    wb_store_close(store);
    wb_url_release(&parsed);
    wb_buf_release(&key);
    wb_buf_release(&mem);
}

/* Whatever fails in a push, the same pusher takes the next one, and both pages and announcements are complete then. */
static void check_faults(const char *dir, struct wb_slice text, unsigned kinds)
{
    struct wb_push_reading reading = {.name = "push", .provider = "h.test", .now_ms = wb_clock_wall_ms()};
    struct wb_store_verify_counts verify;
    struct wb_pusher *pusher = NULL;
    struct wb_push_list list;
    struct wb_push_stat stat;
    struct wb_buf lines = WB_BUF_INIT;
    size_t strikes = 0;
    bool struck = true;

    ok(wb_pusher_open(dir, &pusher));
    ok(wb_push_list_read(text, &reading, &list));
    for (uint64_t nth = 1; struck; nth += 1 + nth / 16) {
        list.pages.items[0].time_ms++;
        wb_fault_arm(kinds, nth, ENOSPC);
        int err = wb_pusher_apply(pusher, &list, &stat);
        struck = wb_fault_struck();
        wb_fault_disarm();
        strikes += struck;
        if (!struck)
            ok(err);
        ok(wb_pusher_apply(pusher, &list, &stat));
        check_stat(&stat, stat.stored, stat.unchanged, 0);
    }
    assert_true(strikes > 10);
    wb_push_list_release(&list);
    ok(wb_pusher_finish(pusher));
    wb_pusher_close(pusher);
    assert_stored(dir, "http://h.test/");
    read_journal(dir, WB_EDIT_PUSH, &lines);
    assert_true(wb_slice_ends(wb_buf_slice(&lines), WB_SLICE_LIT("1 http://h.test/new\n2 http://h.test/gone\n")));
    ok(wb_store_verify(dir, NULL, NULL, NULL, NULL, &verify));
    assert_int_equal(verify.problems, 0);
    wb_buf_release(&lines);
}

static void test_faults(void **state)
{
    struct wb_slice text =
        WB_SLICE_LIT("{\"pages\": [{\"url\": \"http://h.test/\", \"html\": \"<a href=/next>n</a>\"}],"
                     "\"url\": \"http://h.test/new\", \"gone\": [\"http://h.test/gone\"]}");

    check_faults(*state, text, WB_FAULT_ALLOC);
    check_faults(*state, text, WB_FAULT_ANY & ~(unsigned)WB_FAULT_ALLOC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_REPOSITORY(test_lines),        IN_REPOSITORY(test_refused_lines),    IN_REPOSITORY(test_warnings_are_few),
        IN_REPOSITORY(test_indexnow),     IN_REPOSITORY(test_changed_and_gone), IN_REPOSITORY(test_bad_json),
        IN_REPOSITORY(test_missing_file), IN_REPOSITORY(test_pages_are_marked), IN_REPOSITORY(test_whole_pages),
        IN_REPOSITORY(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
