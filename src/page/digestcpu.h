/* digestcpu.h - private to page: which instructions the digests may use. */
#ifndef WB_PAGE_DIGESTCPU_H
#define WB_PAGE_DIGESTCPU_H

enum wb_digest_cpu {
    WB_DIGEST_AVX2 = 1 << 0,
    WB_DIGEST_AVX512 = 1 << 1, /* with vectors of any length */
    WB_DIGEST_SHA = 1 << 2,    /* the SHA instructions, and SSE 4.1 */
};

/* What the processor has, found out once. */
unsigned wb_digest_cpu(void);

/* From now on only these, so that a test can reach the code for older processors; ~0u: everything again. */
void wb_digest_cpu_limit(unsigned mask);

#endif
