/* asked.h - the head of an HTTP request, parsed. The server reads it; everything that answers looks at it. */
#ifndef WB_SIM_ASKED_H
#define WB_SIM_ASKED_H

#include "base/slice.h"

#define WB_ASKED_BYTES_MAX (64u << 10)

/* Slices borrow from the bytes that were read. */
struct wb_asked {
    struct wb_slice method;
    struct wb_slice target;         /* path and query, at least "/" */
    struct wb_slice host;           /* as sent, with its port; taken from the target if that is an absolute URL */
    struct wb_slice if_none_match, if_modified_since; /* empty if not sent */
    bool head;                      /* the method is HEAD */
    bool old;                       /* HTTP/1.0 */
    bool keep_alive;
    bool gzip;                      /* the client accepts gzip */
};

/*
 * Returns 1 with a complete head of *used_out bytes, 0 if more bytes are needed, WB_E_PROTO if
 * this is not a request, or WB_E_LIMIT if the head is too long.
 */
int wb_asked_parse(struct wb_slice bytes, struct wb_asked *asked_out, size_t *used_out);

#endif
