/*
 * must.h - checks that also work in a child process; cmocka's own assertions work in the parent only. Code that
 * starts children (children.c does) defines in_child, and sets it in each child.
 */
#ifndef WB_TESTS_MUST_H
#define WB_TESTS_MUST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

extern bool in_child;

/* Fails the test, or ends the child process if called in one. */
#define must(cond) ((cond) ? (void)0 : must_failed(#cond, __FILE__, __LINE__))
#define must_ok(err) must_ok_at((err), #err, __FILE__, __LINE__)

static inline void must_failed(const char *what, const char *file, int line)
{
    if (in_child) {
        fprintf(stderr, "%s:%d: %s (last message: %s)\n", file, line, what, wb_error_message());
        _exit(99);
    }
    print_error("%s:%d: %s (last message: %s)\n", file, line, what, wb_error_message());
    _fail(file, line);
}

static inline void must_ok_at(int err, const char *what, const char *file, int line)
{
    if (err < 0)
        must_failed(what, file, line);
}

#endif
