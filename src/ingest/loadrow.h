/*
 * loadrow.h - reads the lines of a table, each of which is a JSON object, or tab-separated below a header line. A row
 * is a list of named texts: numbers are their digits, true and false are 1 and 0, null and missing fields are empty,
 * and the elements of an array are joined by ','. rows_import.c uses it, from one line to the next of one file.
 */
#ifndef WB_INGEST_LOADROW_H
#define WB_INGEST_LOADROW_H

#include "base/buf.h"

#define WB_LOADROW_CELLS 64

struct wb_loadrow {
    struct wb_buf heading;          /* the header line of a tab-separated file */
    struct wb_slice names[WB_LOADROW_CELLS], texts[WB_LOADROW_CELLS];
    size_t count;
    bool tabs;                      /* the file is tab-separated: its first line was a header */
    bool begun;                     /* the first line was read */
    struct wb_buf mem;              /* of a JSON object: the texts */
    struct json_t *object;          /* of a JSON object: the names */
};

/*
 * Reads a line. Returns 1 with a row, which is valid until the next call; 0 for a line that is no row (an empty line,
 * the header); WB_E_PROTO or WB_E_LIMIT with a message for a bad one.
 */
int wb_loadrow_read(struct wb_loadrow *row, struct wb_slice line);
void wb_loadrow_release(struct wb_loadrow *row);

/* Whether the row has a field of this name, even an empty one. */
bool wb_loadrow_has(const struct wb_loadrow *row, const char *name);

/* The text of a field; empty if there is no such field. */
struct wb_slice wb_loadrow_text(const struct wb_loadrow *row, const char *name);

/* Fields of other types. An empty or missing field is 0; a wrong one is WB_E_PROTO with a message that names it. */
int wb_loadrow_number(const struct wb_loadrow *row, const char *name, uint64_t max, uint64_t *number_out);
int wb_loadrow_double(const struct wb_loadrow *row, const char *name, double *number_out);
int wb_loadrow_time(const struct wb_loadrow *row, const char *name, int64_t *time_ms_out);
int wb_loadrow_hex(const struct wb_loadrow *row, const char *name, void *bytes_out, size_t len, bool *there_out);

#endif
