/* ingest.c - what the jobs of the door share: errors in words. */
#include "ingest/ingest.h"

#include <inttypes.h>
#include <string.h>

int wb_ingest_error_text(const struct wb_ingest_error *error, struct wb_buf *text_out)
{
    if (error->line && !error->fatal)
        return wb_buf_printf(text_out, "%s, line %" PRIu64 ": %s", error->file, error->line, error->message);
    /* Messages of the file readers name the file already; those about a payload do not. */
    if (strstr(error->message, error->file))
        return wb_buf_append_str(text_out, error->message);
    if (error->fatal)
        return wb_buf_printf(text_out, "%s: %s", error->file, error->message);
    return wb_buf_printf(text_out, "%s, offset %" PRIu64 ": %s", error->file, error->offset, error->message);
}
