/* report.c - messages for people. What comes from elsewhere in them cannot break the line or steer the terminal. */
#include "cli/report.h"
#include "cli/output.h"
#include "cli/progress.h"

#include <stdio.h>

#define REPORT_MAX 4096

void wb_report(const char *format, ...)
{
    char text[REPORT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    wb_text_clean(text, strlen(text));
    wb_progress_clear();
    fprintf(stderr, "webbase: %s\n", text);
}
