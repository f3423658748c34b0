/* folder.c - directories as places for files: room, permission, emptiness, removal. It never reads or writes a file. */
#include "os/folder.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

int wb_folder_space(const char *path, struct wb_folder_space *space_out)
{
    struct statvfs fs;

    *space_out = (struct wb_folder_space){0};
    if (statvfs(path, &fs) != 0)
        return wb_fail_errno("cannot find out how much room there is in %s", path);
    space_out->capacity = (uint64_t)fs.f_blocks * fs.f_frsize;
    space_out->free = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (space_out->free > space_out->capacity)
        space_out->free = space_out->capacity;
    return 0;
}

bool wb_folder_is_writable(const char *path)
{
    return access(path, W_OK | X_OK) == 0;
}

static int stop_at_first(void *context, const struct wb_path_entry *entry)
{
    (void)context;
    (void)entry;
    return 1;
}

int wb_folder_is_empty(const char *path, bool *empty_out)
{
    int err = wb_path_each(path, stop_at_first, NULL);

    *empty_out = err == 0;
    return err < 0 ? err : 0;
}

int wb_folder_remove(const char *path)
{
    if (rmdir(path) != 0 && errno != ENOENT)
        return wb_fail_errno("cannot remove the directory %s", path);
    return 0;
}

static int remove_entry(void *context, const struct wb_path_entry *entry)
{
    char *path = wb_path_join(context, entry->name);
    int err = !path ? WB_E_NOMEM : entry->kind == WB_PATH_DIR ? wb_folder_remove_all(path) : wb_path_unlink(path);

    wb_free(path);
    return err;
}

int wb_folder_remove_all(const char *path)
{
    int err = wb_path_each(path, remove_entry, (void *)(uintptr_t)path);

    return err < 0 ? err : wb_folder_remove(path);
}

bool wb_folder_stamp(const char *path, struct wb_folder_stamp *stamp_out)
{
    struct stat st;

    *stamp_out = (struct wb_folder_stamp){0};
    if (stat(path, &st) != 0)
        return false;
    stamp_out->device = st.st_dev;
    stamp_out->inode = st.st_ino;
    stamp_out->changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    return true;
}

int wb_folder_birth(const char *path, struct wb_folder_birth *birth_out)
{
    struct statx st;

    *birth_out = (struct wb_folder_birth){0};
    if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) != 0)
        return errno == ENOENT ? wb_fail(WB_E_NOTFOUND, "%s does not exist", path)
                               : wb_fail_errno("cannot look at %s", path);
    birth_out->inode = st.stx_ino;
    if (st.stx_mask & STATX_BTIME)
        birth_out->birth_ns = (int64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
    return 0;
}
