/* test_pool.c - every job runs exactly once, with threads and without; wb_pool_wait() waits for all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../allocfail.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"

#include <stdatomic.h>
#include <unistd.h>

enum { JOBS = 500 };

static atomic_uint runs[JOBS];

static void run_job(void *context)
{
    atomic_uint *count = context;

    if (count == &runs[0])
        usleep(20000);
    atomic_fetch_add(count, 1);
}

static void check_threads(unsigned threads)
{
    struct wb_pool *pool;

    for (size_t i = 0; i < JOBS; i++)
        runs[i] = 0;
    assert_int_equal(wb_pool_new(threads, &pool), 0);
    wb_pool_wait(pool);
    for (unsigned round = 1; round <= 3; round++) {
        for (size_t i = 0; i < JOBS; i++)
            assert_int_equal(wb_pool_submit(pool, run_job, &runs[i]), 0);
        wb_pool_wait(pool);
        for (size_t i = 0; i < JOBS; i++)
            assert_int_equal(runs[i], round);
    }
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(wb_pool_submit(pool, run_job, &runs[i]), 0);
    wb_pool_free(pool); /* waits too */
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(runs[i], 4);
}

static void test_jobs(void **state)
{
    (void)state;
    check_threads(0);
    check_threads(1);
    check_threads(4);
    wb_pool_free(NULL);
}

/* A job that could not be queued is not run. */
static void test_no_memory(void **state)
{
    struct wb_pool *pool;

    (void)state;
    runs[1] = 0;
    assert_int_equal(wb_pool_new(2, &pool), 0);
    alloc_fail_all();
    assert_int_equal(wb_pool_submit(pool, run_job, &runs[1]), WB_E_NOMEM);
    struct wb_pool *none;
    assert_int_equal(wb_pool_new(2, &none), WB_E_NOMEM);
    assert_null(none);
    alloc_fail_none();
    wb_pool_free(pool);
    assert_int_equal(runs[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs), cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
