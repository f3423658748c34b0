/*
 * bytelock.c - open file description locks: fcntl() with F_OFD_SETLK, F_OFD_SETLKW and F_OFD_GETLK; and locks of a
 * process, with F_SETLK.
 */
#include "os/bytelock.h"
#include "base/check.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>

/* The lock on the bytes [from, to). Where they are in the file is up to the caller; they need not exist. */
static struct flock lock_of(short type, uint64_t from, uint64_t to)
{
    WB_CHECK(from < to && to <= INT64_MAX);
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)(to - from)};
}

/* Without locks a reader cannot say what it still needs, and a writer might remove it: so this is an error. */
static int refuse(const struct wb_file *file)
{
    return wb_fail_errno("cannot lock %s (keep it on a file system that has locks, such as a local disk)", file->path);
}

static int wait_for(const struct wb_file *file, struct flock *lock)
{
    while (fcntl(file->fd, F_OFD_SETLKW, lock) != 0)
        if (errno != EINTR)
            return refuse(file);
    return 0;
}

int wb_bytelock_share(const struct wb_file *file, uint64_t at)
{
    struct flock lock = lock_of(F_RDLCK, at, at + 1);

    return wait_for(file, &lock);
}

int wb_bytelock_take(const struct wb_file *file, uint64_t at)
{
    struct flock lock = lock_of(F_WRLCK, at, at + 1);

    return wait_for(file, &lock);
}

static int try(const struct wb_file *file, int how, short type, uint64_t at)
{
    struct flock lock = lock_of(type, at, at + 1);

    if (fcntl(file->fd, how, &lock) == 0)
        return 1;
    return errno == EAGAIN || errno == EACCES ? 0 : refuse(file);
}

int wb_bytelock_try(const struct wb_file *file, uint64_t at)
{
    return try(file, F_OFD_SETLK, F_WRLCK, at);
}

int wb_bytelock_try_share(const struct wb_file *file, uint64_t at)
{
    return try(file, F_OFD_SETLK, F_RDLCK, at);
}

int wb_bytelock_try_alone(const struct wb_file *file, uint64_t at)
{
    return try(file, F_SETLK, F_WRLCK, at);
}

void wb_bytelock_release(const struct wb_file *file, uint64_t at)
{
    struct flock lock = lock_of(F_UNLCK, at, at + 1);

    fcntl(file->fd, F_OFD_SETLK, &lock);
}

int wb_bytelock_first(const struct wb_file *file, uint64_t from, uint64_t to, uint64_t *at_out)
{
    bool found = false;

    *at_out = 0;
    /* The kernel reports some lock in the range, not the lowest one. So we ask again about the bytes below it. */
    while (from < to) {
        struct flock lock = lock_of(F_WRLCK, from, to);
        if (fcntl(file->fd, F_OFD_GETLK, &lock) != 0)
            return refuse(file);
        if (lock.l_type == F_UNLCK)
            break;
        found = true;
        to = (uint64_t)lock.l_start > from ? (uint64_t)lock.l_start : from;
        *at_out = to;
    }
    return found;
}
