/*
 * vaultrestore.c - makes a repository of what is in a vault.
 *
 *   head -> manifest -> a point -> rows and files, by many threads -> rows merged -> small files -> visible
 *
 * Everything is written into an unfinished copy, which nobody can open (store_state.h). Threads read the pieces of rows
 * first, then those of files. As soon as all rows are there, this thread merges them and makes the catalogs, while the
 * others go on with the files. A file is synced when its last piece is in it.
 *
 * Meanwhile the vault may get new states, and old ones may expire. If an object is missing, head is read again; if it
 * does not have the state any more, everything starts again with one that it has.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"
#include "os/stop.h"
#include "store/store_state.h"
#include "vault/rowmerge.h"
#include "vault/vault.h"
#include "vault/vaultcrew.h"
#include "vault/vaultpoints.h"
#include "vault/vaultrows.h"

#include <pthread.h>
#include <stdio.h>

enum { STARTS_MAX = 50, LOOK_ROWS = 4096 };

/* A file that is being written. */
struct target {
    const struct wb_vault_state_file *source;
    char *path;
    pthread_mutex_t lock;
    struct wb_file file; /* open from its first piece to its last one; protected by the lock, as is left */
    size_t left;         /* pieces that are not in it yet */
};

/* Where the contents of a piece go. */
struct destination {
    struct target *target; /* NULL: rows */
    size_t part;           /* of rows... */
    uint64_t age;          /* ...and which run they are of */
};

struct restore {
    const char *dir;
    int64_t at_ms;
    struct wb_object_store *store;
    struct wb_store_loader *loader;
    struct wb_vaultcrew_progress progress;
    /* Of one start. */
    struct wb_vault_manifest manifest;
    struct wb_vault_point point;
    struct wb_vault_contents contents;
    struct target *targets; /* those that are files, in the order of contents.files */
    size_t target_count;
    WB_VEC(const struct wb_vault_piece *) pieces; /* rows first */
    WB_VEC(struct destination) destinations;      /* of each piece */
    size_t row_pieces;
    struct wb_rowmerge *merge;
    struct wb_vaultcrew *crew;
    uint64_t rows;
    size_t part; /* whose rows are being loaded */
};

/* ---- which pieces go where ------------------------------------------------------------------------------- */

static bool is_written(const struct wb_vault_state_file *file)
{
    return file->file->kind == WB_VAULT_PAGES || file->file->kind == WB_VAULT_OTHER;
}

/* The part whose rows a file is: of "rows/1", 1. */
static size_t part_of(const struct wb_vault_file *file)
{
    size_t part = (size_t)(file->path[strlen(file->path) - 1] - '0');

    WB_CHECK(file->kind == WB_VAULT_ROWS && part < WB_VAULT_PARTS_MAX);
    return part;
}

static int add_piece(struct restore *restore, const struct wb_vault_piece *piece, struct destination destination)
{
    int err = wb_vec_push(&restore->pieces, piece);

    return err < 0 ? err : wb_vec_push(&restore->destinations, destination);
}

static int plan_rows(struct restore *restore)
{
    const struct wb_vault_contents *contents = &restore->contents;
    int err = 0;

    for (size_t i = 0; i < contents->files.count; i++) {
        const struct wb_vault_state_file *file = &contents->files.items[i];
        struct destination destination = {.target = NULL};
        if (file->file->kind != WB_VAULT_ROWS)
            continue;
        destination.part = part_of(file->file);
        for (size_t k = 0; k < file->count && err == 0; k++) {
            const struct wb_vault_piece *piece = contents->pieces.items[file->first + k];
            destination.age += piece->run;
            err = add_piece(restore, piece, destination);
        }
    }
    restore->row_pieces = restore->pieces.count;
    return err;
}

/* Makes the directories and the files without a byte, and plans the pieces of the others. */
static int plan_file(struct restore *restore, const struct wb_vault_state_file *file)
{
    struct target *target = &restore->targets[restore->target_count];
    int err = 0;

    target->path = wb_path_join(restore->dir, file->file->path);
    if (!target->path)
        return WB_E_NOMEM;
    WB_CHECK(pthread_mutex_init(&target->lock, NULL) == 0);
    target->source = file;
    target->file = WB_FILE_INIT;
    target->left = file->count;
    restore->target_count++;
    for (size_t k = 0; k < file->count && err == 0; k++)
        err =
            add_piece(restore, restore->contents.pieces.items[file->first + k], (struct destination){.target = target});
    return err;
}

static int plan(struct restore *restore)
{
    const struct wb_vault_state_files *files = &restore->contents.files;
    int err = plan_rows(restore);

    restore->targets = wb_alloc_zero(files->count ? files->count : 1, sizeof *restore->targets);
    if (!restore->targets)
        return WB_E_NOMEM;
    for (size_t i = 0; i < files->count && err == 0; i++)
        if (is_written(&files->items[i]))
            err = plan_file(restore, &files->items[i]);
    return err;
}

/* Calls make() once for the directory of each file. */
static int each_folder(struct restore *restore, int (*make)(const char *path))
{
    const char *before = NULL;
    size_t before_len = 0;
    int err = 0;

    for (size_t i = 0; i < restore->target_count && err == 0; i++) {
        const char *path = restore->targets[i].path;
        size_t len = (size_t)(strrchr(path, '/') - path);
        if (before && len == before_len && memcmp(before, path, len) == 0)
            continue;
        char *folder = wb_strndup(path, len);
        err = folder ? make(folder) : WB_E_NOMEM;
        wb_free(folder);
        before = path;
        before_len = len;
    }
    return err;
}

/* ---- what threads do with contents ----------------------------------------------------------------------- */

static int take_rows(struct restore *restore, size_t number, struct wb_slice contents)
{
    const struct destination *to = &restore->destinations.items[number];
    const struct wb_vault_object *object = &restore->pieces.items[number]->object;
    char name[WB_OBJECT_NAME_MAX] = "shipment", full[WB_VAULT_MESSAGE_NAME_MAX];
    struct wb_vault_rows_reader reader = {0};
    struct wb_rowrun run;
    int err;

    if (wb_vault_object_is_one(object))
        wb_vault_object_name(WB_VAULT_OBJECTS, object, name);
    wb_vault_full_name(restore->store, name, full);
    wb_rowrun_begin(&run, restore->merge, to->part, to->age);
    wb_vault_rows_read(&reader, full, contents);
    while ((err = wb_vault_rows_next(&reader)) > 0) {
        err = wb_rowrun_add(&run, reader.row.table, reader.row.key, reader.row.value);
        if (err < 0)
            break;
    }
    if (err == 0)
        err = wb_rowrun_end(&run);
    wb_rowrun_release(&run);
    wb_vault_rows_reader_release(&reader);
    return err;
}

static int open_target(struct target *target)
{
    pthread_mutex_lock(&target->lock);
    int err = target->file.fd >= 0
                  ? 0
                  : wb_file_open(target->path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &target->file);
    pthread_mutex_unlock(&target->lock);
    return err;
}

static int finish_target(struct target *target)
{
    int err = wb_file_sync(&target->file);

    wb_file_close(&target->file);
    return err;
}

static int take_piece(void *context, size_t number, struct wb_slice contents)
{
    struct restore *restore = context;
    struct target *target = restore->destinations.items[number].target;
    uint64_t offset = restore->pieces.items[number]->offset;

    if (!target)
        return take_rows(restore, number, contents);
    int err = open_target(target);
    if (err == 0)
        err = wb_file_write_at(&target->file, offset, contents.ptr, contents.len);
    if (err < 0)
        return err;
    wb_file_write_back(&target->file, offset, contents.len);
    pthread_mutex_lock(&target->lock);
    bool last = --target->left == 0;
    pthread_mutex_unlock(&target->lock);
    return last ? finish_target(target) : 0;
}

/* ---- rows and small files -------------------------------------------------------------------------------- */

/* What the store says about rows and small files names no object: they came with this shipment. */
static int name_shipment(const struct restore *restore, int err)
{
    char name[WB_OBJECT_NAME_MAX], full[WB_VAULT_MESSAGE_NAME_MAX];
    struct wb_error_copy why;

    if (err != WB_E_CORRUPT)
        return err;
    wb_error_save(err, &why);
    wb_vault_object_name(WB_VAULT_SHIPMENTS, &restore->point.shipment, name);
    wb_vault_full_name(restore->store, name, full);
    return wb_fail(err, "%.400s does not describe a repository: %.500s", full, why.message);
}

static int load_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    struct restore *restore = context;

    if (restore->rows++ % LOOK_ROWS == 0) {
        if (wb_stop_requested())
            return wb_fail(WB_E_STOPPED, "stopped");
        if (restore->progress.show)
            restore->progress.show(restore->progress.context, wb_vaultcrew_bytes(restore->crew),
                                   restore->progress.total);
    }
    return name_shipment(restore, wb_store_loader_row(restore->loader, restore->part, table, key, value));
}

static int load_rows(struct restore *restore)
{
    int err = 0;

    for (restore->part = 0; restore->part < WB_VAULT_PARTS_MAX && err == 0; restore->part++)
        err = wb_rowmerge_each(restore->merge, restore->part, load_row, restore);
    return err;
}

/* Files of a few bytes that only the store knows how to put. */
static int load_small(struct restore *restore)
{
    const struct wb_vault_contents *contents = &restore->contents;
    struct wb_buf whole = WB_BUF_INIT, bytes = WB_BUF_INIT, mem = WB_BUF_INIT;
    int err = 0;

    for (size_t i = 0; i < contents->files.count && err == 0; i++) {
        const struct wb_vault_state_file *file = &contents->files.items[i];
        if (file->file->kind != WB_VAULT_SMALL)
            continue;
        wb_buf_clear(&whole);
        for (size_t k = 0; k < file->count && err == 0; k++) {
            struct wb_slice got;
            err = wb_vault_fetch_piece(restore->store, contents->pieces.items[file->first + k], &bytes, &mem, &got);
            if (err == 0)
                err = wb_buf_append_slice(&whole, got);
        }
        if (err == 0)
            err = name_shipment(restore,
                                wb_store_loader_small(restore->loader, file->file->path, wb_buf_slice(&whole)));
    }
    wb_buf_release(&whole);
    wb_buf_release(&bytes);
    wb_buf_release(&mem);
    return err;
}

/* Files that no piece belongs to. */
static int write_empty_files(struct restore *restore)
{
    int err = 0;

    for (size_t i = 0; i < restore->target_count && err == 0; i++) {
        struct target *target = &restore->targets[i];
        err = target->left == 0 ? open_target(target) : 0;
        if (err == 0 && target->left == 0)
            err = finish_target(target);
    }
    return err;
}

/* ---- one start ------------------------------------------------------------------------------------------- */

static void release_start(struct restore *restore)
{
    wb_vaultcrew_end(restore->crew);
    restore->crew = NULL;
    wb_rowmerge_free(restore->merge);
    restore->merge = NULL;
    for (size_t i = 0; i < restore->target_count; i++) {
        wb_file_close(&restore->targets[i].file);
        pthread_mutex_destroy(&restore->targets[i].lock);
        wb_free(restore->targets[i].path);
    }
    wb_free(restore->targets);
    restore->targets = NULL;
    restore->target_count = 0;
    wb_vec_release(&restore->pieces);
    wb_vec_release(&restore->destinations);
    wb_vault_contents_release(&restore->contents);
    wb_vault_manifest_release(&restore->manifest);
    memset(&restore->manifest, 0, sizeof restore->manifest);
    memset(&restore->contents, 0, sizeof restore->contents);
}

/* Everything but the last step, which makes it visible. */
static int fill(struct restore *restore)
{
    struct wb_vaultcrew_sink sink = {.take = take_piece, .context = restore};
    int err = plan(restore);

    restore->progress.total = restore->contents.stored;
    if (err == 0)
        err = each_folder(restore, wb_path_mkdirs);
    if (err == 0)
        err = wb_rowmerge_new(restore->dir, &restore->merge);
    if (err == 0)
        err = write_empty_files(restore);
    if (err == 0)
        err = wb_vaultcrew_start(restore->store, restore->pieces.items, restore->pieces.count, &sink, &restore->crew);
    if (err == 0)
        err = load_small(restore);
    if (err == 0)
        err = wb_vaultcrew_wait(restore->crew, restore->row_pieces, &restore->progress);
    if (err == 0)
        err = load_rows(restore);
    if (err == 0)
        err = wb_vaultcrew_wait(restore->crew, restore->pieces.count, &restore->progress);
    return err < 0 ? err : each_folder(restore, wb_path_sync_dir);
}

/* Whether the vault by now has lost the state that this start wants; or, if it has not even found one, has another
 * head. */
static bool is_outdated(struct restore *restore, const struct wb_vault_head *before)
{
    struct wb_error_copy error;
    struct wb_vault_head head;
    struct wb_vault_manifest manifest;
    bool outdated = false;

    wb_error_save(WB_E_NOTFOUND, &error);
    if (wb_vault_fetch_head(restore->store, &head) == 0 && !wb_vault_object_equal(&head.shipment, &before->shipment)) {
        outdated = true;
        if (restore->point.number && wb_vault_fetch_manifest(restore->store, &head, &manifest) == 0)
            outdated = !wb_vault_has_point(&manifest, &restore->point);
        wb_vault_manifest_release(&manifest);
    }
    wb_error_restore(&error);
    return outdated;
}

/* *again_out: the state has expired meanwhile, so nothing is wrong with the vault. */
static int start(struct restore *restore, bool *again_out)
{
    struct wb_vault_head head;
    char full[WB_VAULT_MESSAGE_NAME_MAX];
    int err = wb_vault_fetch_head(restore->store, &head);

    *again_out = false;
    memset(&restore->point, 0, sizeof restore->point);
    restore->rows = 0;
    if (err < 0)
        return err;
    err = wb_vault_fetch_manifest(restore->store, &head, &restore->manifest);
    if (err == 0)
        err = wb_vault_choose_point(restore->store, &restore->manifest, restore->at_ms, &restore->point);
    bool chosen = err == 0;
    if (err == 0) {
        wb_vault_full_name(restore->store, WB_VAULT_HEAD_NAME, full);
        err = wb_vault_contents_at(&restore->manifest, full, restore->point.number, &restore->contents);
    }
    if (err == 0)
        err = fill(restore);
    wb_vaultcrew_end(restore->crew);
    restore->crew = NULL;
    if (err == WB_E_NOTFOUND && (chosen || restore->manifest.number == 0))
        *again_out = is_outdated(restore, &head);
    return err;
}

/* Makes the repository, or leaves nothing. */
static int start_and_finish(struct restore *restore, bool *again_out)
{
    struct wb_error_copy error;
    int err = wb_store_loader_open(restore->dir, &restore->loader);

    *again_out = false;
    if (err < 0)
        return err;
    err = start(restore, again_out);
    if (err == 0)
        err = name_shipment(restore, wb_store_loader_finish(restore->loader));
    if (err == WB_E_STOPPED)
        wb_fail(err, "stopped by a signal; nothing was restored to %s", restore->dir);
    wb_error_save(err, &error);
    if (err < 0)
        release_start(restore);
    wb_store_loader_close(restore->loader);
    restore->loader = NULL;
    return err < 0 ? wb_error_restore(&error) : 0;
}

static uint64_t bytes_written(const struct restore *restore)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < restore->contents.files.count; i++)
        if (restore->contents.files.items[i].file->kind != WB_VAULT_ROWS)
            bytes += restore->contents.files.items[i].bytes;
    return bytes;
}

int wb_vault_restore(const char *url, const char *dir, int64_t at_ms,
                     void (*progress)(void *context, uint64_t bytes_done, uint64_t bytes_total), void *context,
                     struct wb_vault_restored *restored_out)
{
    struct wb_object_options options = {.stoppable = true};
    struct restore restore = {.dir = dir, .at_ms = at_ms, .progress = {.show = progress, .context = context}};
    bool again = true;

    *restored_out = (struct wb_vault_restored){0};
    int err = wb_object_url_check(url);
    if (err == 0)
        err = wb_object_open(url, &options, &restore.store);
    for (int i = 0; i < STARTS_MAX && err == 0 && again; i++) {
        err = start_and_finish(&restore, &again);
        err = again && i + 1 < STARTS_MAX ? 0 : err;
    }
    if (err == 0)
        *restored_out = (struct wb_vault_restored){.pages = restore.point.pages, .bytes = bytes_written(&restore)};
    release_start(&restore);
    wb_object_close(restore.store);
    return err;
}
