/* mapping.h - files that are read through memory. */
#ifndef WB_OS_MAPPING_H
#define WB_OS_MAPPING_H

#include "os/file.h"

/*
 * The first bytes of an open file, for reading; they stay when the file is closed or removed. Pages that cannot be read
 * end the process with SIGBUS when they are touched, so this is for files of our own that nobody cuts.
 */
int wb_mapping_open(const struct wb_file *file, size_t bytes, void **map_out);
void wb_mapping_close(void *map, size_t bytes);

#endif
