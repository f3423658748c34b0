/*
 * repo_ops.h - the list of a writer's ops, and the index by which those of a page are found (repo_ops.c). Most callers
 * need only wb_op_add() and wb_repo_has_ops(), in repo.h.
 */
#ifndef WB_STORE_REPO_OPS_H
#define WB_STORE_REPO_OPS_H

#include "catalog/catalog.h"
#include "store/repo.h"

/* The last op of the page; those before it are found through `previous`. False if there are none. */
bool wb_repo_last_op(struct wb_repo_writer *writer, struct wb_pageid id, uint32_t *op_out);

/* Makes room for so many more ops. */
int wb_ops_reserve(struct wb_repo_writer *writer, size_t count);

/*
 * Adds an op, all zero, which the caller must fill in at once. Its page is put into the index when that is needed next.
 * There must be room for it (wb_ops_reserve).
 */
struct wb_op *wb_op_new(struct wb_repo *repo);

/* Applies an op to a view of its page; place is where the bytes of a put are. (wb_pageview_apply) */
int wb_op_apply(const struct wb_op *op, struct wb_catalog_place place, const struct wb_moment *moment,
                struct wb_pageview *view, enum wb_store_outcome *outcome_out);

/* Puts a page, or a site, into an index; replaces what was there. (repo_write.c) */
int wb_op_index_set(union wb_op_index *map, struct wb_pageid id, size_t index);

/*
 * The order in which a commit looks at the ops: by page id, then as they came. order_out has room for all of them.
 * (repo_order.c)
 */
int wb_repo_order_ops(const struct wb_op *ops, size_t count, uint32_t *order_out);

#endif
