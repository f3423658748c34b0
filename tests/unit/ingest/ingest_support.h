/* ingest_support.h - a folder for each test of ingest, with a repository in it, and files of text. */
#ifndef WB_TESTS_INGEST_SUPPORT_H
#define WB_TESTS_INGEST_SUPPORT_H

#include "os/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../testroot.h"

static char repo[96]; /* a name in the folder; nobody creates it here */

static int set_up_folder(void **state)
{
    assert_int_equal(make_root(state), 0);
    snprintf(repo, sizeof repo, "%s/repo", test_root);
    return 0;
}

static inline void put_bytes(const char *name, const void *bytes, size_t len)
{
    assert_int_equal(wb_path_replace(test_path(name), wb_slice(bytes, len)), 0);
}

static inline void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up_folder, remove_root)

#endif
