/*
 * test_index_fault.c - builds that fail: every allocation and every file operation fails once, the disk is full,
 * bytes of the last generation are damaged. The last generation stays and can be read; nothing is left behind after
 * the next build, and nothing is held that is not needed.
 *
 * LeakSanitizer finds leaks at the end of the program. Nothing is really synced, which would only take time.
 */
#include "../faultkinds.h"
#include "../rounds.h"
#include "index_lives.h"
#include "index_web.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { STEPS = 80 }; /* of a kind that are tried; if there are more, a random choice of them */

/* ---- the operations -------------------------------------------------------------------------- */

static uint32_t edition; /* that the next build uses */

static int build(bool from_scratch, bool serial, const char *index_dir, struct wb_index_result *result)
{
    struct warnings warnings;
    struct wb_index_options options = build_options(web, edition, &warnings);
    char column[96], seeds[96];

    snprintf(column, sizeof column, "%s/column.tsv", test_dir);
    snprintf(seeds, sizeof seeds, "%s/seeds", test_dir);
    struct wb_index_column_source sources[] = {{WB_SLICE_LIT("quality"), column, false},
                                               {WB_SLICE_LIT("trust"), seeds, true}};
    options.from_scratch = from_scratch;
    options.serial = serial;
    options.index_dir = index_dir;
    options.columns = sources;
    options.column_count = index_dir ? 0 : 2; /* when it moves, the columns are taken over */
    return wb_index_build(&options, result);
}

static int do_scratch(struct wb_index_result *result)
{
    return build(true, true, NULL, result);
}

static int do_threads(struct wb_index_result *result)
{
    return build(true, false, NULL, result);
}

static int do_merge(struct wb_index_result *result)
{
    return build(false, true, NULL, result);
}

/* From one directory to the other. */
static int do_move(struct wb_index_result *result)
{
    static char there[80];
    struct wb_whereabouts where;
    bool in_a;

    /* This is before the fault is armed. */
    in_a = wb_whereabouts_read(web->dir, &where) == 0 && strstr(where.root, "/a/webbase-");
    wb_whereabouts_release(&where);
    snprintf(there, sizeof there, "%s/%c", test_dir, in_a ? 'b' : 'a');
    return build(false, true, there, result);
}

static const struct operation {
    const char *name;
    int (*run)(struct wb_index_result *result);
    unsigned least[6]; /* at least so many operations of each kind; with fewer, nothing would be tested */
} operations[] = {
    {"from scratch", do_scratch, {1000, 50, 50, 50, 25, 3}},
    {"with threads", do_threads, {1000, 50, 50, 50, 25, 3}},
    {"merged", do_merge, {1000, 50, 50, 50, 25, 3}},
    {"moved", do_move, {1000, 50, 50, 50, 25, 3}},
};

/* ---- one fault ------------------------------------------------------------------------------- */

/* Something is to be read in the next build, so that no step of it is idle. */
static void change_something(void)
{
    web_changes(web, 2);
    edition = web_update(web);
}

static void check_after(const char *what, int err, uint32_t before, const struct genfiles *files)
{
    uint32_t now = newest_generation(web->dir);
    struct wb_index *index = NULL;
    struct genfiles again;

    if (now != before && now != before + 1)
        fail_msg("%s: generation %u after %u", what, now, before);
    if (err == 0 && now != before + 1)
        fail_msg("%s: the build worked, and nothing is new", what);
    if (err < 0 && !wb_error_message()[0])
        fail_msg("%s: no message", what);
    ok(wb_index_open(web->dir, &index));
    read_generation(index, web->dir);
    wb_index_close(index);
    if (now == before) {
        read_genfiles(web->dir, &again);
        same_genfiles(files, &again, what);
    }
}

/* How many operations of a kind there are, and which n-th one fails next. */
static void fail_each(const struct operation *operation, size_t kind)
{
    uint64_t total = 0, n = 1, tried = 0, steps = test_rounds(STEPS);
    struct wb_index_result result;
    struct genfiles files;
    char what[96];

    for (;;) {
        uint32_t before = newest_generation(web->dir);
        read_genfiles(web->dir, &files);
        snprintf(what, sizeof what, "%s, %s %llu", operation->name, fault_kinds[kind].name, (unsigned long long)n);
        wb_fault_arm(fault_kinds[kind].kind, n, fault_kinds[kind].error);
        int err = operation->run(&result);
        uint64_t count = wb_fault_count();
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        if (!struck) {
            ok(err);
            assert_true(n > operation->least[kind] || tried > 0);
            total = count;
            break;
        }
        tried++;
        check_after(what, err, before, &files);
        if (newest_generation(web->dir) != before)
            change_something();
        n += n < steps / 2 ? test_stride(&web->chance) : 1 + chance_below(&web->chance, 1 + n * 4 / steps);
    }
    if (total < operation->least[kind])
        fail_msg("%s: only %llu of %s", operation->name, (unsigned long long)total, fault_kinds[kind].name);
    check_tidy(web->dir, 1);
    verify_sound(web->dir);
    change_something();
}

static void test_faults(void **state)
{
    char column[96], seeds[96];

    (void)state;
    snprintf(column, sizeof column, "%s/column.tsv", test_dir);
    snprintf(seeds, sizeof seeds, "%s/seeds", test_dir);
    ok(wb_path_replace(column, WB_SLICE_LIT("http://a.test/docs/page007?id=3.11.7\tgood\nhttp://x.test/\tbad\n")));
    ok(wb_path_replace(seeds, WB_SLICE_LIT("example.org\nhttp://x.test/\n")));
    change_something();
    for (size_t i = 0; i < COUNT(operations); i++)
        for (size_t kind = 0; kind < COUNT(fault_kinds); kind++)
            fail_each(&operations[i], kind);
}

/* ---- the disk ---------------------------------------------------------------------------------- */

static void test_files_cannot_grow(void **state)
{
    struct rlimit before, limit;
    struct wb_index_result result;
    struct warnings warnings;
    struct genfiles files, again;
    int err = WB_E_IO;

    (void)state;
    web_changes(web, 20);
    struct wb_index_options options = build_options(web, web_update(web), &warnings);
    read_genfiles(web->dir, &files);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    for (rlim_t bytes = 512; err < 0 && bytes < (64 << 20); bytes *= 2) {
        limit = (struct rlimit){bytes, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        err = wb_index_build(&options, &result);
        setrlimit(RLIMIT_FSIZE, &before);
        if (err == 0)
            break;
        assert_true(err == WB_E_IO);
        assert_int_equal(newest_generation(web->dir), 1);
        read_genfiles(web->dir, &again);
        same_genfiles(&files, &again, "the disk is full");
    }
    ok(err);
    /* A generation counts once it is published, even if there is no room to give up the holds of the one before. */
    verify_sound(web->dir);
    ok(wb_index_build(&options, &result));
    check_tidy(web->dir, 1);
    verify_sound(web->dir);
}

/* ---- damage ------------------------------------------------------------------------------------ */

static void flip(const char *path, uint64_t at)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    fseek(file, (long)at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, (long)at, SEEK_SET);
    fputc(byte ^ 0x55, file);
    fclose(file);
}

/* Verify finds it and names the file; the next build says so and makes everything new, with the same bytes. */
static void damage(const struct genfiles *sound, size_t file, uint64_t at)
{
    struct problems problems = {.count = 0};
    struct wb_index_result result;
    struct warnings warnings;
    struct genfiles files;
    char path[512];

    read_genfiles(web->dir, &files);
    snprintf(path, sizeof path, "%s/%s", files.path, files.files[file].name);
    flip(path, at);
    ok(wb_index_verify(web->dir, note_problem, &problems));
    if (problems.count == 0)
        fail_msg("byte %llu of %s is another one, and nobody notices", (unsigned long long)at, path);
    assert_non_null(strstr(problems.file, files.files[file].name));
    struct wb_index_options options = build_options(web, edition, &warnings);
    ok(wb_index_build(&options, &result));
    read_genfiles(web->dir, &files);
    same_genfiles(sound, &files, path);
}

static void test_damage(void **state)
{
    struct genfiles sound;

    (void)state;
    edition = web_update(web);
    read_genfiles(web->dir, &sound);
    /* The first byte, the last one and some others; in a short run, one of these. */
    unsigned flips = test_rounds(6);
    for (size_t i = 0; i < sound.count; i++)
        for (unsigned j = 0; j < flips; j++) {
            uint64_t which = flips < 6 ? chance_below(&web->chance, 6) : j;
            damage(&sound, i,
                   which == 0   ? 0
                   : which == 1 ? sound.files[i].bytes - 1
                                : chance_below(&web->chance, sound.files[i].bytes));
        }
}

static void test_missing_files(void **state)
{
    struct genfiles sound, files;
    char path[512];

    (void)state;
    edition = web_update(web);
    read_genfiles(web->dir, &sound);
    for (size_t i = 0; i < sound.count; i++) {
        struct problems problems = {.count = 0};
        struct wb_index_result result;
        struct warnings warnings;
        read_genfiles(web->dir, &files);
        snprintf(path, sizeof path, "%s/%s", files.path, sound.files[i].name);
        unlink(path);
        ok(wb_index_verify(web->dir, note_problem, &problems));
        assert_true(problems.count > 0);
        assert_non_null(strstr(problems.file, sound.files[i].name));
        struct wb_index_options options = build_options(web, edition, &warnings);
        ok(wb_index_build(&options, &result));
        assert_true(warnings.count > 0);
        assert_int_equal(result.read, result.info.pages);
        read_genfiles(web->dir, &files);
        same_genfiles(&sound, &files, path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_faults, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_files_cannot_grow, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_damage, set_up_generation, tear_down_web),
        cmocka_unit_test_setup_teardown(test_missing_files, set_up_generation, tear_down_web),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
