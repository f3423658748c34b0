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
#include "pagefile/hash_store.h"
#include "store/repo.h"

#include <stdio.h>

uint64_t wb_repo_newest_commit(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);

    struct wb_repo_overview o = {0};
    int err = wb_repo_overview(repo, &o);

    wb_catalog_rows_release(&o.rows);
    return err == 0 ? o.summary.commit : repo->writer->commit;
}

int wb_repo_recover(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    WB_CHECK(!repo->writer);

    struct wb_repo_overview o = {0};
    int err = wb_repo_purge(repo);

    if (err == 0)
        err = wb_repo_overview(repo, &o);
    for (size_t i = 0; i < o.rows.count && err == 0; i++)
        if (!o.rows.items[i].sealed)
            err = cut_tail(repo, &o.rows.items[i]);
    for (size_t i = 0; i < wb_nodes_count(&repo->nodes) && err == 0; i++)
        err = (repo->hash ? wb_hash_recover : remove_orphans)(repo, wb_nodes_number(&repo->nodes, i));
    wb_catalog_rows_release(&o.rows);
    return err;
}

/* ---- retired files ---------------------------------------------------------------------------- */

/* A transaction that deletes replaced files. If there are more than fit here, the next purge deletes the rest. */
struct purge_work {
    struct wb_repo *repo;
    struct wb_catalog_txn txn;
    uint64_t oldest; /* the oldest state that a reader holds */
    struct {
        uint32_t number, revision, node;
    } files[256];
    size_t count;
};

static int add_purgeable(void *context, uint32_t number, uint32_t revision, uint32_t node, uint64_t txn_id)
{
    struct purge_work *p = context;
    struct wb_node *reach;

    WB_CHECK(number > 0);
    WB_CHECK(p->count <= sizeof p->files / sizeof p->files[0]);
    if (txn_id > p->oldest || p->count == sizeof p->files / sizeof p->files[0])
        return 0;
    /* What is on a node that is out of reach is deleted when it is back; what was on one that was removed is gone. */
    if (!wb_nodes_has(&p->repo->nodes, node) || wb_nodes_find_to_write(&p->repo->nodes, node, &reach) == 0) {
        p->files[p->count].number = number;
        p->files[p->count].node = node;
        p->files[p->count++].revision = revision;
    }
    return 0;
}

static int delete_file(struct wb_repo *repo, uint32_t number, uint32_t revision, uint32_t node_number)
{
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *node;

    WB_CHECK(number > 0);
    if (!wb_nodes_has(&repo->nodes, node_number))
        return 0;
    int err = wb_nodes_find(&repo->nodes, node_number, &node);
    if (err < 0)
        return err;
    if (repo->hash)
        return wb_bucket_file_remove(node, number, revision);
    wb_segment_name(number, revision, name);
    return wb_node_remove(node, name);
}

/* The file goes first, then its row: if we die in between, the next purge finds the file already gone. */
static int delete_retired(struct purge_work *p)
{
    int err = 0;

    WB_CHECK(p->count > 0);
    WB_CHECK(p->txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < p->count && err == 0; i++) {
        err = delete_file(p->repo, p->files[i].number, p->files[i].revision, p->files[i].node);
        /* It is deleted when the node can be used again, and when nobody has claimed the file any more. */
        if (err == WB_E_BUSY || wb_nodes_failed(&p->repo->nodes, err))
            err = 0;
        else if (err == 0)
            err = wb_catalog_retired_delete(&p->txn, p->files[i].number, p->files[i].revision);
    }
    return err;
}

struct retired_count {
    struct wb_repo *repo;
    uint64_t rows;
};

static int count_retired(void *context)
{
    struct retired_count *c = context;

    WB_CHECK(c->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(c->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    c->rows = wb_catalog_count(&c->repo->reader, WB_CATALOG_RETIRED);
    return 0;
}

static int purge_files(struct purge_work *p)
{
    WB_CHECK(p->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(p->count == 0);
    /* Starting a write transaction makes the newest state durable. So files that this state does not need may go. */
    int err = wb_catalog_txn_write(p->repo->catalog, &p->txn);

    /* Ask inside the transaction: readers that start from now on see a state that does not need the retired files. */
    if (err == 0)
        err = wb_catalog_oldest_reader(p->repo->catalog, &p->oldest);
    if (err == 0)
        err = wb_catalog_retired_each(&p->txn, add_purgeable, p);
    if (err == 0 && p->count)
        err = delete_retired(p);
    if (err == 0 && p->count)
        err = wb_catalog_txn_commit(&p->txn);
    wb_catalog_txn_abort(&p->txn);
    return err;
}

int wb_repo_purge(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);

    struct purge_work p = {.repo = repo};
    struct retired_count count = {.repo = repo};
    int err = wb_repo_read(repo, count_retired, &count);

    return err < 0 || count.rows == 0 ? err : purge_files(&p);
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
    int err = wb_repo_edit_row(edit, entry->place.segment, &row);

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
