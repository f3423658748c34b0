/* largepage.c - madvise(): the only thing that we tell the kernel about memory. */
#include "os/largepage.h"

#include <stdint.h>
#include <sys/mman.h>

#define LARGE_PAGE ((uintptr_t)2 << 20)

void wb_largepage_want(void *memory, size_t bytes)
{
    uintptr_t start = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(LARGE_PAGE - 1);

    if (start < end) /* only pages that are ours as a whole */
        (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}
