/* bin.c - finds the bin of a new page in the table of nodes (bin.h). It opens and writes nothing. */
#include "place/bin.h"
#include "base/check.h"
#include "base/error.h"

int wb_bin_of(struct wb_nodes *nodes, struct wb_pageid id, struct wb_bin *bin_out)
{
    size_t index = nodes->items.count;

    *bin_out = (struct wb_bin){.node = 1};
    if (nodes->items.count == 0)
        return 0;
    int err = wb_nodes_choose(nodes, id, &index);
    if (index < nodes->items.count)
        *bin_out = (struct wb_bin){nodes->items.items[index].row.number, nodes->items.items[index].range};
    return err;
}

bool wb_bin_is_current(const struct wb_nodes *nodes, const struct wb_bin *bin)
{
    const struct wb_known_node *node = wb_nodes_known(nodes, bin->node);

    if (!node)
        return nodes->items.count == 0;
    return !node->row.leaving && wb_catalog_range_within(&bin->range, &node->range);
}

int wb_bin_renew(struct wb_nodes *nodes, struct wb_pageid id, struct wb_bin *bin_inout)
{
    const struct wb_known_node *node = wb_nodes_known(nodes, bin_inout->node);
    struct wb_bin other;

    if (nodes->items.count == 0 || (node && !node->row.leaving))
        return 0;
    int err = wb_bin_of(nodes, id, &other);
    if (err < 0)
        return err;
    bin_inout->node = other.node; /* not its range, which all pages of the block are in */
    return 1;
}

int wb_bin_instead(struct wb_nodes *nodes, struct wb_pageid id, int err, struct wb_bin *bin_inout)
{
    const struct wb_known_node *node = wb_nodes_known(nodes, bin_inout->node);
    struct wb_error_copy why;

    WB_CHECK(err < 0);
    if (!node || !wb_nodes_failed(nodes, err))
        return err;
    wb_error_save(err, &why);
    wb_nodes_avoid(nodes, node->row.number);
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM && wb_bin_of(nodes, id, bin_inout) == 0)
        return 0;
    if (err == WB_E_DOWN)
        return wb_error_restore(&why);
    return wb_fail(err, "node %u (%s): %s", node->row.number, node->dir, why.message);
}
