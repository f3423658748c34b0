/* random.h - bytes nobody can guess, from the kernel. */
#ifndef WB_OS_RANDOM_H
#define WB_OS_RANDOM_H

#include <stddef.h>

void wb_random_bytes(void *bytes_out, size_t len);

#endif
