/*
 * log_event.h - events: what waits on the update nodes of a batch design beside pages (catalog.h).
 */
#ifndef WB_STORE_LOG_EVENT_H
#define WB_STORE_LOG_EVENT_H

#include "store/log.h"

/* Adds an event to what the next commit stores. An event of the same page, time and kind is stored once. */
int wb_log_put_event(struct wb_log *log, const struct wb_catalog_event *event);

/* The events of a page, committed ones and those of this writer. each() must not call the store. */
int wb_log_event_of(struct wb_log *log, struct wb_pageid id, wb_catalog_each_event each, void *context);

/* In a commit: stores the event of an op, or deletes all events of a page that is taken down. */
int wb_log_apply_event(struct wb_log_edit *edit, const struct wb_log_op *op);

#endif
