/* mapping.h - files that are read through memory (mmap). */
#ifndef WB_OS_MAPPING_H
#define WB_OS_MAPPING_H

#include "os/file.h"

/*
 * Maps the first bytes of an open file for reading. The mapping stays valid when the file is closed or removed. If the
 * disk cannot deliver a page, or the file is cut, touching that page ends the process with SIGBUS: map only files
 * that WebBase wrote itself and never cuts.
 */
int wb_mapping_open(const struct wb_file *file, size_t bytes, void **map_out);
void wb_mapping_close(void *map, size_t bytes);

/*
 * A hint: all of this memory, which is many megabytes, will be used soon. The kernel may then hand it out in large
 * pages, instead of being asked for 4 KB at a time.
 */
void wb_mapping_large(void *memory, size_t bytes);

#endif
