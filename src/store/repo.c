/*
 * repo.c - the engine behind all incremental designs: creating, opening and closing a repository.
 * repo_get.c reads single pages, repo_write.c and the files after it write them.
 */
#include "store/repo.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"
#include "place/place.h"

#include <stdio.h>

static void log_close(struct wb_store *store);

static const struct wb_store_ops log_ops = {
    .close = log_close,
    .put = wb_repo_put,
    .touch = wb_repo_touch,
    .remove = wb_repo_remove,
    .put_revisit = wb_repo_put_revisit,
    .get_revisit = wb_repo_get_revisit,
    .waiting_each = wb_repo_waiting_each,
    .bar = wb_repo_bar,
    .allow = wb_repo_allow,
    .barred = wb_repo_barred,
    .bar_each = wb_repo_bar_each,
    .bar_version = wb_repo_bar_version,
    .list_site = wb_repo_list_site,
    .commit = wb_repo_commit,
    .seal = wb_repo_seal,
    .drop = wb_repo_drop,
    .hold = wb_repo_hold,
    .let_go = wb_repo_let_go,
    .snapshot_each = wb_repo_snapshot_each,
    .history = wb_repo_history,
    .set_history = wb_repo_set_history,
    .timeline = wb_repo_timeline,
    .get = wb_repo_get,
    .get_many = wb_repo_get_many,
    .time = wb_repo_time,
    .scan_open = wb_disk_scan_open,
    .scan_next = wb_disk_scan_next,
    .scan_parcel = wb_disk_scan_parcel,
    .scan_tell = wb_disk_scan_tell,
    .position_compare = wb_disk_scan_position_compare,
    .scan_check = wb_disk_scan_check,
    .scan_holds = wb_disk_scan_holds,
    .scan_close = wb_disk_scan_close,
    .stat = wb_repo_stat,
    .node_each = wb_repo_node_each,
};

_Static_assert(offsetof(struct wb_repo, store) == 0, "a wb_store of this organisation is a wb_repo");

bool wb_repo_is(const struct wb_store *store)
{
    WB_CHECK(store->magic == WB_STORE_MAGIC);
    return store->ops == &log_ops;
}

struct wb_repo *wb_repo_of(struct wb_store *store)
{
    struct wb_repo *repo = (struct wb_repo *)store;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(store->ops == &log_ops);
    return repo;
}

struct wb_repo *wb_repo_of_writer(struct wb_store *store)
{
    struct wb_repo *repo = wb_repo_of(store);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(repo->writer);
    WB_CHECK(repo->writer->magic == WB_REPO_WRITER_MAGIC);
    return repo;
}

/* ---- creating and opening --------------------------------------------------------------- */

/* The first transaction: the summary, and the nodes. Their directories follow when it is on disk, with its name. */
static int write_first_rows(const char *dir, const struct wb_superblock *superblock, struct wb_catalog *catalog,
                            const struct wb_store_options *options)
{
    WB_CHECK(catalog != NULL);
    /* What waits on update nodes has not arrived. */
    uint64_t epoch = options->first_node > 1 ? WB_HISTORY_COMING : 1;
    struct wb_catalog_summary summary = {.epoch = epoch, .next_segment = 1, .history = options->history};
    struct wb_nodes_made made = {0};
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(catalog, &txn);

    WB_CHECK(options->history.keep <= WB_STORE_KEEP_DURATION);
    if (err == 0)
        err = wb_catalog_summary_put(&txn, &summary);
    if (err == 0 && wb_nodes_have_rows(options))
        err = wb_nodes_plan(dir, options, &txn, &made);
    if (err == 0)
        err = wb_catalog_txn_commit(&txn);
    wb_catalog_txn_abort(&txn);
    if (err == 0)
        err = wb_path_sync_dir(dir);
    if (err == 0 && made.count)
        err = wb_nodes_make(dir, superblock, &made);
    wb_vec_release(&made);
    return err;
}

/* Segments without a superblock are not leftovers: somebody lost the superblock, and the pages are still there. */
static int refuse_segment(void *context, const struct wb_path_entry *entry)
{
    WB_CHECK(context != NULL);
    WB_CHECK(entry->name != NULL);
    return wb_fail(WB_E_INVALID, "%s holds segments (%s) but no %s: nothing was changed", (const char *)context,
                   entry->name, WB_SUPERBLOCK_NAME);
}

static int log_create(const char *dir, const struct wb_superblock *superblock, const struct wb_store_options *options)
{
    struct wb_catalog *catalog = NULL;
    char *pages = wb_path_join(dir, WB_SEGMENT_DIR);
    int err;

    if (!pages)
        return WB_E_NOMEM;
    err = wb_nodes_have_rows(options) ? 0 : wb_path_mkdirs(pages);
    if (err == 0 && wb_path_kind(pages) != WB_PATH_NONE)
        err = wb_path_each(pages, refuse_segment, (void *)(uintptr_t)dir);
    /* A catalog that an interrupted creation left is replaced. Nobody has used it, because there was no superblock. */
    if (err == 0)
        err = wb_catalog_open(dir, WB_TREE_CREATE, &catalog);
    if (err == 0)
        err = write_first_rows(dir, superblock, catalog, options);
    wb_catalog_close(catalog);
    wb_free(pages);
    return err;
}

int wb_repo_open_catalog(struct wb_repo *repo)
{
    enum wb_tree_mode mode = repo->store.mode == WB_STORE_WRITE ? WB_TREE_WRITE : WB_TREE_READ;
    struct wb_catalog *catalog;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->reader.kind <= WB_CATALOG_TXN_PARKED);
    int err = wb_catalog_open(repo->dir, mode, &catalog);
    if (err < 0)
        return err;
    wb_catalog_close(repo->catalog);
    repo->catalog = repo->files.catalog = catalog;
    wb_catalog_txn_init(catalog, &repo->reader);
    WB_CHECK(repo->reader.kind == WB_CATALOG_TXN_PARKED);
    return 0;
}

struct rollback_check {
    struct wb_repo *repo;
    struct wb_catalog_rows rows;
    struct wb_catalog_summary summary;
};

/* Reads the summary again, from what is now the newest state. */
static int refresh_summary(struct wb_repo *repo, struct wb_catalog_summary *summary_out)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    wb_catalog_txn_park(&repo->reader);
    int err = wb_catalog_txn_wake(&repo->reader);
    return err < 0 ? err : wb_catalog_summary_get(&repo->reader, summary_out);
}

/* A seal that is newer than the catalog proves that the catalog has lost commits. */
static int check_seal(struct rollback_check *c, const struct wb_catalog_segment *row)
{
    struct wb_pagefile *files = &c->repo->files;
    char name[WB_SEGMENT_NAME_MAX];
    uint64_t sealed_at;
    int err = 0;

    WB_CHECK(c->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(row->number > 0);
    files->kind->sealed_at(files, row, &sealed_at);
    if (sealed_at > c->summary.commit) /* a writer may have committed and left since we read the summary */
        err = refresh_summary(c->repo, &c->summary);
    if (err < 0 || sealed_at <= c->summary.commit)
        return err;
    files->kind->name(row->number, row->revision, name);
    return wb_fail(WB_E_CORRUPT, "%s is damaged: it is at commit %llu, but %s was sealed at commit %llu",
                   wb_catalog_path(c->repo->catalog), (unsigned long long)c->summary.commit, name,
                   (unsigned long long)sealed_at);
}

/*
 * A catalog that was restored from a backup is intact, but knows nothing of later
 * commits; the same is true if the newest root record was lost in a crash. The
 * repository would silently go back in time. The seals in the newest segments know
 * which commit the catalog had reached.
 */
static int check_not_rolled_back(void *context)
{
    struct rollback_check *c = context;
    int err = wb_catalog_summary_get(&c->repo->reader, &c->summary);

    WB_CHECK(c->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(c->repo->writer == NULL);
    c->repo->commit_at_open = c->summary.commit;
    c->rows = (struct wb_catalog_rows){0};
    if (err == 0)
        err = wb_catalog_rows_read(&c->repo->reader, &c->rows);
    for (size_t i = c->rows.count; err == 0 && i > 0 && i + WB_PAGEFILE_SEALED_MAX > c->rows.count; i--)
        err = check_seal(c, &c->rows.items[i - 1]);
    wb_catalog_rows_release(&c->rows);
    return err;
}

/* Lends the files what they need of the repository. */
static int open_files(struct wb_repo *repo)
{
    repo->files.dir = repo->dir;
    repo->files.superblock = &repo->superblock;
    repo->files.catalog = repo->catalog;
    repo->files.reader = &repo->reader;
    repo->files.nodes = &repo->nodes;
    repo->files.busy = &repo->busy;
    repo->files.write = repo->store.mode == WB_STORE_WRITE;
    return wb_pagefile_init(&repo->files);
}

/* What an interrupted commit has left in files. */
static int repair_files(struct wb_repo *repo)
{
    struct wb_pagefile *files = &repo->files;
    int err = files->kind->repair ? files->kind->repair(files) : 0;

    if (err == 0 && files->replaced)
        err = wb_pagefile_purge(files);
    files->replaced = false;
    wb_repo_decide(repo);
    return err;
}

static _Atomic uint64_t handles; /* so many were opened in this process */

static int log_open(const char *dir, const struct wb_superblock *superblock, enum wb_store_mode mode,
                    struct wb_store **store_out)
{
    struct wb_repo *repo = wb_alloc_zero(1, sizeof *repo);
    struct rollback_check check = {.repo = repo};
    int err;

    *store_out = NULL;
    if (!repo)
        return WB_E_NOMEM;
    wb_store_init(&repo->store, mode, &log_ops);
    repo->magic = WB_REPO_MAGIC;
    repo->number = ++handles;
    repo->superblock = *superblock;
    repo->content_seed = wb_hash64(superblock->id, sizeof superblock->id);
    repo->dir = wb_strdup(dir);
    wb_nodes_init(&repo->nodes, repo->dir ? repo->dir : dir, &repo->superblock);
    err = repo->dir ? wb_busy_init(&repo->busy, repo->dir) : WB_E_NOMEM;
    if (err == 0)
        err = wb_repo_open_catalog(repo);
    if (err == 0)
        err = open_files(repo);
    if (err == 0)
        err = wb_repo_read(repo, check_not_rolled_back, &check);
    if (err == 0 && mode == WB_STORE_WRITE)
        err = wb_repo_recover(repo);
    if (err == 0 && mode == WB_STORE_WRITE)
        err = wb_repo_writer_new(repo);
    if (err == 0 && mode == WB_STORE_WRITE)
        err = repair_files(repo);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        log_close(&repo->store);
        return wb_error_restore(&why);
    }
    WB_CHECK((mode == WB_STORE_WRITE) == (repo->writer != NULL));
    *store_out = &repo->store;
    return 0;
}

static void log_close(struct wb_store *store)
{
    struct wb_repo *repo = wb_repo_of(store);

    WB_CHECK(repo->reader.kind <= WB_CATALOG_TXN_PARKED);
    wb_repo_writer_free(repo);
    wb_pagefile_release(&repo->files);
    wb_catalog_close(repo->catalog);
    wb_site_names_release(&repo->sites);
    wb_nodes_release(&repo->nodes);
    wb_busy_release(&repo->busy);
    wb_free(repo->dir);
    wb_store_release(&repo->store);
    repo->magic = 0;
    wb_free(repo);
}

static const char *const log_files[] = {WB_CATALOG_NAME, WB_SEGMENT_DIR, NULL};

const struct wb_organisation wb_organisation_log = {
    .name = "log",
    .files = log_files,
    .create = log_create,
    .open = log_open,
    .verify = wb_repo_verify,
};
