/*
 * filestore.c - objects as files in a directory, which may be on NFS.
 *
 *   DIR/objects/0f3a-00000001      the object objects/0f3a-00000001
 *   DIR/objects/.tmp-XXXXXXXXXXXXXXXX   one that is being written; XXXX is random
 *
 * An object is written under a random name beside its own, synced, renamed, and the directory is synced. So an object
 * has its name only when all of its bytes are on disk, and of two writers of one name the last one wins, also if they
 * are on different machines. Names that begin with '.' are no objects; those that killed writers have left are removed
 * by listings once they are old.
 *
 * No locks and no links are used, because they differ between file systems. What NFS reports for a passing reason is
 * tried again: a handle that is stale, a server that did not answer, and a temporary name that has vanished, because an
 * answer was lost and the rename was repeated, or because it looked old to another machine.
 */
#include "base/error.h"
#include "base/codec.h"
#include "base/mem.h"
#include "object/objectkind.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/path.h"
#include "os/random.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TEMPORARY ".tmp-"
#define TEMPORARY_AGE_MS INT64_C(3600000) /* no write takes so long, unless its process was stopped */
enum { RANDOM_BYTES = 8, DURABLE_MAX = 64 };

struct files {
    const struct wb_object_url *url;
    pthread_mutex_t mutex;
    WB_VEC(char *) durable; /* directories that this process has made or synced */
};

/* ---- errors ------------------------------------------------------------------------------------------------ */

/* Judges the failure of a call that has just returned: errno says more than the code. */
static int judge(int err)
{
    int error = errno;

    if (err != WB_E_IO)
        return err;
    switch (error) {
    case ESTALE:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
        return WB_E_DOWN;
    case EACCES:
    case EPERM:
    case EROFS:
        return WB_E_DENIED;
    default:
        return WB_E_IO;
    }
}

static int not_there(const struct files *files, const char *name)
{
    return wb_fail(WB_E_NOTFOUND, "%s has no object %s", files->url->text, name);
}

/* ---- directories ------------------------------------------------------------------------------------------- */

static bool is_durable(const struct files *files, const char *dir)
{
    for (size_t i = 0; i < files->durable.count; i++)
        if (strcmp(files->durable.items[i], dir) == 0)
            return true;
    return false;
}

static void forget_durable(struct files *files)
{
    for (size_t i = 0; i < files->durable.count; i++)
        wb_free(files->durable.items[i]);
    wb_vec_clear(&files->durable);
}

/* The directory that a path is in; the caller frees it. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == path ? wb_strdup("/") : wb_strndup(path, (size_t)(slash - path));
}

/*
 * The directory of the store is made, but not the one that it is in: if that is missing, it may be that nobody has
 * mounted it.
 */
static int check_above(const struct files *files)
{
    const char *dir = files->url->dir;

    if (wb_path_kind(dir) != WB_PATH_NONE)
        return 0;
    char *above = parent_of(dir);
    if (!above)
        return WB_E_NOMEM;
    int err = 0;
    if (wb_path_kind(above) != WB_PATH_DIR)
        err = wb_fail(WB_E_DENIED, "cannot make the directory %s: there is no directory %s; make it, or mount it", dir,
                      above);
    wb_free(above);
    return err;
}

/* Makes the directory of an object, unless this process knows that it is there and survives a power failure. */
static int make_dir(struct files *files, const char *dir)
{
    pthread_mutex_lock(&files->mutex);
    bool known = is_durable(files, dir);
    pthread_mutex_unlock(&files->mutex);
    if (known && wb_path_kind(dir) == WB_PATH_DIR)
        return 0;
    int err = check_above(files);
    if (err == 0)
        err = judge(wb_path_mkdirs(dir));
    if (err < 0)
        return err;
    char *copy = wb_strdup(dir);
    pthread_mutex_lock(&files->mutex);
    if (files->durable.count >= DURABLE_MAX)
        forget_durable(files);
    if (!copy || is_durable(files, dir) || wb_vec_push(&files->durable, copy) < 0)
        wb_free(copy);
    pthread_mutex_unlock(&files->mutex);
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

static int files_open(const struct wb_object_url *url, void **place_out)
{
    struct files *files = wb_alloc_zero(1, sizeof *files);

    *place_out = files;
    if (!files)
        return WB_E_NOMEM;
    files->url = url;
    pthread_mutex_init(&files->mutex, NULL);
    return 0;
}

static void files_close(void *place)
{
    struct files *files = place;

    if (!files)
        return;
    forget_durable(files);
    wb_vec_release(&files->durable);
    pthread_mutex_destroy(&files->mutex);
    wb_free(files);
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

static char *temporary_in(const char *dir)
{
    char digits[2 * RANDOM_BYTES + 1], name[sizeof TEMPORARY + sizeof digits];
    unsigned char bytes[RANDOM_BYTES];

    wb_random_bytes(bytes, sizeof bytes);
    wb_hex_encode(bytes, sizeof bytes, digits);
    snprintf(name, sizeof name, TEMPORARY "%s", digits);
    return wb_path_join(dir, name);
}

/* Writes and syncs the temporary file. */
static int write_temporary(const char *temporary, struct wb_slice bytes)
{
    struct wb_file file = WB_FILE_INIT;
    int err = judge(wb_file_open(temporary, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &file));

    if (err == 0)
        err = judge(wb_file_write_at(&file, 0, bytes.ptr, bytes.len));
    if (err == 0)
        err = judge(wb_file_sync(&file));
    wb_file_close(&file);
    return err;
}

static int give_name(const char *temporary, const char *path)
{
    int err = wb_path_rename(temporary, path);

    if (err == WB_E_IO && errno == ENOENT)
        return WB_E_DOWN;
    err = judge(err);
    return err == 0 ? judge(wb_path_sync_parent(path)) : err;
}

static int files_put(void *place, const char *name, struct wb_slice bytes, struct wb_object_try *try)
{
    struct files *files = place;
    char *path = wb_path_join(files->url->dir, name);
    char *dir = path ? parent_of(path) : NULL;
    char *temporary = dir ? temporary_in(dir) : NULL;
    int err = temporary ? make_dir(files, dir) : WB_E_NOMEM;

    (void)try;
    if (err == 0) {
        struct wb_error_copy why;
        err = write_temporary(temporary, bytes);
        if (err == WB_E_NOTFOUND) /* somebody has removed the directory meanwhile */
            err = WB_E_DOWN;
        if (err == 0)
            err = give_name(temporary, path);
        wb_error_save(err, &why);
        if (err < 0)
            wb_path_unlink(temporary);
        wb_error_restore(&why);
    }
    wb_free(temporary);
    wb_free(dir);
    wb_free(path);
    return err;
}

static int files_remove(void *place, const char *name, struct wb_object_try *try)
{
    struct files *files = place;
    char *path = wb_path_join(files->url->dir, name);
    int err = path ? wb_path_unlink(path) : WB_E_NOMEM;

    (void)try;
    if (err == WB_E_IO && (errno == ENOTDIR || errno == EISDIR))
        err = 0; /* there is no object of this name, only one that begins as it does */
    err = judge(err);
    if (err == 0) {
        err = wb_path_sync_parent(path);
        if (err == WB_E_IO && (errno == ENOENT || errno == ENOTDIR))
            err = 0;
        err = judge(err);
    }
    wb_free(path);
    return err;
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

/*
 * Opens the file of an object. NFS may remember that there was no such file; it asks the server again when the
 * directory is opened.
 */
static int open_object(const struct files *files, const char *name, const char *path, struct wb_file *file_out)
{
    struct wb_file folder = WB_FILE_INIT;
    int err = wb_file_open(path, WB_FILE_READ, file_out);

    if (err == WB_E_NOTFOUND) {
        char *dir = parent_of(path);
        err = dir ? wb_file_open(dir, WB_FILE_READ, &folder) : WB_E_NOMEM;
        wb_file_close(&folder);
        wb_free(dir);
        if (err == 0)
            err = wb_file_open(path, WB_FILE_READ, file_out);
    }
    if (err == WB_E_NOTFOUND || (err == WB_E_IO && errno == ENOTDIR))
        return not_there(files, name);
    return judge(err);
}

static int read_span(const struct files *files, const char *name, const struct wb_file *file,
                     const struct wb_object_span *span, struct wb_buf *bytes_out)
{
    uint64_t size;
    size_t got;
    int err = judge(wb_file_size(file, &size));

    if (err < 0)
        return err;
    if (span->whole && size > span->len)
        return wb_fail(WB_E_LIMIT, "the object %s of %s has more than %zu bytes", name, files->url->text, span->len);
    uint64_t rest = size > span->offset ? size - span->offset : 0;
    size_t len = rest < span->len ? (size_t)rest : span->len;
    err = wb_buf_reserve(bytes_out, len + 1);
    if (err == 0)
        err = wb_file_read_at(file, span->offset, bytes_out->ptr, len, &got);
    if (err == WB_E_IO && errno == EISDIR)
        return not_there(files, name);
    if (err == 0)
        bytes_out->len = got;
    return judge(err);
}

static int files_get(void *place, const char *name, const struct wb_object_span *span, struct wb_buf *bytes_out,
                     struct wb_object_try *try)
{
    struct files *files = place;
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(files->url->dir, name);
    int err = path ? open_object(files, name, path, &file) : WB_E_NOMEM;

    (void)try;
    if (err == 0)
        err = read_span(files, name, &file, span, bytes_out);
    wb_file_close(&file);
    wb_free(path);
    return err;
}

static int files_size(void *place, const char *name, uint64_t *size_out, struct wb_object_try *try)
{
    struct files *files = place;
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(files->url->dir, name);
    int err = path ? open_object(files, name, path, &file) : WB_E_NOMEM;

    (void)try;
    if (err == 0)
        err = wb_path_kind(path) == WB_PATH_DIR ? not_there(files, name) : judge(wb_file_size(&file, size_out));
    wb_file_close(&file);
    wb_free(path);
    return err;
}

/* ---- listing ----------------------------------------------------------------------------------------------- */

/* What is in one directory; the names of directories end with '/', which puts them where their objects belong. */
struct found {
    char *name;
    uint64_t size;
};

struct walk {
    struct files *files;
    struct wb_slice prefix;
    struct wb_object_page *page;
    struct wb_buf folder; /* where it is: empty, or parts of names that end with '/' */
};

struct gathering {
    const char *dir;
    WB_VEC(struct found) found;
};

/* Removes what a killed writer has left. A writer that was only slow makes another one. */
static void clean(const char *dir, const struct wb_path_entry *entry)
{
    if (wb_clock_wall_ms() - entry->mtime_ms < TEMPORARY_AGE_MS)
        return;
    char *path = wb_path_join(dir, entry->name);
    if (path)
        wb_path_unlink(path);
    wb_free(path);
}

static int gather(void *context, const struct wb_path_entry *entry)
{
    struct gathering *g = context;
    bool is_dir = entry->kind == WB_PATH_DIR;
    size_t len = strlen(entry->name);

    if (entry->kind == WB_PATH_FILE && strncmp(entry->name, TEMPORARY, sizeof TEMPORARY - 1) == 0)
        clean(g->dir, entry);
    if ((entry->kind != WB_PATH_FILE && !is_dir) || !wb_object_name_valid(entry->name))
        return 0;
    struct found *found = wb_vec_add(&g->found);
    if (!found)
        return WB_E_NOMEM;
    found->size = entry->size;
    found->name = wb_alloc(len + 2);
    if (!found->name)
        return WB_E_NOMEM;
    memcpy(found->name, entry->name, len + 1);
    if (is_dir)
        memcpy(found->name + len, "/", 2);
    return 0;
}

static int compare_found(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static int list_folder(struct walk *walk);

/* Lists one object, or what is in one directory. */
static int list_found(struct walk *walk, const struct found *found)
{
    size_t before = walk->folder.len;
    int err = wb_buf_append_str(&walk->folder, found->name);

    if (err == 0)
        err = wb_buf_terminate(&walk->folder);
    if (err < 0)
        return err;
    struct wb_slice name = wb_buf_slice(&walk->folder);
    bool inside = wb_slice_starts(name, walk->prefix);
    if (name.ptr[name.len - 1] == '/') {
        if (name.len <= WB_OBJECT_NAME_MAX && (inside || wb_slice_starts(walk->prefix, name)))
            err = list_folder(walk);
    } else if (inside && wb_object_name_valid(name.ptr)) {
        err = wb_object_page_add(walk->page, name.ptr, found->size);
    }
    walk->folder.len = before;
    return err;
}

static int list_folder(struct walk *walk)
{
    struct gathering g = {.found = WB_VEC_INIT};
    int err = wb_buf_terminate(&walk->folder);
    char *dir = err == 0 ? wb_path_join(walk->files->url->dir, walk->folder.ptr) : NULL;

    g.dir = dir;
    err = dir ? wb_path_each(dir, gather, &g) : WB_E_NOMEM;
    if (err == WB_E_IO && errno == ENOENT)
        err = 0;
    err = judge(err);
    if (err == 0 && g.found.count) /* otherwise the last one may have no name */
        qsort(g.found.items, g.found.count, sizeof *g.found.items, compare_found);
    for (size_t i = 0; i < g.found.count; i++) {
        if (err == 0)
            err = list_found(walk, &g.found.items[i]);
        wb_free(g.found.items[i].name);
    }
    wb_vec_release(&g.found);
    wb_free(dir);
    return err;
}

/* One page has everything. */
static int files_list(void *place, const char *prefix, struct wb_object_page *page, struct wb_object_try *try)
{
    struct walk walk = {.files = place, .prefix = wb_slice_str(prefix), .page = page, .folder = WB_BUF_INIT};
    int err = list_folder(&walk);

    (void)try;
    wb_buf_release(&walk.folder);
    return err;
}

const struct wb_object_kind wb_object_files = {files_open, files_close,  files_put, files_get,
                                               files_size, files_remove, files_list};
