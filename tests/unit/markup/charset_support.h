/* charset_support.h - shared by the tests of encodings: finding the data folder, and text in a file. */
#ifndef WB_TESTS_CHARSET_SUPPORT_H
#define WB_TESTS_CHARSET_SUPPORT_H

#include "../testdata.h"
#include "markup/charset.h"
#include "os/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define NONE WB_SLICE_EMPTY

/* True if the file of the conformance data exists. */
static inline bool data_path(const char *name, char path_out[1024])
{
    test_data_path(name, path_out);
    return wb_path_kind(path_out) == WB_PATH_FILE;
}

static inline size_t find_from(struct wb_slice s, size_t at, const char *text)
{
    const char *hit = at < s.len ? memmem(s.ptr + at, s.len - at, text, strlen(text)) : NULL;

    return hit ? (size_t)(hit - s.ptr) : s.len;
}

#endif
