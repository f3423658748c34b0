/*
 * manifest.c - writes and reads the manifest of an edition.
 *
 *   head, 104 bytes   0 "WBWEBDB\n"   8 format, 1 (4)  12 edition (4)  16 time in ms (8)  24 rows (8)
 *                     32 pages (8)  40 fetched (8)  48 links (8)  56 contents (8)  64 sites (8)  72 bytes (8)
 *                     80 bytes of links (8)  88 logs (4)  92 zero (4)  96 epoch of the store (8)
 *   log, 20 bytes     0 number (4)  4 offset of the last record merged (8)  12 its end (8); numbers ascend from 1
 *   end               0 XXH3 of everything before it (8)
 *
 * A manifest is valid if and only if its size matches its number of logs, the checksum matches, log numbers ascend, no
 * record ends before it starts, and there are no more pages than rows and no more fetched pages than pages.
 *
 * This file never opens a table and never looks at the directory around the manifest.
 */
#include "webdb/manifest.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/hash.h"
#include "os/path.h"

#define MAGIC "WBWEBDB\n"

enum {
    HEAD_BYTES = 104,
    HEAD_NUMBERS = 8, /* from byte 24 on */
    LOG_BYTES = 20,
    CHECK_BYTES = 8,
    LOGS_MAX = 1 << 20,
    MANIFEST_MAX = HEAD_BYTES + LOG_BYTES * LOGS_MAX + CHECK_BYTES,
};
_Static_assert(sizeof MAGIC == 8 + 1, "the head starts with 8 letters");
_Static_assert(HEAD_BYTES == 24 + 8 * HEAD_NUMBERS + 4 + 4 + 8, "the head as drawn above");
_Static_assert(LOG_BYTES == 4 + 8 + 8, "a log as drawn above");

/* The numbers of the head from byte 24 on, in their order. */
static void head_numbers(struct wb_manifest *manifest, uint64_t *numbers[HEAD_NUMBERS])
{
    struct wb_webdb_count *count = &manifest->count;
    uint64_t *all[] = {&manifest->rows,  &count->pages, &count->fetched, &count->links,
                       &count->contents, &count->sites, &count->bytes,   &count->link_bytes};

    _Static_assert(sizeof all / sizeof *all == HEAD_NUMBERS, "one address per number");
    memcpy(numbers, all, sizeof all);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_log(char *p, const struct wb_manifest_log *log)
{
    WB_CHECK(log->log > 0);
    WB_CHECK(log->last == 0 || log->end > log->last);
    wb_put32(p, log->log);
    wb_put64(p + 4, log->last);
    wb_put64(p + 12, log->end);
}

static void put_manifest(char *p, const struct wb_manifest *manifest)
{
    struct wb_manifest copy = *manifest;
    uint64_t *numbers[HEAD_NUMBERS];

    WB_CHECK(manifest->logs.count <= LOGS_MAX);
    memset(p, 0, HEAD_BYTES);
    memcpy(p, MAGIC, 8);
    wb_put32(p + 8, WB_WEBDB_FORMAT);
    wb_put32(p + 12, manifest->count.edition);
    wb_put64(p + 16, (uint64_t)manifest->count.time_ms);
    head_numbers(&copy, numbers);
    for (size_t i = 0; i < HEAD_NUMBERS; i++)
        wb_put64(p + 24 + 8 * i, *numbers[i]);
    wb_put32(p + 88, (uint32_t)manifest->logs.count);
    wb_put64(p + 96, manifest->count.store_epoch);
    p += HEAD_BYTES;
    for (size_t i = 0; i < manifest->logs.count; i++) {
        WB_CHECK(i == 0 || manifest->logs.items[i].log > manifest->logs.items[i - 1].log);
        put_log(p + LOG_BYTES * i, &manifest->logs.items[i]);
    }
}

int wb_manifest_write(const char *path, const struct wb_manifest *manifest)
{
    struct wb_buf bytes = WB_BUF_INIT;

    WB_CHECK(path != NULL);
    WB_CHECK(manifest->count.pages <= manifest->rows);
    WB_CHECK(manifest->count.fetched <= manifest->count.pages);
    if (manifest->logs.count > LOGS_MAX)
        return wb_fail(WB_E_LIMIT, "%s: the journal has more than %d logs", path, LOGS_MAX);
    size_t size = HEAD_BYTES + LOG_BYTES * manifest->logs.count;
    int err = wb_buf_reserve(&bytes, size + CHECK_BYTES);
    if (err < 0)
        goto done;
    put_manifest(bytes.ptr, manifest);
    wb_put64(bytes.ptr + size, wb_hash64(bytes.ptr, size));
    bytes.len = size + CHECK_BYTES;
    err = wb_path_replace(path, wb_buf_slice(&bytes));
done:
    wb_buf_release(&bytes);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_logs(const char *path, const char *p, uint32_t count, struct wb_manifest *manifest)
{
    WB_CHECK(count <= LOGS_MAX);
    uint32_t number = 0;
    int err = wb_vec_reserve(&manifest->logs, count);

    WB_CHECK(manifest->logs.count == 0);
    for (uint32_t i = 0; err == 0 && i < count; i++, p += LOG_BYTES) {
        struct wb_manifest_log log = {wb_get32(p), wb_get64(p + 4), wb_get64(p + 12)};
        if (log.log <= number || (log.last && log.end <= log.last))
            return wb_fail(WB_E_CORRUPT, "%s: its logs are not in order", path);
        err = wb_vec_push(&manifest->logs, log);
        number = log.log;
    }
    return err;
}

static int decode_manifest(const char *path, struct wb_slice bytes, struct wb_manifest *manifest)
{
    const char *p = bytes.ptr;
    uint64_t *numbers[HEAD_NUMBERS];

    WB_CHECK(manifest->logs.count == 0); /* nothing has been decoded yet */
    if (bytes.len < HEAD_BYTES + CHECK_BYTES || memcmp(p, MAGIC, 8) != 0)
        return wb_fail(WB_E_CORRUPT, "%s is not the manifest of a web database", path);
    if (wb_get64(p + bytes.len - CHECK_BYTES) != wb_hash64(p, bytes.len - CHECK_BYTES))
        return wb_fail(WB_E_CORRUPT, "%s: the checksum does not match", path);
    if (wb_get32(p + 8) != WB_WEBDB_FORMAT)
        return wb_fail_format(path, wb_get32(p + 8), WB_WEBDB_FORMAT);
    uint32_t logs = wb_get32(p + 88);
    if (wb_get32(p + 92) != 0 || logs > LOGS_MAX || bytes.len != HEAD_BYTES + (size_t)LOG_BYTES * logs + CHECK_BYTES)
        return wb_fail(WB_E_CORRUPT, "%s has the wrong size", path);
    manifest->count.edition = wb_get32(p + 12);
    manifest->count.time_ms = (int64_t)wb_get64(p + 16);
    head_numbers(manifest, numbers);
    for (size_t i = 0; i < HEAD_NUMBERS; i++)
        *numbers[i] = wb_get64(p + 24 + 8 * i);
    if (manifest->count.pages > manifest->rows || manifest->count.fetched > manifest->count.pages)
        return wb_fail(WB_E_CORRUPT, "%s: its counts contradict each other", path);
    manifest->count.urls = manifest->rows;
    manifest->count.store_epoch = wb_get64(p + 96);
    return read_logs(path, p + HEAD_BYTES, logs, manifest);
}

int wb_manifest_read(const char *path, struct wb_manifest *manifest_out)
{
    struct wb_buf bytes = WB_BUF_INIT;
    int err;

    WB_CHECK(path != NULL);
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
    WB_CHECK(manifest->logs.count <= manifest->logs.cap);
    wb_vec_release(&manifest->logs);
    *manifest = (struct wb_manifest){.rows = 0};
}
