/*
 * testdata.h - where the conformance data is: below $WEBBASE_DATA, or else in ../shared/data beside the source. A test
 * whose file is not there is skipped.
 */
#ifndef WB_TEST_TESTDATA_H
#define WB_TEST_TESTDATA_H

#include "sourceroot.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes the path of a file or folder of the data, such as "url/urltestdata.json". */
static inline void test_data_path(const char *name, char path_out[1024])
{
    const char *data = getenv("WEBBASE_DATA");

    if (data)
        snprintf(path_out, 1024, "%s/%s", data, name);
    else
        snprintf(path_out, 1024, "%s/../shared/data/%s", test_source_root, name);
}

#endif
