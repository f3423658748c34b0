/*
 * busy.c - marks of requests that are under way: open file description locks on bytes of nodes.busy.
 *
 *   the number of a byte   puts, streams:  bits 61 and 62: kind;  bits 20 to 47: slot;    bits 0 to 19: node
 *                          gets:           bits 61 and 62: 0;     bits 40 to 60: second;
 *                                          bits 20 to 39: slot;   bits 0 to 19: node
 *
 * A mark is a lock on the bytes of its nodes in one slot, so that one call locks all of them. Each mark has its own
 * slot: those of a handle follow each other from a random one. Two handles that choose the same slot share their locks
 * and count as one, which happens once in 2^28 pairs.
 *
 * The marks of gets say in which second they were set, and only those of this second and the one before are counted.
 * So nothing has to be done when a handle has read its last page: its marks stay, and mean nothing any more. All of
 * them are in one slot, and the first get of another second removes them. Seconds are counted from the start of the
 * machine, and repeat after 24 days.
 *
 * To count, we ask the kernel for any lock in the range of a kind, and again for what lies below and above it. We ask
 * with another open file, because the kernel does not report the locks of the file with which it is asked.
 */
#include "place/busy.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/clock.h"
#include "os/path.h"
#include "os/random.h"

#include <fcntl.h>

enum {
    NODE_BITS = 20,
    SLOT_BITS = 28,
    GET_SLOT_BITS = 20,
    SECOND_SHIFT = NODE_BITS + GET_SLOT_BITS,
    KIND_SHIFT = 61,
    SECOND_BITS = KIND_SHIFT - SECOND_SHIFT,
    NS_PER_S = 1000000000,
};

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
    wb_random_bytes(&busy->get_slot, sizeof busy->get_slot);
    return 0;
}

void wb_busy_release(struct wb_busy *busy)
{
    if (!busy->path)
        return;
    wb_file_close(&busy->file);
    wb_free(busy->path);
    wb_vec_release(&busy->get_nodes);
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
    WB_CHECK(kind == WB_BUSY_PUT || kind == WB_BUSY_STREAM);
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

/* ---- gets ------------------------------------------------------------------------------------ */

/* The first byte of a second's marks. Seconds of all times are mapped to those that fit. */
static uint64_t second_at(int64_t second)
{
    return (uint64_t)WB_BUSY_GET << KIND_SHIFT | ((uint64_t)second & ((1u << SECOND_BITS) - 1)) << SECOND_SHIFT;
}

/* The first byte of the handle's slot in the second whose marks are set. */
static uint64_t get_slot_at(const struct wb_busy *busy)
{
    return second_at(busy->get_second) | (uint64_t)(busy->get_slot & ((1u << GET_SLOT_BITS) - 1)) << NODE_BITS;
}

static bool is_marked(const struct wb_busy *busy, uint32_t node)
{
    for (size_t i = 0; i < busy->get_nodes.count; i++)
        if (busy->get_nodes.items[i] == node)
            return true;
    return false;
}

/* Removes the marks of an earlier second. */
static void forget_second(struct wb_busy *busy, int64_t second)
{
    uint64_t at = get_slot_at(busy);
    struct flock lock = lock_of(F_UNLCK, at, at + (1u << NODE_BITS));

    if (busy->get_nodes.count && busy->file.fd >= 0)
        fcntl(busy->file.fd, F_OFD_SETLK, &lock);
    wb_vec_clear(&busy->get_nodes);
    busy->get_second = second;
}

void wb_busy_get(struct wb_busy *busy, uint32_t node)
{
    int64_t second = wb_clock_mono_ns() / NS_PER_S;

    WB_CHECK(busy->path != NULL);
    WB_CHECK(node > 0 && node <= WB_BUSY_NODE_MAX);
    pthread_mutex_lock(&busy->mutex);
    if (second != busy->get_second)
        forget_second(busy, second);
    if (!is_marked(busy, node) && wb_vec_push(&busy->get_nodes, node) == 0) { /* also if it cannot be marked */
        uint64_t at = get_slot_at(busy) | node;
        struct flock lock = lock_of(F_RDLCK, at, at + 1);
        if (busy->file.fd < 0)
            open_file(busy, false);
        if (busy->file.fd >= 0)
            fcntl(busy->file.fd, F_OFD_SETLK, &lock);
    }
    pthread_mutex_unlock(&busy->mutex);
}

/* ---- counting -------------------------------------------------------------------------------- */

struct busy_range {
    uint64_t from, to;
};

/* Whether the lock is a mark that concerns the node. */
static bool concerns(const struct flock *lock, uint32_t node)
{
    uint32_t mask = (1u << NODE_BITS) - 1;
    uint64_t first = (uint64_t)lock->l_start, last = first + (uint64_t)lock->l_len - 1;

    if (lock->l_len <= 0 || first >> NODE_BITS != last >> NODE_BITS) /* not a mark */
        return false;
    return (first & mask) <= node && node <= (last & mask);
}

/* Adds to *count the marks on bytes of this range that concern the node. */
static int count_range(const struct wb_file *file, uint64_t from, uint64_t to, uint32_t node, uint64_t *count)
{
    WB_VEC(struct busy_range) todo = WB_VEC_INIT;
    int err = wb_vec_push(&todo, (struct busy_range){from, to});

    while (err == 0 && todo.count > 0) {
        struct busy_range range = wb_vec_pop(&todo);
        struct flock lock = lock_of(F_WRLCK, range.from, range.to);
        if (fcntl(file->fd, F_OFD_GETLK, &lock) != 0)
            err = wb_fail_errno("cannot ask for locks on %s", file->path);
        if (err < 0 || lock.l_type == F_UNLCK)
            continue;
        *count += concerns(&lock, node);
        uint64_t start = (uint64_t)lock.l_start;
        uint64_t end = lock.l_len ? start + (uint64_t)lock.l_len : range.to; /* 0: up to the end of all files */
        if (start > range.from)
            err = wb_vec_push(&todo, (struct busy_range){range.from, start});
        if (err == 0 && end < range.to)
            err = wb_vec_push(&todo, (struct busy_range){end, range.to});
    }
    wb_vec_release(&todo);
    return err;
}

static int count_kind(const struct wb_file *file, enum wb_busy_kind kind, uint32_t node, uint64_t *count)
{
    int64_t second = wb_clock_mono_ns() / NS_PER_S;
    uint64_t now = second_at(second), before = second_at(second - 1), length = (uint64_t)1 << SECOND_SHIFT;

    if (kind != WB_BUSY_GET)
        return count_range(file, (uint64_t)kind << KIND_SHIFT, ((uint64_t)kind + 1) << KIND_SHIFT, node, count);
    int err = count_range(file, before, before + length, node, count);
    return err < 0 ? err : count_range(file, now, now + length, node, count);
}

int wb_busy_count(const char *repository_dir, uint32_t node, uint64_t counts_out[WB_BUSY_KINDS])
{
    struct wb_file file = WB_FILE_INIT;
    char *path = wb_path_join(repository_dir, WB_BUSY_NAME);
    int err = path ? wb_file_open(path, WB_FILE_READ, &file) : WB_E_NOMEM;

    for (int kind = 0; kind < WB_BUSY_KINDS; kind++) {
        uint64_t count = 0;
        if (err == 0)
            err = count_kind(&file, (enum wb_busy_kind)kind, node, &count);
        counts_out[kind] = err == 0 ? count : 0;
    }
    wb_file_close(&file);
    wb_free(path);
    return err == WB_E_NOTFOUND ? 0 : err; /* there was no request yet */
}
