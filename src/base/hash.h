/*
 * hash.h - XXH3, for checksums on disk, for ids and for hash tables.
 *
 * These hashes find damage and spread keys, but anybody can construct collisions: they are not signatures. Formats on
 * disk depend on them (the checksums of every format, the ids of pages), so they must never change.
 */
#ifndef WB_BASE_HASH_H
#define WB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t wb_hash64(const void *bytes, size_t len);

/* The low 32 bits of wb_hash64(), as the checksum of small units on disk. */
uint32_t wb_hash32(const void *bytes, size_t len);

/*
 * The same kind of hash with a seed, for hash tables whose keys a stranger can choose. Anybody can compute
 * wb_hash64() and could look for many keys with the same hash; a seed that is a secret of this process prevents that.
 */
uint64_t wb_hash64_seeded(const void *bytes, size_t len, uint64_t seed);

void wb_hash128(const void *bytes, size_t len, uint64_t *hi_out, uint64_t *lo_out);

#endif
