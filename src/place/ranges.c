/*
 * ranges.c - which node takes which ids, with hash distribution. Ranges are prefixes of the bits of an id, as in
 * extensible hashing: each was made by halving another one.
 */
#include "base/check.h"
#include "move/rebalance.h"

#include <math.h>

enum { RANGE_BITS_MAX = 32 }; /* of a node's range: ids are hashes, so a narrower one would have hardly any page */

/* Which part of all ids a node takes. */
static double share_of(const struct wb_catalog_node *node)
{
    double share = 0;

    WB_CHECK(node->range_count <= WB_CATALOG_NODE_RANGES);
    for (uint32_t i = 0; i < node->range_count; i++)
        share += ldexp(1, -(int)node->ranges[i].bits);
    return share;
}

bool wb_ranges_are_halves(const struct wb_catalog_range *a, const struct wb_catalog_range *b)
{
    WB_CHECK(wb_catalog_range_is_valid(a));
    WB_CHECK(wb_catalog_range_is_valid(b));
    return a->bits > 0 && a->bits == b->bits && (a->prefix ^ b->prefix) == (uint64_t)1 << (64 - a->bits);
}

void wb_ranges_widen(struct wb_catalog_range *range)
{
    WB_CHECK(range->bits > 0);
    range->bits--;
    range->prefix &= wb_catalog_range_mask(range);
}

int wb_ranges_take(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *node)
{
    struct wb_catalog_node *giver = NULL;
    uint32_t widest = 0;

    WB_CHECK(node->range_count == 0);
    for (size_t i = 0; i < count; i++)
        if (!giver || share_of(&rows[i]) > share_of(giver))
            giver = &rows[i];
    if (!giver || giver->range_count == 0)
        return wb_fail(WB_E_CORRUPT, "the table of nodes is damaged: no node takes any ids");
    for (uint32_t i = 0; i < giver->range_count; i++)
        if (giver->ranges[i].bits < giver->ranges[widest].bits)
            widest = i;
    struct wb_catalog_range *range = &giver->ranges[widest];
    if (range->bits >= RANGE_BITS_MAX)
        return wb_fail(WB_E_LIMIT, "there are too many nodes already");
    range->bits++;
    node->ranges[node->range_count++] =
        (struct wb_catalog_range){range->prefix | (uint64_t)1 << (64 - range->bits), range->bits};
    return 0;
}

/* The other half of a range, if the node has it. */
static struct wb_catalog_range *find_half(struct wb_catalog_node *node, const struct wb_catalog_range *range)
{
    WB_CHECK(node->range_count <= WB_CATALOG_NODE_RANGES);
    for (uint32_t i = 0; i < node->range_count; i++)
        if (wb_ranges_are_halves(&node->ranges[i], range))
            return &node->ranges[i];
    return NULL;
}

/* Gives the node one more range, joined with those that are its other halves. */
static void add_range(struct wb_catalog_node *node, struct wb_catalog_range range)
{
    struct wb_catalog_range *half;

    while ((half = find_half(node, &range)) != NULL) {
        *half = node->ranges[--node->range_count];
        wb_ranges_widen(&range);
    }
    WB_CHECK(node->range_count < WB_CATALOG_NODE_RANGES);
    node->ranges[node->range_count++] = range;
}

int wb_ranges_give(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *leaving)
{
    WB_CHECK(leaving->leaving);
    while (leaving->range_count) {
        struct wb_catalog_range range = leaving->ranges[--leaving->range_count];
        struct wb_catalog_node *taker = NULL;
        bool halves = false;
        for (size_t i = 0; i < count; i++) {
            bool half = find_half(&rows[i], &range) != NULL;
            if (rows[i].leaving || (rows[i].range_count == WB_CATALOG_NODE_RANGES && !half))
                continue;
            if (taker && (halves > half || (halves == half && share_of(taker) <= share_of(&rows[i]))))
                continue;
            taker = &rows[i];
            halves = half;
        }
        if (!taker)
            return wb_fail(WB_E_LIMIT, "no other node can take the ids of node %u", leaving->number);
        add_range(taker, range);
    }
    return 0;
}
