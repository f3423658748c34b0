/* mapping.h - files that this process has mapped, and dropping their pages from its memory. */
#ifndef WB_OS_MAPPING_H
#define WB_OS_MAPPING_H

#include "os/file.h"

/* Where a file is mapped (the first mapping of it), or NULL. For libraries that map files and do not say where. */
void *wb_mapping_find(const char *path);

/*
 * The first bytes of an open file, for reading; they stay when the file is closed or removed. Pages that cannot be read
 * fault when they are touched: os/guard.h.
 */
int wb_mapping_open(const struct wb_file *file, size_t bytes, void **map_out);
void wb_mapping_close(void *map, size_t bytes);

/* Drops the pages of a shared mapping from this process's memory; they stay in the system's cache and come back when touched. */
void wb_mapping_drop(void *address, size_t bytes);

#endif
