/* nameless.h - temporary files without a name: what is in them ends with the process, however it ends. */
#ifndef WB_OS_NAMELESS_H
#define WB_OS_NAMELESS_H

#include "os/file.h"

/* An open file in dir that has no name (its path, for messages, is dir's). */
int wb_nameless_open(const char *dir, struct wb_file *file_out);

/*
 * Memory of bytes zeros that lies in such a file, so that the kernel may write it out when memory is short. The
 * space on disk is taken at once (WB_E_IO where there is none): touching the memory never fails later.
 */
int wb_nameless_map(const char *dir, size_t bytes, void **memory_out);
void wb_nameless_unmap(void *memory, size_t bytes);

#endif
