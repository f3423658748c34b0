/* random.h - random bytes from the kernel, which nobody can guess: for seeds of hash tables, ids and tokens. */
#ifndef WB_OS_RANDOM_H
#define WB_OS_RANDOM_H

#include <stddef.h>

void wb_random_bytes(void *bytes_out, size_t len);

#endif
