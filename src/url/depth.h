/* depth.h - how a URL was reached: by links from a seed, or because another page needs it. Included by the door. */
#ifndef WB_URL_DEPTH_H
#define WB_URL_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#define WB_DEPTH_LINKS_MAX 0x7fffu
#define WB_DEPTH_UNKNOWN UINT16_MAX
#define WB_DEPTH_NEED_MAX 8u

struct wb_depth {
    uint16_t links; /* how many links lead from a seed to it, at most WB_DEPTH_LINKS_MAX; or WB_DEPTH_UNKNOWN */
    uint8_t need;   /* not 0: it is fetched only because other pages need it, as an image or a style sheet, and `links`
                       is 0. 1: a page names it, 2: a style sheet of that page does, and so on to WB_DEPTH_NEED_MAX */
};

/*
 * The 16 bits that stand for a depth in files and tables: the number of links, or 0x8000 plus a need, or 0xffff if it
 * is unknown. More links than WB_DEPTH_LINKS_MAX are written as unknown. Nobody else looks at these bits.
 */
uint16_t wb_depth_code(struct wb_depth depth);

/* True if this is what wb_depth_code() can return. Any other number reads as an unknown depth. */
bool wb_depth_is_code(uint64_t code);
struct wb_depth wb_depth_of_code(uint64_t code);

#endif
