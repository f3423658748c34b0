/*
 * repo_recover.c - what a writer does when it opens a repository: makes one of an older format
 * current, repairs what a crash left behind, deletes files that no reader needs any more, and
 * chooses the segment that it appends to.
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

/* ---- format 2 --------------------------------------------------------------------------------- */

/*
 * Format 2 had one snapshot at a time, whose replaced versions were in table old; no command could
 * read them. They die here; entries and segment rows stay as they are, because both forms are
 * understood, and are written anew whenever they change. The superblock goes first: from then on a
 * program that knows only format 2 refuses the repository, whatever happens to us in between.
 * Blocks of the older format are rewritten by compaction.
 */

/* A version that only the old snapshot had. */
static int bury_old(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_repo_edit *edit = context;
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row(&edit->files, entry->place.segment, &row);

    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(entry->place.segment > 0);
    (void)id;
    if (err < 0)
        return err;
    if (row->live == 0)
        return wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_SEGMENTS, "a segment with fewer pages than entries");
    row->live--;
    row->bytes_dead += entry->stored_bytes;
    return 0;
}

static int upgrade_catalog(struct wb_repo_edit *edit)
{
    int err = wb_repo_edit_begin(edit->repo, edit);

    WB_CHECK(edit->repo->magic == WB_REPO_MAGIC);
    if (err == 0 && edit->summary.old_format) { /* otherwise another process was faster */
        err = wb_catalog_entry_each(&edit->txn, WB_CATALOG_OLD, bury_old, edit);
        if (err == 0)
            err = wb_catalog_clear(&edit->txn, WB_CATALOG_OLD);
        if (err == 0)
            err = wb_catalog_revisit_upgrade(&edit->txn);
        if (err == 0)
            err = wb_repo_edit_end(edit);
    }
    wb_catalog_txn_abort(&edit->txn);
    return err;
}

int wb_repo_upgrade(struct wb_repo *repo)
{
    struct wb_catalog_summary summary;
    struct wb_repo_edit edit = {.repo = repo};
    int err = wb_repo_summary(repo, &summary);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    if (err == 0 && repo->superblock.format < WB_SUPERBLOCK_FORMAT) {
        repo->superblock.format = WB_SUPERBLOCK_FORMAT;
        err = wb_superblock_write(repo->dir, &repo->superblock);
    }
    if (err == 0 && summary.old_format) {
        err = upgrade_catalog(&edit);
        wb_repo_edit_release(&edit);
    }
    return err;
}
