/* fetch_head.h - private to fetch: the head of an answer, collected line by line as it arrives. */
#ifndef WB_FETCH_FETCH_HEAD_H
#define WB_FETCH_FETCH_HEAD_H

#include "base/buf.h"

#define WB_FETCH_LINES_MAX 2000u

struct wb_fetch_head {
    struct wb_buf text;   /* status line and headers of the answer being read */
    size_t seen, max;     /* bytes of all header lines: of interim answers and trailers too */
    unsigned lines;       /* how many there were: libcurl keeps each in memory of its own */
    uint16_t status;      /* 0: no status line yet */
    bool ended;           /* the blank line of the final answer was read */
};

void wb_fetch_head_begin(struct wb_fetch_head *head, size_t max);

/*
 * One line with its line end; the blank one ends a head. Interim answers (1xx) are dropped when they end,
 * trailers are counted and dropped. WB_E_LIMIT past max or WB_FETCH_LINES_MAX, WB_E_PROTO for a line that is not a header, WB_E_NOMEM.
 */
int wb_fetch_head_line(struct wb_fetch_head *head, struct wb_slice line);

/* Two lengths that differ: nobody can say where the body ends (RFC 9112, 6.3). */
bool wb_fetch_head_contradicts(const struct wb_fetch_head *head);

/*
 * Appends a head of nothing but the codings that are still to be undone: content codings, and transfer codings without
 * "chunked", which is gone already. *any_out is false (and nothing appended) where there are none.
 * WB_E_PROTO for a transfer coding that is unknown, or not in the order that tells where the body ends.
 */
int wb_fetch_head_codings(const struct wb_fetch_head *head, struct wb_buf *lines_out, bool *any_out);

#endif
