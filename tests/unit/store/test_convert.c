/*
 * test_convert.c - conversions: from every design to every other one, with versions, snapshots, takedowns, pages that
 * are gone, revisits that wait, and pages that wait for a transfer. Both repositories must then answer every question
 * in the same way, and the source must be as it was, byte by byte. A conversion that is killed or stopped leaves a
 * target that cannot be opened, and can be repeated. What cannot be a target is refused and left as it was.
 *
 * test_convert_damage.c has sources that are damaged. test_model.c has conversions in the middle of its traces, and so
 * tests that everything goes on as before.
 */
#include "../otherformat.h"
#include "../faultkinds.h"
#include "convert_support.h"
#include "base/checked_text.h"
#include "move/move.h"
#include "os/path.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- every design into every other
 * ------------------------------------------------------------------------------------- */

static void test_all_designs(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], copy[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < DESIGNS; i++) {
        struct wb_design design = options_of(i).design;
        test_dir(from);
        test_dir(targets);
        make_source(from, i, &chance);
        uint64_t before = hash_tree(from);
        for (size_t k = 0; k < DESIGNS; k++) {
            struct wb_design other = options_of(k).design;
            if (!chance_one_in(&chance, 2) && i != k)
                continue;
            fprintf(stderr, "# %s into %s\n", designs[i].design, designs[k].design);
            path_in(targets, "to", to);
            path_in(targets, "from", copy);
            convert(from, to, k);
            must(hash_tree(from) == before);
            verify_clean(to);
            if (!design.batch || other.batch)
                compare_dirs(to, from);
            copy_repository(from, copy);
            go_on(to, other.batch, copy, design.batch, chance);
            verify_clean(to);
            remove_tree(to);
            remove_tree(copy);
        }
        remove_tree(from);
    }
    use_usual_sizes();
}

/* ---- killed
 * -------------------------------------------------------------------------------------------------------------- */

struct killed {
    char from[DIR_MAX], to[DIR_MAX];
    size_t design;
    uint64_t chance;
    uint64_t before; /* the hash of the source */
};

static int make_child(void *context)
{
    struct killed *k = context;

    make_source(k->from, 0, &k->chance);
    return 0;
}

static int convert_child(void *context)
{
    const struct killed *k = context;

    convert(k->from, k->to, k->design);
    return 0;
}

/* The target is a complete copy, or says that it is none. */
static int look_child(void *context)
{
    const struct killed *k = context;
    struct wb_store *store;
    int err = wb_store_open(k->to, WB_STORE_READ, &store);

    if (err < 0) {
        must(err == WB_E_INVALID || err == WB_E_NOTFOUND);
        must(strstr(wb_error_message(), k->to) != NULL);
        return 1;
    }
    wb_store_close(store);
    verify_clean(k->to);
    compare_dirs(k->to, k->from);
    return 0;
}

static void test_killed(void **state)
{
    struct killed k = {.chance = test_seed()};
    char targets[DIR_MAX];
    struct timespec began, ended;
    unsigned killed = 0, rounds = test_rounds(24);

    (void)state;
    use_small_sizes(60000);
    test_dir(k.from);
    test_dir(targets);
    path_in(targets, "to", k.to);
    must(run_child(make_child, &k) == 0);
    k.before = hash_tree(k.from);
    for (unsigned round = 0; round < rounds; round++) {
        k.design = round % DESIGNS;
        clock_gettime(CLOCK_MONOTONIC, &began);
        must(run_child(convert_child, &k) == 0);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        remove_tree(k.to);
        uint64_t us = (uint64_t)((ended.tv_sec - began.tv_sec) * 1000000 + (ended.tv_nsec - began.tv_nsec) / 1000);
        pid_t child = start_child(convert_child, &k);
        usleep((useconds_t)chance_below(&k.chance, us / (1 + round % 4) + 1)); /* sometimes it takes less time */
        kill(child, SIGKILL);
        killed += end_child(child) == -SIGKILL;
        must(hash_tree(k.from) == k.before);
        if (run_child(look_child, &k) == 1)
            must(run_child(convert_child, &k) == 0); /* starts again */
        must(run_child(look_child, &k) == 0);
        must(hash_tree(k.from) == k.before);
        remove_tree(k.to);
    }
    must(killed >= rounds / 4);
    use_usual_sizes();
}

/* ---- stopped, and nodes outside
 * ----------------------------------------------------------------------------------------- */

struct stopping {
    unsigned calls, last;
};

static bool stop_now(void *context, uint64_t done, uint64_t total)
{
    struct stopping *s = context;

    must(done <= total);
    return ++s->calls < s->last;
}

/* Stops after each possible number of steps; the nodes are directories elsewhere. */
static void test_stopped(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], one[DIR_MAX], two[DIR_MAX], three[DIR_MAX];
    const char *nodes[] = {one, two}, *update_nodes[] = {three};
    struct wb_move_convert_counts counts;
    unsigned last = 1;

    (void)state;
    use_small_sizes(60000);
    test_dir(from);
    test_dir(targets);
    path_in(targets, "to", to);
    path_in(targets, "one", one);
    path_in(targets, "two", two);
    path_in(targets, "three", three);
    make_source(from, 8, &chance);
    for (int err = WB_E_STOPPED; err < 0; last++) {
        struct wb_store_options options = options_of(6 + last % 3);
        struct stopping stopping = {.last = last};
        struct wb_move_convert_sink sink = {.progress = stop_now, .context = &stopping};
        options.nodes = (struct wb_store_node_list){nodes, 2};
        options.update_nodes = (struct wb_store_node_list){update_nodes, 1};
        err = wb_move_convert(from, to, &options, &sink, &counts);
        must(err == 0 || err == WB_E_STOPPED);
        struct wb_store *store = NULL;
        must(wb_store_open(to, WB_STORE_READ, &store) == (err < 0 ? WB_E_INVALID : 0));
        must(err == 0 || strstr(wb_error_message(), "unfinished") != NULL);
        must(err == 0 || wb_store_create(to, NULL) == WB_E_INVALID);
        wb_store_close(store);
    }
    must(last > 3);
    verify_clean(to);
    compare_dirs(to, from);
    use_usual_sizes();
}

/* ---- refused
 * ---------------------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
    must_ok(wb_path_replace(path, wb_slice_str(text)));
}

static void refuse(const char *from, const char *to, const char *words)
{
    struct wb_store_options options = options_of(0);
    struct wb_move_convert_counts counts;

    must(wb_move_convert(from, to, &options, &quiet, &counts) == WB_E_INVALID);
    if (!strstr(wb_error_message(), words))
        fprintf(stderr, "%s\n", wb_error_message());
    must(strstr(wb_error_message(), words) != NULL);
    must(to[0] == '\0' || strstr(wb_error_message(), to) != NULL);
}

static void test_refused(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], other[DIR_MAX], around[DIR_MAX], path[DIR_MAX], inner[DIR_MAX];

    (void)state;
    test_dir(from);
    test_dir(around);
    make_source(from, 4, &chance);
    uint64_t before = hash_tree(from);
    refuse(from, from, "already");
    refuse(from, "", "no name");
    path_in(from, "inside", path);
    refuse(from, path, "cannot be a repository");
    path_in(from, "node2/inside", path);
    refuse(from, path, "cannot be a repository");
    must(hash_tree(from) == before);

    path_in(around, "other", other);
    create_store(other);
    before = hash_tree(around);
    refuse(from, other, "already");
    path_in(around, "no/where", path);
    refuse(from, path, "does not exist");
    refuse(from, around, "not empty");
    must(hash_tree(around) == before);

    path_in(around, "file", path);
    write_file(path, "years of work");
    before = hash_tree(around);
    refuse(from, path, "not a directory");
    path_in(around, "link", inner);
    must(symlink(from, inner) == 0);
    refuse(from, inner, "already");
    must(unlink(inner) == 0);
    must(hash_tree(around) == before);
}

/* Writes a mark with these lines behind the first two, and the right checksum. */
static void write_mark(const char *path, unsigned format, const char *lines)
{
    struct wb_buf text = WB_BUF_INIT;

    must_ok(wb_buf_printf(&text, "webbase unfinished copy\nformat %u\n%s", format, lines));
    must_ok(wb_checked_text_end(&text));
    must_ok(wb_path_replace(path, wb_buf_slice(&text)));
    wb_buf_release(&text);
}

/* What somebody has put into an unfinished copy stays; and a mark that cannot be read is not acted on. */
static void test_unfinished_with_other_files(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], path[DIR_MAX];
    struct stopping stopping = {.last = 1};
    struct wb_move_convert_sink sink = {.progress = stop_now, .context = &stopping};
    struct wb_store_options options = options_of(0);
    struct wb_move_convert_counts counts;
#define ID "id 0123456789abcdef0123456789abcdef\n"

    (void)state;
    test_dir(from);
    test_dir(targets);
    path_in(targets, "to", to);
    make_source(from, 0, &chance);
    must(wb_move_convert(from, to, &options, &sink, &counts) == WB_E_STOPPED);
    path_in(to, "thesis.txt", path);
    write_file(path, "years of work");
    uint64_t before = hash_tree(to);
    refuse(from, to, "other files");
    must(hash_tree(to) == before);
    must(unlink(path) == 0);
    path_in(to, "webbase.unfinished", path);
    for (uint64_t at = 0; at < file_bytes(path); at++) {
        uint8_t was = flip_byte(path, at, 1);
        must(wb_move_convert(from, to, &options, &quiet, &counts) == WB_E_CORRUPT);
        flip_byte(path, at, 1);
        (void)was;
    }
    static const char *const wrong[] = {"", "id 12\n", ID "nodes /x\n", ID "node /missing\nid 1\n", ID "\n"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        write_mark(path, 1, wrong[i]);
        must(wb_move_convert(from, to, &options, &quiet, &counts) == WB_E_CORRUPT);
        must(strstr(wb_error_message(), path) != NULL);
    }
    write_mark(path, 2, ID "node /missing\n");
    assert_refused_format(wb_move_convert(from, to, &options, &quiet, &counts), path, 2);
    write_mark(path, 1, ID "node /missing\nnode /missing/too\n");
    convert(from, to, 0);
    compare_dirs(to, from);
    must(access(path, F_OK) != 0);
#undef ID
}

/* ---- faults
 * ----------------------------------------------------------------------------------------------------------- */

/* Makes the nth operation of a kind fail; returns false if there were fewer than n. */
static bool strike(const char *from, const char *to, size_t design, size_t fault, uint64_t nth)
{
    struct wb_store_options options = options_of(design);
    struct wb_move_convert_counts counts;
    struct wb_store *store = NULL;

    wb_fault_arm(fault_kinds[fault].kind, nth, fault_kinds[fault].error);
    int err = wb_move_convert(from, to, &options, &quiet, &counts);
    bool struck = wb_fault_struck();
    wb_fault_disarm();
    /* A path that could not be made for lack of memory is invalid, but the message says why. */
    bool expected = err == 0 || (struck && (fault_kinds[fault].kind == WB_FAULT_ALLOC
                                                ? strstr(wb_error_message(), wb_error_words(WB_E_NOMEM)) != NULL
                                                : err == WB_E_IO || err == WB_E_DOWN));
    if (!expected)
        fprintf(stderr, "%s number %llu: %d %s\n", fault_kinds[fault].name, (unsigned long long)nth, err,
                wb_error_message());
    must(expected);
    if (err < 0 && wb_store_open(to, WB_STORE_READ, &store) == 0) /* the mark could not be removed, or synced */
        err = 0;
    wb_store_close(store);
    if (err < 0)
        convert(from, to, design);
    compare_dirs(to, from);
    remove_tree(to);
    return struck;
}

static void test_faults(void **state)
{
    static const size_t pairs[][2] = {{0, 2}, {4, 5}, {8, 6}};
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        make_source(from, pairs[i][0], &chance);
        uint64_t before = hash_tree(from);
        for (size_t fault = 0; fault < COUNT(fault_kinds); fault++) {
            uint64_t nth = 1;
            while (strike(from, to, pairs[i][1], fault, nth))
                nth += nth < 20 ? test_stride(&chance) : 1 + chance_below(&chance, nth * 4 / test_rounds(8));
            must(nth > 1);
        }
        must(hash_tree(from) == before);
        remove_tree(from);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_designs),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unfinished_with_other_files),
        cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
