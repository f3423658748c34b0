/* linkpieces.c - writes lists of links into their table, one piece at a time: see linkpieces.h. */
#include "webdb/linkpieces.h"
#include "base/check.h"

static int write_piece(struct wb_linkpieces *pieces)
{
    char key[WB_LINKLIST_KEY_MAX];

    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count <= WB_LINKLIST_ITEMS);
    if (!pieces->item_count)
        return 0;
    wb_buf_clear(&pieces->encoded);
    int err = wb_linklist_encode(pieces->items, pieces->item_count, &pieces->encoded);
    struct wb_slice name = wb_slice(key, wb_linklist_key(pieces->owner, pieces->pieces, key));
    if (err == 0)
        err = wb_table_add(pieces->table, name, wb_buf_slice(&pieces->encoded));
    WB_CHECK(pieces->pieces < UINT32_MAX);
    pieces->written += pieces->item_count;
    pieces->pieces++;
    pieces->item_count = 0;
    return err;
}

int wb_linkpieces_add(struct wb_linkpieces *pieces, const struct wb_linkitem *item)
{
    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count < WB_LINKLIST_ITEMS);
    WB_CHECK(pieces->item_count == 0 || item->number > pieces->items[pieces->item_count - 1].number);
    pieces->items[pieces->item_count++] = *item;
    if (pieces->item_count < WB_LINKLIST_ITEMS)
        return 0;
    int err = write_piece(pieces);
    return err < 0 ? err : 1;
}

int wb_linkpieces_end(struct wb_linkpieces *pieces)
{
    int err = write_piece(pieces);

    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count == 0); /* the next list starts with a piece of its own */
    pieces->pieces = 0;
    return err;
}

int wb_linkpieces_finish(struct wb_linkpieces *pieces)
{
    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count == 0);
    WB_CHECK(pieces->pieces == 0); /* the last list has ended */
    int err = wb_table_finish(pieces->table, NULL);

    pieces->table = NULL;
    return err;
}

void wb_linkpieces_release(struct wb_linkpieces *pieces)
{
    wb_table_abandon(pieces->table);
    wb_buf_release(&pieces->encoded);
}
