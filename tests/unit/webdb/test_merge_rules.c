/*
 * test_merge_rules.c - robots.txt in webdb: the newest one of each site is kept until it expires, through any number of
 * updates.
 */
#include "webdb_support.h"
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

static void no_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)context;
    fail_msg("%s: %llu: %s", file, (unsigned long long)offset, message);
}

/* An edition of an older version can be read, and the next update writes it again even if nothing is to be merged. */
static void check_older_version(uint32_t version, uint64_t chance)
{
    const char *dir = new_dir();
    struct wb_webdb_count before, after;
    struct wb_webdb *webdb;
    struct parts parts;

    make_parts(&chance, 100, 5, 300, &parts);
    parts.manifest.version = version;
    write_parts(dir, 1, &parts);
    expect(dir, sites[0], 0, NULL);
    assert_int_equal(wb_webdb_check(dir, no_problem, NULL, &before), 0);
    update(dir, NOW_MS, false);
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    wb_webdb_count(webdb, &after);
    wb_webdb_close(webdb);
    assert_int_equal(after.edition, 2);
    assert_true(before.pages == after.pages && before.fetched == after.fetched && before.links == after.links);
    char *path = wb_edition_path(dir, 2), *file = wb_path_join(path, WB_RULES_FILE);
    assert_int_equal(wb_path_kind(file), WB_PATH_FILE);
    wb_free(file);
    wb_free(path);
    assert_int_equal(wb_webdb_check(dir, no_problem, NULL, &after), 0);
    /* The next update has nothing to do. */
    update(dir, NOW_MS, false);
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    wb_webdb_count(webdb, &after);
    wb_webdb_close(webdb);
    assert_int_equal(after.edition, 2);
    free_parts(&parts);
}

static void test_older_version(void **state)
{
    (void)state;
    for (uint32_t version = 1; version < WB_WEBDB_VERSION; version++)
        check_older_version(version, test_seed() + version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_that_holds),
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_older_version),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
