/* store_version.c - reads a version of a page that a timeline lists, with the functions of the door alone. */
#include "base/buf.h"
#include "base/error.h"
#include "store/store.h"

bool wb_store_is_version(const struct wb_page *page, const struct wb_store_version *version)
{
    /* Of the versions that arrived in one epoch, only one was seen as the latest. */
    return page->epoch == version->arrived && version->ceased != version->arrived && page->status == version->status &&
           page->body_bytes == version->body_bytes;
}

int wb_store_get_version(struct wb_store *store, struct wb_pageid id, const struct wb_store_version *version,
                         struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_store_when when = {
        .kind = WB_STORE_WHEN_CAPTURE, .time_ms = version->time_ms, .content = version->content, .version = version};

    wb_buf_release(mem_out);
    int err = wb_store_get_when(store, id, &when, page_out, mem_out);
    if (err == WB_E_NOTFOUND)
        return 0;
    page_out->time_ms = version->last_ms;
    return err < 0 ? err : 1;
}
