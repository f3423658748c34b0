/* sourceroot.c - where the project's source is; see sourceroot.h. */
#include "sourceroot.h"

const char test_source_root[] = WB_SOURCE_ROOT;
