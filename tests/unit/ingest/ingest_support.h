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

static char folder[64];
static char repo[96]; /* a name in folder; nobody creates it here */

static int set_up_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/webbase-ingest-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(repo, sizeof repo, "%s/repo", folder);
    return 0;
}

static int tear_down_folder(void **state)
{
    char command[96];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The path of a file in the folder. The last eight results are valid. */
static inline const char *file(const char *name)
{
    static char paths[8][128];
    static unsigned at;
    char *path = paths[at++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline void put_bytes(const char *name, const void *bytes, size_t len)
{
    assert_int_equal(wb_path_replace(file(name), wb_slice(bytes, len)), 0);
}

static inline void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up_folder, tear_down_folder)

#endif
