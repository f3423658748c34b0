/*
 * repo_recover.c - what a writer does when it opens a repository: repairs what a crash left
 * behind, deletes files that no reader needs any more, and chooses the segment that it
 * appends to.
 *
 * Readers need none of this: they never look beyond what the catalog says is committed.
 * What a crash can leave, and who removes it:
 *
 *   bytes after the committed end of a segment   cut off when the next writer opens the store, or reuses the segment
 *   a segment file without a row                 removed when the next writer opens the store
 *   a replaced file that nobody deleted          deleted by the next writer, once no reader needs it
 *
 * A segment belongs to the process that holds the lock on its file (flock). The kernel
 * releases the lock when the process ends, however it ends.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/repo.h"

#include <stdio.h>

int wb_repo_recover(struct wb_repo *repo)
{
    struct wb_pagefile *files = &repo->files;
    int err = wb_pagefile_purge(files);

    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    WB_CHECK(!repo->writer);
    if (err == 0)
        err = wb_pagefile_renew_nodes(files);
    for (size_t i = 0; i < wb_nodes_count(&repo->nodes) && err == 0; i++)
        err = files->kind->recover(files, wb_nodes_number(&repo->nodes, i));
    return err;
}
