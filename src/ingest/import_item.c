/* import_item.c - items, each in one piece of memory: the struct, and behind it the texts that it points to. */
#include "ingest/import_item.h"
#include "base/check.h"
#include "base/mem.h"

struct wb_import_item *wb_import_item_new(enum wb_import_item_kind kind, size_t text_bytes)
{
    struct wb_import_item *item = wb_alloc(sizeof *item + text_bytes);

    if (!item)
        return NULL;
    *item = (struct wb_import_item){.kind = kind, .bytes = sizeof *item + text_bytes};
    return item;
}

void wb_import_item_free(struct wb_import_item *item)
{
    wb_buf_release(&item->body);
    wb_free(item);
}

struct wb_slice wb_import_item_copy(struct wb_import_item *item, struct wb_slice text)
{
    char *at = item->text + item->used;

    WB_CHECK(sizeof *item + item->used + text.len <= item->bytes);
    if (text.len)
        memcpy(at, text.ptr, text.len);
    item->used += text.len;
    return wb_slice(at, text.len);
}
