/*
 * hash_store.c - the organisation hash: its part of an open repository, the bucket files that are open, what a crash
 * left, and its table.
 */
#include "pagefile/hash_store.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "pagefile/hash_verify.h"
#include "pagefile/sorted_source.h"

static int open_hash(struct wb_pagefile *files)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(!files->hash);
    files->hash = wb_alloc_zero(1, sizeof *files->hash);
    if (!files->hash)
        return WB_E_NOMEM;
    files->hash->staging = WB_FILE_INIT;
    files->hash->files.write = files->write;
    files->hash->files.nodes = files->nodes;
    files->hash->files.repository = files->superblock->id;
    return wb_bucket_reader_init(&files->hash->reader);
}

static void close_hash(struct wb_pagefile *files)
{
    struct wb_hash *hash = files->hash;

    if (!hash)
        return;
    wb_hash_stage_clear(files);
    wb_hash_files_release(&hash->files);
    wb_bucket_release(&hash->bucket);
    wb_bucket_reader_release(&hash->reader);
    wb_bucket_draft_release(&hash->draft);
    wb_free(hash);
    files->hash = NULL;
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
    struct wb_pagefile *files = context;

    return wb_hash_files_refresh(&files->hash->files, files->reader);
}

static int can_change(struct wb_pagefile *files, const struct wb_pageview *view)
{
    const struct wb_history *history = &view->history;
    struct wb_node *node;

    WB_CHECK(files->hash != NULL);
    WB_CHECK(files->write);
    if (wb_nodes_all_writable(files->nodes))
        return 0;
    int err = wb_pagefile_read(files, refresh_files, files);
    for (size_t i = 0; i < history->versions.count && err == 0; i++) {
        const struct wb_catalog_segment *row =
            wb_hash_row_of(&files->hash->files.rows, view->id, &history->versions.items[i].place);
        if (row)
            err = wb_nodes_find_to_write(files->nodes, row->node, &node);
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

static void sealed_at(struct wb_pagefile *files, const struct wb_catalog_segment *row, uint64_t *commit_out)
{
    struct wb_bucket_file *file;

    *commit_out = 0;
    if (wb_hash_file(&files->hash->files, row, &file) == 0)
        wb_bucket_read_seal(file, commit_out);
}

static void seal(struct wb_pagefile *files, uint64_t commit)
{
    struct wb_overview o = {0};
    struct wb_bucket_file *file;

    WB_CHECK(files->write);
    /* If nothing can be sealed, no data is lost: we only lose one way to notice that the catalog went back in time. */
    if (wb_pagefile_overview(files, &o) < 0)
        return;
    if (o.rows.count && wb_hash_file(&files->hash->files, &o.rows.items[o.rows.count - 1], &file) == 0 && file->write &&
        wb_node_file_claim(&file->file) == 0) { /* the process that has claimed it leaves later, and seals it then */
        wb_bucket_write_seal(file, commit);
        wb_node_file_release(&file->file);
    }
    wb_catalog_rows_release(&o.rows);
}

/* ---- what a crash left
 * ------------------------------------------------------------------------------------------------ */

struct hash_orphan {
    struct wb_pagefile_file file;
    struct wb_node *node;
};

/* A file that the catalog does not know was made by a commit that was interrupted. */
static int remove_orphan(void *context, const struct wb_node_entry *entry)
{
    const struct hash_orphan *o = context;
    struct wb_pagefile_file known = o->file;
    struct wb_node_file file = WB_NODE_FILE_INIT;
    char name[WB_SEGMENT_NAME_MAX];
    bool doubles;

    if (!wb_bucket_name_parse(entry->name + sizeof WB_SEGMENT_DIR, &known.number, &known.revision, &doubles))
        return 0;
    int err = wb_pagefile_look_up(&known);
    if (err < 0 || known.known)
        return err;
    wb_bucket_name(known.number, known.revision, name);
    err = wb_node_file_open(o->node, name, false, &file);
    if (err == 0 ? wb_node_file_claim(&file) == 0 : err == WB_E_NOTFOUND) {
        /* The commit may have ended since we looked. Now that we have the claim, the answer is final. */
        err = wb_pagefile_look_up(&known);
        wb_bucket_doubles_name(known.number, known.revision, name);
        if (err == 0 && !known.known)
            err = wb_node_remove(o->node, name);
        if (err == 0 && !known.known && file.node)
            err = wb_node_file_remove(&file);
    }
    wb_node_file_close(&file);
    return err == WB_E_NOTFOUND || err == WB_E_BUSY ? 0 : err;
}

static int recover(struct wb_pagefile *files, uint32_t node)
{
    struct hash_orphan o = {.file = {.files = files, .node = node}};
    int err = wb_nodes_find_to_write(files->nodes, node, &o.node);
    char *staging = wb_path_join(files->dir, WB_PAGEFILE_STAGING_NAME);

    WB_CHECK(files->write);
    if (staging) /* if its owner is alive, it has the file open, and does not need the name */
        (void)wb_path_unlink(staging);
    wb_free(staging);
    if (err == 0) {
        wb_node_hold(o.node); /* reading the catalog may refresh the table of nodes */
        err = wb_node_each_file(o.node, remove_orphan, &o);
        wb_node_close(o.node);
    }
    return wb_nodes_failed(files->nodes, err) ? 0 : err;
}

/* ---- rewriting a file ------------------------------------------------------------------------------------------ */

/* Whether there is something to free in a file, or it has far more or far fewer buckets than it needs. */
static bool needs_work(const struct wb_pagefile *files, const struct wb_catalog_segment *row)
{
    uint64_t ideal = wb_hash_buckets_for(row->map_at), dead = row->pages - row->live;
    bool much = files->thrifty ? row->bytes_dead > row->bytes / WB_PAGEFILE_WORTHWHILE ||
                                     dead > row->pages / WB_PAGEFILE_WORTHWHILE
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

static int rewrite(struct wb_pagefile_edit *edit, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                   size_t count)
{
    struct wb_hash_target *target = wb_hash_target(edit->hash, row->number);
    const struct wb_catalog_segment *now = target ? &edit->rows[row->number] : NULL;

    if (!now || now->node != row->node || !wb_catalog_range_equal(&now->range, &row->range))
        return wb_fail(WB_E_BUSY, "another process has replaced file %u", row->number);
    target->judge = true;
    return wb_hash_merge(edit, target, bins, count, wb_hash_buckets_for(now->map_at));
}

/* ---- after a crash --------------------------------------------------------------------------------------------- */

/* Whether an interrupted sweep has changed buckets of a file, or may have. */
static int is_unsettled(struct wb_pagefile *files, const struct wb_catalog_segment *row, bool *swept_out,
                        bool *unknown_out)
{
    struct wb_bucket_swept swept;
    struct wb_bucket_file *file;

    *swept_out = *unknown_out = false;
    int err = wb_hash_file(&files->hash->files, row, &file);
    if (err < 0)
        return err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err; /* a reader of the file is told */
    if (file->headless && file->write)
        (void)wb_bucket_file_repair(file, files->superblock->id); /* if this fails, the next writer tries it */
    err = wb_bucket_swept_read(file, row->logical_end, &swept);
    *swept_out = err == 0 && swept.stamp > row->logical_end;
    *unknown_out = err == WB_E_CORRUPT;
    wb_bucket_swept_release(&swept);
    return err == WB_E_CORRUPT ? 0 : err;
}

/* A transaction that changes nothing, or rewrites one file: its beginning repairs everything. */
static int repair_with(struct wb_pagefile *files, const struct wb_catalog_segment *row)
{
    struct wb_pagefile_change change;
    int err = wb_pagefile_change_begin(files, &change);

    if (err == 0 && row)
        err = rewrite(&change.edit, row, &(struct wb_bin){row->node, row->range}, 1);
    err = wb_pagefile_change_end(&change, err);
    wb_pagefile_change_release(&change);
    return err;
}

static int repair(struct wb_pagefile *files)
{
    struct wb_overview o = {0};
    bool swept, unknown, any = false;
    int err = wb_pagefile_overview(files, &o);

    WB_CHECK(files->writer != NULL);
    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        err = is_unsettled(files, &o.rows.items[i], &swept, &unknown);
        any = any || swept;
        if (err == 0 && unknown)
            err = repair_with(files, &o.rows.items[i]);
        err = err == WB_E_BUSY ? 0 : err; /* another process has written it again since */
    }
    if (err == 0 && any)
        err = repair_with(files, NULL);
    wb_catalog_rows_release(&o.rows);
    /* Damage, or a node that cannot be used, does not keep anybody from using the rest. */
    bool harmless =
        err == WB_E_CORRUPT || (wb_nodes_failed(files->nodes, err) && !wb_catalog_uncertain(files->catalog));
    return harmless ? 0 : err;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

enum { NEW_FILES_MAX = 256 }; /* one for each node */

static size_t group_limit(const struct wb_pagefile *files)
{
    return files->writer->group_mixed ? wb_pagefile_sizes.group_bytes : wb_pagefile_sizes.group_bytes / 4;
}

static uint64_t tell(const struct wb_pagefile_edit *edit, wb_store_found found, void *context)
{
    return edit->hash ? wb_hash_damage_tell(edit->hash, found, context) : 0;
}

/* Double-write files have the numbers of the files that they belong to. */
static bool parse_name(const char *name, uint32_t *number_out, uint32_t *revision_out)
{
    bool doubles;

    return wb_bucket_name_parse(name, number_out, revision_out, &doubles);
}

const struct wb_pagefile_kind wb_pagefile_hash = {
    .in_place = true,
    .places_at_commit = true,
    .new_files = NEW_FILES_MAX,
    .group_limit = group_limit,
    .open = open_hash,
    .close = close_hash,
    .recover = recover,
    .repair = repair,
    .sealed_at = sealed_at,
    .seal = seal,
    .flush_start = wb_hash_stage,
    .flush_all = wb_hash_stage_all,
    .flush_drop = wb_hash_stage_drop,
    .forget = wb_hash_stage_clear,
    .pending = wb_hash_staged,
    .can_change = can_change,
    .edit_begin = wb_hash_edit_begin,
    .edit_place = wb_hash_edit_place,
    .edit_note = wb_hash_edit_note,
    .edit_write = wb_hash_edit_write,
    .edit_done = wb_hash_edit_done,
    .edit_release = wb_hash_edit_release,
    .edit_tell = tell,
    .read = wb_hash_read,
    .read_latest = wb_hash_read_latest,
    .each_record = wb_hash_each_record,
    .needs_work = needs_work,
    .used_bytes = used_bytes,
    .rewrite = rewrite,
    .name = wb_bucket_name,
    .parse_name = parse_name,
    .remove = wb_bucket_file_remove,
    .check = wb_hash_check,
    .sorted = &wb_sorted_hash,
};
