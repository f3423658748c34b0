/* digest.h - private to page: digests of many messages, and which instructions of the processor they may use. */
#ifndef WB_PAGE_DIGEST_H
#define WB_PAGE_DIGEST_H

#include "page/page.h"

/* Both digests of each of `count` messages; otherwise like wb_page_digest_many(). */
void wb_digest_many(const struct wb_slice *messages, size_t count, uint8_t (*md5s_out)[WB_MD5_BYTES],
                    uint8_t (*sha1s_out)[WB_SHA1_BYTES]);

/* ---- digestcpu.c ---------------------------------------------------------------------------- */

enum wb_digest_cpu {
    WB_DIGEST_AVX2 = 1 << 0,
    WB_DIGEST_AVX512 = 1 << 1, /* AVX-512 with vectors of any length */
    WB_DIGEST_SHA = 1 << 2,    /* the SHA instructions, and SSE 4.1 */
};

/* What the processor has, as a set of enum wb_digest_cpu; it is asked only once. */
unsigned wb_digest_cpu(void);

/*
 * Test seam: from now on, pretend that the processor has only these; ~0u ends the pretence. Without
 * it, tests could not reach the code for older processors.
 */
void wb_digest_cpu_limit(unsigned mask);

#endif
