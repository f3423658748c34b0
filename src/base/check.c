/* check.c - what happens when WB_CHECK finds a bug: print where it is, and abort. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void wb_check_failed(const char *cond, const char *file, int line, const char *func)
{
    fprintf(stderr, "webbase: bug: %s:%d: %s: check failed: %s\n", file, line, func, cond);
    abort();
}
