/*
 * linkpieces.h - writes lists of links into their table, one piece at a time. Stages 3 and 4 of the merge use it.
 *
 * A list may have any length; only the piece that is being filled is in memory.
 */
#ifndef WB_WEBDB_LINKPIECES_H
#define WB_WEBDB_LINKPIECES_H

#include "table/table.h"
#include "webdb/linklist.h"

/* Zeroed memory with `table` set is a new one. */
struct wb_linkpieces {
    struct wb_table_writer *table;
    uint64_t owner;                /* the content or page whose list is being written; set it before the first link */
    uint32_t pieces;               /* how many pieces of the list have been written */
    struct wb_linkitem items[WB_LINKLIST_ITEMS]; /* the piece being filled */
    size_t item_count;
    struct wb_buf encoded;
    uint64_t written;              /* links of all lists */
};

/*
 * Adds a link to the owner's list; its number must be greater than the last one. The anchor must stay valid until the
 * piece is written. Returns 1 if that has happened now, 0 if not yet.
 */
int wb_linkpieces_add(struct wb_linkpieces *pieces, const struct wb_linkitem *item);

/* Writes the rest of the owner's list. The next link belongs to another owner. */
int wb_linkpieces_end(struct wb_linkpieces *pieces);

/* Finishes the table. All lists must have ended. */
int wb_linkpieces_finish(struct wb_linkpieces *pieces);

/* Frees the memory, and abandons the table unless it was finished. */
void wb_linkpieces_release(struct wb_linkpieces *pieces);

#endif
