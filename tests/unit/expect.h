/* expect.h - compares a slice with text, and shows both if they differ. */
#ifndef WB_TESTS_EXPECT_H
#define WB_TESTS_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/slice.h"

#define expect(got, want) expect_at((got), (want), __FILE__, __LINE__)

static inline void expect_at(struct wb_slice got, const char *want, const char *file, int line)
{
    if (wb_slice_equal(got, wb_slice_str(want)))
        return;
    print_error("%s:%d: want '%s', got '%.*s'\n", file, line, want, WB_SLICE_ARG(got));
    _fail(file, line);
}

#endif
