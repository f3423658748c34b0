/*
 * test_index_lives.c - generations that meet each other: builds that are killed, two builds at once, readers that
 * keep an old generation, and an index that moves to another directory.
 */
#include "../otherformat.h"
#include "../rounds.h"
#include "index_lives.h"
#include "index_web.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILLS = 60 };

static void dir_of(const char *name, char path_out[80])
{
    snprintf(path_out, 80, "%.60s/%s", test_dir, name);
}

static int try_build(const char *index_dir, bool from_scratch, struct wb_index_result *result)
{
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings);

    options.index_dir = index_dir;
    options.from_scratch = from_scratch;
    return wb_index_build(&options, result);
}

/* ---- kill -9 ----------------------------------------------------------------------------------- */

/* Builds in a child, which is killed after a while. Returns whether it had come to its end. */
static bool kill_build(const char *index_dir, bool from_scratch)
{
    struct timespec wait = {0, (long)chance_below(&web->chance, 25 * 1000 * 1000)};
    struct wb_index_result result;
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(try_build(index_dir, from_scratch, &result) < 0);
    nanosleep(&wait, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
}

static void test_killed(void **state)
{
    unsigned killed = 0, kills = test_rounds(KILLS);
    char there[80];

    (void)state;
    for (unsigned i = 0; i < kills; i++) {
        uint32_t before = newest_generation(web->dir);
        struct wb_index_result result;
        struct wb_index *index = NULL;
        dir_of(i % 4 == 1 ? "a" : "b", there);
        web_changes(web, 3);
        web_update(web);
        killed += !kill_build(i % 2 ? there : NULL, i % 3 == 0);
        uint32_t now = newest_generation(web->dir);
        assert_true(now == before || now == before + 1);
        ok(wb_index_open(web->dir, &index));
        read_generation(index, web->dir);
        wb_index_close(index);
        ok(try_build(NULL, false, &result));
        assert_int_equal(result.info.generation, now + 1);
        check_tidy(web->dir, 1);
        verify_sound(web->dir);
    }
    assert_true(killed > kills / 8);
}

/* ---- two builds ---------------------------------------------------------------------------------- */

static bool build_meanwhile(void *context, const char *step, uint64_t done, uint64_t total)
{
    struct wb_index_options *options = context;
    struct wb_index_options other = {
        .dir = options->dir, .memory_bytes = SMALL_MEMORY, .edition = options->edition, .threads = 1};
    struct wb_index_result result;
    char there[80];

    (void)step;
    (void)done;
    (void)total;
    assert_int_equal(wb_index_build(&other, &result), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), "another index is being built"));
    dir_of("a", there);
    other.index_dir = there; /* wherever it is */
    assert_int_equal(wb_index_build(&other, &result), WB_E_BUSY);
    options->column_count++;
    return true;
}

static void test_two_builds(void **state)
{
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings), counter = options;
    struct wb_index_result result;

    (void)state;
    options.serial = true;
    options.from_scratch = true;
    options.warn = NULL;
    options.progress = build_meanwhile;
    options.context = &counter;
    ok(wb_index_build(&options, &result));
    assert_true(counter.column_count > 3);
    assert_int_equal(newest_generation(web->dir), 2);
    check_tidy(web->dir, 1);
}

static bool stop(void *context, const char *step, uint64_t done, uint64_t total)
{
    (void)step;
    (void)done;
    (void)total;
    return --*(int *)context > 0;
}

/* A build that is stopped at any moment leaves the old generation. */
static void test_stopped(void **state)
{
    struct warnings warnings;
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    struct wb_index_result result;
    int err = WB_E_STOPPED, calls;

    (void)state;
    options.warn = NULL;
    options.progress = stop;
    options.context = &calls;
    options.from_scratch = true;
    for (int at = 1; err == WB_E_STOPPED; at++) {
        calls = at;
        err = wb_index_build(&options, &result);
        assert_true(at > 1 || err == WB_E_STOPPED);
        if (err == WB_E_STOPPED) {
            assert_int_equal(newest_generation(web->dir), 1);
            check_tidy(web->dir, 1);
        }
    }
    ok(err);
    check_tidy(web->dir, 1);
}

/* ---- readers ------------------------------------------------------------------------------------- */

static void test_reader_keeps_its_generation(void **state)
{
    struct wb_index *reader = NULL, *other = NULL;
    uint64_t sum;

    (void)state;
    ok(wb_index_open(web->dir, &reader));
    ok(wb_index_open(web->dir, &other));
    sum = read_generation(other, web->dir);
    wb_index_close(other);
    for (uint32_t generation = 2; generation <= 3; generation++) {
        web_changes(web, 50);
        assert_int_equal(web_build(web).info.generation, generation);
        check_tidy(web->dir, 2);
    }
    ok(wb_index_open(web->dir, &other));
    assert_int_equal(wb_index_info(other)->generation, 3);
    assert_int_equal(wb_index_info(reader)->generation, 1);
    assert_true(read_generation(reader, web->dir) == sum);
    assert_true(read_generation(other, web->dir) != sum);
    wb_index_close(reader);
    wb_index_close(other);
    assert_int_equal(web_build(web).info.generation, 4);
    check_tidy(web->dir, 1);
}

/* ---- other directories --------------------------------------------------------------------------- */

static bool is_at(const char *where)
{
    struct genfiles files;
    char prefix[96];

    read_genfiles(web->dir, &files);
    dir_of(where, prefix);
    return strncmp(files.path, prefix, strlen(prefix)) == 0;
}

static void test_moves(void **state)
{
    static const char *const ways[] = {"a", "b", "a", "r", "r", "b", "r"};
    struct wb_index_result result;
    struct genfiles before, after;
    char path[80];

    (void)state;
    read_genfiles(web->dir, &before);
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct wb_index *reader = NULL;
        ok(wb_index_open(web->dir, &reader));
        uint64_t sum = read_generation(reader, web->dir);
        dir_of(ways[i], path);
        ok(try_build(path, false, &result));
        assert_int_equal(result.info.generation, 2 * i + 2);
        assert_int_equal(result.read, 0); /* it was built on the last one, wherever that was */
        assert_true(is_at(ways[i]));
        check_tidy(web->dir, 2);
        assert_true(read_generation(reader, web->dir) == sum);
        wb_index_close(reader);
        ok(try_build(NULL, false, &result));
        assert_int_equal(result.info.generation, 2 * i + 3);
        assert_true(is_at(ways[i]));
        check_tidy(web->dir, 1);
        verify_sound(web->dir);
        read_genfiles(web->dir, &after);
        same_genfiles(&before, &after, ways[i]);
    }
    dir_of("a", path);
    assert_int_equal(count_entries(path), 0);
    dir_of("b", path);
    assert_int_equal(count_entries(path), 0);
}

static void test_bad_directories(void **state)
{
    struct wb_index_result result;
    char path[80];

    (void)state;
    dir_of("missing", path);
    assert_int_equal(try_build(path, false, &result), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), path));
    assert_int_equal(wb_path_kind(path), WB_PATH_NONE);
    dir_of("file", path);
    ok(wb_path_replace(path, WB_SLICE_LIT("x")));
    assert_int_equal(try_build(path, false, &result), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), path));
    dir_of("a", path);
    chmod(path, 0555);
    if (geteuid() != 0) { /* root may write anyway */
        assert_int_equal(try_build(path, false, &result), WB_E_IO);
        assert_non_null(strstr(wb_error_message(), path));
    }
    chmod(path, 0777);
    assert_int_equal(newest_generation(web->dir), 1);
    check_tidy(web->dir, 1);
    verify_sound(web->dir);
}

/* The disk with the index is gone: it can be built elsewhere, and the numbers go on. */
static void test_lost_directory(void **state)
{
    struct wb_index *index = NULL;
    struct wb_index_result result;
    char there[80], away[80], other[80];

    (void)state;
    dir_of("a", there);
    dir_of("away", away);
    dir_of("b", other);
    ok(try_build(there, false, &result));
    ok(try_build(NULL, false, &result));
    assert_int_equal(result.info.generation, 3);
    ok(wb_path_rename(there, away));
    assert_int_equal(try_build(NULL, false, &result), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), there));
    assert_int_equal(wb_path_kind(there), WB_PATH_NONE);
    assert_int_equal(wb_index_open(web->dir, &index), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), there));
    ok(wb_path_rename(away, there));
    ok(wb_index_open(web->dir, &index)); /* nothing was given up meanwhile */
    read_generation(index, web->dir);
    wb_index_close(index);
    ok(wb_path_rename(there, away));
    ok(try_build(other, false, &result));
    assert_int_equal(result.info.generation, 4);
    assert_int_equal(result.read, result.info.pages);
    assert_true(is_at("b"));
    ok(wb_path_rename(away, there));
    ok(try_build(NULL, false, &result)); /* now it can be cleaned */
    check_tidy(web->dir, 1);
    assert_int_equal(count_entries(there), 0);
}

static void test_damaged_where(void **state)
{
    struct problems problems = {.count = 0};
    struct wb_index_result result;
    struct wb_index *index = NULL;
    struct wb_buf bytes = WB_BUF_INIT;
    char there[80], where[96];

    (void)state;
    dir_of("a", there);
    dir_of("r/index/where", where);
    ok(try_build(there, false, &result));
    ok(wb_path_read(where, 1 << 20, &bytes));
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.ptr[i] ^= 0x15;
        ok(wb_path_replace(where, wb_buf_slice(&bytes)));
        assert_int_equal(wb_index_open(web->dir, &index), WB_E_CORRUPT);
        assert_non_null(strstr(wb_error_message(), where));
        problems.count = 0;
        ok(wb_index_verify(web->dir, note_problem, &problems));
        assert_int_equal(problems.count, 1);
        assert_string_equal(problems.file, "index/where");
        bytes.ptr[i] ^= 0x15;
    }
    ok(wb_path_replace(where, wb_buf_slice(&bytes)));
    verify_sound(web->dir);
    /* One of another format is not called damaged. */
    const char *first = memchr(bytes.ptr, '\n', bytes.len), *last = bytes.ptr + bytes.len - strlen("checksum ") - 17;
    ok(wb_sealed_write(where, "webbase index ", 2, wb_slice(first + 1, (size_t)(last - first) - 1)));
    assert_refused_format(wb_index_open(web->dir, &index), where, 2);
    assert_refused_format(try_build(there, false, &result), where, 2);
    ok(wb_path_replace(where, wb_buf_slice(&bytes)));
    wb_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_two_builds, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_stopped, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_reader_keeps_its_generation, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_moves, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_bad_directories, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_lost_directory, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_damaged_where, set_up_generation, tear_down_web),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
