/*
 * hash_store.c - the organisation hash: its part of an open repository, the bucket files that are open, what a crash
 * left, and compaction.
 */
#include "pagefile/hash_store.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "place/nodes.h"

int wb_hash_new(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(!repo->hash);
    repo->hash = wb_alloc_zero(1, sizeof *repo->hash);
    if (!repo->hash)
        return WB_E_NOMEM;
    repo->hash->staging = WB_FILE_INIT;
    repo->hash->files.write = repo->store.mode == WB_STORE_WRITE;
    repo->hash->files.nodes = &repo->nodes;
    repo->hash->files.repository = repo->superblock.id;
    return wb_bucket_reader_init(&repo->hash->reader);
}

void wb_hash_free(struct wb_repo *repo)
{
    struct wb_hash *hash = repo->hash;

    if (!hash)
        return;
    wb_hash_stage_clear(repo);
    wb_hash_files_release(&hash->files);
    wb_bucket_release(&hash->bucket);
    wb_bucket_reader_release(&hash->reader);
    wb_bucket_draft_release(&hash->draft);
    wb_free(hash);
    repo->hash = NULL;
}

/* ---- files -------------------------------------------------------------------------------------------------- */

void wb_hash_files_release(struct wb_hash_files *files)
{
    for (size_t i = 0; i < files->open.count; i++)
        wb_bucket_file_close(&files->open.items[i]);
    wb_vec_release(&files->open);
    wb_catalog_rows_release(&files->rows);
    files->known = false;
}

static bool is_current(const struct wb_catalog_rows *rows, const struct wb_bucket_file *file)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].number == file->number && rows->items[i].revision == file->revision)
            return true;
    return false;
}

int wb_hash_files_refresh(struct wb_hash_files *files, struct wb_catalog_txn *txn)
{
    struct wb_catalog_rows rows;
    uint64_t version = wb_catalog_version(txn, WB_CATALOG_SEGMENTS);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_AWAKE || txn->kind == WB_CATALOG_TXN_HELD);
    if (files->known && files->version == version)
        return 0;
    int err = wb_catalog_rows_read(txn, &rows);
    if (err < 0)
        return err;
    wb_catalog_rows_release(&files->rows);
    files->rows = rows;
    files->version = version;
    files->known = true;
    for (size_t i = 0; i < files->open.count; i++)
        if (files->open.items[i].magic && !is_current(&rows, &files->open.items[i]))
            wb_bucket_file_close(&files->open.items[i]);
    return 0;
}

const struct wb_catalog_segment *wb_hash_row_of(const struct wb_catalog_rows *rows, struct wb_pageid id,
                                                const struct wb_catalog_place *place)
{
    for (size_t i = 0; i < rows->count; i++)
        if (wb_catalog_segment_origin(&rows->items[i]) == place->segment &&
            wb_catalog_range_has(&rows->items[i].range, id))
            return &rows->items[i];
    return NULL;
}

const struct wb_catalog_segment *wb_hash_row_of_id(const struct wb_catalog_rows *rows, struct wb_pageid id)
{
    const struct wb_catalog_segment *found = NULL;

    for (size_t i = 0; i < rows->count; i++) {
        if (!wb_catalog_range_has(&rows->items[i].range, id))
            continue;
        if (found)
            return NULL;
        found = &rows->items[i];
    }
    return found;
}

static int refresh_files(void *context)
{
    struct wb_repo *repo = context;

    return wb_hash_files_refresh(&repo->hash->files, &repo->reader);
}

int wb_hash_can_change(struct wb_repo *repo, const struct wb_pageview *view)
{
    const struct wb_history *history = &view->history;
    struct wb_node *node;

    WB_CHECK(repo->hash != NULL);
    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    if (wb_nodes_all_writable(&repo->nodes))
        return 0;
    int err = wb_repo_read(repo, refresh_files, repo);
    for (size_t i = 0; i < history->versions.count && err == 0; i++) {
        const struct wb_catalog_segment *row =
            wb_hash_row_of(&repo->hash->files.rows, view->id, &history->versions.items[i].place);
        if (row)
            err = wb_nodes_find_to_write(&repo->nodes, row->node, &node);
    }
    return err;
}

/* A file that was opened for reading because its node could not be written. *file is closed if it can be now. */
static void try_to_write(struct wb_hash_files *files, const struct wb_catalog_segment *row, struct wb_bucket_file *file)
{
    struct wb_node *node;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    if (files->write && !file->write && wb_nodes_find_to_write(files->nodes, row->node, &node) == 0)
        wb_bucket_file_close(file);
}

int wb_hash_file(struct wb_hash_files *files, const struct wb_catalog_segment *row, struct wb_bucket_file **file_out)
{
    struct wb_bucket_file *room = NULL;
    bool write = files->write;
    struct wb_node *node;

    WB_CHECK(row->number > 0);
    *file_out = NULL;
    for (size_t i = 0; i < files->open.count; i++) {
        struct wb_bucket_file *file = &files->open.items[i];
        bool same = file->magic && file->number == row->number && file->revision == row->revision;
        if (same)
            try_to_write(files, row, file);
        if (same && file->magic) {
            *file_out = file;
            return 0;
        }
        if (!file->magic || file->number == row->number)
            room = file;
    }
    int err = (files->write ? wb_nodes_find_to_write : wb_nodes_find)(files->nodes, row->node, &node);
    if (err == WB_E_DOWN && files->write) { /* it may be read-only, and we want to read */
        err = wb_nodes_find(files->nodes, row->node, &node);
        write = false;
    }
    if (err == 0 && !room) {
        err = wb_vec_push(&files->open, WB_BUCKET_FILE_INIT);
        room = err == 0 ? &files->open.items[files->open.count - 1] : NULL;
    }
    if (err < 0)
        return err;
    wb_bucket_file_close(room);
    err = wb_bucket_file_open(node, files->repository, row, write, room);
    if (err == 0)
        *file_out = room;
    return err;
}

/* ---- seals ---------------------------------------------------------------------------------------------------------
 */

bool wb_hash_sealed_at(struct wb_repo *repo, const struct wb_catalog_segment *row, uint64_t *commit_out)
{
    struct wb_bucket_file *file;

    *commit_out = 0;
    return wb_hash_file(&repo->hash->files, row, &file) == 0 && wb_bucket_read_seal(file, commit_out);
}

void wb_hash_seal(struct wb_repo *repo, uint64_t commit)
{
    struct wb_repo_overview o = {0};
    struct wb_bucket_file *file;

    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    /* If nothing can be sealed, no data is lost: we only lose one way to notice that the catalog went back in time. */
    if (wb_repo_overview(repo, &o) < 0)
        return;
    if (o.rows.count && wb_hash_file(&repo->hash->files, &o.rows.items[o.rows.count - 1], &file) == 0 && file->write &&
        wb_node_file_claim(&file->file) == 0) { /* whoever has claimed it now leaves later, and seals it then */
        wb_bucket_write_seal(file, commit);
        wb_node_file_release(&file->file);
    }
    wb_catalog_rows_release(&o.rows);
}

/* ---- what a crash left
 * ------------------------------------------------------------------------------------------------ */

struct hash_orphan {
    struct wb_repo *repo;
    struct wb_node *node;
    uint32_t node_number, number, revision;
    bool known;
};

/* Whether the catalog knows a file: as one that counts, as an earlier revision of one, or as one that was retired. */
static int look_up_file(void *context)
{
    struct hash_orphan *o = context;
    struct wb_catalog_segment row;
    int err = wb_catalog_segment_get(&o->repo->reader, o->number, &row);

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    o->known = err == 0 && o->node_number == row.node && o->revision <= row.revision;
    return o->known ? 0 : wb_catalog_retired_has(&o->repo->reader, o->number, o->revision, &o->known);
}

/* A file that the catalog does not know was made by a commit that was interrupted. */
static int remove_orphan(void *context, const struct wb_node_entry *entry)
{
    struct hash_orphan o = *(const struct hash_orphan *)context;
    struct wb_node_file file = WB_NODE_FILE_INIT;
    char name[WB_SEGMENT_NAME_MAX];
    bool doubles;

    if (!wb_bucket_name_parse(entry->name + sizeof WB_SEGMENT_DIR, &o.number, &o.revision, &doubles))
        return 0;
    int err = wb_repo_read(o.repo, look_up_file, &o);
    if (err < 0 || o.known)
        return err;
    wb_bucket_name(o.number, o.revision, name);
    err = wb_node_file_open(o.node, name, false, &file);
    if (err == 0 ? wb_node_file_claim(&file) == 0 : err == WB_E_NOTFOUND) {
        /* The commit may have ended since we looked. Now that we have the claim, the answer is final. */
        err = wb_repo_read(o.repo, look_up_file, &o);
        wb_bucket_doubles_name(o.number, o.revision, name);
        if (err == 0 && !o.known)
            err = wb_node_remove(o.node, name);
        if (err == 0 && !o.known && file.node)
            err = wb_node_file_remove(&file);
    }
    wb_node_file_close(&file);
    return err == WB_E_NOTFOUND || err == WB_E_BUSY ? 0 : err;
}

int wb_hash_recover(struct wb_repo *repo, uint32_t node)
{
    struct hash_orphan o = {.repo = repo, .node_number = node};
    int err = wb_nodes_find_to_write(&repo->nodes, node, &o.node);
    char *staging = wb_path_join(repo->dir, WB_HASH_STAGING_NAME);

    WB_CHECK(repo->store.mode == WB_STORE_WRITE);
    if (staging) /* if its owner is alive, it has the file open, and does not need the name */
        (void)wb_path_unlink(staging);
    wb_free(staging);
    if (err == 0) {
        wb_node_hold(o.node); /* reading the catalog may refresh the table of nodes */
        err = wb_node_each_file(o.node, remove_orphan, &o);
        wb_node_close(o.node);
    }
    return wb_repo_node_failed(repo, err) ? 0 : err;
}

/* ---- compaction
 * ---------------------------------------------------------------------------------------------------------- */

/* Whether there is something to free in a file, or it has far more or far fewer buckets than it needs. */
static bool needs_work(const struct wb_repo *repo, const struct wb_catalog_segment *row)
{
    uint64_t ideal = wb_hash_buckets_for(row->map_at), dead = row->pages - row->live;
    bool much = repo->store.thrifty
                    ? row->bytes_dead > row->bytes / WB_STORE_WORTHWHILE || dead > row->pages / WB_STORE_WORTHWHILE
                    : row->bytes_dead || dead;

    WB_CHECK(row->number > 0);
    WB_CHECK(row->live <= row->pages);
    return much || row->removed || row->unwritten || row->map_count > 2 * ideal || row->map_count * 2 < ideal;
}

/* Bytes that are in use. The rest of a bucket is a hole in the file. */
static uint64_t used_bytes(const struct wb_catalog_segment *row)
{
    uint64_t extents_at = WB_BUCKET_FILE_HEADER_BYTES + row->map_count * wb_pagefile_sizes.bucket_bytes;

    return row->map_at + (row->bytes > extents_at ? row->bytes - extents_at : 0);
}

/* Writes one file anew, in a transaction of its own. */
static int compact_file(struct wb_repo *repo, uint32_t number, wb_store_found found, void *found_context,
                        struct wb_store_compact_counts *counts)
{
    struct wb_repo_edit edit = {.repo = repo};
    int err = wb_repo_edit_begin(repo, &edit);

    for (size_t i = 0; err == 0 && i < edit.hash->targets.count; i++) {
        struct wb_hash_target *target = &edit.hash->targets.items[i];
        if (target->number != number)
            continue;
        struct wb_catalog_segment *row = &edit.rows[number];
        uint64_t before = used_bytes(row);
        target->judge = true;
        err = wb_hash_merge(&edit, target, wb_hash_buckets_for(row->map_at));
        if (err == 0) {
            counts->files++;
            counts->pages += row->pages;
            counts->bytes_before += before;
            counts->bytes_after += used_bytes(row);
        }
    }
    if (err == 0)
        err = wb_repo_edit_end(&edit);
    else
        wb_hash_edit_done(&edit, err);
    if (err == 0) {
        repo->writer->commit = edit.summary.commit;
        counts->damaged += wb_hash_damage_tell(edit.hash, found, found_context, &counts->dropped);
    }
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    return err;
}

int wb_hash_compact(struct wb_repo *repo, wb_store_progress progress, void *progress_context, wb_store_found found,
                    void *found_context, struct wb_store_compact_counts *counts_inout)
{
    struct wb_repo_overview o = {0};
    uint64_t total = 0, done = 0;
    int err = wb_repo_overview(repo, &o);

    for (size_t i = 0; i < o.rows.count; i++)
        total += needs_work(repo, &o.rows.items[i]) ? o.rows.items[i].bytes : 0;
    /* Between files, not during one: other writers wait while one is written. */
    if (err == 0 && progress && !progress(progress_context, 0, total ? total : 1))
        err = wb_fail(WB_E_STOPPED, "compaction was stopped");
    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &o.rows.items[i];
        if (!needs_work(repo, row))
            continue;
        err = compact_file(repo, row->number, found, found_context, counts_inout);
        bool damaged = err == WB_E_CORRUPT;
        if ((damaged || wb_repo_node_failed(repo, err)) &&
            !wb_catalog_uncertain(repo->catalog)) { /* it stays as it is */
            char name[WB_SEGMENT_NAME_MAX];
            wb_bucket_name(row->number, row->revision, name);
            counts_inout->damaged += damaged;
            counts_inout->skipped += !damaged;
            if (found)
                found(found_context, &(struct wb_store_finding){damaged, name, 0, wb_error_message()});
            err = 0;
        }
        done += row->bytes;
        if (err == 0 && progress && !progress(progress_context, done, total))
            err = wb_fail(WB_E_STOPPED, "compaction was stopped");
    }
    wb_catalog_rows_release(&o.rows);
    return err;
}

/* ---- after a crash
 * --------------------------------------------------------------------------------------------------------- */

/* Whether an interrupted sweep has changed buckets of a file, or may have. */
static int is_unsettled(struct wb_repo *repo, const struct wb_catalog_segment *row, bool *swept_out, bool *unknown_out)
{
    struct wb_bucket_swept swept;
    struct wb_bucket_file *file;

    *swept_out = *unknown_out = false;
    int err = wb_hash_file(&repo->hash->files, row, &file);
    if (err < 0)
        return err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err; /* whoever needs the file is told */
    if (file->headless && file->write)
        (void)wb_bucket_file_repair(file, repo->superblock.id); /* if this fails, the next writer tries it */
    err = wb_bucket_swept_read(file, row->logical_end, &swept);
    *swept_out = err == 0 && swept.stamp > row->logical_end;
    *unknown_out = err == WB_E_CORRUPT;
    wb_bucket_swept_release(&swept);
    return err == WB_E_CORRUPT ? 0 : err;
}

/* A transaction that changes nothing: its beginning repairs everything. */
static int repair_all(struct wb_repo *repo)
{
    struct wb_repo_edit edit = {.repo = repo};
    int err = wb_repo_edit_begin(repo, &edit);

    if (err == 0)
        err = wb_repo_edit_end(&edit);
    if (err == 0)
        repo->writer->commit = edit.summary.commit;
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    return err;
}

int wb_hash_settle(struct wb_repo *repo)
{
    struct wb_store_compact_counts ignored = {0};
    struct wb_repo_overview o = {0};
    bool swept, unknown, any = false;
    int err = wb_repo_overview(repo, &o);

    WB_CHECK(repo->writer != NULL);
    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        err = is_unsettled(repo, &o.rows.items[i], &swept, &unknown);
        any = any || swept;
        if (err == 0 && unknown)
            err = compact_file(repo, o.rows.items[i].number, NULL, NULL, &ignored);
    }
    if (err == 0 && any)
        err = repair_all(repo);
    if (err == 0 && repo->hash->replaced)
        err = wb_repo_purge(repo);
    repo->hash->replaced = false;
    wb_catalog_rows_release(&o.rows);
    /* Damage, or a node that cannot be used, does not keep anybody from using the rest. */
    bool harmless = err == WB_E_CORRUPT || (wb_repo_node_failed(repo, err) && !wb_catalog_uncertain(repo->catalog));
    wb_repo_decide(repo);
    return harmless ? 0 : err;
}
