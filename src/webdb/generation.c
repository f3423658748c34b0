/*
 * generation.c - the directories of generations, and the manifest of one.
 *
 *   manifest   0 "WBWEBDB\n"   8 version 2, or 1 (4)  12 generation (4)  16 time in ms (8)  24 rows (8)  32 pages (8)
 *              40 fetched (8)  48 links (8)  56 contents (8)  64 sites (8)  72 bytes (8)  80 bytes of links (8)
 *              88 logs (4)  92 zero (4)
 *   a log      0 number (4)  4 offset of the last record merged (8)  12 its end (8)    numbers strictly ascending, none 0
 *   end        0 XXH3 of everything before (8)
 *
 * A manifest is valid if and only if its size is what its number of logs says, the checksum holds, and the counts can be
 * (no more pages than rows, no more fetched ones than pages, no record that ends before it begins). It is written last of a generation. It never opens a table.
 */
#include "webdb/generation.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC "WBWEBDB\n"

enum {
    HEAD_BYTES = 96,
    LOG_BYTES = 20,
    CHECK_BYTES = 8,
    LOGS_MAX = 1 << 20,
    MANIFEST_MAX = HEAD_BYTES + LOG_BYTES * LOGS_MAX + CHECK_BYTES,
    NAME_MAX_BYTES = 32,
    LOOKS = 16,
};

/* ---- the manifest ----------------------------------------------------------------------------------- */

/* The numbers of the head from byte 16 on, in their order. */
static void head_numbers(struct wb_manifest *manifest, uint64_t *numbers[9])
{
    struct wb_webdb_count *count = &manifest->count;
    uint64_t *all[9] = {NULL, &manifest->rows, &count->pages, &count->fetched, &count->links,
                        &count->contents, &count->sites, &count->bytes, &count->link_bytes};

    memcpy(numbers, all, sizeof all);
}

int wb_manifest_write(const char *path, const struct wb_manifest *manifest)
{
    struct wb_manifest copy = *manifest;
    struct wb_buf bytes = WB_BUF_INIT;
    uint64_t *numbers[9];
    char *p;

    WB_CHECK(manifest->version >= 1 && manifest->version <= WB_WEBDB_VERSION);
    if (manifest->merged_count > LOGS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: there are more than %d logs", path, LOGS_MAX);
    size_t size = HEAD_BYTES + LOG_BYTES * manifest->merged_count;
    int err = wb_buf_reserve(&bytes, size + CHECK_BYTES);
    if (err < 0)
        goto done;
    p = bytes.ptr;
    memset(p, 0, HEAD_BYTES);
    memcpy(p, MAGIC, 8);
    wb_put32(p + 8, manifest->version);
    wb_put32(p + 12, manifest->count.generation);
    wb_put64(p + 16, (uint64_t)manifest->count.time_ms);
    head_numbers(&copy, numbers);
    for (size_t i = 1; i < 9; i++)
        wb_put64(p + 16 + 8 * i, *numbers[i]);
    wb_put32(p + 88, (uint32_t)manifest->merged_count);
    for (size_t i = 0; i < manifest->merged_count; i++) {
        char *log = p + HEAD_BYTES + LOG_BYTES * i;
        WB_CHECK(manifest->merged[i].log > (i ? manifest->merged[i - 1].log : 0));
        wb_put32(log, manifest->merged[i].log);
        wb_put64(log + 4, manifest->merged[i].last);
        wb_put64(log + 12, manifest->merged[i].end);
    }
    wb_put64(p + size, wb_hash64(p, size));
    bytes.len = size + CHECK_BYTES;
    err = wb_path_replace(path, wb_buf_slice(&bytes));
done:
    wb_buf_release(&bytes);
    return err;
}

static int read_logs(const char *path, const char *p, uint32_t count, struct wb_manifest *manifest)
{
    if (count == 0)
        return 0;
    manifest->merged = wb_alloc_zero(count, sizeof *manifest->merged);
    if (!manifest->merged)
        return WB_E_NOMEM;
    for (uint32_t i = 0; i < count; i++, p += LOG_BYTES) {
        struct wb_merged log = {wb_get32(p), wb_get64(p + 4), wb_get64(p + 12)};
        if (log.log <= (i ? manifest->merged[i - 1].log : 0) || (log.last && log.end <= log.last))
            return wb_fail(WB_E_CORRUPT, "%s: its logs are not in order", path);
        manifest->merged[i] = log;
    }
    manifest->merged_count = count;
    return 0;
}

static int decode_manifest(const char *path, struct wb_slice bytes, struct wb_manifest *manifest)
{
    const char *p = bytes.ptr;
    uint64_t *numbers[9];

    if (bytes.len < HEAD_BYTES + CHECK_BYTES || memcmp(p, MAGIC, 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is no manifest of a web database", path);
    if (wb_get64(p + bytes.len - CHECK_BYTES) != wb_hash64(p, bytes.len - CHECK_BYTES))
        return wb_fail(WB_E_CORRUPT, "%s: the checksum does not match", path);
    manifest->version = wb_get32(p + 8);
    if (manifest->version > WB_WEBDB_VERSION)
        return wb_fail(WB_E_NEWER, "%s was made by a newer version", path);
    uint32_t logs = wb_get32(p + 88);
    if (manifest->version == 0 || wb_get32(p + 92) != 0 || logs > LOGS_MAX ||
        bytes.len != HEAD_BYTES + (size_t)LOG_BYTES * logs + CHECK_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s has the wrong size, or no version", path);
    manifest->count.generation = wb_get32(p + 12);
    manifest->count.time_ms = (int64_t)wb_get64(p + 16);
    head_numbers(manifest, numbers);
    for (size_t i = 1; i < 9; i++)
        *numbers[i] = wb_get64(p + 16 + 8 * i);
    if (manifest->count.pages > manifest->rows || manifest->count.fetched > manifest->count.pages)
        return wb_fail(WB_E_CORRUPT, "%s: its counts cannot be", path);
    return read_logs(path, p + HEAD_BYTES, logs, manifest);
}

int wb_manifest_read(const char *path, struct wb_manifest *manifest_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err;

    *manifest_out = (struct wb_manifest){.rows = 0};
    err = wb_path_read(path, MANIFEST_MAX, &bytes);
    if (err == WB_E_LIMIT)
        err = wb_fail(WB_E_CORRUPT, "%s is too large for a manifest", path);
    if (err == 0)
        err = decode_manifest(path, wb_buf_slice(&bytes), manifest_out);
    if (err < 0)
        wb_manifest_release(manifest_out);
    wb_buf_release(&bytes);
    return err;
}

void wb_manifest_release(struct wb_manifest *manifest)
{
    wb_free(manifest->merged);
    *manifest = (struct wb_manifest){.rows = 0};
}

/* ---- directories -------------------------------------------------------------------------------------- */

static void format_name(uint32_t number, char name_out[NAME_MAX_BYTES])
{
    snprintf(name_out, NAME_MAX_BYTES, "%08u", number);
}

static int note_newest(void *context, const struct wb_dir_entry *entry)
{
    uint32_t *newest = context, number = (uint32_t)strtoull(entry->name, NULL, 10);
    char canonical[NAME_MAX_BYTES];

    format_name(number, canonical);
    if (entry->kind == WB_PATH_DIR && strcmp(canonical, entry->name) == 0 && number > *newest)
        *newest = number;
    return 0;
}

int wb_generation_newest(const char *dir, uint32_t *number_out)
{
    char *path = wb_path_join(dir, WB_WEBDB_DIR);
    int err = 0;

    *number_out = 0;
    if (!path)
        return WB_E_NOMEM;
    /* There is always one, but a listing is no moment: it may have missed the new one and find the old one gone. */
    for (int look = 0; look < LOOKS && err == 0 && *number_out == 0 && wb_path_kind(path) != WB_PATH_NONE; look++)
        err = wb_dir_each(path, note_newest, number_out);
    wb_free(path);
    return err;
}

char *wb_generation_path(const char *dir, uint32_t number)
{
    char name[NAME_MAX_BYTES + sizeof WB_WEBDB_DIR] = WB_WEBDB_DIR "/";

    format_name(number, name + sizeof WB_WEBDB_DIR);
    return wb_path_join(dir, name);
}

static int remove_entry(void *context, const struct wb_dir_entry *entry)
{
    char *path = wb_path_join(context, entry->name);

    if (!path)
        return WB_E_NOMEM;
    int err = wb_path_unlink(path);
    wb_free(path);
    return err;
}

int wb_generation_remove(const char *path)
{
    if (wb_path_kind(path) == WB_PATH_NONE)
        return 0;
    int err = wb_dir_each(path, remove_entry, (void *)(uintptr_t)path);
    if (err == 0 && rmdir(path) != 0 && errno != ENOENT)
        err = wb_fail_errno("cannot remove the directory %s", path);
    return err;
}
