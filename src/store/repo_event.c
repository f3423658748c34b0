/*
 * repo_event.c - events: what waits for a transfer beside pages. A writer collects them like pages, as ops, and its
 * commit puts them into the catalog (catalog_events.c). Nothing here asks what they mean; transfer.c does.
 */
#include "base/check.h"
#include "store/repo_event.h"
#include "store/repo_ops.h"

int wb_repo_put_event(struct wb_repo *repo, const struct wb_catalog_event *event)
{
    struct wb_op op = {.kind = WB_OP_EVENT,
                       .id = event->id,
                       .time_ms = event->time_ms,
                       .content = event->content,
                       .event = event->kind};
    int err = wb_pagefile_check_usable(&repo->writer->files);

    WB_CHECK(event->kind >= WB_CATALOG_EVENT_FORGOTTEN);
    WB_CHECK(event->kind <= WB_CATALOG_EVENT_AGAIN);
    if (err == 0)
        err = wb_repo_site_index(repo->writer, event->site, &op.site);
    return err < 0 ? err : wb_op_add(repo, &op);
}

int wb_repo_put_content(struct wb_repo *repo, const struct wb_catalog_event *event)
{
    struct wb_op op = {.kind = WB_OP_TOUCH, .id = event->id, .time_ms = event->time_ms, .content = event->content};
    int err = wb_pagefile_check_usable(&repo->writer->files);

    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(event->content != 0);
    if (event->site.len) {
        op.kind = WB_OP_CAPTURE; /* which may also bring a page back that is gone */
        err = err == 0 ? wb_repo_site_index(repo->writer, event->site, &op.site) : err;
    }
    return err < 0 ? err : wb_op_add(repo, &op);
}

int wb_repo_put_forgotten(struct wb_repo *repo, struct wb_pageid id, int64_t time_ms, uint64_t content)
{
    struct wb_op op = {.kind = WB_OP_TOUCH, .id = id, .time_ms = time_ms, .content = content, .forgotten = true};
    int err = wb_pagefile_check_usable(&repo->writer->files);

    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(content != 0);
    return err < 0 ? err : wb_op_add(repo, &op);
}

/* A lookup of committed events. */
struct event_lookup {
    struct wb_repo *repo;
    struct wb_pageid id;
    wb_catalog_each_event each;
    void *context;
};

/* Goes through the ops of the page from the last one back; returns 1 if what is committed does not count any more. */
static int pending_events(const struct event_lookup *l)
{
    struct wb_repo_writer *writer = l->repo->writer;
    uint32_t last;
    int err = 0;

    WB_CHECK(l->each != NULL);
    if (!writer || !wb_repo_last_op(writer, l->id, &last))
        return 0;
    for (int64_t i = last; i >= 0 && err == 0; i = writer->ops.items[i].previous) {
        const struct wb_op *op = &writer->ops.items[i];
        WB_CHECK(wb_pageid_equal(op->id, l->id));
        if (op->kind == WB_OP_REMOVE_EVERYWHERE)
            return 1;
        if (op->kind != WB_OP_EVENT)
            continue;
        const struct wb_repo_site *site = &writer->sites.items[op->site];
        struct wb_catalog_event event = {op->id, op->time_ms, op->event, op->content, wb_slice(site->name, site->len)};
        err = l->each(l->context, &event);
        if (err == 0 && op->event == WB_CATALOG_EVENT_FORGOTTEN)
            return 1;
    }
    return err;
}

/* Whether any event is committed. Most often none is, and then this is all that is read. */
struct event_count {
    struct wb_repo *repo;
    uint64_t count;
};

static int count_events(void *context)
{
    struct event_count *c = context;

    WB_CHECK(c->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    c->count = wb_catalog_count(&c->repo->reader, WB_CATALOG_EVENTS);
    return 0;
}

int wb_repo_event_of(struct wb_repo *repo, struct wb_pageid id, wb_catalog_each_event each, void *context)
{
    struct event_lookup l = {repo, id, each, context};
    struct event_count committed = {.repo = repo};
    struct wb_catalog_txn txn = {0};
    int err = pending_events(&l);

    WB_CHECK(each != NULL);
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    if (err)
        return err < 0 ? err : 0;
    err = wb_repo_read(repo, count_events, &committed);
    if (err < 0 || committed.count == 0)
        return err;
    err = wb_catalog_txn_read(repo->catalog, &txn);
    if (err == 0)
        err = wb_catalog_event_of(&txn, id, each, context);
    wb_catalog_txn_abort(&txn);
    return err;
}

int wb_repo_apply_event(struct wb_repo_edit *edit, const struct wb_op *op)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(op->kind == WB_OP_EVENT || op->kind == WB_OP_REMOVE_EVERYWHERE);
    if (op->kind == WB_OP_REMOVE_EVERYWHERE)
        return wb_catalog_event_clear(&edit->txn, op->id);
    int err = op->event == WB_CATALOG_EVENT_FORGOTTEN ? wb_catalog_event_clear(&edit->txn, op->id) : 0;
    if (err < 0)
        return err;
    const struct wb_repo_site *site = &edit->repo->writer->sites.items[op->site];
    struct wb_catalog_event event = {op->id, op->time_ms, op->event, op->content, wb_slice(site->name, site->len)};
    return wb_catalog_event_put(&edit->txn, &event);
}
