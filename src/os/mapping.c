/* mapping.c - mappings of our own, and those that /proc/self/maps tells of. */
#include "os/mapping.h"
#include "base/check.h"
#include "base/error.h"
#include "os/fault.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

void *wb_mapping_find(const char *path)
{
    char line[4352];
    unsigned long long start, inode;
    void *found = NULL;
    struct stat st;
    FILE *maps;

    if (stat(path, &st) != 0)
        return NULL;
    maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return NULL;
    /* By inode, because names can change. */
    while (!found && fgets(line, sizeof line, maps))
        if (sscanf(line, "%llx-%*x %*4c%*x %*x:%*x %llu", &start, &inode) == 2 && inode == st.st_ino)
            found = (void *)(uintptr_t)start;
    fclose(maps);
    return found;
}

int wb_mapping_open(const struct wb_file *file, size_t bytes, void **map_out)
{
    void *map = wb_fault_strikes(WB_FAULT_READ) ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_SHARED, file->fd, 0);

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

void wb_mapping_drop(void *address, size_t bytes)
{
    madvise(address, bytes, MADV_DONTNEED);
}
