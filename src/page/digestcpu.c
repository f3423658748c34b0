/* digestcpu.c - asks the processor which instructions it has. On anything but x86-64, the answer is none. */
#include "page/digest.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>

static unsigned ask(void)
{
    unsigned found = 0, a, b = 0, c, d;

    if (__builtin_cpu_supports("avx2"))
        found |= WB_DIGEST_AVX2;
    if (__builtin_cpu_supports("avx512vl"))
        found |= WB_DIGEST_AVX512;
    if (__builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & 1u << 29)
        found |= WB_DIGEST_SHA;
    return found;
}
#else
static unsigned ask(void)
{
    return 0;
}
#endif

#define ASKED (1u << 31)

static atomic_uint cached;
static atomic_uint allowed = ~0u;

unsigned wb_digest_cpu(void)
{
    unsigned have = atomic_load_explicit(&cached, memory_order_relaxed);

    /* No lock: if several threads ask at the same time, they all get the same answer. */
    if (!have) {
        have = ask() | ASKED;
        atomic_store_explicit(&cached, have, memory_order_relaxed);
    }
    return have & atomic_load_explicit(&allowed, memory_order_relaxed) & ~ASKED;
}

void wb_digest_cpu_limit(unsigned mask)
{
    atomic_store_explicit(&allowed, mask, memory_order_relaxed);
}
