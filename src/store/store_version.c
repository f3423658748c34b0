/* store_version.c - reads a version of a page that a timeline lists, with the functions of the door alone. */
#include "base/buf.h"
#include "base/error.h"
#include "store/store.h"

bool wb_store_is_version(const struct wb_page *page, const struct wb_store_version *version)
{
    return page->time_ms == version->last_ms && page->status == version->status &&
           page->body_bytes == version->body_bytes;
}

/* A snapshot in which a version is visible. */
struct version_holder {
    const struct wb_store_version *version;
    uint32_t number; /* 0: there is none */
};

static int match_holder(void *context, const struct wb_store_snapshot *snapshot)
{
    struct version_holder *holder = context;
    const struct wb_store_version *v = holder->version;

    if (v->arrived <= snapshot->epoch && (v->ceased == 0 || v->ceased > snapshot->epoch))
        holder->number = snapshot->number;
    return 0;
}

static int read_when(struct wb_store *store, struct wb_pageid id, const struct wb_store_version *version,
                     struct wb_store_when when, struct wb_page *page_out, struct wb_buf *mem_out)
{
    wb_buf_release(mem_out);
    int err = wb_store_get_when(store, id, &when, page_out, mem_out);
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    return wb_store_is_version(page_out, version);
}

/*
 * Its first capture names a version, with one exception: if a page was removed while a snapshot held it, and the same
 * captures came back later, two versions have the same time. One of them is the latest, the other is in a snapshot.
 */
int wb_store_get_version(struct wb_store *store, struct wb_pageid id, const struct wb_store_version *version,
                     struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct version_holder holder = {.version = version};

    int got =
        read_when(store, id, version, (struct wb_store_when){.kind = WB_STORE_WHEN_TIME, .time_ms = version->time_ms},
                  page_out, mem_out);
    if (got == 0 && version->ceased == 0)
        return read_when(store, id, version, (struct wb_store_when){.kind = WB_STORE_WHEN_LATEST}, page_out, mem_out);
    if (got != 0)
        return got;
    int err = wb_store_snapshot_each(store, match_holder, &holder);
    if (err < 0 || holder.number == 0)
        return err;
    return read_when(store, id, version,
                     (struct wb_store_when){.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = holder.number}, page_out,
                     mem_out);
}
