/*
 * nameless.h - temporary files without a name. Nobody has to remove them: they end with the process, however it ends.
 */
#ifndef WB_OS_NAMELESS_H
#define WB_OS_NAMELESS_H

#include "os/file.h"

/* Opens a new file in dir that has no name. Its path, which is for messages only, is dir. */
int wb_nameless_open(const char *dir, struct wb_file *file_out);

/* The same in memory, for what has no place on disk. */
int wb_nameless_memory(struct wb_file *file_out);

/*
 * Returns memory of that many zero bytes that is kept in such a file, so that the kernel can write it out when memory
 * is short. The space on disk is allocated at once (WB_E_IO if there is not enough), so that touching the memory
 * later cannot fail.
 */
int wb_nameless_map(const char *dir, size_t bytes, void **memory_out);
void wb_nameless_unmap(void *memory, size_t bytes);

#endif
