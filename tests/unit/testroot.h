/*
 * testroot.h - a directory for the files of one test program, or of one test.
 *
 *   return cmocka_run_group_tests(tests, make_root, remove_root);
 *   cmocka_unit_test_setup_teardown(test_something, make_root, remove_root),
 */
#ifndef WB_TESTS_TESTROOT_H
#define WB_TESTS_TESTROOT_H

#include "removetree.h"

#include <stdio.h>
#include <stdlib.h>

static char test_root[64];

static inline int make_root(void **state)
{
    (void)state;
    snprintf(test_root, sizeof test_root, "/tmp/webbase-test-XXXXXX");
    return mkdtemp(test_root) ? 0 : -1;
}

static inline int remove_root(void **state)
{
    (void)state;
    return remove_tree(test_root);
}

/* The path of a file in the directory. The string is good until the eighth call after this one. */
static inline const char *test_path(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", test_root, name);
    return path;
}

#endif
