/*
 * xcrawl.h - private to warc: HTTP heads of bodies whose codings have been removed.
 *
 * An archive keeps the HTTP headers of a response as received. We write the body decoded, so
 * some headers no longer describe it. They are kept under the names that Common Crawl uses:
 *
 *   as received                  as written
 *   Content-Encoding: gzip       X-Crawl-Content-Encoding: gzip
 *   Transfer-Encoding: chunked   X-Crawl-Transfer-Encoding: chunked
 *   Content-Length: 77           X-Crawl-Content-Length: 77
 *                                Content-Length: 140             (directly after it)
 *
 * The writer renames them, the reader of an archive undoes that.
 */
#ifndef WB_WARC_XCRAWL_H
#define WB_WARC_XCRAWL_H

#include "base/buf.h"

/* Appends to `out` the head as it is written to an archive with a body of body_len bytes; every line ends in CRLF. */
int wb_xcrawl_write(struct wb_slice head, uint64_t body_len, struct wb_buf *out);

/* True if the head contains any of the X-Crawl-* names. */
bool wb_xcrawl_has(struct wb_slice head);

/* Appends to `out` the head with the original names restored. */
int wb_xcrawl_undo(struct wb_slice head, struct wb_buf *out);

#endif
