/*
 * recorder.c - records every change that a program makes to files, for tests of power loss.
 *
 * It is preloaded (LD_PRELOAD) into the real program, so that the files of SQLite are recorded as well as ours, and
 * production code needs no hooks. Records go to the file that WEBBASE_POWER names, each in one append, so the records
 * of several processes have a single order. tests/e2e/powercut.py reads them and builds what a disk could hold after
 * a power cut.
 *
 * A record is a head of 40 bytes, numbers in the machine's order, and a payload:
 *
 *   u32 magic 'POWR'  u8 kind  u8[3] zero  u32 process  u32 payload length  u64 file  u64 a  u64 b
 *
 *   kind  payload      file  a            b          what
 *   O     path         yes   open flags   -          a file was opened for writing, or created
 *   N     -            yes   -            -          a file without a name was opened
 *   W     bytes        yes   offset       -          bytes are written
 *   T     -            yes   size         -          the file is cut or extended
 *   Z     -            yes   offset       length     a part is made to read as zeros
 *   S     -            yes   begin        -          a file was synced
 *   D     path         -     begin        -          a directory was synced
 *   R     from 0 to    -     -            -          rename
 *   U     path         -     -            -          unlink
 *   M     path         -     -            -          mkdir
 *   X     path         -     -            -          rmdir
 *   A     bytes        -     -            -          standard output: what the program acknowledges
 *
 * A change is recorded before it is made, so that nothing that depends on it can be recorded earlier. A sync is
 * recorded after it has returned; begin is the length of the recording when it started, and changes recorded before
 * that are durable. Failed changes are recorded too: the reader knows which names exist and ignores what cannot have
 * worked.
 *
 * Nothing is really synced: no power is cut while a test runs, and the tests are faster this way.
 */
#undef _FILE_OFFSET_BITS /* it would rename open to open64, but both are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC 0x52574f50u
#define OUTPUT_BYTES (1 << 20)
/* Above all descriptors that the program will use, also under a limit that a test sets. */
#define LOG_FD 200

struct head {
    uint32_t magic;
    uint8_t kind, zero[3];
    uint32_t process, payload;
    uint64_t file, a, b;
};
_Static_assert(sizeof(struct head) == 40, "powercut.py reads heads of 40 bytes");

static int log_fd = -1;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort();
    return found;
}

static void note(uint8_t kind, uint64_t file, uint64_t a, uint64_t b, const void *bytes, size_t len)
{
    struct head head = {.magic = MAGIC,
                        .kind = kind,
                        .process = (uint32_t)getpid(),
                        .payload = (uint32_t)len,
                        .file = file,
                        .a = a,
                        .b = b};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)(uintptr_t)bytes, len}};
    int saved = errno;

    if (log_fd >= 0 && REAL(writev)(log_fd, parts, len ? 2 : 1) != (ssize_t)(sizeof head + len))
        abort(); /* a recording with gaps proves nothing */
    errno = saved;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("WEBBASE_POWER");
    int fd = path ? REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

    if (fd < 0)
        return;
    log_fd = fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
    REAL(close)(fd);
    /* Output must leave in fflush(), which is recorded here, and not when a small buffer is full. */
    setvbuf(stdout, NULL, _IOFBF, OUTPUT_BYTES);
}

static uint64_t log_length(void)
{
    struct stat st;

    return log_fd >= 0 && fstat(log_fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- which file ---------------------------------------------------------------------------------------- */

/* Returns the number of the regular file behind fd, 0 for anything else. */
static uint64_t file_of(int fd, struct stat *st_out)
{
    int saved = errno;
    bool found = log_fd >= 0 && fstat(fd, st_out) == 0 && S_ISREG(st_out->st_mode);

    errno = saved;
    return found ? (uint64_t)st_out->st_ino ^ (uint64_t)st_out->st_dev << 44 : 0;
}

static size_t make_absolute(const char *path, char path_out[PATH_MAX])
{
    size_t len = 0;

    if (path[0] != '/' && getcwd(path_out, PATH_MAX - 1)) {
        len = strlen(path_out);
        path_out[len++] = '/';
    }
    size_t rest = strlen(path);
    if (len + rest >= PATH_MAX)
        abort();
    memcpy(path_out + len, path, rest);
    return len + rest;
}

static void note_path(uint8_t kind, uint64_t file, uint64_t a, const char *path)
{
    char full[PATH_MAX];

    if (log_fd >= 0)
        note(kind, file, a, 0, full, make_absolute(path, full));
}

static int note_open(int fd, const char *path, int flags)
{
    struct stat st;

    if (fd < 0 || log_fd < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return fd;
    uint64_t file = file_of(fd, &st);
    if (file && ((flags & O_TMPFILE) == O_TMPFILE || st.st_nlink == 0))
        note('N', file, 0, 0, NULL, 0);
    else if (file)
        note_path('O', file, (uint64_t)flags, path);
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                                   \
    int name(const char *path, int flags, ...)                       \
    {                                                                \
        va_list arguments;                                           \
        va_start(arguments, flags);                                  \
        mode_t mode = mode_of(flags, arguments);                     \
        va_end(arguments);                                           \
        return note_open(REAL(name)(path, flags, mode), path, flags); \
    }

OPEN(open)
OPEN(open64)

/* The log must stay open even if the program closes every descriptor it finds. */
int close(int fd)
{
    return fd >= 0 && fd == log_fd ? 0 : REAL(close)(fd);
}

/* ---- contents ------------------------------------------------------------------------------------------ */

static void note_sync(int fd, uint64_t start)
{
    struct stat st;
    uint64_t file = file_of(fd, &st);
    char link[64], path[PATH_MAX];

    if (file) {
        note('S', file, start, 0, NULL, 0);
        return;
    }
    if (log_fd < 0 || fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode))
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path);
    if (len > 0)
        note('D', 0, start, 0, path, (size_t)len);
}

static bool is_synchronous(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_DSYNC);
}

static void note_write(int fd, const void *bytes, size_t len, off_t offset)
{
    struct stat st;
    uint64_t file = file_of(fd, &st);

    if (file && len)
        note('W', file, (uint64_t)offset, 0, bytes, len);
}

/* Records the sync that each write to a file with O_DSYNC implies. */
static ssize_t wrote(int fd, uint64_t start, ssize_t result)
{
    if (log_fd >= 0 && result > 0 && is_synchronous(fd))
        note_sync(fd, start);
    return result;
}

#define PWRITE(name)                                                           \
    ssize_t name(int fd, const void *bytes, size_t len, __off64_t offset)      \
    {                                                                          \
        note_write(fd, bytes, len, offset);                                    \
        uint64_t start = log_length();                                         \
        return wrote(fd, start, REAL(name)(fd, bytes, len, offset));           \
    }

PWRITE(pwrite)
PWRITE(pwrite64)

static off_t place_of(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && flags & O_APPEND && fstat(fd, &st) == 0)
        return st.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    struct stat st;

    if (log_fd >= 0 && fd == STDOUT_FILENO)
        note('A', 0, 0, 0, bytes, len);
    else if (file_of(fd, &st))
        note_write(fd, bytes, len, place_of(fd));
    uint64_t start = log_length();
    return wrote(fd, start, REAL(write)(fd, bytes, len));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    struct stat st;

    if (file_of(fd, &st)) {
        off_t offset = place_of(fd);
        for (int i = 0; i < count; i++) {
            note_write(fd, parts[i].iov_base, parts[i].iov_len, offset);
            offset += (off_t)parts[i].iov_len;
        }
    }
    uint64_t start = log_length();
    return wrote(fd, start, REAL(writev)(fd, parts, count));
}

#define TRUNCATE(name)                            \
    int name(int fd, __off64_t size)              \
    {                                             \
        struct stat st;                           \
        uint64_t file = file_of(fd, &st);         \
        if (file)                                 \
            note('T', file, (uint64_t)size, 0, NULL, 0); \
        return REAL(name)(fd, size);              \
    }

TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

/* Allocating space extends the file unless the mode says otherwise. Punching a hole leaves zeros. */
static void note_allocate(int fd, int mode, __off64_t offset, __off64_t len)
{
    struct stat st;
    uint64_t file = file_of(fd, &st);

    if (file && mode & FALLOC_FL_PUNCH_HOLE)
        note('Z', file, (uint64_t)offset, (uint64_t)len, NULL, 0);
    else if (file && !(mode & FALLOC_FL_KEEP_SIZE) && offset + len > st.st_size)
        note('T', file, (uint64_t)(offset + len), 0, NULL, 0);
}

int fallocate64(int fd, int mode, __off64_t offset, __off64_t len)
{
    note_allocate(fd, mode, offset, len);
    return REAL(fallocate64)(fd, mode, offset, len);
}

int posix_fallocate64(int fd, __off64_t offset, __off64_t len)
{
    note_allocate(fd, 0, offset, len);
    return REAL(posix_fallocate64)(fd, offset, len);
}

int fsync(int fd)
{
    if (log_fd < 0)
        return REAL(fsync)(fd);
    note_sync(fd, log_length());
    return 0;
}

int fdatasync(int fd)
{
    return fsync(fd);
}

/* ---- names --------------------------------------------------------------------------------------------- */

int rename(const char *from, const char *to)
{
    char both[2 * PATH_MAX];

    if (log_fd >= 0) {
        size_t len = make_absolute(from, both);
        both[len++] = '\0';
        len += make_absolute(to, both + len);
        note('R', 0, 0, 0, both, len);
    }
    return REAL(rename)(from, to);
}

int unlink(const char *path)
{
    note_path('U', 0, 0, path);
    return REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode)
{
    note_path('M', 0, 0, path);
    return REAL(mkdir)(path, mode);
}

int rmdir(const char *path)
{
    note_path('X', 0, 0, path);
    return REAL(rmdir)(path);
}

/* ---- what the program acknowledges ------------------------------------------------------------------------------- */

int fflush(FILE *stream)
{
    if (log_fd >= 0 && (!stream || stream == stdout) && stdout->_IO_write_ptr > stdout->_IO_write_base)
        note('A', 0, 0, 0, stdout->_IO_write_base, (size_t)(stdout->_IO_write_ptr - stdout->_IO_write_base));
    return REAL(fflush)(stream);
}
