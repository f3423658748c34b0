/*
 * repo_adopt.h - brings records and pages of another repository into a log as they are: versions keep their epochs,
 * captures and floors, which no put() could give them. Only for a repository that nobody uses yet (convert.h).
 *
 *   copy       the bytes of a version get a place; no page changes
 *   adopt      a page with all its versions appears, whose bytes were copied before
 */
#ifndef WB_STORE_REPO_ADOPT_H
#define WB_STORE_REPO_ADOPT_H

#include "store/repo.h"

/* A record that is to be copied. */
struct wb_repo_copy {
    struct wb_pageid id;
    struct wb_slice site;
    uint64_t body_bytes;
    struct wb_buf *record; /* with its digests. It belongs to the writer afterwards, and is empty */
};

/*
 * Adds a record to those that the next commit stores. It is op number writer->ops.count - 1 then; when everything was
 * flushed (wb_flush_all), its op knows its place.
 */
int wb_repo_copy_add(struct wb_repo *repo, const struct wb_repo_copy *copy);

/*
 * Saves edit->view as a page that the repository does not have yet. Its versions have the epochs that they are to
 * have, and the places of copies. as_stored: time and lifetime of the latest version are those of its record.
 */
int wb_repo_adopt(struct wb_repo_edit *edit, bool as_stored);

#endif
