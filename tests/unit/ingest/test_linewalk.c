/* test_linewalk.c - bad lines are counted, and the first few are reported with file and line. */
#include "base/error.h"
#include "ingest/linewalk.h"
#include "ingest_support.h"

/* What the sink was told. */
struct heard {
    uint64_t errors, fatal, last_line, progress;
    struct wb_buf last; /* in words */
    int answer;         /* of the callback */
};

static int hear_error(void *context, const struct wb_ingest_error *error)
{
    struct heard *heard = context;

    heard->errors++;
    heard->fatal += error->fatal;
    heard->last_line = error->line;
    wb_buf_clear(&heard->last);
    assert_int_equal(wb_ingest_error_text(error, &heard->last), 0);
    assert_int_equal(wb_buf_terminate(&heard->last), 0);
    return heard->answer;
}

static void hear_progress(void *context, const struct wb_ingest_progress *progress)
{
    struct heard *heard = context;

    heard->progress++;
    assert_true(progress->bytes_done <= progress->bytes_total);
    assert_non_null(progress->file);
}

/* Lines that start with '!' are bad. */
static int take_line(void *context, struct wb_slice line)
{
    uint64_t *good = context;

    if (line.len && line.ptr[0] == '!')
        return wb_fail(WB_E_PROTO, "it shouts");
    ++*good;
    return line.len && line.ptr[0] == '#' ? wb_fail(WB_E_IO, "no more") : 0;
}

static void test_bad_lines_are_skipped(void **state)
{
    struct heard heard = {.errors = 0};
    struct wb_ingest_sink sink = {.context = &heard, .error = hear_error, .progress = hear_progress};
    struct wb_linewalk walk = {.sink = &sink};
    uint64_t good = 0;

    (void)state;
    put("v", "one\n!two\nthree\n");
    assert_int_equal(wb_linewalk_file(&walk, test_path("v"), take_line, &good), 0);
    assert_int_equal(good, 2);
    assert_int_equal(walk.bad_lines, 1);
    assert_int_equal(heard.errors, 1);
    assert_int_equal(heard.last_line, 2);
    assert_true(heard.progress >= 3);
    /* The message is short enough to contain the file's name by accident; the place is there nevertheless. */
    assert_non_null(strstr(heard.last.ptr, "/v, line 2: it shouts"));
    wb_buf_release(&heard.last);
}

static void test_only_the_first_are_reported(void **state)
{
    struct heard heard = {.errors = 0};
    struct wb_ingest_sink sink = {.context = &heard, .error = hear_error};
    struct wb_linewalk walk = {.sink = &sink};
    struct wb_buf text = WB_BUF_INIT;
    uint64_t good = 0;

    (void)state;
    for (int i = 0; i < 25; i++)
        assert_int_equal(wb_buf_append_str(&text, "!\n"), 0);
    put_bytes("many", text.ptr, text.len);
    assert_int_equal(wb_linewalk_file(&walk, test_path("many"), take_line, &good), 0);
    assert_int_equal(walk.bad_lines, 25);
    assert_int_equal(heard.errors, 10);
    assert_non_null(strstr(heard.last.ptr, "line 10: it shouts (further ones are only counted)"));
    wb_buf_release(&heard.last);
    wb_buf_release(&text);
}

static void test_damage_ends_the_file_only(void **state)
{
    struct heard heard = {.errors = 0};
    struct wb_ingest_sink sink = {.context = &heard, .error = hear_error};
    struct wb_linewalk walk = {.sink = &sink};
    uint64_t good = 0;

    (void)state;
    put_bytes("cut.gz", "\x1f\x8b\x08\0", 4);
    assert_int_equal(wb_linewalk_file(&walk, test_path("cut.gz"), take_line, &good), 0);
    assert_int_equal(walk.unfinished, 1);
    assert_int_equal(heard.fatal, 1);
    assert_non_null(strstr(heard.last.ptr, "cut.gz"));
    assert_non_null(strstr(heard.last.ptr, "what comes after is not read"));
    wb_buf_release(&heard.last);
}

static void test_errors_end_the_walk(void **state)
{
    struct heard heard = {.answer = WB_E_STOPPED};
    struct wb_ingest_sink sink = {.context = &heard, .error = hear_error}, silent = {.context = NULL};
    struct wb_linewalk walk = {.sink = &sink};
    uint64_t good = 0;

    (void)state;
    put("f", "one\n!two\nthree\n");
    assert_int_equal(wb_linewalk_file(&walk, test_path("f"), take_line, &good), WB_E_STOPPED);
    assert_int_equal(good, 1);
    walk = (struct wb_linewalk){.sink = &silent};
    put("f", "!one\n#two\nthree\n");
    assert_int_equal(wb_linewalk_file(&walk, test_path("f"), take_line, &good), WB_E_IO);
    assert_int_equal(walk.bad_lines, 1);
    assert_int_equal(good, 2);
    wb_buf_release(&heard.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bad_lines_are_skipped),
        TEST(test_only_the_first_are_reported),
        TEST(test_damage_ends_the_file_only),
        TEST(test_errors_end_the_walk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
