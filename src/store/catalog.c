/*
 * catalog.c - the LMDB environment behind the catalog: opening, transactions,
 * growth, faults. What the rows mean is in catalog_rows.c.
 *
 * An environment may be open only once in a process, so handles share one through
 * a list. The map is set far larger than any catalog (LMDB never allocates it, it
 * only reserves addresses), and halved until the system accepts it: the catalog
 * has no configured limit.
 */
#include "store/catalog.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/guard.h"
#include "os/mapping.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    READERS_MAX = 510, /* 64 bytes each in the lock file */
    TRIM_BYTES = 96 << 20, /* from this size on the map is dropped from memory again and again */
    TICKS_PER_TRIM = 2048, /* a page touched maps up to 64 KB of the file around it */
};

#define MAP_BYTES_FIRST ((size_t)16 << 40)
#define MAP_BYTES_LEAST ((size_t)64 << 20)

struct wb_catalog {
    struct wb_catalog *next;
    unsigned references;
    char *path;
    dev_t device;
    ino_t inode;
    bool writable;
    bool broken;
    atomic_uint ticks;
    void *map; /* NULL: not yet found */
    MDB_env *env;
    MDB_dbi dbi[WB_TABLE_COUNT];
};

static const char *const table_names[WB_TABLE_COUNT] = {"pages", "old", "segments", "sites", "revisits", "retired", "state", "bars"};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wb_catalog *list;

/* LMDB says EIO when a write was cut short, which is what a full disk and `ulimit -f` do. */
static int reason_of_short_write(const char *path)
{
    struct rlimit limit;

    if (wb_path_disk_full(path))
        return ENOSPC;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? EFBIG : EIO;
}

int wb_catalog_fail(const struct wb_catalog *catalog, int lmdb_error)
{
    WB_CHECK(lmdb_error != 0);
    switch (lmdb_error) {
    case MDB_NOTFOUND:
        return wb_fail(WB_E_NOTFOUND, "not in %s", catalog->path);
    case ENOMEM:
        return wb_fail_nomem();
    case EROFS:
    case EACCES:
    case ENOSPC:
    case EIO:
    case EDQUOT:
        errno = lmdb_error == EIO ? reason_of_short_write(catalog->path) : lmdb_error;
        return wb_fail_errno("cannot write %s", catalog->path);
    case MDB_MAP_FULL:
    case MDB_READERS_FULL:
    case MDB_TXN_FULL:
        return wb_fail(WB_E_LIMIT, "%s: %s", catalog->path, mdb_strerror(lmdb_error));
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case EAGAIN:
        /* A limit of this process or of the system, not damage. */
        errno = lmdb_error;
        return wb_fail_errno("cannot use %s", catalog->path);
    default:
        return wb_fail(WB_E_CORRUPT, "%s is damaged: %s", catalog->path, mdb_strerror(lmdb_error));
    }
}

int wb_catalog_corrupt(const struct wb_catalog *catalog, enum wb_table table, const char *what)
{
    return wb_fail(WB_E_CORRUPT, "%s is damaged: %s in table %s", catalog->path, what, table_names[table]);
}

MDB_dbi wb_catalog_dbi(const struct wb_catalog *catalog, enum wb_table table)
{
    return catalog->dbi[table];
}

bool wb_catalog_writable(const struct wb_catalog *catalog)
{
    return catalog->writable;
}

const char *wb_catalog_path(const struct wb_catalog *catalog)
{
    return catalog->path;
}

struct guarded {
    struct wb_catalog *catalog;
    int (*function)(void *context);
    void *context;
    bool returned;
};

static int call_function(void *context)
{
    struct guarded *g = context;
    int result = g->function(g->context);

    g->returned = true;
    return result;
}

int wb_catalog_call(struct wb_catalog *catalog, int (*function)(void *context), void *context)
{
    struct guarded g = {catalog, function, context, false};

    if (catalog->broken)
        return wb_fail(WB_E_CORRUPT, "%s is damaged", catalog->path);
    int err = wb_guard_call(catalog->path, call_function, &g);
    if (!g.returned)
        catalog->broken = true;
    return err;
}

/* ---- opening --------------------------------------------------------------------- */

static void on_assert(MDB_env *env, const char *message)
{
    (void)env;
    (void)message;
    wb_guard_escape();
}

/* Opens the environment with the largest map that the system gives. */
static int open_env(struct wb_catalog *catalog, unsigned flags)
{
    int rc = ENOMEM;

    for (size_t bytes = MAP_BYTES_FIRST; rc == ENOMEM && bytes >= MAP_BYTES_LEAST; bytes /= 2) {
        rc = mdb_env_create(&catalog->env);
        if (rc != 0)
            break;
        mdb_env_set_assert(catalog->env, on_assert);
        mdb_env_set_maxdbs(catalog->env, WB_TABLE_COUNT);
        mdb_env_set_maxreaders(catalog->env, READERS_MAX);
        mdb_env_set_mapsize(catalog->env, bytes);
        /* NOTLS: a scan's transaction may be used by another thread than opened it. NORDAHEAD: rows are small and scattered. */
        rc = mdb_env_open(catalog->env, catalog->path, MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD | flags, 0666);
        if (rc != 0) {
            mdb_env_close(catalog->env);
            catalog->env = NULL;
        }
    }
    return rc;
}

static int open_tables(struct wb_catalog *catalog, bool create)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(catalog->env, NULL, create ? 0 : MDB_RDONLY, &txn);

    for (int i = 0; rc == 0 && i < WB_TABLE_COUNT; i++)
        rc = mdb_dbi_open(txn, table_names[i], create ? MDB_CREATE : 0, &catalog->dbi[i]);
    if (rc == 0)
        return mdb_txn_commit(txn);
    if (txn)
        mdb_txn_abort(txn);
    return rc;
}

struct opening {
    struct wb_catalog *catalog;
    bool create;
};

static int open_catalog(void *context)
{
    struct opening *o = context;
    struct wb_catalog *catalog = o->catalog;
    int rc = open_env(catalog, 0);

    catalog->writable = rc == 0;
    if (!o->create && (rc == EROFS || rc == EACCES || rc == EPERM)) {
        rc = open_env(catalog, MDB_RDONLY);
        /* A directory that we may not write to holds no lock file for us; nobody else can write there as us either. */
        if (rc == EACCES || rc == EPERM)
            rc = open_env(catalog, MDB_RDONLY | MDB_NOLOCK);
    }
    if (rc == 0)
        rc = open_tables(catalog, o->create);
    if (rc == MDB_NOTFOUND)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: a table is missing", catalog->path);
    return rc == 0 ? 0 : wb_catalog_fail(catalog, rc);
}

static void free_catalog(struct wb_catalog *catalog)
{
    /* After a fault LMDB's state is unknown, so a broken environment is left alone. */
    if (catalog->env && !catalog->broken)
        mdb_env_close(catalog->env);
    wb_free(catalog->path);
    wb_free(catalog);
}

static int open_new(const char *path, bool create, struct wb_catalog **catalog_out)
{
    struct wb_catalog *catalog = wb_alloc_zero(1, sizeof *catalog);
    struct stat st;
    int err;

    if (!catalog)
        return WB_E_NOMEM;
    catalog->references = 1;
    catalog->path = wb_strdup(path);
    if (!catalog->path) {
        wb_free(catalog);
        return WB_E_NOMEM;
    }
    if (!create && wb_path_kind(path) != WB_PATH_FILE) {
        err = wb_fail(WB_E_CORRUPT, "%s is missing", path);
        goto done;
    }
    struct opening opening = {catalog, create};
    err = wb_catalog_call(catalog, open_catalog, &opening);
    if (err == 0 && stat(path, &st) != 0)
        err = wb_fail_errno("cannot stat %s", path);
    if (err < 0)
        goto done;
    catalog->device = st.st_dev;
    catalog->inode = st.st_ino;
    *catalog_out = catalog;
    return 0;
done:
    free_catalog(catalog);
    return err;
}

int wb_catalog_open(const char *dir, bool create, struct wb_catalog **catalog_out)
{
    struct stat st;
    char *path = wb_path_join(dir, WB_CATALOG_NAME);
    int err = 0;

    *catalog_out = NULL;
    if (!path)
        return WB_E_NOMEM;
    pthread_mutex_lock(&list_lock);
    struct wb_catalog *found = NULL;
    if (stat(path, &st) == 0)
        for (found = list; found && (found->device != st.st_dev || found->inode != st.st_ino); found = found->next)
            ;
    if (found) {
        found->references++;
        *catalog_out = found;
    } else {
        err = open_new(path, create, catalog_out);
        if (err == 0) {
            (*catalog_out)->next = list;
            list = *catalog_out;
        }
    }
    pthread_mutex_unlock(&list_lock);
    wb_free(path);
    return err;
}

void wb_catalog_close(struct wb_catalog *catalog)
{
    if (!catalog)
        return;
    pthread_mutex_lock(&list_lock);
    WB_CHECK(catalog->references > 0);
    if (--catalog->references == 0) {
        struct wb_catalog **at = &list;
        while (*at != catalog)
            at = &(*at)->next;
        *at = catalog->next;
        free_catalog(catalog);
    }
    pthread_mutex_unlock(&list_lock);
}

/* ---- transactions -------------------------------------------------------------------- */

static int begin(struct wb_catalog *catalog, unsigned flags, struct wb_txn *txn_out)
{
    int rc = mdb_txn_begin(catalog->env, NULL, flags, &txn_out->lmdb);

    /* Another process enlarged the map beyond ours: take its size. */
    if (rc == MDB_MAP_RESIZED && mdb_env_set_mapsize(catalog->env, 0) == 0) {
        catalog->map = NULL; /* it may lie elsewhere now */
        rc = mdb_txn_begin(catalog->env, NULL, flags, &txn_out->lmdb);
    }
    if (rc == MDB_READERS_FULL) {
        int dead = 0;
        if (mdb_reader_check(catalog->env, &dead) == 0 && dead > 0)
            rc = mdb_txn_begin(catalog->env, NULL, flags, &txn_out->lmdb);
    }
    txn_out->catalog = catalog;
    return rc == 0 ? 0 : wb_catalog_fail(catalog, rc);
}

int wb_txn_read(struct wb_catalog *catalog, struct wb_txn *txn_out)
{
    *txn_out = (struct wb_txn){NULL, NULL};
    return begin(catalog, MDB_RDONLY, txn_out);
}

void wb_txn_park(struct wb_txn *txn)
{
    mdb_txn_reset(txn->lmdb);
}

int wb_txn_wake(struct wb_txn *txn)
{
    int rc = mdb_txn_renew(txn->lmdb);

    return rc == 0 ? 0 : wb_catalog_fail(txn->catalog, rc);
}

int wb_txn_write(struct wb_catalog *catalog, struct wb_txn *txn_out)
{
    *txn_out = (struct wb_txn){NULL, NULL};
    if (!catalog->writable)
        return wb_fail(WB_E_IO, "cannot write %s: it is read-only", catalog->path);
    return begin(catalog, 0, txn_out);
}

int wb_txn_commit(struct wb_txn *txn)
{
    int rc = mdb_txn_commit(txn->lmdb);

    txn->lmdb = NULL;
    return rc == 0 ? 0 : wb_catalog_fail(txn->catalog, rc);
}

void wb_txn_abort(struct wb_txn *txn)
{
    if (txn->lmdb)
        mdb_txn_abort(txn->lmdb);
    txn->lmdb = NULL;
}

uint64_t wb_txn_id(const struct wb_txn *txn)
{
    return mdb_txn_id(txn->lmdb);
}

/* LMDB tells about readers only as lines of text: "pid thread txnid", txnid "-" where idle. */
static int read_reader_line(const char *line, void *context)
{
    uint64_t *oldest = context;
    unsigned long long txn_id;
    int pid;
    char thread[64];

    if (sscanf(line, "%d %63s %llu", &pid, thread, &txn_id) == 3 && txn_id < *oldest)
        *oldest = txn_id;
    return 0;
}

int wb_catalog_oldest_reader(struct wb_catalog *catalog, uint64_t *txn_id_out)
{
    int dead = 0, rc;

    *txn_id_out = UINT64_MAX;
    rc = mdb_reader_check(catalog->env, &dead);
    if (rc == 0)
        rc = mdb_reader_list(catalog->env, read_reader_line, txn_id_out);
    return rc < 0 || rc == EINVAL ? wb_catalog_fail(catalog, rc) : 0;
}

void wb_catalog_trim(struct wb_catalog *catalog)
{
    MDB_envinfo info;
    MDB_stat stat;

    if (catalog->broken || mdb_env_info(catalog->env, &info) != 0 || mdb_env_stat(catalog->env, &stat) != 0)
        return;
    size_t used = (info.me_last_pgno + 1) * stat.ms_psize;
    if (used < TRIM_BYTES)
        return;
    if (!catalog->map) /* LMDB tells only of maps at fixed addresses */
        catalog->map = wb_mapping_find(catalog->path);
    if (catalog->map)
        wb_mapping_drop(catalog->map, used);
}

void wb_catalog_tick(struct wb_catalog *catalog)
{
    if (++catalog->ticks % TICKS_PER_TRIM == 0)
        wb_catalog_trim(catalog);
}

int wb_table_rows(struct wb_txn *txn, enum wb_table table, uint64_t *rows_out)
{
    MDB_stat stat;
    int rc = mdb_stat(txn->lmdb, txn->catalog->dbi[table], &stat);

    *rows_out = rc == 0 ? stat.ms_entries : 0;
    return rc == 0 ? 0 : wb_catalog_fail(txn->catalog, rc);
}

int wb_table_clear(struct wb_txn *txn, enum wb_table table)
{
    int rc = mdb_drop(txn->lmdb, txn->catalog->dbi[table], 0);

    return rc == 0 ? 0 : wb_catalog_fail(txn->catalog, rc);
}
