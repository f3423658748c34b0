/*
 * rowpen.h - writes one row of a table, cell by cell. The same calls give a JSON object, a line of tab-separated
 * columns, the header line of these columns, or words with one cell a line. So the names and the order of the cells are
 * in one place. webdb_rows.c uses it.
 *
 *   begin -> text, u64, time ... -> end
 *
 * An error is remembered and returned by end(); cells after it are not written.
 */
#ifndef WB_CLI_ROWPEN_H
#define WB_CLI_ROWPEN_H

#include "base/buf.h"
#include "base/json.h"

enum wb_rowpen_mode {
    WB_ROWPEN_JSON,
    WB_ROWPEN_TSV,
    WB_ROWPEN_HEADING, /* the names of the columns; values are ignored */
    WB_ROWPEN_WORDS,   /* "name  value" lines; cells without a value are left out */
};

struct wb_rowpen {
    enum wb_rowpen_mode mode;
    struct wb_buf *out;
    struct wb_json json; /* for WB_ROWPEN_JSON; a cell that is an array is written here with wb_json_*() */
    bool first;          /* no cell was written yet */
    int err;
};

void wb_rowpen_begin(struct wb_rowpen *pen, enum wb_rowpen_mode mode, struct wb_buf *out);
int wb_rowpen_end(struct wb_rowpen *pen);

/* Cells. */
void wb_rowpen_text(struct wb_rowpen *pen, const char *name, struct wb_slice text);
void wb_rowpen_u64(struct wb_rowpen *pen, const char *name, uint64_t number);
void wb_rowpen_double(struct wb_rowpen *pen, const char *name, double number);
void wb_rowpen_bool(struct wb_rowpen *pen, const char *name, bool value);

/*
 * A cell without a value, which is null in JSON. These write one if the text is empty, time_ms is 0 or INT64_MAX, or
 * known is false.
 */
void wb_rowpen_none(struct wb_rowpen *pen, const char *name);
void wb_rowpen_some(struct wb_rowpen *pen, const char *name, struct wb_slice text);
void wb_rowpen_time(struct wb_rowpen *pen, const char *name, int64_t time_ms);
void wb_rowpen_hex64(struct wb_rowpen *pen, const char *name, bool known, uint64_t number);

/*
 * Appends text in which control characters are replaced: among columns a tab or a line end would start another cell or
 * row, and among words an escape sequence could steer the terminal.
 */
int wb_rowpen_clean(struct wb_buf *out, struct wb_slice text, char instead);

#endif
