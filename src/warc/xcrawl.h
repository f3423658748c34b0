/*
 * xcrawl.h - private to warc: heads whose body is not coded any more.
 *
 * Archives keep a response's headers as received. Where the body is written
 * decoded, those that no longer describe it are kept under Common Crawl's names:
 *
 *   Content-Encoding: gzip       X-Crawl-Content-Encoding: gzip
 *   Transfer-Encoding: chunked   X-Crawl-Transfer-Encoding: chunked
 *   Content-Length: 77           X-Crawl-Content-Length: 77
 *                                Content-Length: 140             (directly after it)
 */
#ifndef WB_WARC_XCRAWL_H
#define WB_WARC_XCRAWL_H

#include "base/buf.h"

/* Appends head as it goes into an archive, every line with CRLF, for a body of body_len bytes. */
int wb_xcrawl_write(struct wb_slice head, uint64_t body_len, struct wb_buf *out);

/* True where head has any of these names. */
bool wb_xcrawl_has(struct wb_slice head);

/* Appends head with the original names again. */
int wb_xcrawl_undo(struct wb_slice head, struct wb_buf *out);

#endif
