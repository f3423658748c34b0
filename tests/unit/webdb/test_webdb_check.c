/* test_webdb_check.c - a correct edition has no problems; every disagreement and damage is reported, with its file. */
#include "webdb_harms.h"

struct seen {
    unsigned problems;
    char files[64][64];
    char messages[64][256];
};

static void note_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    struct seen *seen = context;

    (void)offset;
    assert_true(strncmp(file, "webdb/00000003/", 15) == 0);
    assert_true(message[0] != '\0');
    if (seen->problems < COUNT(seen->files)) {
        snprintf(seen->files[seen->problems], sizeof seen->files[0], "%s", file + 15);
        snprintf(seen->messages[seen->problems], sizeof seen->messages[0], "%s", message);
    }
    seen->problems++;
}

/* Whether a problem of this file was reported with these words. */
static bool names(const struct seen *seen, const char *file, const char *words)
{
    for (size_t i = 0; i < seen->problems && i < COUNT(seen->files); i++) {
        if (strcmp(seen->files[i], file) == 0 && strstr(seen->messages[i], words))
            return true;
    }
    return false;
}

static struct seen check(const char *dir)
{
    struct seen seen = {0};
    struct wb_webdb_count count;

    assert_int_equal(wb_webdb_check(dir, note_problem, &seen, &count), 0);
    return seen;
}

static struct seen check_parts(const struct parts *parts)
{
    const char *dir = new_dir();

    write_parts(dir, 3, parts);
    return check(dir);
}

/* The same web every time; small pieces, so that lists have several. */
static void sample(struct parts *parts)
{
    uint64_t chance = 12345;

    make_parts(&chance, 60, 5, 400, parts);
    parts->piece_items = 7;
    assert_true(parts->content_count > 20 && parts->in_count > 100);
}

/* ---- right ones ---------------------------------------------------------------------------------- */

static void test_right(void **state)
{
    uint64_t chance = test_seed();
    const struct {
        size_t pages, links, piece;
        unsigned sites;
    } sizes[] = {{0, 0, 0, 1}, {1, 0, 0, 1}, {1, 3, 0, 1}, {10, 100, 1, 3}, {300, 3000, 5, 20}, {2000, 20000, 0, 50}};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct parts parts;
        make_parts(&chance, sizes[i].pages, sizes[i].sites, sizes[i].links, &parts);
        parts.piece_items = sizes[i].piece;
        struct seen seen = check_parts(&parts);
        if (seen.problems)
            print_error("%s: %s\n", seen.files[0], seen.messages[0]);
        assert_int_equal(seen.problems, 0);
        free_parts(&parts);
    }
}

static void test_none(void **state)
{
    struct seen seen = {0};
    struct wb_webdb_count count = {.pages = 7};

    (void)state;
    assert_int_equal(wb_webdb_check(new_dir(), note_problem, &seen, &count), 0);
    assert_int_equal(seen.problems, 0);
    assert_true(count.pages == 0 && count.edition == 0);
}

static void test_count(void **state)
{
    struct parts parts;
    struct seen seen = {0};
    struct wb_webdb_count count;
    const char *dir = new_dir();

    (void)state;
    sample(&parts);
    write_parts(dir, 2, &parts);
    write_parts(dir, 3, &parts); /* the newest edition is checked */
    assert_int_equal(wb_webdb_check(dir, note_problem, &seen, &count), 0);
    assert_true(count.edition == 3 && count.pages == parts.manifest.count.pages && count.links == parts.in_count);
    assert_true(count.bytes > count.link_bytes && count.link_bytes > 0);
    free_parts(&parts);
}

/* ---- disagreements --------------------------------------------------------------------------- */

static void test_disagreements(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(harms); i++) {
        struct parts parts;
        sample(&parts);
        harms[i].harm(&parts);
        struct seen seen = check_parts(&parts);
        if (!names(&seen, harms[i].file, harms[i].words))
            print_error("%s: %u problems, the first: %s: %s\n", harms[i].name, seen.problems, seen.files[0],
                        seen.messages[0]);
        assert_true(names(&seen, harms[i].file, harms[i].words));
        free_parts(&parts);
    }
}

/* If a file has thousands of problems, not all of them are reported. */
static void test_told_few(void **state)
{
    struct parts parts;
    uint64_t chance = 1;

    (void)state;
    make_parts(&chance, 3000, 5, 100, &parts);
    for (size_t i = 0; i < parts.degree_count; i++)
        parts.degrees[i] += 3;
    struct seen seen = check_parts(&parts);
    assert_true(seen.problems > 5 && seen.problems < 50);
    free_parts(&parts);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const char *const all_files[] = {WB_PAGES_FILE,   WB_CONTENTS_FILE, WB_OUTLINKS_FILE,
                                        WB_INLINKS_FILE, WB_DEGREES_FILE,  WB_SITES_FILE,
                                        WB_NEAR_FILE,    WB_RULES_FILE,    WB_KINDS_FILE,
                                        WB_IDS_FILE,     WB_MANIFEST_FILE};

static void test_damaged_bytes(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = test_seed();
    struct parts parts;

    (void)state;
    sample(&parts);
    write_parts(dir, 3, &parts);
    char *edition = wb_edition_path(dir, 3);
    for (size_t i = 0; i < COUNT(all_files); i++) {
        char *path = wb_path_join(edition, all_files[i]);
        struct wb_buf whole = WB_BUF_INIT;
        assert_int_equal(wb_path_read(path, 1 << 24, &whole), 0);
        for (int n = 0; n < 40; n++) {
            change_byte(path, chance_below(&chance, whole.len), (uint8_t)(1u << chance_below(&chance, 8)));
            struct seen seen = check(dir);
            assert_true(seen.problems > 0 && names(&seen, all_files[i], ""));
            assert_int_equal(wb_path_replace(path, wb_buf_slice(&whole)), 0);
            cut_file(path, chance_below(&chance, whole.len));
            seen = check(dir);
            assert_true(seen.problems > 0 && names(&seen, all_files[i], ""));
            assert_int_equal(wb_path_replace(path, wb_buf_slice(&whole)), 0);
        }
        assert_int_equal(wb_path_unlink(path), 0);
        struct seen seen = check(dir);
        assert_true(seen.problems > 0 && names(&seen, all_files[i], ""));
        assert_int_equal(wb_path_replace(path, wb_buf_slice(&whole)), 0);
        wb_buf_release(&whole);
        wb_free(path);
    }
    assert_int_equal(check(dir).problems, 0);
    wb_free(edition);
    free_parts(&parts);
}

/* If the disk or memory fails, the check reports an error or a problem; it never reports success. */
static void test_faults(void **state)
{
    const char *dir = new_dir();
    struct parts parts;

    (void)state;
    sample(&parts);
    write_parts(dir, 3, &parts);
    for (uint64_t nth = 1;; nth++) {
        struct seen seen = {0};
        struct wb_webdb_count count;
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = wb_webdb_check(dir, note_problem, &seen, &count);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0 || seen.problems > 0, struck);
        if (!struck)
            break;
    }
    free_parts(&parts);
}

static void count_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    print_error("%s, %llu: %s\n", file, (unsigned long long)offset, message);
    ++*(unsigned *)context;
}

/* If an edition is replaced while it is checked, its successor is checked instead. */
static void test_replaced_meanwhile(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    unsigned problems = 0;
    uint32_t newest = 1;

    (void)state;
    sample(&parts);
    write_parts(dir, 1, &parts);
    struct child child = start_child(publish_for_ever, (void *)(uintptr_t)dir);
    for (int i = 0; i < 100 || newest < 3; i++) { /* until it has happened */
        struct wb_webdb_count count;
        assert_int_equal(wb_webdb_check(dir, count_problem, &problems, &count), 0);
        assert_true(count.edition >= 1 && count.pages == parts.manifest.count.pages);
        assert_int_equal(wb_edition_newest(dir, &newest), 0);
    }
    assert_int_equal(problems, 0);
    kill_child(&child, 0);
    free_parts(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),         cmocka_unit_test(test_none),     cmocka_unit_test(test_count),
        cmocka_unit_test(test_disagreements), cmocka_unit_test(test_told_few), cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_replaced_meanwhile),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
