/* share.c - deals the cells of all ids to nodes (share.h). It changes rows in memory, and no file. */
#include "place/share.h"
#include "base/check.h"
#include "base/error.h"
#include "place/design.h"

struct wb_cells wb_share_of_new(size_t i, size_t count)
{
    struct wb_cells cells = {.words = {0}};

    WB_CHECK(i < count && count <= WB_CELLS);
    for (size_t cell = i * WB_CELLS / count; cell < (i + 1) * WB_CELLS / count; cell++)
        wb_cells_add(&cells, (uint32_t)cell);
    return cells;
}

int wb_share_take(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *node)
{
    size_t takers = 1; /* the node itself */

    WB_CHECK(count > 0);
    WB_CHECK(wb_cells_count(&node->cells) == 0);
    for (size_t i = 0; i < count; i++)
        takers += !rows[i].leaving;
    for (size_t left = WB_CELLS / takers; left > 0; left--) {
        struct wb_catalog_node *giver = &rows[0];
        for (size_t i = 1; i < count; i++)
            if (wb_cells_count(&rows[i].cells) > wb_cells_count(&giver->cells))
                giver = &rows[i];
        uint32_t cell = WB_CELLS; /* its last one */
        while (cell > 0 && !wb_cells_has(&giver->cells, cell - 1))
            cell--;
        if (cell == 0)
            return wb_fail(WB_E_CORRUPT, "the table of nodes is damaged: no node takes any ids");
        wb_cells_remove(&giver->cells, cell - 1);
        wb_cells_add(&node->cells, cell - 1);
    }
    return 0;
}

int wb_share_give(struct wb_catalog_node *rows, size_t count, struct wb_catalog_node *leaving)
{
    uint32_t has[WB_DESIGN_NODES_MAX], gets[WB_DESIGN_NODES_MAX] = {0};
    size_t taker = 0;

    WB_CHECK(leaving->leaving);
    WB_CHECK(count <= WB_DESIGN_NODES_MAX);
    for (size_t i = 0; i < count; i++)
        has[i] = rows[i].leaving ? UINT32_MAX : wb_cells_count(&rows[i].cells);
    for (uint32_t left = wb_cells_count(&leaving->cells); left > 0; left--) {
        size_t least = 0;
        for (size_t i = 1; i < count; i++)
            if (has[i] < has[least])
                least = i;
        if (rows[least].leaving)
            return wb_fail(WB_E_LIMIT, "no other node can take the ids of node %u", leaving->number);
        has[least]++;
        gets[least]++;
    }
    for (uint32_t cell = 0; cell < WB_CELLS; cell++) {
        if (!wb_cells_has(&leaving->cells, cell))
            continue;
        while (gets[taker] == 0)
            taker++;
        WB_CHECK(taker < count);
        gets[taker]--;
        wb_cells_add(&rows[taker].cells, cell);
    }
    leaving->cells = (struct wb_cells){.words = {0}};
    return 0;
}
