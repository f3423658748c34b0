/*
 * heaps.c - settings of glibc's malloc. Its defaults are made for programs that end soon: a block that is freed raises
 * the size from which blocks are taken from the system directly, and each thread gets a heap of its own. In a server,
 * what belongs to a generation of the index is then freed into the middle of as many heaps as there are threads.
 */
#include "os/heaps.h"

#include <malloc.h>

enum { DIRECT_BYTES = 128 << 10, HEAPS = 4 };

void wb_heaps_share(void)
{
    mallopt(M_MMAP_THRESHOLD, DIRECT_BYTES); /* setting it keeps it from being raised */
    mallopt(M_TRIM_THRESHOLD, DIRECT_BYTES);
    mallopt(M_ARENA_MAX, HEAPS);
}

void wb_heaps_trim(void)
{
    malloc_trim(0);
}
