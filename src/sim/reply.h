/*
 * reply.h - what is sent for a request, and how: bytes as they are, how slowly, what
 * comes after them, and how it ends. The server knows nothing else.
 */
#ifndef WB_SIM_REPLY_H
#define WB_SIM_REPLY_H

#include "base/buf.h"

enum wb_reply_end {
    WB_REPLY_KEEP,  /* the connection stays open */
    WB_REPLY_CLOSE,
    WB_REPLY_RESET, /* RST */
    WB_REPLY_HOLD,  /* stays open, and nothing more is answered */
};

struct wb_reply {
    struct wb_buf bytes;
    unsigned delay_ms;            /* before the first byte */
    unsigned drip_bytes, drip_ms; /* so many bytes, then so long nothing; 0: all at once */

    /* Appends more bytes once the others are sent: 1 there may be more, 0 that was all, or an error. NULL: none. */
    int (*more)(void *context, struct wb_buf *bytes_out);
    void (*release)(void *context); /* NULL: nothing to release */
    void *context;

    enum wb_reply_end end;
    int status;                   /* for the log */
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
