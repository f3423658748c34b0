/*
 * httpd_body.h - the body of a request: undoes its framing, byte by byte as it arrives. Pure functions over bytes.
 *
 *   Content-Length   so many bytes
 *   chunked          5;extension CR LF  hello CR LF  ...  0 CR LF  trailers CR LF
 *
 * Sizes are hexadecimal digits without anything around them; extensions and trailers are checked, bounded and dropped.
 */
#ifndef WB_HTTPD_HTTPD_BODY_H
#define WB_HTTPD_HTTPD_BODY_H

#include "httpd/httpd_head.h"

enum wb_chunk_place {
    WB_CHUNK_SIZE,
    WB_CHUNK_EXTENSION,
    WB_CHUNK_SIZE_LF,
    WB_CHUNK_DATA,
    WB_CHUNK_DATA_CR,
    WB_CHUNK_DATA_LF,
    WB_CHUNK_LINE, /* the beginning of a trailer, or of the empty line at the end */
    WB_CHUNK_NAME,
    WB_CHUNK_VALUE,
    WB_CHUNK_VALUE_LF,
    WB_CHUNK_END_LF,
};

/* All zero: no body. */
struct wb_httpd_body {
    struct wb_buf bytes;
    bool chunked;
    uint64_t left; /* bytes of the body, or of this chunk, that have not arrived yet */
    uint64_t max;  /* the body may not be larger */
    enum wb_chunk_place place;
    unsigned digits; /* of the current size */
    size_t extra;    /* bytes of the extension, or of all trailers */
};

/* Prepares for the body that the head announces. 0, or 413 if it is larger than max. */
unsigned wb_httpd_body_begin(struct wb_httpd_body *body, const struct wb_httpd_head *head, uint64_t max,
                             const char **why_out);

/* Takes bytes that have arrived; what follows the body is not used. An enum wb_httpd_progress, or a status. */
unsigned wb_httpd_body_feed(struct wb_httpd_body *body, struct wb_slice bytes, size_t *used_out, const char **why_out);

void wb_httpd_body_release(struct wb_httpd_body *body);

#endif
