/* expect.h - what many tests say: this call must work, and this slice must be that text. */
#ifndef WB_TESTS_EXPECT_H
#define WB_TESTS_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/slice.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fails the test if a call returns an error; otherwise gives what it returned. */
#define ok(err) ok_at((err), #err, __FILE__, __LINE__)

static inline int ok_at(int err, const char *what, const char *file, int line)
{
    if (err < 0)
        fail_msg("%s:%d: %s: %d, %s", file, line, what, err, wb_error_message());
    return err;
}

#define expect(got, want) expect_at((got), (want), __FILE__, __LINE__)

static inline void expect_at(struct wb_slice got, const char *want, const char *file, int line)
{
    if (wb_slice_equal(got, wb_slice_str(want)))
        return;
    print_error("%s:%d: want '%s', got '%.*s'\n", file, line, want, WB_SLICE_ARG(got));
    _fail(file, line);
}

#endif
