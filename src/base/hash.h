/* hash.h - XXH3, for checksums on disk and for hash tables. */
#ifndef WB_BASE_HASH_H
#define WB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t wb_hash64(const void *bytes, size_t len);

/* The low 32 bits of wb_hash64: the checksum of small units on disk. */
uint32_t wb_hash32(const void *bytes, size_t len);

void wb_hash128(const void *bytes, size_t len, uint64_t *hi_out, uint64_t *lo_out);

#endif
