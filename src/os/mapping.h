/* mapping.h - files that this process has mapped, and dropping their pages from its memory. */
#ifndef WB_OS_MAPPING_H
#define WB_OS_MAPPING_H

#include <stddef.h>

/* Where a file is mapped (the first mapping of it), or NULL. For libraries that map files and do not say where. */
void *wb_mapping_find(const char *path);

/* Drops the pages of a shared mapping from this process's memory; they stay in the system's cache and come back when touched. */
void wb_mapping_drop(void *address, size_t bytes);

#endif
