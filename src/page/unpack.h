/* unpack.h - private to page: removes one content coding. Used by payload.c. */
#ifndef WB_PAGE_UNPACK_H
#define WB_PAGE_UNPACK_H

#include "page/page.h"

/*
 * Each of these, like wb_unpack_gzip() in page.h, appends at most `limit` decoded bytes to out,
 * which must be empty, and says in *decoded_out how it went. If the input does not start like that
 * coding, changed is false and out stays empty. Fails only with WB_E_NOMEM.
 */
int wb_unpack_deflate(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);
int wb_unpack_br(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);
int wb_unpack_zstd(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);

#endif
