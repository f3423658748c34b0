/*
 * test_index_rankfiles.c - files with ranks: values that are wrong although their checksums are right, and generations
 * of another format.
 */
#include "../otherformat.h"
#include "index_web.h"

#include <math.h>

static int set_up(void **state)
{
    (void)state;
    make_web();
    web_fill(web);
    return 0;
}

/* Builds with a rank from the pages of a host. */
static void build_with_rank(void)
{
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    struct wb_index_result result;
    char path[96];

    snprintf(path, sizeof path, "%s/seeds.txt", test_dir);
    ok(wb_path_replace(path, WB_SLICE_LIT("example.org\n")));
    struct wb_index_column_source source = {WB_SLICE_LIT("trust"), path, true};
    options.columns = &source;
    options.column_count = 1;
    ok(wb_index_build(&options, &result));
}

static void rewrite_column(const char *name, const char *kind, double (*change)(uint64_t docid, double value))
{
    struct genfiles files;
    struct wb_column column = WB_COLUMN_INIT;
    struct wb_column_writer *writer = NULL;
    char path[512], copy[512];

    read_genfiles(web->dir, &files);
    snprintf(path, sizeof path, "%s/%s", files.path, name);
    snprintf(copy, sizeof copy, "%s/copy", test_dir);
    ok(wb_column_open(path, kind, sizeof(double), &column));
    ok(wb_column_create(copy, kind, sizeof(double), &writer));
    for (uint64_t i = 0; i < column.count; i++) {
        double value = change(i, ((const double *)(const void *)column.records)[i]);
        ok(wb_column_add(writer, &value));
    }
    ok(wb_column_finish(writer, NULL));
    wb_column_close(&column);
    assert_int_equal(rename(copy, path), 0);
}

static double first_is_more(uint64_t docid, double value)
{
    return docid == 0 ? value + 0.001 : value;
}

static double all_are_more(uint64_t docid, double value)
{
    (void)docid;
    return value * 1.01;
}

static double one_is_none(uint64_t docid, double value)
{
    return docid == 3 ? NAN : value;
}

/* Files whose checksums are right, but whose values are not. */
static void test_verify_finds_wrong_ranks(void **state)
{
    static const struct {
        const char *name, *kind, *message;
        double (*change)(uint64_t docid, double value);
    } wrong[] = {
        {"hostrank.wbc", "GFHR", "another host rank", first_is_more},
        {"hostrank.wbc", "GFHR", "add up to 1", all_are_more},
        {"rank.wbc", "GFRA", "add up to 1", first_is_more},
        {"column-trust.wbc", "UNUM", "add up to 1", all_are_more},
        {"column-trust.wbc", "UNUM", "add up to 1", one_is_none},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct problems problems = {.count = 0};
        build_with_rank();
        verify_sound(web->dir);
        rewrite_column(wrong[i].name, wrong[i].kind, wrong[i].change);
        ok(wb_index_verify(web->dir, note_problem, &problems));
        assert_int_equal(problems.count, 1);
        assert_non_null(strstr(problems.file, wrong[i].name));
        assert_non_null(strstr(problems.message, wrong[i].message));
    }
}

/* Gives the active generation another format. */
static void change_format(void)
{
    struct genfiles files;
    struct wb_buf text = WB_BUF_INIT, lines = WB_BUF_INIT;
    char path[512];

    read_genfiles(web->dir, &files);
    snprintf(path, sizeof path, "%s/" WB_GENERATION_MANIFEST, files.path);
    ok(wb_path_read(path, 1 << 20, &text));
    ok(wb_buf_terminate(&text));
    const char *first = strchr(text.ptr, '\n'), *last = strstr(text.ptr, "checksum ");
    assert_true(first && last);
    ok(wb_buf_append(&lines, first + 1, (size_t)(last - first) - 1));
    ok(wb_sealed_write(path, "webbase generation ", WB_GENERATION_FORMAT + 1, wb_buf_slice(&lines)));
    wb_buf_release(&text);
    wb_buf_release(&lines);
}

/* Of a generation of another format, nothing is used; the next build says so and makes a new one. */
static void test_another_format(void **state)
{
    struct genfiles again, scratch;
    struct wb_index *index = NULL;
    struct wb_index_result result;
    struct warnings warnings;

    (void)state;
    uint64_t pages = web_build(web).info.pages;
    change_format();
    assert_refused_format(wb_index_open(web->dir, &index), WB_GENERATION_MANIFEST, 2);
    assert_non_null(strstr(wb_error_message(), "'webbase index' makes a new generation"));
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    options.if_changed = true;
    ok(wb_index_build(&options, &result));
    assert_false(result.unchanged);
    assert_int_equal(result.read, pages);
    assert_true(warnings.count > 0);
    read_genfiles(web->dir, &again);
    ok(wb_index_build(&options, &result));
    assert_true(result.unchanged);
    options.from_scratch = true;
    ok(wb_index_build(&options, &result));
    assert_false(result.unchanged);
    read_genfiles(web->dir, &scratch);
    same_genfiles(&again, &scratch, "after a generation of another format");
    verify_sound(web->dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_verify_finds_wrong_ranks, set_up, tear_down_web),
        cmocka_unit_test_setup_teardown(test_another_format, set_up, tear_down_web),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
