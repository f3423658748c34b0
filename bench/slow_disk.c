/*
 * slow_disk.c - gives directories the speed of disks of their own: a library for LD_PRELOAD.
 *
 *   SLOW_DISKS=/disk1:/disk2 SLOW_DISK_MB_S=5 LD_PRELOAD=build-bench/bench/slow_disk.so program ...
 *
 * Each directory in the list is a disk, whose arm does one thing at a time: what is read and written below it takes its
 * bytes divided by the rate, one after the other, whichever threads ask. Different disks do not wait for each other.
 *
 *   reading    takes until the arm has done all that was asked before, and this. Nothing is cached: as if it were cold.
 *   writing    returns at once, as the kernel's page cache does, unless WRITE_BEHIND bytes are waiting for the arm.
 *   syncing    takes until everything that was written to this disk is there.
 *
 * The time that the real disk takes is part of that, as long as it is faster. Seeks cost nothing. Paths are compared as
 * they are opened, so they have to be absolute, without links. A mapped file is not seen.
 */
#undef _FILE_OFFSET_BITS /* otherwise the header would rename our functions */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DISKS_MAX = 64,
    FILES_MAX = 1 << 16,
    WRITE_BEHIND = 16 << 20,
};

#define NS_PER_S 1000000000

struct slow_disk {
    const char *dir;
    size_t len;
    pthread_mutex_t lock;
    int64_t busy_until; /* by the clock that never jumps, in nanoseconds */
};

static struct slow_disk disks[DISKS_MAX];
static size_t disk_count;
static double ns_per_byte;
static unsigned char disk_of[FILES_MAX]; /* of a descriptor: the number of its disk, from 1; 0: none */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the disks ------------------------------------------------------------------------------------------- */

static void read_settings(void)
{
    const char *rate = getenv("SLOW_DISK_MB_S"), *list = getenv("SLOW_DISKS");
    double mb_s = rate ? strtod(rate, NULL) : 0;
    char *copy = list && mb_s > 0 ? strdup(list) : NULL, *rest = copy;

    ns_per_byte = mb_s > 0 ? NS_PER_S / (mb_s * 1e6) : 0;
    for (char *dir; copy && disk_count < DISKS_MAX && (dir = strsep(&rest, ":"));) {
        struct slow_disk *disk = &disks[disk_count];
        disk->dir = dir;
        disk->len = strlen(dir);
        pthread_mutex_init(&disk->lock, NULL);
        disk_count += disk->len > 0;
    }
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleep_until(int64_t ns)
{
    struct timespec t = {ns / NS_PER_S, ns % NS_PER_S};
    int saved = errno;

    while (ns > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
    errno = saved;
}

/* Gives the arm something to do. Returns when it will be done with that, and with all before. */
static int64_t occupy(struct slow_disk *disk, size_t bytes)
{
    int64_t now = now_ns();

    pthread_mutex_lock(&disk->lock);
    disk->busy_until = (disk->busy_until > now ? disk->busy_until : now) + (int64_t)((double)bytes * ns_per_byte);
    int64_t done = disk->busy_until;
    pthread_mutex_unlock(&disk->lock);
    return done;
}

static struct slow_disk *find_disk(int fd)
{
    return fd >= 0 && fd < FILES_MAX && disk_of[fd] ? &disks[disk_of[fd] - 1] : NULL;
}

static int remember(int fd, const char *path)
{
    pthread_once(&once, read_settings);
    if (fd < 0 || fd >= FILES_MAX)
        return fd;
    disk_of[fd] = 0;
    for (size_t i = 0; i < disk_count; i++)
        if (strncmp(path, disks[i].dir, disks[i].len) == 0 && path[disks[i].len] == '/')
            disk_of[fd] = (unsigned char)(i + 1);
    return fd;
}

/* ---- the calls that are slowed down ----------------------------------------------------------------------- */

/* The function of the C library. ISO C has no cast from data to functions, hence the union. */
#define REAL(type, name)                                                                                               \
    static union {                                                                                                     \
        void *data;                                                                                                    \
        type call;                                                                                                     \
    } real;                                                                                                            \
    if (!__atomic_load_n(&real.data, __ATOMIC_RELAXED))                                                                \
    __atomic_store_n(&real.data, dlsym(RTLD_NEXT, name), __ATOMIC_RELAXED)

typedef int (*open_call)(const char *, int, ...);
typedef ssize_t (*pread_call)(int, void *, size_t, off_t);
typedef ssize_t (*pwrite_call)(int, const void *, size_t, off_t);
typedef int (*fd_call)(int);

int open(const char *path, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0;
    va_end(list);
    REAL(open_call, "open");
    return remember(real.call(path, flags, mode), path);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int close(int fd)
{
    REAL(fd_call, "close");
    if (fd >= 0 && fd < FILES_MAX)
        disk_of[fd] = 0;
    return real.call(fd);
}

ssize_t pread(int fd, void *bytes, size_t len, off_t offset)
{
    REAL(pread_call, "pread");
    struct slow_disk *disk = find_disk(fd);
    ssize_t got = real.call(fd, bytes, len, offset);
    if (disk && got > 0)
        sleep_until(occupy(disk, (size_t)got));
    return got;
}

ssize_t pread64(int fd, void *bytes, size_t len, off_t offset) __attribute__((alias("pread")));

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
    REAL(pwrite_call, "pwrite");
    struct slow_disk *disk = find_disk(fd);
    ssize_t put = real.call(fd, bytes, len, offset);
    if (disk && put > 0)
        sleep_until(occupy(disk, (size_t)put) - (int64_t)(WRITE_BEHIND * ns_per_byte));
    return put;
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset) __attribute__((alias("pwrite")));

int fdatasync(int fd)
{
    REAL(fd_call, "fdatasync");
    struct slow_disk *disk = find_disk(fd);
    int failed = real.call(fd);
    if (disk)
        sleep_until(occupy(disk, 0));
    return failed;
}

int fsync(int fd)
{
    REAL(fd_call, "fsync");
    struct slow_disk *disk = find_disk(fd);
    int failed = real.call(fd);
    if (disk)
        sleep_until(occupy(disk, 0));
    return failed;
}
