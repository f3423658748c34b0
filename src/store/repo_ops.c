/*
 * repo_ops.c - the list of a writer's ops, and the index by which those of a page are found.
 *
 * A transfer copies whole blocks, and adds an op for each of their pages, of which nobody asks before the commit. So
 * these are put into the index only if somebody asks for any page after all: that takes longer than everything else
 * that is done for such a page, because ids are hashes and the index is larger than the processor's cache.
 */
#include "store/repo_ops.h"
#include "base/check.h"

int wb_ops_reserve(struct wb_repo_writer *writer, size_t count)
{
    int err = wb_vec_reserve(&writer->ops, writer->ops.count + count);

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(writer->indexed <= writer->ops.count);
    return err < 0 ? err : wb_map_reserve(&writer->page_index, writer->ops.count + count);
}

/* Puts the pages of all ops into the index. */
static void complete_index(struct wb_repo_writer *writer)
{
    uint32_t last;

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    for (; writer->indexed < writer->ops.count; writer->indexed++) {
        struct wb_op *op = &writer->ops.items[writer->indexed];
        op->previous = wb_op_index_get(&writer->page_index, op->id, &last) ? (int64_t)last : -1;
        int err = wb_op_index_set(&writer->page_index, op->id, writer->indexed);
        WB_CHECK(err == 0); /* there is room: see wb_ops_reserve */
    }
}

bool wb_repo_last_op(struct wb_repo_writer *writer, struct wb_pageid id, uint32_t *op_out)
{
    complete_index(writer);
    WB_CHECK(writer->indexed == writer->ops.count);
    return wb_op_index_get(&writer->page_index, id, op_out);
}

bool wb_repo_has_ops(const struct wb_repo *repo, struct wb_pageid id)
{
    uint32_t last;

    WB_CHECK(!repo->writer || repo->writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    return repo->writer && wb_repo_last_op(repo->writer, id, &last);
}

struct wb_op *wb_op_new(struct wb_repo *repo)
{
    struct wb_repo_writer *writer = repo->writer;

    WB_CHECK(writer->magic == WB_REPO_WRITER_MAGIC);
    WB_CHECK(writer->ops.count < writer->ops.cap);
    if (writer->ops.count == 0)
        writer->busy = wb_busy_begin(&repo->busy, WB_BUSY_PUT, wb_nodes_number(&repo->nodes, 0),
                                     wb_nodes_number(&repo->nodes, wb_nodes_count(&repo->nodes) - 1));
    struct wb_op *op = &writer->ops.items[writer->ops.count++];
    *op = (struct wb_op){.previous = -1};
    return op;
}

int wb_op_add(struct wb_repo *repo, const struct wb_op *op)
{
    int err = wb_ops_reserve(repo->writer, 1);

    WB_CHECK(op->kind <= WB_OP_COPY);
    WB_CHECK(wb_op_has_bytes(op->kind) == (op->put > 0));
    WB_CHECK(op->record.len == 0 || op->kind == WB_OP_CAPTURE);
    WB_CHECK(!op->revisit || op->kind == WB_OP_CAPTURE || op->kind == WB_OP_REVISIT);
    if (err == 0)
        *wb_op_new(repo) = *op;
    return err;
}

int wb_op_apply(const struct wb_op *op, struct wb_catalog_place place, const struct wb_moment *moment,
                struct wb_pageview *view, enum wb_store_outcome *outcome_out)
{
    static const enum wb_pageview_change_kind kinds[] = {
        [WB_OP_PUT] = WB_PAGEVIEW_CAPTURE,
        [WB_OP_CAPTURE] = WB_PAGEVIEW_CAPTURE,
        [WB_OP_TOUCH] = WB_PAGEVIEW_TOUCH,
        [WB_OP_REMOVE] = WB_PAGEVIEW_REMOVE,
        [WB_OP_REMOVE_EVERYWHERE] = WB_PAGEVIEW_REMOVE_EVERYWHERE,
    };

    WB_CHECK(wb_pageid_equal(view->id, op->id));
    WB_CHECK(op->kind <= WB_OP_COPY);
    *outcome_out = WB_STORE_PUT_KNOWN;
    if (op->kind > WB_OP_REMOVE_EVERYWHERE) /* it changes something other than the page */
        return 0;
    struct wb_pageview_change change = {
        .kind = kinds[op->kind],
        .time_ms = op->time_ms,
        .content = op->content,
        .replaces = op->replaces,
        .forgotten = op->forgotten,
        .has_bytes = op->kind == WB_OP_PUT || op->record.len,
        .place = place,
        .body_bytes = op->entry.body_bytes,
        .stored_bytes = op->entry.stored_bytes,
        .status = op->entry.status,
        .has_lifetime = op->has_lifetime,
        .lifetime = op->entry.lifetime,
        .lifetime_count = op->entry.lifetime_count,
    };
    return wb_pageview_apply(view, &change, moment, outcome_out);
}
