/*
 * bench_compact.c - compares compaction with a raw copy, and measures the disk and the page
 * cache without any store.
 *
 * A random quarter of the pages is put again with another body. The time of compaction is then
 * compared with the time to copy as many bytes as remain, from one file to another on the same
 * disk, including fsync.
 */
#include "bench_store.h"

#include "base/error.h"
#include "base/mem.h"
#include "move/move.h"
#include "os/file.h"
#include "os/path.h"
#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Puts version `version` of all pages, or of a random quarter of them. */
static int put_pages(const struct bench_job *job, const struct corpus *corpus, struct wb_store *store, uint32_t version,
                     bool quarter)
{
    struct wb_store_commit_counts commit = {0};
    struct wb_buf first_mem = WB_BUF_INIT, mem = WB_BUF_INIT;
    uint64_t seed = 99 + version;
    size_t pending = 0;
    int err = 0;

    for (size_t i = 0; i < corpus->count && err == 0; i++) {
        struct wb_page first, page;

        if (quarter && bench_random(&seed) % 4 != 0)
            continue;
        err = corpus_variant(&corpus->pages[i], version, true, &first_mem, &first);
        page = first;
        if (err == 0 && quarter)
            err = corpus_variant(&first, version + 1000, false, &mem, &page);
        if (err == 0)
            err = wb_store_put(store, &page, NULL);
        if (err == 0 && ++pending == job->batch) {
            err = wb_store_commit(store, &commit);
            pending = 0;
        }
    }
    if (err == 0)
        err = wb_store_commit(store, &commit);
    wb_buf_release(&first_mem);
    wb_buf_release(&mem);
    return err;
}

static int fill_store(const struct bench_job *job, const struct corpus *corpus, const char *dir)
{
    struct wb_store *store = NULL;
    int err = wb_store_create(dir, NULL);

    if (err == 0)
        err = wb_store_open(dir, WB_STORE_WRITE, &store);
    for (uint32_t version = 0; version < job->times && err == 0; version++)
        err = put_pages(job, corpus, store, version, false);
    for (uint32_t version = 0; version < job->times && err == 0; version++)
        err = put_pages(job, corpus, store, version, true);
    if (store)
        wb_store_close(store);
    return err;
}

/* The median time of five copies of `bytes` bytes of incompressible data, which is the gzipped corpus, repeated. */
static int time_copies(const struct bench_job *job, uint64_t bytes, double *seconds_out)
{
    char *from = wb_path_join(job->dir, "copy-from"), *to = wb_path_join(job->dir, "copy-to");
    char *packed = wb_path_join(job->corpus_dir, "pages.warc.gz");
    double seconds[5];
    int err = from && to && packed ? bench_copy_file(packed, from, bytes, &seconds[0]) : WB_E_NOMEM;

    for (size_t i = 0; i < 5 && err == 0; i++) {
        wb_path_unlink(to);
        sync();
        err = bench_copy_file(from, to, bytes, &seconds[i]);
    }
    *seconds_out = err == 0 ? bench_quantile(seconds, 5, 0.5) : 0;
    if (from && to) {
        wb_path_unlink(from);
        wb_path_unlink(to);
    }
    wb_free(from);
    wb_free(to);
    wb_free(packed);
    return err;
}

int bench_compact(const struct bench_job *job, struct corpus *corpus)
{
    char *dir = wb_path_join(job->dir, "store");
    struct wb_store *store = NULL;
    struct wb_store_stat before = {0}, after = {0};
    struct wb_move_compact_counts done = {0};
    double seconds = 0, cpu = 0, copy = 0;
    int err = dir ? fill_store(job, corpus, dir) : WB_E_NOMEM;

    if (err == 0)
        err = wb_store_open(dir, WB_STORE_WRITE, &store);
    if (err == 0)
        err = wb_store_stat(store, &before);
    /* Copy first: then the kernel has memory ready that was in use before, for copies and compaction alike. */
    if (err == 0)
        err = time_copies(job, before.bytes_stored - before.bytes_dead, &copy);
    sync();
    seconds = bench_seconds();
    cpu = bench_cpu_seconds();
    if (err == 0)
        err = wb_move_compact(store, NULL, NULL, NULL, NULL, &done);
    seconds = bench_seconds() - seconds;
    cpu = bench_cpu_seconds() - cpu;
    if (err == 0)
        err = wb_store_stat(store, &after);
    if (store)
        wb_store_close(store);
    /* Scale to the bytes that were compacted, because the catalog is not copied. */
    copy *= (double)done.bytes_after / (double)(before.bytes_stored - before.bytes_dead);
    if (err == 0)
        printf("{\"bench\":\"compact\",\"peer\":\"webbase\",\"pages\":%llu,\"dead_before\":%llu,\"dead_after\":%llu,"
               "\"bytes_before\":%llu,\"bytes_after\":%llu,\"page_bytes\":%llu,\"seconds\":%.4f,\"cpu\":%.4f,"
               "\"mb_s\":%.1f,\"copy_seconds\":%.4f,\"copy_mb_s\":%.1f,\"ratio\":%.3f}\n",
               (unsigned long long)after.pages, (unsigned long long)before.bytes_dead,
               (unsigned long long)after.bytes_dead, (unsigned long long)done.bytes_before,
               (unsigned long long)done.bytes_after, (unsigned long long)after.bytes_pages, seconds, cpu,
               (double)done.bytes_after / seconds / 1e6, copy, (double)done.bytes_after / copy / 1e6, copy / seconds);
    wb_free(dir);
    return err;
}

/* Reads a file of the corpus once from the page cache and measures GB/s. */
static int read_through(const char *dir, const char *name, double *gb_s_out)
{
    char *path = wb_path_join(dir, name);
    struct wb_file file = WB_FILE_INIT;
    size_t step = 1 << 20, got = 1;
    char *piece = wb_alloc(step);
    uint64_t at = 0;
    double start;
    int err = path && piece ? wb_file_open(path, WB_FILE_READ, &file) : WB_E_NOMEM;

    start = bench_seconds();
    while (err == 0 && got > 0) {
        err = wb_file_read_at(&file, at, piece, step, &got);
        at += got;
    }
    *gb_s_out = (double)at / (bench_seconds() - start) / 1e9;
    wb_file_close(&file);
    wb_free(piece);
    wb_free(path);
    return err;
}

int bench_raw(const struct bench_job *job, struct corpus *corpus)
{
    double warm = 0, gb_s = 0, copy = 0;
    uint64_t bytes = 256u << 20;
    int err = read_through(job->corpus_dir, "pages.warc", &warm);

    (void)corpus;
    if (err == 0)
        err = read_through(job->corpus_dir, "pages.warc", &gb_s);
    if (err == 0)
        err = time_copies(job, bytes, &copy);
    if (err == 0)
        printf(
            "{\"bench\":\"raw\",\"peer\":\"disk\",\"cache_read_gb_s\":%.3f,\"copy_bytes\":%llu,\"copy_mb_s\":%.1f}\n",
            gb_s, (unsigned long long)bytes, (double)bytes / copy / 1e6);
    return err;
}
