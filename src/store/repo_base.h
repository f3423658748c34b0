/*
 * repo_base.h - the update nodes of a batch design go on from what is on the read nodes (repo_base.c).
 */
#ifndef WB_STORE_REPO_BASE_H
#define WB_STORE_REPO_BASE_H

#include "store/repo.h"

/* Of a page that does not wait here: loads what the base has of it. Does nothing if there is no base. */
int wb_repo_base_view(struct wb_repo *repo, struct wb_pageview *view);

/* Whether the page waits here. It may have uncommitted ops, too, which do not count. */
int wb_repo_base_waits(struct wb_repo *repo, struct wb_pageid id, bool *waits_out);

/* Reads the record of a version whose place is in WB_CATALOG_BASE_SEGMENT. */
int wb_repo_base_record(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_place *place,
                        struct wb_buf *record_out);

/* wb_epochs_held(), with those of the base, and with what its readers see until the next transfer. */
int wb_repo_epochs_held(struct wb_repo *repo, struct wb_catalog_txn *txn, struct wb_epochs *epochs_out);

/* The name of a site, whichever of the two knows it; empty if neither does. Good until the next call. */
int wb_repo_base_site(struct wb_repo *repo, uint64_t hash, struct wb_slice *name_out);

#endif
