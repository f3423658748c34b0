/* import_source.c - makes the items that both sources put into the queue. It reads no file. */
#include "ingest/import_source.h"
#include "base/date.h"
#include "base/error.h"
#include "os/clock.h"
#include "store/store.h"

#include <stdio.h>

static int push(struct wb_import_queue *queue, struct wb_import_item *item, uint64_t records)
{
    item->records = records;
    return wb_import_queue_push(queue, item) ? 0 : WB_E_STOPPED;
}

/* A body of this size that has a buffer to itself is moved instead of copied. */
#define MOVE_BYTES ((size_t)64 << 10)

static size_t text_bytes(const struct wb_page *page)
{
    return page->url.len + page->key.len + page->head.len + page->type.len + page->charset.len;
}

static void copy_text(struct wb_import_item *item, const struct wb_page *page)
{
    item->page = *page;
    item->page.url = wb_import_item_copy(item, page->url);
    item->page.key = wb_import_item_copy(item, page->key);
    item->page.head = wb_import_item_copy(item, page->head);
    item->page.type = wb_import_item_copy(item, page->type);
    item->page.charset = wb_import_item_copy(item, page->charset);
}

int wb_import_source_push_page(struct wb_import_queue *queue, const struct wb_page *page, struct wb_buf *body,
                        uint64_t records)
{
    bool move = page->body.len >= MOVE_BYTES && page->body.ptr == body->ptr && page->body.len == body->len &&
                body->cap - body->len < body->len;
    size_t text = text_bytes(page) + (move ? 0 : page->body.len);

    if (!wb_import_queue_room(queue, sizeof(struct wb_import_item) + text + (move ? body->cap : 0)))
        return WB_E_STOPPED;
    struct wb_import_item *item = wb_import_item_new(WB_IMPORT_PAGE, text);
    if (!item)
        return WB_E_NOMEM;
    copy_text(item, page);
    if (move) {
        item->bytes += body->cap;
        item->body = wb_buf_take(body);
        item->page.body = wb_buf_slice(&item->body);
    } else {
        item->page.body = wb_import_item_copy(item, page->body);
    }
    return push(queue, item, records);
}

int wb_import_source_push_revisit(struct wb_import_queue *queue, const struct wb_page *page,
                           const struct wb_import_original *original, uint64_t records)
{
    if (!wb_import_queue_room(queue, sizeof(struct wb_import_item) + text_bytes(page)))
        return WB_E_STOPPED;
    struct wb_import_item *item = wb_import_item_new(WB_IMPORT_REVISIT, text_bytes(page));
    if (!item)
        return WB_E_NOMEM;
    copy_text(item, page);
    item->original = *original;
    return push(queue, item, records);
}

int wb_import_source_push_error(struct wb_import_queue *queue, const char *file, uint64_t offset, const char *message,
                         bool fatal, uint64_t records)
{
    size_t file_bytes = strlen(file) + 1, message_bytes = strlen(message) + 1;

    if (!wb_import_queue_room(queue, sizeof(struct wb_import_item) + file_bytes + message_bytes))
        return WB_E_STOPPED;
    struct wb_import_item *item = wb_import_item_new(WB_IMPORT_ERROR, file_bytes + message_bytes);
    if (!item)
        return WB_E_NOMEM;
    item->file = wb_import_item_copy(item, wb_slice(file, file_bytes)).ptr;
    item->message = wb_import_item_copy(item, wb_slice(message, message_bytes)).ptr;
    item->offset = offset;
    item->fatal = fatal;
    return push(queue, item, records);
}

bool wb_import_source_fix_time(struct wb_page *page, char message_out[WB_IMPORT_SOURCE_MESSAGE_MAX])
{
    int64_t now_ms = wb_clock_wall_ms();
    char said[WB_DATE_TEXT_MAX], now[WB_DATE_TEXT_MAX];

    message_out[0] = '\0';
    if (page->time_ms <= now_ms + WB_STORE_AHEAD_MS)
        return false;
    wb_date_format(page->time_ms, said);
    wb_date_format(now_ms, now);
    snprintf(message_out, WB_IMPORT_SOURCE_MESSAGE_MAX,
             "the date %s lies in the future; the page was given the time of import, %s",
             said, now);
    page->time_ms = now_ms;
    return true;
}

int wb_import_source_push_file(struct wb_import_queue *queue, uint64_t records)
{
    struct wb_import_item *item = wb_import_item_new(WB_IMPORT_FILE, 0);

    return item ? push(queue, item, records) : WB_E_NOMEM;
}
