/* linkpieces.h - writes lists of links into their table, piece by piece. */
#ifndef WB_WEBDB_LINKPIECES_H
#define WB_WEBDB_LINKPIECES_H

#include "table/table.h"
#include "webdb/linklist.h"

struct wb_linkpieces {
    struct wb_table_writer *table;
    uint64_t owner;                /* content or page whose list is written */
    uint32_t pieces;               /* of it that were written */
    struct wb_linkitem items[WB_LINKLIST_ITEMS];
    size_t item_count;
    struct wb_buf encoded;
    uint64_t written;              /* links in all */
};

/* A link of the owner's list, numbers ascending; its anchor must stay until the piece is written: 1 where that has happened, 0 where not yet. */
int wb_linkpieces_add(struct wb_linkpieces *pieces, const struct wb_linkitem *item);

/* Writes what is left of the owner's list; the next link is of another's. */
int wb_linkpieces_end(struct wb_linkpieces *pieces);

/* Ends the table, or gives it up where that was not reached. */
int wb_linkpieces_finish(struct wb_linkpieces *pieces);
void wb_linkpieces_release(struct wb_linkpieces *pieces);

#endif
