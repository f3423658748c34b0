/* test_bucketstudy.c - the study of bucket sizes: chains and space counted by hand, and the paper's own example. */
#include "../../../bench/bucketstudy.h"
#include "../allocfail.h"
#include "../expect.h"
#include "base/mem.h"

#include <math.h>

#define KB 1024

/* Two buckets, worked out by hand: 30 bytes (3 pages) and none. */
static void test_by_hand(void **state)
{
    uint64_t bytes[] = {30, 0};
    uint32_t pages[] = {3, 0};
    struct wb_bucketstudy study = {bytes, pages, 2, 3, 30};
    struct wb_bucketstudy_cost cost = {10, 1};

    (void)state;
    assert_true(wb_bucketstudy_reads(&study, 30) == 1);
    assert_true(wb_bucketstudy_reads(&study, 100) == 1);
    assert_true(fabs(wb_bucketstudy_reads(&study, 15) - 1.5) < 1e-9);
    assert_true(fabs(wb_bucketstudy_reads(&study, 10) - 2) < 1e-9);
    assert_true(fabs(wb_bucketstudy_reads(&study, 20) - (20 * 1 + 10 * 2) / 30.0) < 1e-9);
    assert_true(fabs(wb_bucketstudy_use(&study, 30) - 0.5) < 1e-9);
    assert_true(fabs(wb_bucketstudy_use(&study, 15) - 30 / 45.0) < 1e-9);
    assert_true(fabs(wb_bucketstudy_use(&study, 20) - 30 / 60.0) < 1e-9);
    assert_true(wb_bucketstudy_share(&study, 0, 30) == 0.5 && wb_bucketstudy_share(&study, 30, 31) == 0.5);
    assert_true(wb_bucketstudy_share(&study, 0, 31) == 1);
    assert_true(wb_bucketstudy_read_ms(&cost, 2 * KB) == 12);
    assert_int_equal(wb_bucketstudy_best(&study, &cost, 64 * KB), 4 * KB);
}

/* Section 4.2: 16 pages per bucket; 2 % of the buckets have 20 to 21 KB; 64 KB take 19.8 ms, and a page 20.7 ms. */
static void test_the_papers_example(void **state)
{
    enum { SAMPLE = 1 << 18 };
    struct wb_bucketstudy_cost cost = {14.2, 0.0875};
    uint32_t *sizes = wb_alloc_zero(SAMPLE, sizeof *sizes);
    struct wb_bucketstudy study;
    double mean = 0;

    (void)state;
    assert_non_null(sizes);
    wb_bucketstudy_lognormal(2.53 * KB, 1.4, 1, sizes, SAMPLE);
    for (size_t i = 0; i < SAMPLE; i++)
        mean += sizes[i] / (double)SAMPLE;
    assert_true(fabs(mean / (2.53 * KB) - 1) < 0.02);
    ok(wb_bucketstudy_deal(sizes, SAMPLE, 16, 1 << 14, &study));
    assert_int_equal(study.total_pages, 16 << 14);
    double share = wb_bucketstudy_share(&study, 20 * KB, 21 * KB), reads = wb_bucketstudy_reads(&study, 64 * KB);
    assert_true(share > 0.017 && share < 0.023);
    assert_true(fabs(reads * wb_bucketstudy_read_ms(&cost, 64 * KB) / 20.7 - 1) < 0.02);
    /* The curve is flat: the best size is a little below the paper's, and hardly better. */
    uint64_t best = wb_bucketstudy_best(&study, &cost, 256 * KB);
    assert_true(best >= 40 * KB && best <= 64 * KB);
    assert_true(fabs(wb_bucketstudy_use(&study, 64 * KB) - 0.6) < 0.08);
    wb_bucketstudy_release(&study);
    wb_free(sizes);
}

static void test_more_pages_larger_buckets(void **state)
{
    struct wb_bucketstudy_cost cost = {14.2, 0.0875};
    uint32_t size = 2591;
    uint64_t before = 0;

    (void)state;
    for (unsigned per = 1; per <= 64; per *= 4) {
        struct wb_bucketstudy study;
        ok(wb_bucketstudy_deal(&size, 1, per, 4096, &study));
        uint64_t best = wb_bucketstudy_best(&study, &cost, 512 * KB);
        assert_true(best > before);
        assert_true(wb_bucketstudy_reads(&study, best) >= 1);
        before = best;
        wb_bucketstudy_release(&study);
    }
}

static void test_bad_calls(void **state)
{
    struct wb_bucketstudy study;
    uint32_t size = 1;

    (void)state;
    assert_int_equal(wb_bucketstudy_deal(&size, 0, 1, 1, &study), WB_E_INVALID);
    assert_int_equal(wb_bucketstudy_deal(&size, 1, 0, 1, &study), WB_E_INVALID);
    assert_int_equal(wb_bucketstudy_deal(&size, 1, 1, 0, &study), WB_E_INVALID);
    for (size_t n = 0; n < 2; n++) {
        alloc_fail_nth(n);
        assert_int_equal(wb_bucketstudy_deal(&size, 1, 1, 1, &study), WB_E_NOMEM);
        alloc_fail_none();
        assert_null(study.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_the_papers_example),
        cmocka_unit_test(test_more_pages_larger_buckets),
        cmocka_unit_test(test_bad_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
