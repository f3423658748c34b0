/* simtest.h - helpers that the tests of sim share. */
#ifndef WB_TESTS_SIM_SIMTEST_H
#define WB_TESTS_SIM_SIMTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "sim/world.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline struct wb_sim_options some_options(uint64_t seed, bool hostile)
{
    return (struct wb_sim_options){.seed = seed, .sites = 30, .pages = 3000, .page_bytes = 1000, .hostile = hostile};
}

static inline void open_world(const struct wb_sim_options *options, struct wb_world *world_out)
{
    assert_int_equal(wb_world_init(options, world_out), 0);
    wb_world_set_place(world_out, "127.0.0.1", 8080, 1000000);
}

#endif
