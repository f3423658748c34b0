/*
 * reply.h - what is sent in reply to a request, and how: the exact bytes, how slowly, what comes
 * after them, and how the connection ends. The server (webserver.c) knows nothing else.
 */
#ifndef WB_SIM_REPLY_H
#define WB_SIM_REPLY_H

#include "base/buf.h"

enum wb_reply_end {
    WB_REPLY_KEEP,  /* the connection stays open */
    WB_REPLY_CLOSE,
    WB_REPLY_RESET, /* ends with a TCP reset */
    WB_REPLY_HOLD,  /* stays open, but nothing more is ever sent */
};

struct wb_reply {
    struct wb_buf bytes;
    unsigned delay_ms;            /* how long to wait before the first byte */
    unsigned drip_bytes, drip_ms; /* send this many bytes, then pause this long; 0: send all at once */

    /* Appends more bytes once the others are sent: 1 if more may follow, 0 if not, or an error. May be NULL. */
    int (*more)(void *context, struct wb_buf *bytes_out);
    void (*release)(void *context); /* releases the context; may be NULL */
    void *context;

    enum wb_reply_end end;
    int status;                   /* what the log says */
};

#define WB_REPLY_INIT ((struct wb_reply){.bytes = {NULL, 0, 0}})

static inline void wb_reply_release(struct wb_reply *reply)
{
    if (reply->release)
        reply->release(reply->context);
    wb_buf_release(&reply->bytes);
    *reply = WB_REPLY_INIT;
}

#endif
