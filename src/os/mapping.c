/* mapping.c - /proc/self/maps says what is mapped where. */
#include "os/mapping.h"

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

void wb_mapping_drop(void *address, size_t bytes)
{
    madvise(address, bytes, MADV_DONTNEED);
}
