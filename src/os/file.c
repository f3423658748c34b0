/*
 * file.c - open files: reading, writing, syncing and locking. Tests can make each of these fail (fault.h).
 *
 * It never retries what failed (only what was interrupted), and never hides an error: wb_file_sync() that failed
 * once must be taken as lost bytes, because the kernel may report the next one as a success.
 */
#include "os/file.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_US = 200,
    LOOKS_MAX = 50000, /* a process that looks for longer has been stopped */
    DOOR_MS = 2000,    /* so has a process that needs longer to open a file and lock it */
};

int wb_file_open(const char *path, unsigned flags, struct wb_file *file_out)
{
    int mode = flags & WB_FILE_WRITE ? O_RDWR : O_RDONLY;

    *file_out = WB_FILE_INIT;
    /* Only a file that we may write can be made or cut, and only one that is made can be new. */
    WB_CHECK(flags & WB_FILE_WRITE || !(flags & (WB_FILE_CREATE | WB_FILE_TRUNCATE)));
    WB_CHECK(flags & WB_FILE_CREATE || !(flags & WB_FILE_NEW));
    if (flags & WB_FILE_CREATE)
        mode |= O_CREAT;
    if (flags & WB_FILE_NEW)
        mode |= O_EXCL;
    if (flags & WB_FILE_TRUNCATE)
        mode |= O_TRUNC;
    char *copy = wb_strdup(path);
    if (!copy)
        return WB_E_NOMEM;
    mode_t access = flags & WB_FILE_PRIVATE ? 0600 : 0666;
    int fd = wb_fault_strikes(WB_FAULT_OPEN, path) ? -1 : open(path, mode | O_CLOEXEC, access);
    if (fd < 0) {
        wb_free(copy);
        if (errno == ENOENT)
            return wb_fail(WB_E_NOTFOUND, "%s: no such file", path);
        if (errno == EEXIST)
            return wb_fail(WB_E_INVALID, "%s: already there", path);
        return wb_fail_errno("cannot open %s", path);
    }
    *file_out = (struct wb_file){fd, copy};
    return 0;
}

void wb_file_close(struct wb_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    wb_free(file->path);
    *file = WB_FILE_INIT;
}

int wb_file_read_at(const struct wb_file *file, uint64_t offset, void *bytes_out, size_t len, size_t *got_out)
{
    char *to = bytes_out;

    *got_out = 0;
    WB_CHECK(file->fd >= 0);
    if (wb_fault_strikes(WB_FAULT_READ, file->path))
        return wb_fail_errno("cannot read %s", file->path);
    while (*got_out < len) {
        ssize_t n = pread(file->fd, to + *got_out, len - *got_out, (off_t)(offset + *got_out));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wb_fail_errno("cannot read %s", file->path);
        if (n == 0)
            break;
        *got_out += (size_t)n;
    }
    return 0;
}

int wb_file_read_exact(const struct wb_file *file, uint64_t offset, void *bytes_out, size_t len)
{
    size_t got;
    int err = wb_file_read_at(file, offset, bytes_out, len, &got);

    if (err < 0)
        return err;
    if (got != len)
        return wb_fail(WB_E_CORRUPT, "%s ends at %llu, in the middle of a unit at %llu", file->path,
                       (unsigned long long)(offset + got), (unsigned long long)offset);
    return 0;
}

int wb_file_write_at(const struct wb_file *file, uint64_t offset, const void *bytes, size_t len)
{
    WB_CHECK(file->fd >= 0);
    const char *from = bytes;
    size_t done = 0;
    /* A disk that fails seldom fails cleanly: the fault leaves half of the bytes behind. */
    bool failing = wb_fault_strikes(WB_FAULT_WRITE, file->path);
    size_t end = failing ? len / 2 : len;
    int error = errno;

    while (done < end) {
        ssize_t n = pwrite(file->fd, from + done, end - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return wb_fail_errno("cannot write %s", file->path);
        done += (size_t)n;
    }
    if (failing) {
        errno = error;
        return wb_fail_errno("cannot write %s", file->path);
    }
    return 0;
}

int wb_file_sync(const struct wb_file *file)
{
    WB_CHECK(file->fd >= 0);
    if (wb_fault_strikes(WB_FAULT_SYNC, file->path) || fdatasync(file->fd) != 0)
        return wb_fail_errno("cannot sync %s", file->path);
    return 0;
}

int wb_file_truncate(const struct wb_file *file, uint64_t size)
{
    WB_CHECK(file->fd >= 0);
    if (wb_fault_strikes(WB_FAULT_WRITE, file->path) || ftruncate(file->fd, (off_t)size) != 0)
        return wb_fail_errno("cannot truncate %s", file->path);
    return 0;
}

int wb_file_size(const struct wb_file *file, uint64_t *size_out)
{
    struct stat st;

    *size_out = 0;
    if (fstat(file->fd, &st) != 0)
        return wb_fail_errno("cannot stat %s", file->path);
    *size_out = (uint64_t)st.st_size;
    return 0;
}

bool wb_file_unlinked(const struct wb_file *file)
{
    struct stat st;

    return fstat(file->fd, &st) == 0 && st.st_nlink == 0;
}

/* To look, the kernel's shared lock is taken for a moment: it fails only if somebody has the exclusive one. */
bool wb_file_is_locked(const struct wb_file *file)
{
    WB_CHECK(file->fd >= 0);
    if (flock(file->fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(file->fd, LOCK_UN);
    return false;
}

int wb_file_lock(const struct wb_file *file, bool wait)
{
    unsigned looks = 0;

    WB_CHECK(file->fd >= 0);
    while (flock(file->fd, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return wb_fail_errno("cannot lock %s", file->path);
        if (wb_file_is_locked(file) || ++looks == LOOKS_MAX)
            return wb_fail(WB_E_BUSY, "%s is in use by another process", file->path);
        usleep(LOOK_US); /* somebody is only looking, and lets go of it at once */
    }
    return 0;
}

void wb_file_unlock(const struct wb_file *file)
{
    flock(file->fd, LOCK_UN);
}

/*
 * While a file is being opened and locked, its directory is locked. On file systems that cannot lock directories it is
 * done without: then the two steps are two. Other files of the directory that are locked in this way have to wait.
 */
static int lock_door(const char *dir, int *door_out)
{
    struct timespec nap = {0, 1000000};

    *door_out = wb_fault_strikes(WB_FAULT_OPEN, dir) ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*door_out < 0)
        return errno == ENOENT ? wb_fail(WB_E_NOTFOUND, "%s: no such directory", dir)
                               : wb_fail_errno("cannot open the directory %s", dir);
    for (unsigned ms = 0; flock(*door_out, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ms++) {
        if (ms == DOOR_MS)
            return wb_fail(WB_E_BUSY, "%s is in use by another process", dir);
        nanosleep(&nap, NULL);
    }
    return 0;
}

int wb_file_open_locked(const char *dir, const char *name, struct wb_file *file_out)
{
    char *path = wb_path_join(dir, name);
    int door = -1, err = path ? lock_door(dir, &door) : WB_E_NOMEM;

    *file_out = WB_FILE_INIT;
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE, file_out);
    if (err == 0)
        err = wb_file_lock(file_out, false);
    /* The file first: nobody shall see it open without the lock or the door. */
    if (err < 0)
        wb_file_close(file_out);
    if (door >= 0)
        close(door);
    wb_free(path);
    return err;
}

void wb_file_sequential(const struct wb_file *file)
{
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void wb_file_write_back(const struct wb_file *file, uint64_t offset, uint64_t len)
{
    sync_file_range(file->fd, (off_t)offset, (off_t)len, SYNC_FILE_RANGE_WRITE);
}

void wb_file_discard(const struct wb_file *file, uint64_t offset, uint64_t len)
{
    int saved = errno;

    /* If the file system cannot do this, the space is freed when the file is removed. */
    if (len && fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len) != 0)
        errno = saved;
}
