/* main.c - the program's entry. */
#include "base/error.h"
#include "cli/output.h"

#include <stdio.h>

int main(void)
{
    puts("webbase " WB_VERSION);
    if (wb_output_flush() < 0) {
        fprintf(stderr, "webbase: %s\n", wb_error_message());
        return 1;
    }
    return 0;
}
