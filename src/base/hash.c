/* hash.c - the only file that knows which hash function we use. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t wb_hash64(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}

uint64_t wb_hash64_seeded(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

uint32_t wb_hash32(const void *bytes, size_t len)
{
    return (uint32_t)XXH3_64bits(bytes, len);
}

void wb_hash128(const void *bytes, size_t len, uint64_t *hi_out, uint64_t *lo_out)
{
    XXH128_hash_t h = XXH3_128bits(bytes, len);

    *hi_out = h.high64;
    *lo_out = h.low64;
}
