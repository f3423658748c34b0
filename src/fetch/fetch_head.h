/* fetch_head.h - the head of a response, collected line by line as it arrives. Used inside this room only. */
#ifndef WB_FETCH_FETCH_HEAD_H
#define WB_FETCH_FETCH_HEAD_H

#include "base/buf.h"

#define WB_FETCH_LINES_MAX 2000u

struct wb_fetch_head {
    struct wb_buf text;   /* status line and headers of the response that is being read */
    size_t seen, max;     /* bytes of all header lines, with interim responses and trailers; and their limit */
    unsigned lines;       /* how many there were: libcurl allocates memory for each */
    uint16_t status;      /* 0: no status line yet */
    bool ended;           /* the blank line of the final response was read */
};

/* Makes a head ready for a new response. */
void wb_fetch_head_begin(struct wb_fetch_head *head, size_t max);

/*
 * Adds one line with its line end. A blank line ends the head. Interim responses (1xx) are dropped when they end;
 * trailers are counted and dropped. WB_E_LIMIT beyond max or WB_FETCH_LINES_MAX, WB_E_PROTO if it is not a header
 * line, WB_E_NOMEM.
 */
int wb_fetch_head_line(struct wb_fetch_head *head, struct wb_slice line);

/* True if the head states two different lengths: then nobody can say where the body ends (RFC 9112, 6.3). */
bool wb_fetch_head_contradicts(const struct wb_fetch_head *head);

/*
 * Appends a head that contains only the codings that are still to be undone: content codings, and transfer codings
 * except "chunked", which libcurl has undone. *any_out is false, and nothing is appended, if there are none.
 * WB_E_PROTO if a transfer coding is unknown, or comes after "chunked", which must be the last.
 */
int wb_fetch_head_codings(const struct wb_fetch_head *head, struct wb_buf *lines_out, bool *any_out);

#endif
