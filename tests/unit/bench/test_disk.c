/* test_disk.c - the paper's simulator: its model gives Table S-4, its formulas Tables 3 and 4, and files are a disk. */
#include "../../../bench/disk.h"
#include "../expect.h"
#include "../testroot.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <math.h>

#define MB ((uint64_t)1 << 20)

/* R(1) to R(9), and two for the column of hashed-log that the paper does not have. */
static const double paper_ms[WB_DISK_SEQUENCES] = {19.8, 28.2, 0.159, 3.87, 42.9, 28.9, 11.8, 23.71, 0.164, 20, 1000};

static double model_ms(size_t row)
{
    struct wb_disk disk;
    double ms = 0;

    ok(wb_disk_model_init(&wb_disk_paper, &disk));
    ok(wb_disk_run(&disk, &wb_disk_sizes_paper, &wb_disk_sequences[row - 1], (struct wb_disk_budget){.times = 4000},
                   &ms));
    wb_disk_release(&disk);
    return ms;
}

static void near_to(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got / want - 1) <= tolerance))
        fail_msg("%s is %g, not %g within %g %%", what, got, want, tolerance * 100);
}

static void test_model_meets_table_s4(void **state)
{
    (void)state;
    for (size_t row = 1; row <= WB_DISK_ROWS; row++) {
        char what[32];
        snprintf(what, sizeof what, "row %zu of Table S-4", row);
        assert_true(wb_disk_sequences[row - 1].paper_ms == paper_ms[row - 1]);
        near_to(model_ms(row), paper_ms[row - 1], 0.10, what);
    }
}

/* The paper rounds to two or three digits. */
static void test_table_3_follows_from_s4(void **state)
{
    struct wb_disk_rates log = wb_disk_rates(paper_ms, &wb_disk_sizes_paper, WB_DISK_ORG_LOG);
    struct wb_disk_rates hash = wb_disk_rates(paper_ms, &wb_disk_sizes_paper, WB_DISK_ORG_HASH);
    struct wb_disk_rates hashed = wb_disk_rates(paper_ms, &wb_disk_sizes_paper, WB_DISK_ORG_HASHED_LOG);

    (void)state;
    near_to(log.stream, 6300, 0.02, "streaming from a log");
    near_to(hash.stream, 3900, 0.02, "streaming from buckets");
    near_to(log.get, 35, 0.02, "random access in a log");
    near_to(hash.get, 51, 0.02, "random access in buckets");
    near_to(log.add, 6100, 0.01, "addition to a log");
    near_to(hash.add, 23, 0.02, "addition to buckets");
    near_to(hash.add_buffered, 35, 0.02, "buffered addition to buckets");
    near_to(hash.add_sorted, 1300, 0.02, "sorted addition to buckets");
    near_to(hashed.add_buffered, 660, 0.02, "buffered addition to a hashed-log");
    assert_true(hashed.stream == log.stream && hashed.get == log.get && hashed.space == log.space);
    near_to(hashed.add, 50, 1e-9, "addition to a hashed-log");
    near_to(hashed.add_sorted, 16 * 1024 / 2.53, 0.01, "sorted addition to a hashed-log");
    near_to(hash.space, 0.6, 1e-9, "the space used in buckets");
}

static void test_table_4_follows_from_s4(void **state)
{
    struct wb_disk_batch log = wb_disk_batch(paper_ms, &wb_disk_sizes_paper, WB_DISK_ORG_LOG);
    struct wb_disk_batch hash = wb_disk_batch(paper_ms, &wb_disk_sizes_paper, WB_DISK_ORG_HASH);
    struct wb_disk_batch hashed = wb_disk_batch(paper_ms, &wb_disk_sizes_paper, WB_DISK_ORG_HASHED_LOG);

    (void)state;
    near_to(log.add, 6100, 0.01, "additions, log to hash");
    near_to(log.update_s, 11700, 0.01, "batch update, log to hash");
    near_to(hash.add, 35, 0.02, "additions, hash to hash");
    near_to(hash.update_s, 1260, 0.01, "batch update, hash to hash");
    near_to(hashed.add, 660, 0.02, "additions, hashed-log to hash");
    near_to(hashed.update_s, 1260, 0.01, "batch update, hashed-log to hash");
}

/* A disk without an arm, so that every time can be worked out by hand. */
static void test_model_by_hand(void **state)
{
    struct wb_disk_model model = {
        .bytes = 100 * MB, .turn_ms = 10, .rate = 1000, .request_ms = 1, .write_ms = 2, .leave_ms = 4};
    struct wb_disk disk;

    (void)state;
    ok(wb_disk_model_init(&model, &disk));
    ok(disk.read(disk.state, 0, 3000)); /* from the start: no seek, no wait */
    assert_true(fabs(disk.now_ms(disk.state) - 3) < 1e-9);
    ok(disk.read(disk.state, 3000, 1000)); /* goes on */
    assert_true(fabs(disk.now_ms(disk.state) - 4) < 1e-9);
    ok(disk.write(disk.state, 0, 1000)); /* back: the rest of the revolution, then the write */
    assert_true(fabs(disk.now_ms(disk.state) - (10 + 1 + 2)) < 1e-9);
    ok(disk.read(disk.state, 1000, 1000)); /* continues the write: nothing has to settle */
    assert_true(fabs(disk.now_ms(disk.state) - 14) < 1e-9);
    ok(disk.write(disk.state, 2000, 1000));
    /* Leaving a write: at angle 0.3, 1 + 4 ms later at 0.8, so byte 5000 (0.5) comes after 7 more. */
    ok(disk.read(disk.state, 5000, 1000));
    assert_true(fabs(disk.now_ms(disk.state) - (14 + 3 + 5 + 7 + 1)) < 1e-9);
    wb_disk_release(&disk);
    wb_disk_release(&disk);
}

static void test_arm_takes_longer_to_go_further(void **state)
{
    double before = 0;

    (void)state;
    for (uint64_t to = 1 * MB; to < wb_disk_paper.bytes; to *= 8) {
        struct wb_disk_model still = wb_disk_paper;
        struct wb_disk disk;
        still.turn_ms = 1e-3; /* so that the wait for the platter does not hide the arm */
        still.rate *= 1e4;
        ok(wb_disk_model_init(&still, &disk));
        ok(disk.read(disk.state, to, 1));
        double ms = disk.now_ms(disk.state);
        assert_true(ms > before + 0.01 && ms < still.far_ms + still.request_ms + 0.01);
        before = ms;
        wb_disk_release(&disk);
    }
}

static void test_sizes(void **state)
{
    const struct wb_disk_sizes *s = &wb_disk_sizes_paper;
    struct wb_disk_sizes small = wb_disk_sizes_for(2048 * MB);

    (void)state;
    assert_int_equal(wb_disk_extent_bytes(s, WB_DISK_HALF), s->disk / 2);
    assert_int_equal(wb_disk_extent_bytes(s, WB_DISK_SHARE), 40329); /* 39.4 KB */
    assert_int_equal(wb_disk_extent_bytes(s, WB_DISK_SWEEP) / 1000, 1077);
    near_to((double)wb_disk_extent_bytes(&small, WB_DISK_SHARE), 40329, 0.001, "the share on a smaller disk");
    assert_int_equal(small.disk, 2048 * MB);
    assert_int_equal(small.bucket, s->bucket);
}

/* Small files: every sequence runs, the budget of time ends it, and nothing stays. */
static void test_files_are_a_disk(void **state)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_for(64 * MB);
    const char *dir = test_path("disk");
    struct wb_disk disk;
    bool direct;

    (void)state;
    ok(wb_disk_files_init(dir, 64 * MB, &disk, &direct));
    assert_int_equal(wb_path_kind(test_path("disk/disk-0")), WB_PATH_FILE);
    assert_int_equal(wb_path_kind(test_path("disk/disk-1")), WB_PATH_NONE);
    for (size_t i = 0; i < WB_DISK_SEQUENCES; i++) {
        double ms = 0;
        ok(wb_disk_run(&disk, &sizes, &wb_disk_sequences[i], (struct wb_disk_budget){.times = 40}, &ms));
        assert_true(ms > 0);
        ok(wb_disk_run(&disk, &sizes, &wb_disk_sequences[i], (struct wb_disk_budget){.ms = 1e-3}, &ms));
        assert_true(ms > 0);
    }
    ok(disk.read(disk.state, 64 * MB - 1, 1)); /* rounded to the last block */
    wb_disk_release(&disk);
    assert_int_equal(wb_path_kind(test_path("disk/disk-0")), WB_PATH_NONE);
}

/* Whatever fails while the files are made: they are removed again. Only a refused O_DIRECT is no failure. */
static void test_files_that_fail(void **state)
{
    struct wb_disk disk;
    bool direct, struck = true;

    (void)state;
    assert_int_equal(wb_disk_files_init(test_path("small"), 100, &disk, &direct), WB_E_INVALID);
    for (uint64_t n = 1; struck; n++) {
        wb_fault_arm(WB_FAULT_ANY, n, EIO);
        int err = wb_disk_files_init(test_path("disk"), MB, &disk, &direct);
        wb_fault_disarm();
        struck = wb_fault_struck();
        assert_true(err < 0 ? struck : !struck || !direct);
        wb_disk_release(&disk);
        assert_int_equal(wb_path_kind(test_path("disk/disk-0")), WB_PATH_NONE);
        assert_true(n < 100);
    }
}

static void test_reads_that_fail(void **state)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_for(16 * MB);
    struct wb_disk disk;
    bool direct;
    double ms = 1;

    (void)state;
    ok(wb_disk_files_init(test_path("disk"), 16 * MB, &disk, &direct));
    wb_fault_arm(WB_FAULT_READ, 3, EIO);
    assert_int_equal(wb_disk_run(&disk, &sizes, &wb_disk_sequences[0], (struct wb_disk_budget){.times = 9}, &ms),
                     WB_E_IO);
    wb_fault_disarm();
    assert_true(ms == 0);
    wb_disk_release(&disk);
}

/* If O_DIRECT is refused, the page cache is used, and the caller is told. */
static void test_files_without_direct(void **state)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_for(16 * MB);
    struct wb_disk disk;
    bool direct = true;
    double ms = 0;

    (void)state;
    /* The first opens are those that make the directory. */
    for (uint64_t n = 1; direct; n++) {
        wb_fault_arm(WB_FAULT_OPEN, n, EINVAL);
        int err = wb_disk_files_init(test_path("cached"), 16 * MB, &disk, &direct);
        wb_fault_disarm();
        assert_true(wb_fault_struck());
        direct = direct || err < 0;
    }
    assert_false(direct);
    ok(wb_disk_run(&disk, &sizes, &wb_disk_sequences[4], (struct wb_disk_budget){.times = 200}, &ms));
    assert_true(ms > 0);
    wb_disk_release(&disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_meets_table_s4),
        cmocka_unit_test(test_table_3_follows_from_s4),
        cmocka_unit_test(test_table_4_follows_from_s4),
        cmocka_unit_test(test_model_by_hand),
        cmocka_unit_test(test_arm_takes_longer_to_go_further),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_files_are_a_disk),
        cmocka_unit_test(test_files_that_fail),
        cmocka_unit_test(test_reads_that_fail),
        cmocka_unit_test(test_files_without_direct),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
