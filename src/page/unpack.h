/* unpack.h - private to page: one content coding undone. */
#ifndef WB_PAGE_UNPACK_H
#define WB_PAGE_UNPACK_H

#include "page/page.h"

/*
 * Each (like wb_unpack_gzip in page.h) appends at most limit bytes of what coded holds to out (empty at first),
 * and says in *decoded_out how it went: changed is false where coded does not
 * start like that coding, out is then empty. Only WB_E_NOMEM is an error.
 */
int wb_unpack_deflate(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);
int wb_unpack_br(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);
int wb_unpack_zstd(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out);

#endif
