/*
 * diskfiles.c - a disk made of files, for running the paper's simulator on this machine (section 4.5: "the block
 * labeled disk space is realized as a set of files"). Few large files, so that finding a block in them costs nothing.
 *
 * It never lets the page cache answer: a request goes to the device (O_DIRECT), or, where the file system refuses that,
 * the kernel writes each part at once and forgets the file every few requests.
 */
#include "disk.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include "sim/chance.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 4096, PIECE = 1 << 20, FORGET_EVERY = 64 };
#define FILE_BYTES ((uint64_t)1 << 30)
#define FILES_MAX 1024

struct disk_files {
    char *dir;             /* owned */
    struct wb_file *files; /* each of FILE_BYTES, except the last */
    size_t count;
    uint64_t bytes;
    char *memory, *piece; /* piece is memory, aligned to a block */
    bool direct;
    unsigned requests; /* since the kernel was told to forget */
};

static char *file_path(const struct disk_files *d, size_t number)
{
    char name[32];

    snprintf(name, sizeof name, "disk-%zu", number);
    return wb_path_join(d->dir, name);
}

static void files_free(void *state)
{
    struct disk_files *d = state;

    for (size_t i = 0; d->files && i < d->count; i++) {
        if (d->files[i].path)
            wb_path_unlink(d->files[i].path);
        wb_file_close(&d->files[i]);
    }
    wb_free(d->files);
    wb_free(d->memory);
    wb_free(d->dir);
    wb_free(d);
}

/* The kernel should not keep the file in memory; what is not yet written to the disk stays there. */
static void forget(const struct wb_file *file)
{
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* One transfer within a file and within the piece. */
static int move_piece(struct disk_files *d, uint64_t offset, size_t bytes, bool write)
{
    struct wb_file *file = &d->files[offset / FILE_BYTES];
    uint64_t at = offset % FILE_BYTES;

    WB_CHECK(bytes <= PIECE && at + bytes <= FILE_BYTES && offset % BLOCK == 0 && bytes % BLOCK == 0);
    if (!write)
        return wb_file_read_exact(file, at, d->piece, bytes);
    int err = wb_file_write_at(file, at, d->piece, bytes);
    if (err == 0 && !d->direct)
        wb_file_write_back(file, at, bytes);
    return err;
}

/* Rounds outwards to blocks, and goes on in the next file if need be. */
static int move(struct disk_files *d, uint64_t offset, uint64_t bytes, bool write)
{
    uint64_t at = offset / BLOCK * BLOCK, end = (offset + bytes + BLOCK - 1) / BLOCK * BLOCK;
    int err = 0;

    WB_CHECK(end <= d->bytes);
    while (err == 0 && at < end) {
        uint64_t n = end - at, left = FILE_BYTES - at % FILE_BYTES;
        if (n > left)
            n = left;
        if (n > PIECE)
            n = PIECE;
        err = move_piece(d, at, (size_t)n, write);
        at += n;
    }
    if (!d->direct && ++d->requests % FORGET_EVERY == 0)
        for (size_t i = 0; i < d->count; i++)
            forget(&d->files[i]);
    return err;
}

static int files_read(void *state, uint64_t offset, uint64_t bytes)
{
    return move(state, offset, bytes, false);
}

static int files_write(void *state, uint64_t offset, uint64_t bytes)
{
    return move(state, offset, bytes, true);
}

static int files_sync(void *state)
{
    struct disk_files *d = state;
    int err = 0;

    for (size_t i = 0; err == 0 && i < d->count; i++)
        err = wb_file_sync(&d->files[i]);
    return err;
}

static double files_now(void *state)
{
    (void)state;
    return (double)wb_clock_mono_ns() / 1e6;
}

/* Past the page cache, from now on. The file system may refuse it. */
static bool go_direct(const struct wb_file *file)
{
    return !wb_fault_strikes(WB_FAULT_OPEN, file->path) && fcntl(file->fd, F_SETFL, O_DIRECT) == 0;
}

static int make_file(struct disk_files *d, size_t number)
{
    struct wb_file *file = &d->files[number];
    char *path = file_path(d, number);
    int err = path ? wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, file) : WB_E_NOMEM;

    if (err == 0 && d->direct && !go_direct(file)) {
        if (number > 0)
            err = wb_fail_errno("cannot bypass the page cache with %s", path);
        d->direct = false;
    }
    wb_free(path);
    return err;
}

/* Writes every byte, so that no request meets a hole. Each block differs, in case the device looks for repetitions. */
static int fill(struct disk_files *d)
{
    struct wb_chance_dice dice = {d->bytes};
    int err = 0;

    for (size_t i = 0; i < PIECE; i += sizeof(uint32_t)) {
        uint32_t number = wb_chance_dice_next(&dice);
        memcpy(d->piece + i, &number, sizeof number);
    }
    for (uint64_t at = 0; err == 0 && at < d->bytes; at += PIECE) {
        for (uint64_t i = 0; i < PIECE; i += BLOCK) {
            uint64_t mark = at + i;
            memcpy(d->piece + i, &mark, sizeof mark);
        }
        err = move(d, at, d->bytes - at < PIECE ? d->bytes - at : PIECE, true);
    }
    return err < 0 ? err : files_sync(d);
}

static int make_files(struct disk_files *d)
{
    int err = wb_path_mkdirs(d->dir);

    for (size_t i = 0; err == 0 && i < d->count; i++)
        err = make_file(d, i);
    if (err == 0)
        err = fill(d);
    for (size_t i = 0; err == 0 && i < d->count; i++)
        forget(&d->files[i]);
    return err;
}

int wb_disk_files_init(const char *dir, uint64_t bytes, struct wb_disk *disk_out, bool *direct_out)
{
    struct disk_files *d;
    int err = 0;

    *disk_out = (struct wb_disk){.state = NULL};
    *direct_out = false;
    if (bytes < PIECE || bytes > FILES_MAX * FILE_BYTES)
        return wb_fail(WB_E_INVALID, "a disk of files has 1 MB to 1 TB, not %llu bytes", (unsigned long long)bytes);
    d = wb_alloc_zero(1, sizeof *d);
    if (!d)
        return WB_E_NOMEM;
    d->bytes = bytes / BLOCK * BLOCK;
    d->count = (size_t)((d->bytes + FILE_BYTES - 1) / FILE_BYTES);
    d->direct = true;
    d->dir = wb_strdup(dir);
    d->files = wb_alloc_zero(d->count, sizeof *d->files);
    d->memory = wb_alloc(PIECE + BLOCK);
    if (!d->dir || !d->files || !d->memory)
        err = WB_E_NOMEM;
    for (size_t i = 0; d->files && i < d->count; i++)
        d->files[i] = WB_FILE_INIT;
    if (err == 0) {
        d->piece = d->memory + (BLOCK - (uintptr_t)d->memory % BLOCK) % BLOCK;
        err = make_files(d);
    }
    if (err < 0) {
        files_free(d);
        return err;
    }
    *direct_out = d->direct;
    *disk_out = (struct wb_disk){d, files_read, files_write, files_sync, files_now, files_free};
    return 0;
}
