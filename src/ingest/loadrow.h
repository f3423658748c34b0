/*
 * loadrow.h - a line of a table as named texts, whether it is a JSON object or tab-separated under a header line.
 * Numbers become their digits, true and false 1 and 0, null and what is missing nothing; what stands in an array is
 * joined by ','.
 */
#ifndef WB_INGEST_LOADROW_H
#define WB_INGEST_LOADROW_H

#include "base/buf.h"

#define WB_LOADROW_CELLS 64

struct wb_loadrow {
    struct wb_buf heading;          /* the header line of a tab-separated file, behind it names one after the other */
    struct wb_slice names[WB_LOADROW_CELLS], texts[WB_LOADROW_CELLS];
    size_t count;
    bool tabs;                      /* the first line was a header */
    bool begun;
    struct wb_buf mem;
    struct json_t *object;          /* what texts borrow from */
};

/*
 * 1: a row; 0: no row (an empty line, the header); WB_E_PROTO with words. What it holds is valid until the next call.
 */
int wb_loadrow_read(struct wb_loadrow *row, struct wb_slice line);
void wb_loadrow_release(struct wb_loadrow *row);

/* Whether there is a field of that name, empty or not. */
bool wb_loadrow_has(const struct wb_loadrow *row, const char *name);

/* The text of a name, empty where there is none. */
struct wb_slice wb_loadrow_text(const struct wb_loadrow *row, const char *name);

/* The same as what it should be; 0 where there is nothing. WB_E_PROTO naming the field where it is something else. */
int wb_loadrow_number(const struct wb_loadrow *row, const char *name, uint64_t max, uint64_t *number_out);
int wb_loadrow_double(const struct wb_loadrow *row, const char *name, double *number_out);
int wb_loadrow_time(const struct wb_loadrow *row, const char *name, int64_t *time_ms_out);
int wb_loadrow_hex(const struct wb_loadrow *row, const char *name, void *bytes_out, size_t len, bool *there_out);

#endif
