/*
 * testdata.h - where the conformance data is: below $WEBBASE_DATA, or else in ../shared/data beside the source. A test
 * whose file is not there is skipped.
 */
#ifndef WB_TEST_TESTDATA_H
#define WB_TEST_TESTDATA_H

#include <stdio.h>
#include <stdlib.h>

/* Writes the path of a file or folder of the data, such as "url/urltestdata.json". */
static inline void test_data_path(const char *name, char path_out[1024])
{
    const char *data = getenv("WEBBASE_DATA");

    snprintf(path_out, 1024, "%s/%s", data ? data : WB_SOURCE_ROOT "/../shared/data", name);
}

#endif
