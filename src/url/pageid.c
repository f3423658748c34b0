/* pageid.c - the 128 bits that name a page: the hash of its key. They are on disk everywhere and must never change. */
#include "base/bytes.h"
#include "base/codec.h"
#include "base/hash.h"
#include "url/url.h"

_Static_assert(sizeof(struct wb_pageid) == WB_PAGEID_BYTES, "two words of eight bytes");
_Static_assert(WB_PAGEID_HEX == 2 * WB_PAGEID_BYTES, "two digits a byte");

struct wb_pageid wb_pageid_of_key(struct wb_slice key)
{
    struct wb_pageid id;

    wb_hash128(key.ptr, key.len, &id.hi, &id.lo);
    return id;
}

void wb_pageid_put(struct wb_pageid id, void *bytes_out)
{
    uint8_t *bytes = bytes_out;

    wb_put64_be(bytes, id.hi);
    wb_put64_be(bytes + 8, id.lo);
}

struct wb_pageid wb_pageid_get(const void *bytes)
{
    const uint8_t *b = bytes;

    return (struct wb_pageid){wb_get64_be(b), wb_get64_be(b + 8)};
}

void wb_pageid_hex(struct wb_pageid id, char text_out[WB_PAGEID_HEX + 1])
{
    uint8_t bytes[WB_PAGEID_BYTES];

    wb_pageid_put(id, bytes);
    wb_hex_encode(bytes, sizeof bytes, text_out);
}
