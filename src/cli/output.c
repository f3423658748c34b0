/* output.c - standard output, whose errors are reported like any other. */
#include "cli/output.h"
#include "base/error.h"

#include <stdio.h>

int wb_output_flush(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return wb_fail_errno("standard output");
    return 0;
}
