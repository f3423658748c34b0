/*
 * busy.c - marks of requests that are under way: open file description locks on bytes of nodes.busy.
 *
 *   the number of a byte   bits 48 and 49: kind;  bits 20 to 47: slot;  bits 0 to 19: node
 *
 * A mark is a lock on the bytes of its nodes in one slot, so that one call locks all of them. Each mark has its own
 * slot: those of a handle follow each other from a random one. Two handles that choose the same slot share their locks
 * and count as one, which happens once in 2^28 pairs.
 *
 * Whoever counts asks the kernel for any lock in the range of a kind, and again for what lies below and above it. It
 * asks with a file of its own, because the kernel does not report the locks of the file with which it is asked.
 */
#include "place/busy.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/path.h"
#include "os/random.h"

#include <fcntl.h>

enum { NODE_BITS = 20, SLOT_BITS = 28, KIND_SHIFT = NODE_BITS + SLOT_BITS };

_Static_assert(WB_BUSY_NODE_MAX < (1 << NODE_BITS) - 1, "locks of neighbouring slots never touch, so they never merge");

static struct flock lock_of(short type, uint64_t from, uint64_t to)
{
    WB_CHECK(from < to && to <= INT64_MAX);
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)(to - from)};
}

int wb_busy_init(struct wb_busy *busy, const char *repository_dir)
{
    *busy = (struct wb_busy){.file = WB_FILE_INIT};
    busy->path = wb_path_join(repository_dir, WB_BUSY_NAME);
    if (!busy->path)
        return WB_E_NOMEM;
    pthread_mutex_init(&busy->mutex, NULL);
    wb_random_bytes(&busy->next, sizeof busy->next);
    return 0;
}

void wb_busy_release(struct wb_busy *busy)
{
    if (!busy->path)
        return;
    wb_file_close(&busy->file);
    wb_free(busy->path);
    pthread_mutex_destroy(&busy->mutex);
    *busy = (struct wb_busy){.file = WB_FILE_INIT};
}

/*
 * Opens the file, for reading if it cannot be written. Only a put makes it: reading a repository changes nothing in it.
 * The message of an error is dropped.
 */
static void open_file(struct wb_busy *busy, bool make)
{
    struct wb_error_copy before;

    wb_error_save(0, &before);
    if (!make || wb_file_open(busy->path, WB_FILE_WRITE | WB_FILE_CREATE, &busy->file) < 0)
        wb_file_open(busy->path, WB_FILE_READ, &busy->file);
    wb_error_restore(&before);
}

struct wb_busy_mark wb_busy_begin(struct wb_busy *busy, enum wb_busy_kind kind, uint32_t first, uint32_t last)
{
    WB_CHECK(busy->path != NULL);
    WB_CHECK((unsigned)kind < WB_BUSY_KINDS);
    WB_CHECK(first > 0 && first <= last && last <= WB_BUSY_NODE_MAX);

    pthread_mutex_lock(&busy->mutex);
    if (busy->file.fd < 0)
        open_file(busy, kind == WB_BUSY_PUT);
    uint64_t slot = busy->next++ & ((1u << SLOT_BITS) - 1);
    int fd = busy->file.fd;
    pthread_mutex_unlock(&busy->mutex);
    struct wb_busy_mark mark = {(uint64_t)kind << KIND_SHIFT | slot << NODE_BITS | first, last - first + 1};
    struct flock lock = lock_of(F_RDLCK, mark.at, mark.at + mark.bytes);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) != 0)
        return (struct wb_busy_mark){0};
    return mark;
}

void wb_busy_end(struct wb_busy *busy, struct wb_busy_mark *mark)
{
    if (mark->bytes == 0)
        return;
    WB_CHECK(busy->file.fd >= 0);
    struct flock lock = lock_of(F_UNLCK, mark->at, mark->at + mark->bytes);
    fcntl(busy->file.fd, F_OFD_SETLK, &lock);
    *mark = (struct wb_busy_mark){0};
}

/* ---- counting -------------------------------------------------------------------------------- */

struct busy_range {
    uint64_t from, to;
};

static void report(const struct flock *lock, void (*each)(void *context, uint32_t first, uint32_t last), void *context)
{
    uint32_t mask = (1u << NODE_BITS) - 1;
    uint64_t last = (uint64_t)lock->l_start + (uint64_t)lock->l_len - 1;

    if (lock->l_len > 0 && (uint64_t)lock->l_start >> NODE_BITS == last >> NODE_BITS) /* otherwise it is no mark */
        each(context, (uint32_t)lock->l_start & mask, (uint32_t)last & mask);
}

int wb_busy_each(const char *repository_dir, enum wb_busy_kind kind,
                 void (*each)(void *context, uint32_t first, uint32_t last), void *context)
{
    WB_VEC(struct busy_range) todo = WB_VEC_INIT;
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(repository_dir, WB_BUSY_NAME);
    int err = path ? wb_file_open(path, WB_FILE_READ, &file) : WB_E_NOMEM;

    WB_CHECK((unsigned)kind < WB_BUSY_KINDS);
    if (err == 0)
        err = wb_vec_push(&todo, (struct busy_range){(uint64_t)kind << KIND_SHIFT, ((uint64_t)kind + 1) << KIND_SHIFT});
    while (err == 0 && todo.count > 0) {
        struct busy_range range = wb_vec_pop(&todo);
        struct flock lock = lock_of(F_WRLCK, range.from, range.to);
        if (fcntl(file.fd, F_OFD_GETLK, &lock) != 0)
            err = wb_fail_errno("cannot ask for locks on %s", path);
        if (err < 0 || lock.l_type == F_UNLCK)
            continue;
        report(&lock, each, context);
        uint64_t start = (uint64_t)lock.l_start;
        uint64_t end = lock.l_len ? start + (uint64_t)lock.l_len : range.to; /* 0: up to the end of all files */
        if (start > range.from)
            err = wb_vec_push(&todo, (struct busy_range){range.from, start});
        if (err == 0 && end < range.to)
            err = wb_vec_push(&todo, (struct busy_range){end, range.to});
    }
    wb_vec_release(&todo);
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err; /* there was no request yet */
}

struct busy_count {
    uint32_t node;
    uint64_t count;
};

static void count_one(void *context, uint32_t first, uint32_t last)
{
    struct busy_count *count = context;

    count->count += first <= count->node && count->node <= last;
}

int wb_busy_count(const char *repository_dir, uint32_t node, uint64_t counts_out[WB_BUSY_KINDS])
{
    int err = 0;

    for (int kind = 0; kind < WB_BUSY_KINDS; kind++) {
        struct busy_count count = {.node = node};
        if (err == 0)
            err = wb_busy_each(repository_dir, (enum wb_busy_kind)kind, count_one, &count);
        counts_out[kind] = err == 0 ? count.count : 0;
    }
    return err;
}
