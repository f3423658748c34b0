/*
 * linkpieces.c - writes lists of links into their table. A list may have any length; what waits is one piece of it.
 */
#include "webdb/linkpieces.h"
#include "base/error.h"

static int write_piece(struct wb_linkpieces *pieces)
{
    char key[WB_LINKLIST_KEY_MAX];

    if (!pieces->item_count)
        return 0;
    wb_buf_clear(&pieces->encoded);
    int err = wb_linklist_encode(pieces->items, pieces->item_count, &pieces->encoded);
    if (err == 0)
        err = wb_table_add(pieces->table, wb_slice(key, wb_linklist_key(pieces->owner, pieces->pieces, key)), wb_buf_slice(&pieces->encoded));
    pieces->written += pieces->item_count;
    pieces->pieces++;
    pieces->item_count = 0;
    return err;
}

int wb_linkpieces_add(struct wb_linkpieces *pieces, const struct wb_linkitem *item)
{
    pieces->items[pieces->item_count++] = *item;
    if (pieces->item_count < WB_LINKLIST_ITEMS)
        return 0;
    int err = write_piece(pieces);
    return err < 0 ? err : 1;
}

int wb_linkpieces_end(struct wb_linkpieces *pieces)
{
    int err = write_piece(pieces);

    pieces->pieces = 0;
    return err;
}

int wb_linkpieces_finish(struct wb_linkpieces *pieces)
{
    int err = wb_table_finish(pieces->table, NULL);

    pieces->table = NULL;
    return err;
}

void wb_linkpieces_release(struct wb_linkpieces *pieces)
{
    wb_table_abandon(pieces->table);
    wb_buf_release(&pieces->encoded);
}
