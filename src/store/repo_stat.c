/*
 * repo_stat.c - the catalog at a glance: all segment rows at once, and the statistics of
 * the repository. It reads no page and changes nothing.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/repo.h"

/* ---- the catalog's state ------------------------------------------------------------------------ */

struct summary_read {
    struct wb_repo *repo;
    struct wb_catalog_summary *summary;
};

static int read_summary(void *context)
{
    struct summary_read *r = context;

    WB_CHECK(r->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(r->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_summary_get(&r->repo->reader, r->summary);
}

int wb_repo_summary(struct wb_repo *repo, struct wb_catalog_summary *summary_out)
{
    WB_CHECK(repo->reader.kind == WB_CATALOG_TXN_PARKED);
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    *summary_out = (struct wb_catalog_summary){0};
    return wb_repo_read(repo, read_summary, &(struct summary_read){repo, summary_out});
}

/* ---- statistics ---------------------------------------------------------------------------------- */

struct disk_usage {
    const char *dir;
    uint64_t bytes;
};

static int disk_bytes(const char *dir, uint64_t *bytes_inout);

/* Adds everything in the directory and below it, including the files of other rooms. */
static int add_disk_bytes(void *context, const struct wb_path_entry *entry)
{
    struct disk_usage *usage = context;
    char *path = wb_path_join(usage->dir, entry->name);
    int err = path ? 0 : WB_E_NOMEM;

    WB_CHECK(usage->dir != NULL);
    WB_CHECK(entry->name != NULL);
    if (err == 0 && entry->kind == WB_PATH_FILE)
        usage->bytes += wb_path_disk_bytes(path);
    else if (err == 0 && entry->kind == WB_PATH_DIR)
        err = disk_bytes(path, &usage->bytes);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err; /* it was removed while we were looking */
}

static int disk_bytes(const char *dir, uint64_t *bytes_inout)
{
    WB_CHECK(dir != NULL);
    struct disk_usage usage = {dir, *bytes_inout};
    int err = wb_path_each(dir, add_disk_bytes, &usage);

    WB_CHECK(usage.bytes >= *bytes_inout);
    *bytes_inout = usage.bytes;
    return err;
}

/* Everything in the repository's directory, and in nodes that are elsewhere. Of a node that is down, nothing is known.
 */
static int count_stored(struct wb_repo *repo, struct wb_store_stat *stat)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    int err = disk_bytes(repo->dir, &stat->bytes_stored);

    for (size_t i = 0; i < wb_nodes_count(&repo->nodes) && err == 0; i++) {
        bool inside = repo->nodes.items.count == 0 || repo->nodes.items.items[i].row.inside;
        struct wb_repo_usage usage;
        err = wb_repo_node_usage(repo, wb_nodes_number(&repo->nodes, i), &usage);
        stat->bytes_stored += inside ? 0 : usage.bytes;
        stat->bytes_dead += usage.retired;
        err = wb_nodes_failed(&repo->nodes, err) ? 0 : err;
    }
    return err;
}

int wb_repo_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_repo_readable readable = {0};
    struct wb_overview o = {0};
    int err = wb_pagefile_overview(&repo->files, &o);

    WB_CHECK(stat_out->pages == 0);
    if (err == 0)
        err = wb_repo_count_readable(repo, &readable);
    if (err < 0) {
        wb_catalog_rows_release(&o.rows);
        return err;
    }
    *stat_out = (struct wb_store_stat){
        .pages = o.summary.pages,
        .sites = o.summary.sites,
        .versions = readable.versions,
        .captures = readable.captures,
        .snapshots = readable.snapshots,
        .revisits = o.summary.revisits,
        .bars = o.summary.bars,
        .bytes_pages = o.summary.bytes_pages,
        .files = o.rows.count,
        .epoch = o.summary.epoch,
        .snapshot = o.summary.snapshot,
        .history = o.summary.history,
        .design = repo->superblock.design,
        .nodes = wb_nodes_count(&repo->nodes),
    };
    uint64_t bytes = 0, dead = readable.bytes_dead; /* an estimate of the same kind */
    for (size_t i = 0; i < o.rows.count; i++) {
        bytes += o.rows.items[i].bytes;
        dead += wb_catalog_segment_dead(&o.rows.items[i]);
    }
    stat_out->bytes_dead = dead < bytes ? dead : bytes;
    wb_catalog_rows_release(&o.rows);
    return count_stored(repo, stat_out);
}
