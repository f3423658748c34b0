/* asked.h - the head of an HTTP request. */
#ifndef WB_SIM_ASKED_H
#define WB_SIM_ASKED_H

#include "base/slice.h"

#define WB_ASKED_BYTES_MAX (64u << 10)

/* Slices borrow from the bytes that were read. */
struct wb_asked {
    struct wb_slice method;
    struct wb_slice target;         /* path and query, "/" at least */
    struct wb_slice host;           /* as sent, with its port; of the target where that is absolute */
    struct wb_slice if_none_match, if_modified_since; /* empty: none */
    bool head;                      /* HEAD */
    bool old;                       /* HTTP/1.0 */
    bool keep_alive;
    bool gzip;                      /* the client takes it */
};

/* 1 with a whole head of used_out bytes, 0 where more is needed, WB_E_PROTO where it is none, WB_E_LIMIT where it is too long. */
int wb_asked_parse(struct wb_slice bytes, struct wb_asked *asked_out, size_t *used_out);

#endif
