/*
 * report.c - messages for people. Text from elsewhere cannot break the line or steer the terminal: it is cleaned first.
 */
#include "cli/report.h"
#include "base/error.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "ingest/ingest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPORT_MAX 4096
#define DAMAGES_SHOWN 20

void wb_report(const char *format, ...)
{
    char text[REPORT_MAX + 1] = "webbase: ";
    size_t start = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + start, REPORT_MAX - start, format, args);
    va_end(args);
    size_t len = strlen(text);
    wb_output_clean(text, len);
    text[len] = '\n';
    wb_progress_clear();
    fflush(stderr);
    /*
     * If standard error cannot be written, nobody can be told, and that must not stop us. The message of the error that
     * is being reported must survive.
     */
    struct wb_error_copy why;
    wb_error_save(WB_E_IO, &why);
    (void)wb_output_all(STDERR_FILENO, "standard error", wb_slice(text, len + 1));
    (void)wb_error_restore(&why);
}

void wb_report_damage(void)
{
    static unsigned shown;

    if (shown < DAMAGES_SHOWN)
        wb_report("%s", wb_error_message());
    else if (shown == DAMAGES_SHOWN)
        wb_report("further damaged places are only counted; 'webbase verify' shows what is damaged");
    shown += shown <= DAMAGES_SHOWN;
}

int wb_report_ingest(const struct wb_ingest_error *error)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_ingest_error_text(error, &text);

    if (err == 0)
        wb_report("%.*s", WB_SLICE_ARG(wb_buf_slice(&text)));
    wb_buf_release(&text);
    return err;
}
