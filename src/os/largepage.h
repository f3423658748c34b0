/* largepage.h - memory that is used as a whole. */
#ifndef WB_OS_LARGEPAGE_H
#define WB_OS_LARGEPAGE_H

#include <stddef.h>

/*
 * Asks the kernel for large pages (2 MB instead of 4 KB) for memory that was allocated, but not used yet: taking it
 * into use costs a fault for each page. For buffers of many megabytes that will be full. The kernel may ignore it.
 */
void wb_largepage_want(void *memory, size_t bytes);

#endif
