/*
 * log_ops.h - the list of a writer's ops, and the index by which those of a page are found (log_ops.c). Most callers
 * need only wb_log_op_add() and wb_log_has_ops(), in log.h.
 */
#ifndef WB_STORE_LOG_OPS_H
#define WB_STORE_LOG_OPS_H

#include "store/log/log.h"

/* The last op of the page; those before it are found through `previous`. False if there are none. */
bool wb_log_last_op(struct wb_log_writer *writer, struct wb_pageid id, uint32_t *op_out);

/* Makes room for so many more ops. */
int wb_log_ops_reserve(struct wb_log_writer *writer, size_t count);

/*
 * Adds an op, all zero, which the caller must fill in at once. Its page is put into the index when that is needed next.
 * There must be room for it (wb_log_ops_reserve).
 */
struct wb_log_op *wb_log_op_new(struct wb_log *log);

/* Puts a page, or a site, into an index; replaces what was there. (log_write.c) */
int wb_log_index_set(union wb_log_index *map, struct wb_pageid id, size_t index);

#endif
