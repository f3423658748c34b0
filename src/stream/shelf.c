/* shelf.c - files that streams keep in the repository (shelf.h). */
#include "stream/shelf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/mapping.h"
#include "os/path.h"

#include <inttypes.h>
#include <stdio.h>

/*
 *   0   8  "WBSHELF1"
 *   8   8  kept until, in ms; renewed in place
 *  16   8  number of bytes
 *  24   8  hash of the bytes
 *  32   8  hash of the 16 bytes before, and of the first 8
 *  40      the bytes
 *
 * Valid if and only if both hashes match and the file ends with the bytes. "kept until" has no checksum: a wrong one
 * only makes the file go sooner or later.
 */
enum { AT_KEPT = 8, AT_LENGTH = 16, AT_HASH = 24, AT_CHECK = 32, HEAD_BYTES = 40 };
static const char magic[8] = "WBSHELF1";
#define SHELF_BYTES_MAX ((size_t)16 << 30)

uint64_t wb_shelf_hash(struct wb_slice bytes)
{
    return wb_hash64(bytes.ptr, bytes.len);
}

static int shelf_path(const char *dir, uint64_t hash, struct wb_buf *path_out)
{
    int err = wb_buf_printf(path_out, "%s/streams/shelf/%016" PRIx64, dir, hash);

    return err == 0 ? wb_buf_terminate(path_out) : err;
}

static uint64_t head_check(const char *head)
{
    char text[24];

    memcpy(text, head, 8);
    memcpy(text + 8, head + AT_LENGTH, 16);
    return wb_hash64(text, sizeof text);
}

/* Moves on until when a file is kept. Returns 1; 0 if there is no such file. */
static int renew(const char *path, int64_t keep_ms)
{
    struct wb_file file = WB_FILE_INIT;
    char bytes[8];
    int err = wb_file_open(path, WB_FILE_WRITE, &file);

    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0)
        err = wb_file_read_exact(&file, AT_KEPT, bytes, sizeof bytes);
    if (err == 0 && (int64_t)wb_get64(bytes) < keep_ms) {
        wb_put64(bytes, (uint64_t)keep_ms);
        err = wb_file_write_at(&file, AT_KEPT, bytes, sizeof bytes);
    }
    bool gone = err == 0 && wb_file_unlinked(&file); /* by a sweep, just now */
    wb_file_close(&file);
    return err < 0 ? err : !gone;
}

static int write_new(const char *dir, const char *path, uint64_t hash, struct wb_slice bytes, int64_t keep_ms)
{
    char *folder = wb_path_join(dir, "streams/shelf"), head[HEAD_BYTES] = {0};
    int err = folder ? wb_path_mkdirs(folder) : WB_E_NOMEM;

    memcpy(head, magic, sizeof magic);
    wb_put64(head + AT_KEPT, (uint64_t)keep_ms);
    wb_put64(head + AT_LENGTH, bytes.len);
    wb_put64(head + AT_HASH, hash);
    wb_put64(head + AT_CHECK, head_check(head));
    if (err == 0)
        err = wb_path_replace_parts(path, (struct wb_slice[]){wb_slice(head, sizeof head), bytes}, 2);
    wb_free(folder);
    return err;
}

int wb_shelf_put(const char *dir, struct wb_slice bytes, int64_t keep_ms, uint64_t *hash_out)
{
    struct wb_buf path = WB_BUF_INIT;

    *hash_out = wb_shelf_hash(bytes);
    int err = shelf_path(dir, *hash_out, &path);
    int got = err == 0 ? renew(path.ptr, keep_ms) : err;
    if (got == 0 || got == WB_E_CORRUPT)
        got = write_new(dir, path.ptr, *hash_out, bytes, keep_ms);
    /* Two who put the same bytes at once use the same temporary file: for the slower one it is gone. */
    if (err == 0 && got < 0 && renew(path.ptr, keep_ms) > 0)
        got = 0;
    wb_buf_release(&path);
    return got < 0 ? got : 0;
}

/* Checks a whole file. WB_E_CORRUPT, WB_E_NEWER. */
static int check_file(const char *path, struct wb_slice file, uint64_t hash)
{
    bool sound = file.len >= HEAD_BYTES && wb_get64(file.ptr + AT_CHECK) == head_check(file.ptr);
    unsigned format = sound ? wb_mark_format(file.ptr, magic) : 0;

    if (format > 1)
        return wb_fail_format(path, format, 1);
    if (format == 1 && wb_get64(file.ptr + AT_HASH) == hash &&
        wb_get64(file.ptr + AT_LENGTH) == file.len - HEAD_BYTES &&
        wb_hash64(file.ptr + HEAD_BYTES, file.len - HEAD_BYTES) == hash)
        return 0;
    return wb_fail(WB_E_CORRUPT, "%s is damaged; the stream that needs it cannot be resumed", path);
}

int wb_shelf_get(const char *dir, uint64_t hash, struct wb_buf *bytes_out)
{
    struct wb_buf path = WB_BUF_INIT;

    wb_buf_release(bytes_out);
    int err = shelf_path(dir, hash, &path);
    if (err == 0)
        err = wb_path_read(path.ptr, SHELF_BYTES_MAX, bytes_out);
    if (err == 0)
        err = check_file(path.ptr, wb_buf_slice(bytes_out), hash);
    if (err == 0) {
        bytes_out->len -= HEAD_BYTES;
        memmove(bytes_out->ptr, bytes_out->ptr + HEAD_BYTES, bytes_out->len);
    }
    wb_buf_release(&path);
    return err;
}

int wb_shelf_map(const char *dir, uint64_t hash, struct wb_shelf_map *map_out)
{
    struct wb_file file = WB_FILE_INIT;
    struct wb_buf path = WB_BUF_INIT;
    uint64_t size = 0;
    void *memory = NULL;

    *map_out = (struct wb_shelf_map){.memory = NULL};
    int err = shelf_path(dir, hash, &path);
    if (err == 0)
        err = wb_file_open(path.ptr, WB_FILE_READ, &file);
    if (err == 0)
        err = wb_file_size(&file, &size);
    if (err == 0 && size > HEAD_BYTES && size <= SHELF_BYTES_MAX)
        err = wb_mapping_open(&file, (size_t)size, &memory);
    if (err == 0)
        err = check_file(path.ptr, wb_slice(memory, memory ? (size_t)size : 0), hash);
    if (err == 0)
        *map_out = (struct wb_shelf_map){
            .memory = memory, .size = (size_t)size, .bytes = {(char *)memory + HEAD_BYTES, (size_t)size - HEAD_BYTES}};
    else if (memory)
        wb_mapping_close(memory, (size_t)size);
    wb_file_close(&file);
    wb_buf_release(&path);
    return err;
}

void wb_shelf_unmap(struct wb_shelf_map *map)
{
    if (map->memory)
        wb_mapping_close(map->memory, map->size);
    *map = (struct wb_shelf_map){.memory = NULL};
}

struct shelf_sweep {
    const char *folder;
    int64_t now_ms;
};

static int sweep_entry(void *context, const struct wb_path_entry *entry)
{
    const struct shelf_sweep *sweep = context;
    struct wb_file file = WB_FILE_INIT;
    char bytes[8];

    if (entry->kind != WB_PATH_FILE)
        return 0;
    char *path = wb_path_join(sweep->folder, entry->name);
    if (!path)
        return WB_E_NOMEM;
    int err = wb_file_open(path, WB_FILE_READ, &file);
    if (err == 0)
        err = wb_file_read_exact(&file, AT_KEPT, bytes, sizeof bytes);
    /* Too short, or left by a crash: PATH.tmp has the moment too, once it is complete. */
    bool expired = err == WB_E_CORRUPT ? entry->mtime_ms < sweep->now_ms - WB_SHELF_CRASH_MS
                                       : err == 0 && (int64_t)wb_get64(bytes) < sweep->now_ms;
    wb_file_close(&file);
    if (expired)
        wb_path_unlink(path);
    wb_free(path);
    return 0;
}

void wb_shelf_sweep(const char *dir, int64_t now_ms)
{
    char *folder = wb_path_join(dir, "streams/shelf");
    struct shelf_sweep sweep = {.folder = folder, .now_ms = now_ms};

    if (folder && wb_path_kind(folder) == WB_PATH_DIR)
        wb_path_each(folder, sweep_entry, &sweep);
    wb_free(folder);
}
