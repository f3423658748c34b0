/*
 * catalog_events.c - the rows of table events (catalog.h): what happened to pages that may be on the read nodes only,
 * until a transfer repeats it there. Only the catalog of the update nodes of a batch design has such rows.
 *
 *   key    page id (16), time (8, big-endian, the highest bit inverted), kind (1), hash of the content of a capture,
 *          or 0 (8)
 *   value  the same hash (8); name of the site
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/vec.h"
#include "catalog/catalog_tables.h"

#include <string.h>

enum {
    EVENT_KIND_AT = WB_PAGEID_BYTES + 8,
    EVENT_KEY_BYTES = EVENT_KIND_AT + 1 + 8,
    EVENT_BYTES_MIN = 8,
    EVENT_SITE_MAX = 1024, /* a longer name cannot be that of a site */
};

static struct wb_slice event_key(const struct wb_catalog_event *event, char key[EVENT_KEY_BYTES])
{
    uint64_t time = (uint64_t)event->time_ms ^ (uint64_t)1 << 63; /* times before 1970 sort first */

    WB_CHECK(event->kind >= WB_CATALOG_EVENT_FORGOTTEN);
    WB_CHECK(event->kind <= WB_CATALOG_EVENT_AGAIN);
    wb_pageid_put(event->id, key);
    wb_put32_be(key + WB_PAGEID_BYTES, (uint32_t)(time >> 32));
    wb_put32_be(key + WB_PAGEID_BYTES + 4, (uint32_t)time);
    key[EVENT_KIND_AT] = (char)event->kind;
    wb_put64(key + EVENT_KIND_AT + 1, event->content);
    return wb_slice(key, EVENT_KEY_BYTES);
}

int wb_catalog_event_put(struct wb_catalog_txn *txn, const struct wb_catalog_event *event)
{
    char key[EVENT_KEY_BYTES], row[EVENT_BYTES_MIN + EVENT_SITE_MAX];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(event->site.ptr || event->site.len == 0);
    if (event->site.len > EVENT_SITE_MAX)
        return wb_fail(WB_E_LIMIT, "the name of a site is longer than %d bytes", EVENT_SITE_MAX);
    wb_put64(row, event->content);
    if (event->site.len)
        memcpy(row + EVENT_BYTES_MIN, event->site.ptr, event->site.len);
    return wb_catalog_row_put(txn, WB_CATALOG_EVENTS, event_key(event, key), row, EVENT_BYTES_MIN + event->site.len);
}

int wb_catalog_event_delete(struct wb_catalog_txn *txn, const struct wb_catalog_event *event)
{
    char key[EVENT_KEY_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_catalog_row_delete(txn, WB_CATALOG_EVENTS, event_key(event, key));
}

struct event_walk {
    struct wb_catalog_txn *txn;
    const struct wb_pageid *only; /* NULL: the events of all pages */
    wb_catalog_each_event each;
    void *context;
    int result; /* of the last call of each() */
};

static int walk_event(void *context, struct wb_slice key, struct wb_slice row)
{
    struct event_walk *walk = context;

    WB_CHECK(walk->txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(walk->each != NULL);
    if (key.len != EVENT_KEY_BYTES || row.len < EVENT_BYTES_MIN || row.len > EVENT_BYTES_MIN + EVENT_SITE_MAX ||
        key.ptr[EVENT_KIND_AT] < WB_CATALOG_EVENT_FORGOTTEN || key.ptr[EVENT_KIND_AT] > WB_CATALOG_EVENT_AGAIN)
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_EVENTS, "a row that is not an event");
    uint64_t time = (uint64_t)wb_get32_be(key.ptr + WB_PAGEID_BYTES) << 32 | wb_get32_be(key.ptr + WB_PAGEID_BYTES + 4);
    struct wb_catalog_event event = {
        .id = wb_pageid_get(key.ptr),
        .time_ms = (int64_t)(time ^ (uint64_t)1 << 63),
        .kind = (enum wb_catalog_event_kind)key.ptr[EVENT_KIND_AT],
        .content = wb_get64(row.ptr),
        .site = wb_slice(row.ptr + EVENT_BYTES_MIN, row.len - EVENT_BYTES_MIN),
    };
    if (wb_catalog_event_is_capture(event.kind) != (event.content != 0) ||
        event.content != wb_get64(key.ptr + EVENT_KIND_AT + 1))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_EVENTS, "a capture without a content");
    if (walk->only && !wb_pageid_equal(*walk->only, event.id))
        return 1;
    walk->result = walk->each(walk->context, &event);
    return walk->result;
}

int wb_catalog_event_of(struct wb_catalog_txn *txn, struct wb_pageid id, wb_catalog_each_event each, void *context)
{
    struct event_walk walk = {.txn = txn, .only = &id, .each = each, .context = context};
    char from[WB_PAGEID_BYTES];

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    if (wb_catalog_count(txn, WB_CATALOG_EVENTS) == 0)
        return 0;
    wb_pageid_put(id, from);
    int err = wb_catalog_row_each_from(txn, WB_CATALOG_EVENTS, wb_slice(from, sizeof from), walk_event, &walk);
    return err < 0 ? err : walk.result;
}

int wb_catalog_event_each(struct wb_catalog_txn *txn, wb_catalog_each_event each, void *context)
{
    struct event_walk walk = {.txn = txn, .each = each, .context = context};

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    return wb_catalog_row_each(txn, WB_CATALOG_EVENTS, EVENT_KEY_BYTES, 0, walk_event, &walk);
}

struct event_list WB_VEC_OF(struct wb_catalog_event);

static int gather_event(void *context, const struct wb_catalog_event *event)
{
    struct wb_catalog_event key = *event;

    key.site = WB_SLICE_EMPTY; /* it does not outlive the call */
    return wb_vec_push((struct event_list *)context, key);
}

int wb_catalog_event_clear(struct wb_catalog_txn *txn, struct wb_pageid id)
{
    struct event_list list = {0};
    int err = wb_catalog_event_of(txn, id, gather_event, &list);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < list.count && err == 0; i++)
        err = wb_catalog_event_delete(txn, &list.items[i]);
    wb_vec_release(&list);
    return err;
}
