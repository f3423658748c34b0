/* support.h - what the tests of url share: short ways to parse, and the conformance data of the URL standard. */
#ifndef WB_TESTS_URL_SUPPORT_H
#define WB_TESTS_URL_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../testdata.h"
#include "base/error.h"
#include "url/url.h"

#include <jansson.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The path of a file of the conformance data. */
static inline void data_path(const char *name, char path_out[1024])
{
    char below[256];

    snprintf(below, sizeof below, "url/%s", name);
    test_data_path(below, path_out);
}

/*
 * Calls check() for each case (object) in a JSON file of the conformance data, of which there must be `least` at least.
 * Returns the sum of what check() returned. Skips the test if the data are not there.
 */
static inline int each_case(const char *name, int least, int (*check)(const json_t *c))
{
    char path[1024];
    int seen = 0, sum = 0;
    size_t i;
    json_t *c;

    data_path(name, path);
    json_t *cases = json_load_file(path, JSON_ALLOW_NUL, NULL);
    if (!cases)
        skip();
    json_array_foreach(cases, i, c) {
        if (!json_is_object(c))
            continue;
        sum += check(c);
        seen++;
    }
    json_decref(cases);
    assert_in_range(seen, least, 100000);
    return sum;
}

static inline bool slice_is(struct wb_slice s, const char *text)
{
    return wb_slice_equal(s, wb_slice_str(text));
}

static inline void assert_slice(struct wb_slice s, const char *text)
{
    if (!slice_is(s, text))
        fail_msg("'%.*s' is not '%s'", WB_SLICE_ARG(s), text);
}

/* The key of a URL that must parse, as a string that is good until the next call with the same slot (0 or 1). */
static inline const char *key_of(const char *text, int slot)
{
    static struct wb_buf keys[2];
    static struct wb_url url;

    if (wb_url_parse(wb_slice_str(text), NULL, &url) < 0)
        fail_msg("%s", wb_error_message());
    assert_int_equal(wb_url_key(&url, &keys[slot]), 0);
    assert_int_equal(wb_buf_terminate(&keys[slot]), 0);
    wb_url_release(&url);
    return keys[slot].ptr;
}

#endif
