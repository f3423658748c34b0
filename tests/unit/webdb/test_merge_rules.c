/*
 * test_merge_rules.c - robots.txt in webdb: the newest one of each site is kept until it expires, through any number of
 * updates.
 */
#include "webdb_support.h"
#include "base/hash.h"
#include "journal/journal.h"
#include "webdb/rulesrow.h"

#define HOUR_MS INT64_C(3600000)
#define NOW_MS INT64_C(1800000000000)

static const char *const sites[] = {"a.example", "b.example:8080", "c.example"};

static void tell(const char *dir, const char *site, int64_t time_ms, int64_t expires_ms, uint16_t status,
                 const char *text)
{
    struct wb_edit edit = {.kind = WB_EDIT_RULES, .site = wb_edit_site(wb_slice_str(site)), .time_ms = time_ms,
                           .rules = {.status = status, .text = wb_slice_str(text), .expires_ms = expires_ms}};
    struct wb_edit_place place;
    struct wb_journal_writer *log;

    assert_int_equal(wb_journal_writer_open(dir, 0, &log), 0);
    assert_int_equal(wb_journal_writer_append(log, &edit, &place), 0);
    assert_int_equal(wb_journal_writer_finish(log), 0);
    wb_journal_writer_close(log);
}

static void update(const char *dir, int64_t now_ms, bool from_scratch)
{
    struct wb_webdb_options options = {.now_ms = now_ms, .from_scratch = from_scratch};
    const struct wb_journal_needs none = WB_JOURNAL_NEEDS_INIT;
    struct wb_webdb_writer *writer;
    uint64_t freed;

    assert_int_equal(wb_webdb_writer_open(dir, &options, &writer), 0);
    if (from_scratch)
        assert_int_equal(wb_webdb_add_rows(writer, NULL, NULL), 0);
    assert_int_equal(wb_webdb_add_journal(writer, NULL, NULL), 0);
    assert_int_equal(wb_webdb_writer_close(writer, NULL), 0);
    assert_int_equal(wb_webdb_prune_journal(dir, &none, &freed), 0);
}

/* text NULL: no robots.txt must be known. */
static void expect(const char *dir, const char *site, uint16_t status, const char *text)
{
    struct wb_webdb_rules rules;
    struct wb_webdb *webdb;

    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    int err = wb_webdb_get_rules(webdb, wb_slice_str(site), &rules);
    assert_int_equal(err, text ? 0 : WB_E_NOTFOUND);
    if (text) {
        assert_int_equal(rules.status, status);
        assert_true(wb_slice_equal(rules.text, wb_slice_str(text)));
    }
    wb_webdb_close(webdb);
}

static void test_newest_that_holds(void **state)
{
    const char *dir = new_dir();

    (void)state;
    tell(dir, sites[0], NOW_MS - 2 * HOUR_MS, NOW_MS + 22 * HOUR_MS, 200, "Disallow: /old");
    tell(dir, sites[1], NOW_MS - HOUR_MS, NOW_MS + 23 * HOUR_MS, 404, "");
    tell(dir, sites[0], NOW_MS - HOUR_MS, NOW_MS + 23 * HOUR_MS, 200, "Disallow: /new");
    /* An answer that says nothing about the rules does not replace one that does. */
    tell(dir, sites[0], NOW_MS, NOW_MS + 24 * HOUR_MS, 503, "");
    tell(dir, sites[0], NOW_MS, NOW_MS + 24 * HOUR_MS, 0, "");
    tell(dir, sites[2], NOW_MS - 30 * HOUR_MS, NOW_MS - 6 * HOUR_MS, 200, "Disallow: /over");
    update(dir, NOW_MS, false);
    expect(dir, sites[0], 200, "Disallow: /new");
    expect(dir, sites[1], 404, "");
    expect(dir, sites[2], 0, NULL);
    /* An older robots.txt that arrives late, then no news, then a damaged webdb. */
    tell(dir, sites[0], NOW_MS - 3 * HOUR_MS, NOW_MS + 21 * HOUR_MS, 200, "Disallow: /late");
    update(dir, NOW_MS + HOUR_MS, false);
    expect(dir, sites[0], 200, "Disallow: /new");
    update(dir, NOW_MS + HOUR_MS, false);
    expect(dir, sites[1], 404, "");
    update(dir, NOW_MS + HOUR_MS, true);
    expect(dir, sites[0], 200, "Disallow: /new");
    expect(dir, sites[1], 404, "");
    /* It expires; the site has to be asked again. */
    tell(dir, sites[2], NOW_MS + 30 * HOUR_MS, NOW_MS + 54 * HOUR_MS, 200, "");
    update(dir, NOW_MS + 30 * HOUR_MS, false);
    expect(dir, sites[0], 0, NULL);
    expect(dir, sites[1], 0, NULL);
    expect(dir, sites[2], 200, "");
}

static void test_row(void **state)
{
    struct wb_webdb_rules rules = {.time_ms = 5, .expires_ms = 6, .status = 299, .text = WB_SLICE_LIT("text")}, found;
    struct wb_buf row = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_rulesrow_encode(&rules, &row), 0);
    assert_int_equal(wb_rulesrow_decode(wb_buf_slice(&row), &found), 0);
    assert_true(found.time_ms == 5 && found.expires_ms == 6 && found.status == 299 &&
                wb_slice_equal(found.text, rules.text));
    for (size_t len = 0; len < 18; len++)
        assert_int_equal(wb_rulesrow_decode(wb_slice(row.ptr, len), &found), WB_E_CORRUPT);
    wb_put16(row.ptr + 16, 404); /* with a text */
    assert_int_equal(wb_rulesrow_decode(wb_buf_slice(&row), &found), WB_E_CORRUPT);
    assert_int_equal(wb_rulesrow_decode(wb_slice(row.ptr, 18), &found), 0);
    static const uint16_t bad[] = {0, 199, 429, 500, 503, 65535};
    for (size_t i = 0; i < COUNT(bad); i++) {
        wb_put16(row.ptr + 16, bad[i]);
        assert_int_equal(wb_rulesrow_decode(wb_slice(row.ptr, 18), &found), WB_E_CORRUPT);
    }
    wb_put16(row.ptr + 16, 200);
    wb_put64(row.ptr + 8, 5); /* it expires before it was read */
    assert_int_equal(wb_rulesrow_decode(wb_buf_slice(&row), &found), WB_E_CORRUPT);
    wb_buf_release(&row);
}

static void note_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    struct wb_buf *problems = context;

    (void)offset;
    assert_int_equal(wb_buf_printf(problems, "%s: %s\n", file, message), 0);
}

/* An edition of another format is neither read nor replaced, not even by an update that starts from scratch. */
static void test_another_format(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = test_seed();
    struct wb_buf bytes = WB_BUF_INIT, after = WB_BUF_INIT, problems = WB_BUF_INIT;
    struct wb_webdb_writer *writer;
    struct wb_webdb_count count;
    struct wb_webdb *webdb;
    struct parts parts;

    (void)state;
    make_parts(&chance, 100, 5, 300, &parts);
    write_parts(dir, 1, &parts);
    char *edition = wb_edition_path(dir, 1), *path = wb_path_join(edition, WB_MANIFEST_FILE);
    assert_int_equal(wb_path_read(path, 1 << 20, &bytes), 0);
    wb_put32(bytes.ptr + 8, WB_WEBDB_FORMAT + 1);
    wb_put64(bytes.ptr + bytes.len - 8, wb_hash64(bytes.ptr, bytes.len - 8));
    assert_int_equal(wb_path_replace(path, wb_buf_slice(&bytes)), 0);
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_NEWER);
    assert_non_null(strstr(wb_error_message(), path));
    assert_non_null(strstr(wb_error_message(), "has format 2; this program reads format 1"));
    for (int scratch = 0; scratch < 2; scratch++) {
        struct wb_webdb_options options = {.from_scratch = scratch};
        assert_int_equal(wb_webdb_writer_open(dir, &options, &writer), WB_E_NEWER);
    }
    assert_int_equal(wb_webdb_check(dir, note_problem, &problems, &count), 0);
    assert_int_equal(wb_buf_terminate(&problems), 0);
    assert_non_null(strstr(problems.ptr, "has format 2; this program reads format 1\n"));
    assert_int_equal(wb_path_read(path, 1 << 20, &after), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&after), wb_buf_slice(&bytes)));
    wb_buf_release(&bytes);
    wb_buf_release(&after);
    wb_buf_release(&problems);
    wb_free(path);
    wb_free(edition);
    free_parts(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_that_holds),
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_another_format),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
