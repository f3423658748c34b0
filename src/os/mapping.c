/* mapping.c - mmap() of files for reading; large pages of memory. Never maps anything for writing: nameless.c does. */
#include "os/mapping.h"
#include "base/check.h"
#include "base/error.h"
#include "os/fault.h"

#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20 };

int wb_mapping_open(const struct wb_file *file, size_t bytes, void **map_out)
{
    WB_CHECK(file->fd >= 0 && bytes > 0); /* mmap() refuses an empty mapping */
    void *map = wb_fault_strikes(WB_FAULT_READ, file->path) ? MAP_FAILED
                                                            : mmap(NULL, bytes, PROT_READ, MAP_SHARED, file->fd, 0);

    *map_out = NULL;
    if (map == MAP_FAILED)
        return wb_fail_errno("cannot map %s", file->path);
    *map_out = map;
    return 0;
}

void wb_mapping_close(void *map, size_t bytes)
{
    WB_CHECK(munmap(map, bytes) == 0);
}

void wb_mapping_large(void *memory, size_t bytes)
{
    uintptr_t from = ((uintptr_t)memory + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    uintptr_t to = ((uintptr_t)memory + bytes) / LARGE_PAGE * LARGE_PAGE;

    if (memory && from < to) /* whole large pages only: nothing changes for whatever is beside them */
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
}
