/*
 * delivery.h - private to serve: how the body of a reply reaches the client: compressed, in part, or not at all because
 * the client has it already (RFC 9110, sections 8.8, 12.5.3, 13 and 14).
 */
#ifndef WB_SERVE_DELIVERY_H
#define WB_SERVE_DELIVERY_H

#include "serve/server.h"

/* A test seam. Whether a client with this field Accept-Encoding takes gzip. */
bool wb_delivery_takes_gzip(struct wb_slice accept);

/* Whether a list of entity tags (If-None-Match) has this one. Weak tags count as well. */
bool wb_delivery_has_tag(struct wb_slice list, struct wb_slice tag);

enum wb_delivery_part {
    WB_DELIVERY_WHOLE, /* there is no field Range, or one that we ignore: several parts, or other units */
    WB_DELIVERY_PART,
    WB_DELIVERY_BEYOND, /* 416 */
};

/* A test seam. Which bytes of a body of this size a field Range asks for: *count_out from *from_out. */
enum wb_delivery_part wb_delivery_range(struct wb_slice range, uint64_t size, uint64_t *from_out, uint64_t *count_out);

/*
 * Called with every reply that a handler has made: takes out the part that the client wants, if the handler has set
 * `parts` in the call, or else compresses text for clients that take gzip. Sources are left as they are.
 */
void wb_delivery_finish(struct wb_call *call);

#endif
