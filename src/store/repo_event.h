/*
 * repo_event.h - events: what waits on the update nodes of a batch design beside pages (catalog.h).
 */
#ifndef WB_STORE_REPO_EVENT_H
#define WB_STORE_REPO_EVENT_H

#include "store/repo.h"

/* Adds an event to what the next commit stores. An event of the same page, time and kind is stored once. */
int wb_repo_put_event(struct wb_repo *repo, const struct wb_catalog_event *event);

/* The events of a page, committed ones and those of this writer. each() must not call the store. */
int wb_repo_event_of(struct wb_repo *repo, struct wb_pageid id, wb_catalog_each_event each, void *context);

/*
 * Does what an event of the kind CAPTURE says: the page was seen and had that content. If it has it no more, the
 * capture only tells the versions before and after it apart.
 */
int wb_repo_put_content(struct wb_repo *repo, const struct wb_catalog_event *event);

/* The same for a content that was forgotten elsewhere. If the page has others of that time, they came later. */
int wb_repo_put_forgotten(struct wb_repo *repo, struct wb_pageid id, int64_t time_ms, uint64_t content);

/* The hash of the content that a revisit means, of this writer and committed ones; 0 if the page does not have it. */
int wb_repo_revisit_content(struct wb_repo *repo, const struct wb_store_revisit *revisit, uint64_t *content_out);

/* Lets a revisit wait without looking for its original. The outcome is NEW, or KNOWN if it waits already. */
int wb_repo_wait_revisit(struct wb_repo *repo, const struct wb_store_revisit *revisit,
                         enum wb_store_outcome *outcome_out);

/* Reads a version of a writer's view, committed or not. Its time and lifetime are those of the record. */
int wb_repo_read_version(struct wb_repo *repo, struct wb_pageid id, const struct wb_history_version *version,
                         struct wb_page *page_out, struct wb_buf *mem_out);

/* In a commit: stores the event of an op, or deletes all events of a page that is taken down. */
int wb_repo_apply_event(struct wb_repo_edit *edit, const struct wb_op *op);

#endif
