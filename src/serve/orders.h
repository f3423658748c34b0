/*
 * orders.h - private to serve: what operators told the server to do, and whether it worked.
 *
 *   DIR/control/orders        one line for each order: checksum, blank, a JSON object
 *   DIR/control/orders.old    what was there before the file had a megabyte; what was there before that is gone
 *
 * docs/formats/orders.md has the details.
 */
#ifndef WB_SERVE_ORDERS_H
#define WB_SERVE_ORDERS_H

#include "base/buf.h"

struct wb_order {
    int64_t time_ms;
    struct wb_slice what;    /* "pause", "stop", "delay", "expunge", "push"... */
    struct wb_slice subject; /* the site or URL concerned; empty: none */
    bool ok;
    struct wb_slice said; /* what came of it, in words */
};

/* Appends an order. Several servers may do so at the same time. Texts that are too long are cut. */
int wb_orders_note(const char *dir, const struct wb_order *order);

/* Calls each() for the newest orders, newest first, at most max. Lines that are damaged are left out. */
int wb_orders_read(const char *dir, size_t max, int (*each)(void *context, const struct wb_order *order),
                   void *context);

/* A test seam. Reads one line, without its end. The texts belong to mem. Returns false if it is damaged. */
bool wb_orders_decode(struct wb_slice line, struct wb_buf *mem, struct wb_order *order_out);

int wb_orders_verify(const char *dir,
                     void (*found)(void *context, bool problem, const char *file, uint64_t offset, const char *message),
                     void *context);

#endif
