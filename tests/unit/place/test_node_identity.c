/* test_node_identity.c - which directories become nodes, and what is said about one that is not the node it should be.
 */
#include "../expect.h"
#include "../otherformat.h"
#include "../testroot.h"
#include "base/hash.h"
#include "place/node.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"

#include <errno.h>

static const struct wb_node_identity second = {.repository = {1, 2, 3}, .number = 2, .id = {9, 8}};

static void write_text(const char *path, const char *text)
{
    ok(wb_path_replace(path, wb_slice_str(text)));
}

static void expect_down(const char *dir, const struct wb_node_identity *identity, const char *why)
{
    assert_int_equal(wb_node_check(dir, identity), WB_E_DOWN);
    if (!strstr(wb_error_message(), why) || !strstr(wb_error_message(), dir))
        fail_msg("'%s' does not say '%s'", wb_error_message(), why);
}

static void expect_refused(const char *dir, const char *why)
{
    assert_int_equal(wb_node_make(dir, &second), WB_E_INVALID);
    if (!strstr(wb_error_message(), why) || !strstr(wb_error_message(), dir))
        fail_msg("'%s' does not say '%s'", wb_error_message(), why);
}

static void test_make(void **state)
{
    struct wb_node_identity found;
    struct wb_buf text;

    (void)state;
    ok(wb_node_make(test_path("new"), &second));
    ok(wb_node_check(test_path("new"), &second));
    ok(wb_node_identity_read(test_path("new"), &found));
    assert_memory_equal(&found, &second, sizeof found);
    ok(wb_path_read(test_path("new/webbase.node"), 4096, &text));
    assert_true(wb_slice_starts(wb_buf_slice(&text),
                                WB_SLICE_LIT("webbase node\nformat 1\nrepository 01020300000000000000000000000000\n"
                                             "number 2\nid 09080000000000000000000000000000\ncheck ")));
    wb_buf_release(&text);
    ok(wb_node_make(test_path("new"), &second)); /* again: it is this node already */

    /* What a crash has left does not count, nor what the file system makes. */
    ok(wb_path_mkdirs(test_path("left/pages")));
    ok(wb_path_mkdirs(test_path("left/lost+found")));
    write_text(test_path("left/webbase.node.tmp"), "half of i");
    ok(wb_node_make(test_path("left"), &second));
    ok(wb_node_check(test_path("left"), &second));
    assert_int_equal(wb_path_kind(test_path("left/webbase.node.tmp")), WB_PATH_NONE);
}

static void test_refused(void **state)
{
    struct wb_node_identity other = second;
    struct wb_file lock;

    (void)state;
    expect_refused(test_path("no/such/parent"), "above it does not exist");
    write_text(test_path("file"), "x");
    expect_refused(test_path("file"), "not a directory");
    ok(wb_path_mkdirs(test_path("full")));
    write_text(test_path("full/notes.txt"), "x");
    expect_refused(test_path("full"), "not empty");
    ok(wb_path_mkdirs(test_path("pages/pages")));
    write_text(test_path("pages/pages/00000001.seg"), "x");
    expect_refused(test_path("pages"), "not empty");
    other.number = 3;
    ok(wb_node_make(test_path("three"), &other));
    expect_refused(test_path("three"), "node 3 of this repository");
    other.repository[0] = 77;
    ok(wb_node_make(test_path("foreign"), &other));
    expect_refused(test_path("foreign"), "another repository");
    ok(wb_path_mkdirs(test_path("broken")));
    write_text(test_path("broken/webbase.node"), "webbase node\nformat 1\n");
    expect_refused(test_path("broken"), "a node already");
    ok(wb_node_check(test_path("foreign"), &other)); /* nothing has changed */
    ok(wb_path_mkdirs(test_path("busy")));
    ok(wb_file_open(test_path("busy/webbase.node.tmp"), WB_FILE_WRITE | WB_FILE_CREATE, &lock));
    ok(wb_file_lock(&lock, false));
    assert_int_equal(wb_node_make(test_path("busy"), &second), WB_E_BUSY);
    wb_file_close(&lock);
    ok(wb_node_make(test_path("busy"), &second));
}

static void test_down(void **state)
{
    struct wb_node_identity other = second;

    (void)state;
    expect_down(test_path("gone"), &second, "is missing (is the disk mounted?)");
    write_text(test_path("f"), "x");
    expect_down(test_path("f"), &second, "not a directory");
    ok(wb_path_mkdirs(test_path("empty/lost+found")));
    expect_down(test_path("empty"), &second, "is empty (is the disk mounted?)");
    ok(wb_path_mkdirs(test_path("home")));
    write_text(test_path("home/notes.txt"), "x");
    expect_down(test_path("home"), &second, "no file webbase.node");
    other.number = 5;
    ok(wb_node_make(test_path("five"), &other));
    expect_down(test_path("five"), &second, "is node 5");
    other.repository[5] = 1;
    ok(wb_node_make(test_path("theirs"), &other));
    expect_down(test_path("theirs"), &second, "another repository");
    other = second;
    other.id[15] = 1;
    ok(wb_node_make(test_path("before"), &other));
    expect_down(test_path("before"), &second, "another node that had this number");
}

/* Every change of one byte is noticed, except in the format number, which makes it that of a later version. */
static void test_damage(void **state)
{
    struct wb_buf text;

    (void)state;
    ok(wb_node_make(test_path("n"), &second));
    ok(wb_path_read(test_path("n/webbase.node"), 4096, &text));
    for (size_t i = 0; i < text.len; i++) {
        text.ptr[i] ^= 1;
        ok(wb_path_replace(test_path("n/webbase.node"), wb_buf_slice(&text)));
        int err = wb_node_check(test_path("n"), &second);
        assert_true(err == WB_E_DOWN || err == WB_E_NEWER);
        text.ptr[i] ^= 1;
    }
    for (size_t len = 0; len < text.len; len++) {
        ok(wb_path_replace(test_path("n/webbase.node"), wb_slice(text.ptr, len)));
        expect_down(test_path("n"), &second, "damaged");
    }
    ok(wb_buf_append_char(&text, '\n'));
    ok(wb_path_replace(test_path("n/webbase.node"), wb_buf_slice(&text)));
    expect_down(test_path("n"), &second, "damaged");
    wb_buf_release(&text);
    write_text(test_path("n/webbase.node"), "webbase node\nformat 2\nanything\n");
    assert_refused_format(wb_node_check(test_path("n"), &second), test_path("n"), 2);
}

static void test_unmake(void **state)
{
    struct wb_node_identity other = second;

    (void)state;
    ok(wb_node_make(test_path("u"), &second));
    write_text(test_path("u/pages/00000001.seg"), "x");
    write_text(test_path("u/pages/00000001.12.seg"), "x");
    write_text(test_path("u/pages/00000002.bkt"), "x");
    write_text(test_path("u/pages/00000002.dw"), "x");
    write_text(test_path("u/pages/mine.seg"), "x");
    write_text(test_path("u/mine"), "x");
    other.number = 3;
    assert_int_equal(wb_node_unmake(test_path("u"), &other), WB_E_DOWN);
    assert_int_equal(wb_path_kind(test_path("u/pages/00000001.seg")), WB_PATH_FILE);
    ok(wb_node_unmake(test_path("u"), &second));
    assert_int_equal(wb_path_kind(test_path("u/pages/00000001.seg")), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(test_path("u/pages/00000001.12.seg")), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(test_path("u/pages/00000002.bkt")), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(test_path("u/pages/00000002.dw")), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(test_path("u/webbase.node")), WB_PATH_NONE);
    assert_int_equal(wb_path_kind(test_path("u/pages/mine.seg")), WB_PATH_FILE);
    assert_int_equal(wb_path_kind(test_path("u/mine")), WB_PATH_FILE);
    ok(wb_node_unmake(test_path("u"), &second));
    ok(wb_node_unmake(test_path("never"), &second));
    ok(wb_node_make(test_path("v"), &second));
    ok(wb_node_unmake(test_path("v"), &second));
    assert_int_equal(wb_path_kind(test_path("v/pages")), WB_PATH_NONE);
    ok(wb_node_make(test_path("v"), &second)); /* an empty directory again */
}

/* Whatever fails while a node is made: it is no node or this one, and the next attempt succeeds. */
static void test_faults(void **state)
{
    char dir[256];
    uint64_t n = 1;

    (void)state;
    for (;; n++) {
        snprintf(dir, sizeof dir, "%s/fault%llu", test_root, (unsigned long long)n);
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = wb_node_make(dir, &second);
        wb_fault_disarm();
        if (!wb_fault_struck())
            break;
        assert_true(err < 0 || wb_node_check(dir, &second) == 0);
        ok(wb_node_make(dir, &second));
        ok(wb_node_check(dir, &second));
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_make, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_refused, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_down, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_damage, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_unmake, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_faults, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
