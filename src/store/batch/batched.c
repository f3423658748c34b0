/*
 * batched.c - repositories of a batch design: creating, opening, closing, verifying, and the calls that go to one of
 * the two parts as they are. batched.h has the picture. It never looks at a page.
 */
#include "store/batch/batched.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"

#include <stdio.h>

/* ---- the two parts --------------------------------------------------------------------------------------- */

/* A part of the design as a design of its own. */
static struct wb_design part_design(const struct wb_design_part *part)
{
    return (struct wb_design){.read = *part};
}

/* What the part in the repository's directory takes for its superblock. */
static struct wb_superblock read_superblock(const struct wb_superblock *superblock)
{
    struct wb_superblock part = *superblock;

    WB_CHECK(superblock->design.batch);
    part.design = part_design(&superblock->design.read);
    return part;
}

struct wb_repo *wb_batched_read_log(struct wb_batched *batch)
{
    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    return wb_repo_of(batch->read);
}

struct wb_repo *wb_batched_update_log(struct wb_batched *batch)
{
    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    WB_CHECK(batch->update != NULL);
    return wb_repo_of(batch->update);
}

/* ---- creating ---------------------------------------------------------------------------------------------- */

static int refuse_pages(void *context, const struct wb_path_entry *entry)
{
    WB_CHECK(context != NULL);
    WB_CHECK(entry->name != NULL);
    return wb_fail(WB_E_INVALID, "%s holds pages (%s), but the repository around it has no %s: nothing was changed",
                   (const char *)context, entry->name, WB_SUPERBLOCK_NAME);
}

/* An interrupted creation may have made the update part. Nobody has used it, because there was no repository. */
static int drop_unfinished(const char *dir)
{
    WB_CHECK(dir != NULL);
    char *pages = wb_path_join(dir, WB_SEGMENT_DIR), *superblock = wb_path_join(dir, WB_SUPERBLOCK_NAME);
    int err = pages && superblock ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(pages) == WB_PATH_DIR)
        err = wb_path_each(pages, refuse_pages, (void *)(uintptr_t)dir);
    if (err == 0)
        err = wb_path_unlink(superblock);
    wb_free(pages);
    wb_free(superblock);
    return err;
}

/* It has the id of the repository, to which it belongs: so equal contents have equal hashes in both parts. */
static int create_update(const char *dir, const struct wb_superblock *superblock,
                         const struct wb_store_options *options)
{
    struct wb_superblock part = *superblock;
    struct wb_store_options there = {.history = options->history,
                                     .nodes = options->update_nodes,
                                     .first_node = WB_BATCHED_FIRST_NODE};
    char *path = wb_path_join(dir, WB_BATCHED_UPDATE_DIR);
    int err = path ? 0 : WB_E_NOMEM;

    WB_CHECK(superblock->design.batch);
    part.design = there.design = part_design(&superblock->design.update);
    if (err == 0 && wb_store_exists(path))
        err = drop_unfinished(path);
    if (err == 0)
        err = wb_path_mkdirs(path);
    if (err == 0)
        err = wb_organisation_find(&part.design)->create(path, &part, &there);
    if (err == 0)
        err = wb_superblock_write(path, &part);
    wb_free(path);
    return err;
}

static int batch_create(const char *dir, const struct wb_superblock *superblock, const struct wb_store_options *options)
{
    struct wb_superblock part = read_superblock(superblock);
    struct wb_store_options read = *options;
    const struct wb_organisation *organisation = wb_organisation_find(&part.design);

    WB_CHECK(organisation != NULL);
    WB_CHECK(!part.design.batch);
    read.design = part.design;
    read.update_nodes = (struct wb_store_node_list){0};
    int err = organisation->create(dir, &part, &read);
    if (err == 0)
        err = create_update(dir, superblock, options);
    return err < 0 ? err : wb_batched_gate_create(dir);
}

/* ---- opening and closing ------------------------------------------------------------------------------------ */

int wb_batched_open_update(struct wb_batched *batch)
{
    char *path;
    int err;

    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    if (batch->update)
        return 0;
    path = wb_path_join(batch->dir, WB_BATCHED_UPDATE_DIR);
    err = path ? wb_store_open(path, batch->store.mode, &batch->update) : WB_E_NOMEM;
    if (err == 0) {
        wb_batched_update_log(batch)->nodes.first = WB_BATCHED_FIRST_NODE;
        wb_batched_update_log(batch)->base = wb_batched_read_log(batch);
    }
    wb_free(path);
    return err;
}

static void batch_close(struct wb_store *store)
{
    struct wb_batched *batch = wb_batched_of(store);

    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    wb_store_close(batch->update);
    wb_store_close(batch->read);
    wb_free(batch->dir);
    wb_store_release(store);
    batch->magic = 0;
    wb_free(batch);
}

static const struct wb_store_ops batch_ops;

static int batch_open(const char *dir, const struct wb_superblock *superblock, enum wb_store_mode mode,
                      struct wb_store **store_out)
{
    struct wb_batched *batch = wb_alloc_zero(1, sizeof *batch);
    struct wb_superblock part = read_superblock(superblock);
    const struct wb_organisation *organisation = wb_organisation_find(&part.design);
    int err;

    WB_CHECK(organisation != NULL);
    *store_out = NULL;
    if (!batch)
        return WB_E_NOMEM;
    wb_store_init(&batch->store, mode, &batch_ops);
    batch->magic = WB_BATCHED_MAGIC;
    batch->superblock = *superblock;
    batch->dir = wb_strdup(dir);
    err = batch->dir ? organisation->open(dir, &part, mode, &batch->read) : WB_E_NOMEM;
    if (err == 0)
        wb_batched_read_log(batch)->nodes.last = WB_BATCHED_FIRST_NODE - 1;
    if (err == 0 && mode == WB_STORE_WRITE)
        err = wb_batched_open_update(batch);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        batch_close(&batch->store);
        return wb_error_restore(&why);
    }
    *store_out = &batch->store;
    return 0;
}

/* ---- verifying ----------------------------------------------------------------------------------------------- */

/* Puts the directory before the names of the files. */
void wb_batched_pass_update(void *context, const struct wb_store_finding *finding)
{
    const struct wb_batched_found *p = context;
    struct wb_store_finding prefixed = *finding;
    char name[512];

    WB_CHECK(finding->file != NULL);
    if (!p->found)
        return;
    snprintf(name, sizeof name, WB_BATCHED_UPDATE_DIR "/%s", finding->file);
    prefixed.file = name;
    p->found(p->context, &prefixed);
}

static int batch_verify(const char *dir, const struct wb_superblock *superblock, wb_store_found found,
                        void *found_context, wb_store_progress progress, void *progress_context,
                        struct wb_store_verify_counts *counts_out)
{
    struct wb_superblock part = read_superblock(superblock);
    struct wb_batched_found prefixed = {found, found_context};
    struct wb_store_verify_counts there = {0};
    char *path = wb_path_join(dir, WB_BATCHED_UPDATE_DIR);
    int err = path ? wb_organisation_find(&part.design)
                         ->verify(dir, &part, found, found_context, progress, progress_context, counts_out)
                   : WB_E_NOMEM;

    WB_CHECK(superblock->design.batch);
    if (err == 0)
        err = wb_store_verify(path, wb_batched_pass_update, &prefixed, progress, progress_context, &there);
    if (err == WB_E_NOTFOUND) { /* it belongs to the repository */
        there.problems++;
        wb_batched_pass_update(&prefixed, &(struct wb_store_finding){true, WB_SUPERBLOCK_NAME, 0, wb_error_message()});
        err = 0;
    }
    counts_out->problems += there.problems;
    counts_out->notes += there.notes;
    wb_free(path);
    return err;
}

/* ---- calls that are passed on ---------------------------------------------------------------------------- */

static int batch_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site)
{
    return wb_store_barred(wb_batched_of(store)->read, id, site);
}

static int batch_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar),
                          void *context)
{
    return wb_store_bar_each(wb_batched_of(store)->read, each, context);
}

static int batch_bar_version(struct wb_store *store, uint64_t *version_out)
{
    return wb_store_bar_version(wb_batched_of(store)->read, version_out);
}

static int batch_seal(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                      struct wb_store_snapshot *snapshot_out)
{
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(store, &ignored);

    return err < 0 ? err : wb_store_seal(wb_batched_of(store)->read, name, holder, snapshot_out);
}

static int batch_drop(struct wb_store *store, uint32_t number)
{
    return wb_store_drop(wb_batched_of(store)->read, number);
}

static int batch_hold(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    return wb_store_hold(wb_batched_of(store)->read, number, holder);
}

static int batch_let_go(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    return wb_store_let_go(wb_batched_of(store)->read, number, holder);
}

static int batch_snapshot_each(struct wb_store *store,
                               int (*each)(void *context, const struct wb_store_snapshot *snapshot), void *context)
{
    return wb_store_snapshot_each(wb_batched_of(store)->read, each, context);
}

static int batch_history(struct wb_store *store, struct wb_store_history *history_out)
{
    return wb_store_history(wb_batched_of(store)->read, history_out);
}

static int batch_set_history(struct wb_store *store, const struct wb_store_history *history)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(store, &ignored);

    if (err == 0)
        err = wb_store_set_history(batch->update, history);
    return err < 0 ? err : wb_store_set_history(batch->read, history);
}

static int batch_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t count,
                          const struct wb_store_when *when, wb_store_each_page each, void *context)
{
    return wb_store_get_many(wb_batched_of(store)->read, ids, count, when, each, context);
}

static int batch_position_compare(const struct wb_store_position *a, const struct wb_store_position *b)
{
    return wb_disk_scan_position_compare(a, b);
}

/* ---- the repository as a whole ------------------------------------------------------------------------------- */

static int batch_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_catalog_summary waiting = {0};
    struct wb_store_stat there;
    uint64_t outside = 0;
    int err = wb_batched_open_update(batch);

    if (err == 0)
        err = wb_store_stat(batch->read, stat_out);
    if (err == 0)
        err = wb_store_stat(batch->update, &there);
    if (err == 0)
        err = wb_repo_summary(wb_batched_update_log(batch), &waiting);
    if (err == 0)
        err = wb_batched_outside_bytes(batch, &outside);
    if (err < 0)
        return err;
    WB_CHECK(batch->superblock.design.batch);
    stat_out->design = batch->superblock.design;
    stat_out->pages_waiting = waiting.pages + waiting.gone;
    stat_out->nodes += there.nodes;
    stat_out->revisits += there.revisits;
    stat_out->files += there.files;
    stat_out->bytes_dead += there.bytes_dead;
    stat_out->bytes_stored += outside; /* the directory of the update part is in it already */
    return 0;
}

static int batch_scan_check(struct wb_store *store, const struct wb_store_scan_options *options)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return wb_store_scan_check(wb_batched_of(store)->read, options);
}

static const struct wb_store_ops batch_ops = {
    .close = batch_close,
    .put = wb_batched_put,
    .touch = wb_batched_touch,
    .remove = wb_batched_remove,
    .put_revisit = wb_batched_put_revisit,
    .get_revisit = wb_batched_get_revisit,
    .waiting_each = wb_batched_waiting_each,
    .bar = wb_batched_bar,
    .allow = wb_batched_allow,
    .barred = batch_barred,
    .bar_each = batch_bar_each,
    .bar_version = batch_bar_version,
    .list_site = wb_batched_list_site,
    .commit = wb_batched_commit,
    .seal = batch_seal,
    .drop = batch_drop,
    .hold = batch_hold,
    .let_go = batch_let_go,
    .snapshot_each = batch_snapshot_each,
    .history = batch_history,
    .set_history = batch_set_history,
    .timeline = wb_batched_timeline,
    .get = wb_batched_get,
    .get_many = batch_get_many,
    .time = wb_batched_time,
    .scan_open = wb_batched_scan_open,
    .scan_ready = wb_batched_scan_ready,
    .scan_check = batch_scan_check,
    .scan_next = wb_batched_scan_next,
    .scan_parcel = wb_batched_scan_parcel,
    .scan_tell = wb_batched_scan_tell,
    .position_compare = batch_position_compare,
    .scan_holds = wb_batched_scan_holds,
    .scan_close = wb_batched_scan_close,
    .stat = batch_stat,
    .node_each = wb_batched_node_each,
};

bool wb_batched_is(const struct wb_store *store)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return store->ops == &batch_ops;
}

struct wb_batched *wb_batched_of(struct wb_store *store)
{
    struct wb_batched *batch = (struct wb_batched *)store;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(store->ops == &batch_ops);
    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    return batch;
}

static const char *const batch_files[] = {WB_CATALOG_NAME, WB_SEGMENT_DIR, WB_BATCHED_UPDATE_DIR, WB_BATCHED_GATE_NAME,
                                          NULL};

const struct wb_organisation wb_organisation_batch = {
    .name = "batch",
    .files = batch_files,
    .create = batch_create,
    .open = batch_open,
    .verify = batch_verify,
};
