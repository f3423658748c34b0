/*
 * log_ops.c - the list of a writer's ops, and the index by which those of a page are found.
 *
 * A transfer copies whole blocks, and adds an op for each of their pages, of which nobody asks before the commit. So
 * these are put into the index only if somebody asks for any page after all: that takes longer than everything else
 * that is done for such a page, because ids are hashes and the index is larger than the processor's cache.
 */
#include "store/log/log_ops.h"
#include "base/check.h"

int wb_log_ops_reserve(struct wb_log_writer *writer, size_t count)
{
    int err = wb_vec_reserve(&writer->ops, writer->ops.count + count);

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(writer->indexed <= writer->ops.count);
    return err < 0 ? err : wb_map_reserve(&writer->page_index, writer->ops.count + count);
}

/* Puts the pages of all ops into the index. */
static void complete_index(struct wb_log_writer *writer)
{
    uint32_t last;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    for (; writer->indexed < writer->ops.count; writer->indexed++) {
        struct wb_log_op *op = &writer->ops.items[writer->indexed];
        op->previous = wb_log_index_get(&writer->page_index, op->id, &last) ? (int64_t)last : -1;
        int err = wb_log_index_set(&writer->page_index, op->id, writer->indexed);
        WB_CHECK(err == 0); /* there is room: see wb_log_ops_reserve */
    }
}

bool wb_log_last_op(struct wb_log_writer *writer, struct wb_pageid id, uint32_t *op_out)
{
    complete_index(writer);
    WB_CHECK(writer->indexed == writer->ops.count);
    return wb_log_index_get(&writer->page_index, id, op_out);
}

bool wb_log_has_ops(const struct wb_log *log, struct wb_pageid id)
{
    uint32_t last;

    WB_CHECK(!log->writer || log->writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(log->magic == WB_LOG_MAGIC);
    return log->writer && wb_log_last_op(log->writer, id, &last);
}

struct wb_log_op *wb_log_op_new(struct wb_log *log)
{
    struct wb_log_writer *writer = log->writer;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    WB_CHECK(writer->ops.count < writer->ops.cap);
    if (writer->ops.count == 0)
        writer->busy = wb_busy_begin(&log->busy, WB_BUSY_PUT, wb_log_nodes_number(&log->nodes, 0),
                                     wb_log_nodes_number(&log->nodes, wb_log_nodes_count(&log->nodes) - 1));
    struct wb_log_op *op = &writer->ops.items[writer->ops.count++];
    *op = (struct wb_log_op){.previous = -1};
    return op;
}

int wb_log_op_add(struct wb_log *log, const struct wb_log_op *op)
{
    int err = wb_log_ops_reserve(log->writer, 1);

    WB_CHECK(op->kind <= WB_LOG_OP_COPY);
    WB_CHECK(op->kind != WB_LOG_OP_PUT || op->record.len > 0 || op->appended);
    WB_CHECK(op->record.len == 0 || op->kind <= WB_LOG_OP_CAPTURE || op->kind == WB_LOG_OP_COPY);
    WB_CHECK(!op->revisit || op->kind == WB_LOG_OP_CAPTURE || op->kind == WB_LOG_OP_REVISIT);
    WB_CHECK(!op->appended || op->kind == WB_LOG_OP_PUT);
    if (err == 0)
        *wb_log_op_new(log) = *op;
    return err;
}
