/*
 * path.c - names in the file system: what is there, making, renaming, removing, listing.
 *
 * Works on names only: file.c reads and writes. It never removes a directory, and never anything recursively.
 */
#include "os/path.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum wb_path_kind kind_of_mode(mode_t mode)
{
    return S_ISREG(mode) ? WB_PATH_FILE : S_ISDIR(mode) ? WB_PATH_DIR : WB_PATH_OTHER;
}

enum { COMPARE_BYTES = 64 << 10 };

enum wb_path_kind wb_path_kind(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? kind_of_mode(st.st_mode) : WB_PATH_NONE;
}

int wb_path_rename(const char *from, const char *to)
{
    if (wb_fault_strikes(WB_FAULT_RENAME, to) || rename(from, to) != 0)
        return wb_fail_errno("cannot rename %s to %s", from, to);
    return 0;
}

int wb_path_unlink(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return wb_fail_errno("cannot remove %s", path);
    return 0;
}

/* Copies what is behind one open file to another, which is empty, and syncs it. */
static int copy_bytes(const struct wb_file *from, const struct wb_file *to)
{
    enum { PORTION = 256 << 10 };
    char *bytes = wb_alloc(PORTION);
    uint64_t offset = 0;
    size_t got = 1;
    int err = bytes ? 0 : WB_E_NOMEM;

    while (err == 0 && got) {
        err = wb_file_read_at(from, offset, bytes, PORTION, &got);
        if (err == 0 && got)
            err = wb_file_write_at(to, offset, bytes, got);
        offset += got;
    }
    wb_free(bytes);
    return err < 0 ? err : wb_file_sync(to);
}

int wb_path_copy(const char *from, const char *to)
{
    struct wb_file source = WB_FILE_INIT, target = WB_FILE_INIT;
    int err = wb_file_open(from, WB_FILE_READ, &source);
    if (err == 0)
        err = wb_file_open(to, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &target);
    if (err == 0)
        err = copy_bytes(&source, &target);
    wb_file_close(&target);
    wb_file_close(&source);
    return err;
}

int wb_path_same(const char *a, const char *b, bool *same_out)
{
    struct wb_file files[2] = {WB_FILE_INIT, WB_FILE_INIT};
    char *bytes = wb_alloc_zero(2, COMPARE_BYTES);
    uint64_t sizes[2] = {0, 0};
    size_t got[2] = {1, 1};
    int err = bytes ? wb_file_open(a, WB_FILE_READ, &files[0]) : WB_E_NOMEM;

    if (err == 0)
        err = wb_file_open(b, WB_FILE_READ, &files[1]);
    for (int i = 0; err == 0 && i < 2; i++)
        err = wb_file_size(&files[i], &sizes[i]);
    *same_out = err == 0 && sizes[0] == sizes[1];
    for (uint64_t at = 0; err == 0 && *same_out && got[0]; at += got[0]) {
        err = wb_file_read_at(&files[0], at, bytes, COMPARE_BYTES, &got[0]);
        if (err == 0)
            err = wb_file_read_at(&files[1], at, bytes + COMPARE_BYTES, COMPARE_BYTES, &got[1]);
        *same_out = err == 0 && got[0] == got[1] && memcmp(bytes, bytes + COMPARE_BYTES, got[0]) == 0;
    }
    wb_file_close(&files[0]);
    wb_file_close(&files[1]);
    wb_free(bytes);
    return err;
}

char *wb_path_real(const char *path)
{
    char *real = realpath(path, NULL), *copy = real ? wb_strdup(real) : NULL;

    if (!real)
        wb_fail_errno("%s", path);
    free(real);
    return copy;
}

/* If we may not read the directory it cannot be synced, which is an error only if it must be readable. */
static int sync_dir(const char *path, bool must_be_readable)
{
    int fd = wb_fault_strikes(WB_FAULT_SYNC, path) ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == EACCES && !must_be_readable)
        return 0;
    if (fd < 0)
        return wb_fail_errno("cannot sync the directory %s", path);
    int failed = fsync(fd);
    if (failed)
        wb_fail_errno("cannot sync the directory %s", path);
    close(fd);
    return failed ? WB_E_IO : 0;
}

int wb_path_sync_dir(const char *path)
{
    return sync_dir(path, true);
}

int wb_path_sync_parent(const char *path)
{
    char *dir = wb_strdup(path);
    int err;

    if (!dir)
        return WB_E_NOMEM;
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        dir[--len] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    err = sync_dir(slash ? dir : ".", false);
    wb_free(dir);
    return err;
}

/*
 * Makes one directory and its entry durable. If the directory exists already, its entry is synced only if it is the
 * last one of the path: the process that made it may have been killed before it could sync it.
 */
static int make_dir(const char *path, bool last)
{
    bool made = !wb_fault_strikes(WB_FAULT_OPEN, path) && mkdir(path, 0777) == 0;

    if (!made && (errno != EEXIST || wb_path_kind(path) != WB_PATH_DIR))
        return wb_fail_errno("cannot make the directory %s", path);
    return made || last ? wb_path_sync_parent(path) : 0;
}

int wb_path_mkdirs(const char *path)
{
    char *part = wb_strdup(path);
    int err = 0;

    if (!part)
        return WB_E_NOMEM;
    for (char *p = part + (*part != '\0'); err == 0; p++) {
        if (*p && *p != '/')
            continue;
        char cut = *p; /* the path up to here is one directory: end it with NUL for a moment */
        *p = '\0';
        bool last = !cut || strspn(p + 1, "/") == strlen(p + 1);
        err = make_dir(part, last);
        *p = cut;
        if (last)
            break;
    }
    wb_free(part);
    return err;
}

char *wb_path_join(const char *dir, const char *name)
{
    size_t dir_len = strlen(dir), name_len = strlen(name);
    char *path = wb_alloc(dir_len + name_len + 2);

    if (!path)
        return NULL;
    while (dir_len > 1 && dir[dir_len - 1] == '/')
        dir_len--;
    memcpy(path, dir, dir_len);
    size_t at = dir_len;
    if (dir_len == 0 || dir[dir_len - 1] != '/')
        path[at++] = '/';
    memcpy(path + at, name, name_len + 1);
    return path;
}

uint64_t wb_path_disk_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

int wb_path_read(const char *path, size_t max, struct wb_buf *bytes_out)
{
    struct wb_file file = WB_FILE_INIT;
    uint64_t size;
    size_t got;
    int err;

    *bytes_out = WB_BUF_INIT;
    err = wb_file_open(path, WB_FILE_READ, &file);
    if (err < 0)
        goto done;
    err = wb_file_size(&file, &size);
    if (err < 0)
        goto done;
    if (size > max) {
        err = wb_fail(WB_E_LIMIT, "%s is larger than expected", path);
        goto done;
    }
    err = wb_buf_reserve(bytes_out, (size_t)size + 1);
    if (err < 0)
        goto done;
    err = wb_file_read_at(&file, 0, bytes_out->ptr, (size_t)size, &got);
    if (err < 0)
        goto done;
    bytes_out->len = got;
done:
    wb_file_close(&file);
    if (err < 0)
        wb_buf_release(bytes_out);
    return err;
}

int wb_path_replace(const char *path, struct wb_slice bytes)
{
    return wb_path_replace_parts(path, &bytes, 1);
}

int wb_path_replace_parts(const char *path, const struct wb_slice *parts, size_t count)
{
    struct wb_file file = WB_FILE_INIT;
    struct wb_buf temporary = WB_BUF_INIT;
    uint64_t at = 0;
    int err;

    err = wb_buf_printf(&temporary, "%s.tmp", path);
    if (err == 0)
        err = wb_buf_terminate(&temporary);
    if (err == 0)
        err = wb_file_open(temporary.ptr, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &file);
    if (err < 0)
        goto done;
    for (size_t i = 0; err == 0 && i < count; i++) {
        err = wb_file_write_at(&file, at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    if (err == 0)
        err = wb_file_sync(&file);
    if (err == 0)
        err = wb_path_rename(temporary.ptr, path);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_path_unlink(temporary.ptr);
        err = wb_error_restore(&why);
        goto done;
    }
    err = wb_path_sync_parent(path);
done:
    wb_file_close(&file);
    wb_buf_release(&temporary);
    return err;
}

static int skip_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int wb_path_each(const char *path, int (*each)(void *context, const struct wb_path_entry *entry), void *context)
{
    struct dirent **names = NULL;
    int count = wb_fault_strikes(WB_FAULT_OPEN, path) ? -1 : scandir(path, &names, skip_dots, compare_names);
    int err = 0;

    if (count < 0)
        return wb_fail_errno("cannot list the directory %s", path);
    for (int i = 0; i < count; i++) {
        struct stat st;
        char *full = err == 0 ? wb_path_join(path, names[i]->d_name) : NULL;
        if (err == 0 && !full)
            err = WB_E_NOMEM;
        if (err == 0 && lstat(full, &st) == 0) {
            struct wb_path_entry entry = {
                .name = names[i]->d_name,
                .kind = kind_of_mode(st.st_mode),
                .size = (uint64_t)st.st_size,
                .mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
            };
            err = each(context, &entry);
        }
        wb_free(full);
        free(names[i]);
    }
    free(names);
    return err;
}
