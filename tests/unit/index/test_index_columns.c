/*
 * test_index_columns.c - columns that users bring: numbers and words, lines that are wrong, URLs that become known
 * later, and columns that last from one generation to the next.
 */
#include "index_web.h"

#include <math.h>

/* Builds with one column from a text; path NULL in the source if the text is NULL. */
static int build_with(const char *name, const char *text, struct warnings *warnings)
{
    struct wb_index_options options = build_options(web, web_update(web), warnings);
    struct wb_index_result result;
    char path[96];

    snprintf(path, sizeof path, "%s/values.tsv", test_dir);
    if (text)
        ok(wb_path_replace(path, wb_slice_str(text)));
    struct wb_index_column_source source = {wb_slice_str(name), text ? path : NULL, false};
    options.columns = &source;
    options.column_count = 1;
    return wb_index_build(&options, &result);
}

/* The value of a URL, as text: "" if there is none. */
static const char *value_of(const char *name, const char *url)
{
    static char text[128];
    const struct wb_index_column *column = NULL;
    struct wb_index *index = NULL;
    struct wb_slice word;
    uint32_t docid, code;

    text[0] = '\0';
    ok(wb_index_open(web->dir, &index));
    ok(wb_index_column(index, wb_slice_str(name), &column));
    ok(wb_index_find(index, wb_slice_str(url), &docid));
    assert_true(column->words ? !column->numbers : !column->codes);
    if (column->words) {
        ok(wb_index_column_word(index, column, column->codes[docid], &word));
        snprintf(text, sizeof text, "%.*s", WB_SLICE_ARG(word));
        ok(wb_index_column_code(index, column, word, &code));
        assert_int_equal(code, column->codes[docid]);
        ok(wb_index_column_code(index, column, WB_SLICE_LIT("never"), &code));
        assert_int_equal(code, 0);
    } else if (!isnan(column->numbers[docid])) {
        snprintf(text, sizeof text, "%g", column->numbers[docid]);
    }
    wb_index_close(index);
    return text;
}

static const char *known_url(void)
{
    for (size_t i = 0; i < WEB_URLS; i++)
        if (web->urls[i].page && web->urls[i].status == 200)
            return web->urls[i].url;
    fail_msg("no page");
    return NULL;
}

static size_t count_columns(void)
{
    const struct wb_index_column *columns;
    struct wb_index *index = NULL;

    ok(wb_index_open(web->dir, &index));
    size_t count = wb_index_columns(index, &columns);
    wb_index_close(index);
    return count;
}

static void test_numbers(void **state)
{
    struct warnings warnings;
    char text[1024];

    (void)state;
    /* Of several values the last counts; spaces around them, empty lines and CR LF do not matter. */
    snprintf(text, sizeof text, "%s\t1\n\n %s \t -2.5e3 \r\n", known_url(), known_url());
    ok(build_with("quality", text, &warnings));
    assert_int_equal(warnings.count, 0);
    assert_string_equal(value_of("quality", known_url()), "-2500");
    verify_sound(web->dir);
}

static void test_words(void **state)
{
    struct warnings warnings;
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, "%s\tgood news", known_url()); /* the last line need not end */
    ok(build_with("kind", text, &warnings));
    assert_string_equal(value_of("kind", known_url()), "good news");
    /* A word may look like a number if the first one does not. */
    snprintf(text, sizeof text, "http://unknown.test/\tx\n%s\t17\n", known_url());
    ok(build_with("kind", text, &warnings));
    assert_string_equal(value_of("kind", known_url()), "17");
    verify_sound(web->dir);
}

/* A column lasts until it is given again or removed. */
static void test_lasting(void **state)
{
    struct wb_index_options options;
    struct wb_index_result result;
    struct warnings warnings;
    char text[1024], url[96];

    (void)state;
    snprintf(url, sizeof url, "%s", known_url());
    snprintf(text, sizeof text, "%s\t3\n", url);
    ok(build_with("first", text, &warnings));
    snprintf(text, sizeof text, "%s\tword\n", known_url());
    ok(build_with("second", text, &warnings));
    assert_int_equal(count_columns(), 2);
    for (int i = 0; i < 3; i++) {
        web_changes(web, 30);
        options = build_options(web, web_update(web), &warnings);
        options.from_scratch = i == 1;
        ok(wb_index_build(&options, &result));
        assert_string_equal(value_of("first", url), "3"); /* whether it is still a page or not */
        assert_string_equal(value_of("second", url), "word");
        verify_sound(web->dir);
    }
    assert_int_equal(count_columns(), 2);
    ok(build_with("first", NULL, &warnings));
    assert_int_equal(count_columns(), 1);
    assert_int_equal(build_with("first", NULL, &warnings), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "first"));
    assert_int_equal(count_columns(), 1);
    ok(build_with("second", NULL, &warnings));
    assert_int_equal(count_columns(), 0);
    verify_sound(web->dir);
}

/* Values of URLs that nobody knows wait for them. */
static void test_unknown_urls(void **state)
{
    struct wb_store *store = NULL;
    struct wb_store_commit_counts counts = {0};
    struct web_url *late = &web->urls[WEB_URLS - 1];
    struct warnings warnings;
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, "%.90s\t8\nhttp://late.test/page\t9\n", known_url());
    ok(build_with("quality", text, &warnings));
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "1 of 2 URLs"));
    *late = (struct web_url){.content = 10, .anchors = 11, .status = 200, .page = true};
    snprintf(late->url, sizeof late->url, "http://late.test/page");
    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    web_put(web, store, late);
    ok(wb_store_commit(store, &counts));
    wb_store_close(store);
    web_build(web);
    assert_string_equal(value_of("quality", late->url), "9");
    assert_string_equal(value_of("quality", known_url()), "8");
}

static void test_bad_lines(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"http://a.test/\t1\nhttp://b.test/\tword\n", "line 2"},
        {"http://a.test/ 1\n", "line 1"},
        {"http://a.test/\t1\n\n\nhttp://b.test/\t\n", "line 4"},
        {"http://a.test/\t1\nno URL\t1\n", "line 2"},
        {"\t1\n", "line 1"},
    };
    struct warnings warnings;
    struct wb_buf longest = WB_BUF_INIT;

    (void)state;
    web_build(web);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(build_with("quality", bad[i].text, &warnings), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), bad[i].message));
        assert_non_null(strstr(wb_error_message(), "values.tsv"));
        assert_non_null(strstr(wb_error_message(), "quality"));
    }
    ok(wb_buf_append_str(&longest, "http://a.test/\tx\nhttp://b.test/\t"));
    for (int i = 0; i < 2000; i++)
        ok(wb_buf_append_str(&longest, "y"));
    ok(wb_buf_terminate(&longest));
    assert_int_equal(build_with("quality", longest.ptr, &warnings), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "line 2"));
    wb_buf_clear(&longest);
    for (int i = 0; i < 3 << 20; i++)
        ok(wb_buf_append_str(&longest, "z"));
    ok(wb_buf_terminate(&longest));
    assert_int_equal(build_with("quality", longest.ptr, &warnings), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "values.tsv"));
    wb_buf_release(&longest);
    assert_int_equal(count_columns(), 0);
}

static void test_bad_names(void **state)
{
    static const char *const names[] = {"", "../etc", "a b", "17", "a\nb"};
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    struct wb_index_result result;
    struct wb_index_column_source missing = {WB_SLICE_LIT("quality"), "/nowhere/values.tsv", false};
    struct wb_index_column_source twice[2];
    char path[96];

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(build_with(names[i], "http://a.test/\t1\n", &warnings), WB_E_INVALID);
    options.columns = &missing;
    options.column_count = 1;
    assert_int_equal(wb_index_build(&options, &result), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "/nowhere/values.tsv"));
    snprintf(path, sizeof path, "%s/values.tsv", test_dir);
    twice[0] = twice[1] = (struct wb_index_column_source){WB_SLICE_LIT("quality"), path, false};
    options.columns = twice;
    options.column_count = 2;
    assert_int_equal(wb_index_build(&options, &result), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "twice"));
}

/* The values by docid are the same bytes, however the generation was made. */
static void test_same_bytes(void **state)
{
    struct genfiles merged, scratch;
    struct wb_index_result result;
    struct warnings warnings;
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < WEB_URLS; i++)
        if (!chance_one_in(&web->chance, 3))
            ok(wb_buf_printf(&text, "%s\tw%u\n", web->urls[i].url, (unsigned)chance_below(&web->chance, 20)));
    ok(wb_buf_terminate(&text));
    ok(build_with("kind", text.ptr, &warnings));
    wb_buf_release(&text);
    web_changes(web, 60);
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    ok(wb_index_build(&options, &result));
    read_genfiles(web->dir, &merged);
    options.from_scratch = true;
    ok(wb_index_build(&options, &result));
    read_genfiles(web->dir, &scratch);
    same_genfiles(&merged, &scratch, "columns");
    verify_sound(web->dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, set_up_web, tear_down_web),
        cmocka_unit_test_setup_teardown(test_words, set_up_web, tear_down_web),
        cmocka_unit_test_setup_teardown(test_lasting, set_up_web, tear_down_web),
        cmocka_unit_test_setup_teardown(test_unknown_urls, set_up_web, tear_down_web),
        cmocka_unit_test_setup_teardown(test_bad_lines, set_up_web, tear_down_web),
        cmocka_unit_test_setup_teardown(test_bad_names, set_up_web, tear_down_web),
        cmocka_unit_test_setup_teardown(test_same_bytes, set_up_web, tear_down_web),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
