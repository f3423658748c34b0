/* depth.c - depths as numbers of 16 bits. */
#include "url/depth.h"
#include "base/check.h"

enum { NEED = 0x8000 };

uint16_t wb_depth_code(struct wb_depth depth)
{
    WB_CHECK(depth.need <= WB_DEPTH_NEED_MAX);
    if (depth.need)
        return (uint16_t)(NEED + depth.need);
    return depth.links <= WB_DEPTH_LINKS_MAX ? depth.links : WB_DEPTH_UNKNOWN;
}

static bool is_need(uint64_t code)
{
    return code > NEED && code <= NEED + WB_DEPTH_NEED_MAX;
}

bool wb_depth_is_code(uint64_t code)
{
    return code <= WB_DEPTH_LINKS_MAX || is_need(code) || code == WB_DEPTH_UNKNOWN;
}

struct wb_depth wb_depth_of_code(uint64_t code)
{
    if (is_need(code))
        return (struct wb_depth){.need = (uint8_t)(code - NEED)};
    return (struct wb_depth){.links = code <= WB_DEPTH_LINKS_MAX ? (uint16_t)code : WB_DEPTH_UNKNOWN};
}
