/* fused.h - private to page: MD5 and SHA-1 in one pass, for processors with SHA instructions. Used by digest.c. */
#ifndef WB_PAGE_FUSED_H
#define WB_PAGE_FUSED_H

#include "page/page.h"

/* True if this processor has the instructions; if not, the other two functions must not be called. */
bool wb_fused_usable(void);

/* Computes both digests of one message in the time that its MD5 alone would take. */
void wb_fused_digest(struct wb_slice message, uint8_t md5_out[WB_MD5_BYTES], uint8_t sha1_out[WB_SHA1_BYTES]);

/* Computes the SHA-1 of each message, two at a time: almost twice as fast as one after another. */
void wb_fused_sha1_many(const struct wb_slice *messages, size_t count, uint8_t (*digests_out)[WB_SHA1_BYTES]);

#endif
