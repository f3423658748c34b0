/*
 * bench_snapshots.c - what snapshots cost: sealing one, and reading the latest state while many are held.
 *
 * For the second question there are two stores, which get the same pages and the same edits in the same commits.
 * One of them seals a snapshot after each commit of edits. Both have the policy `newest`.
 */
#include "bench_versions.h"

#include "base/error.h"
#include "base/mem.h"
#include "bench_edit.h"
#include "move/move.h"
#include "os/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
    SMALL_SITES = 1000,
    EDITED_AT_ONCE = 100, /* one page in a hundred is edited between two snapshots */
};

static const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};

/* ---- sealing ----------------------------------------------------------------------------------------------------- */

/* Puts the small page number `number`. */
static int put_small(struct wb_store *store, size_t number, struct wb_buf *mem)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    size_t key_len;
    int err = 0;

    wb_buf_clear(mem);
    err = wb_buf_printf(mem, "https://s%zu.example/%zu", number % SMALL_SITES, number);
    key_len = mem->len;
    if (err == 0)
        err = wb_buf_printf(mem, "<p>page %zu", number);
    struct wb_page page = {.url = wb_slice(mem->ptr, key_len),
                           .key = wb_slice(mem->ptr, key_len),
                           .head = wb_slice(head, sizeof(head) - 1),
                           .type = WB_SLICE_LIT("text/html"),
                           .body = wb_slice(mem->ptr + key_len, mem->len - key_len),
                           .body_bytes = mem->len - key_len,
                           .time_ms = 1767225600000 + (int64_t)number,
                           .status = 200,
                           .kind = WB_PAGE_RESPONSE};

    page.id = wb_pageid_of_key(page.key);
    return err < 0 ? err : wb_store_put(store, &page, NULL);
}

/* The median time of writing 4 KB into a file that exists, and syncing it: what the disk alone takes. */
static double sync_seconds(const char *dir)
{
    char piece[4096] = {0};
    double times[100] = {0};
    char *path = wb_path_join(dir, "sync-test");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

    for (size_t i = 0; i < 100 && fd >= 0; i++) {
        double start = bench_seconds();

        if (pwrite(fd, piece, sizeof(piece), (off_t)(i % 10 * sizeof(piece))) < 0 || fdatasync(fd) < 0)
            break;
        times[i] = bench_seconds() - start;
    }
    if (fd >= 0)
        close(fd);
    if (path)
        wb_path_unlink(path);
    wb_free(path);
    return bench_quantile(times, 100, 0.5);
}

static int time_seals(const struct versions_job *job, struct wb_store *store, size_t pages)
{
    double *times = wb_alloc_zero(job->snapshots + 1, sizeof *times), cpu = bench_cpu_seconds();
    int err = times ? 0 : WB_E_NOMEM;

    for (size_t i = 0; i < job->snapshots && err == 0; i++) {
        struct wb_store_snapshot snapshot = {0};
        double start = bench_seconds();

        err = wb_store_seal(store, wb_slice(NULL, 0), &person, &snapshot);
        times[i] = bench_seconds() - start;
        wb_store_snapshot_release(&snapshot);
    }
    cpu = bench_cpu_seconds() - cpu;
    if (err == 0)
        printf("{\"bench\":\"seal\",\"pages\":%zu,\"seals\":%zu,\"p50_us\":%.1f,\"max_us\":%.1f,\"cpu_us\":%.1f,"
               "\"sync_us\":%.1f}\n",
               pages, job->snapshots, bench_quantile(times, job->snapshots, 0.5) * 1e6,
               bench_quantile(times, job->snapshots, 1) * 1e6, cpu * 1e6 / (double)job->snapshots,
               sync_seconds(job->dir) * 1e6);
    wb_free(times);
    return err;
}

int bench_seal(const struct versions_job *job, struct corpus *corpus)
{
    struct wb_store_commit_counts counts = {0};
    struct wb_store *store = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    size_t pages = job->pages ? job->pages : 1000000;
    int err = wb_store_create(job->dir, NULL);

    (void)corpus;
    if (err == 0)
        err = wb_store_open(job->dir, WB_STORE_WRITE, &store);
    for (size_t i = 0; i < pages && err == 0; i++) {
        err = put_small(store, i, &mem);
        if (err == 0 && ((i + 1) % 10000 == 0 || i + 1 == pages))
            err = wb_store_commit(store, &counts);
    }
    sync();
    if (err == 0)
        err = time_seals(job, store, pages);
    wb_store_close(store);
    wb_buf_release(&mem);
    return err;
}

/* ---- two stores ----------------------------------------------------------------------------------------- */

struct twins {
    char *dirs[2]; /* without and with snapshots */
    struct wb_store *stores[2];
    struct editor editor;
    struct wb_buf mem;
};

static int twins_open(const struct versions_job *job, bool create, struct twins *t)
{
    int err = 0;

    *t = (struct twins){.editor = EDITOR_INIT};
    for (size_t k = 0; k < 2 && err == 0; k++) {
        t->dirs[k] = wb_path_join(job->dir, k ? "with" : "without");
        err = t->dirs[k] ? 0 : WB_E_NOMEM;
        if (err == 0 && create)
            err = wb_store_create(t->dirs[k], NULL);
        if (err == 0)
            err = wb_store_open(t->dirs[k], create ? WB_STORE_WRITE : WB_STORE_READ, &t->stores[k]);
    }
    return err;
}

static void twins_close(struct twins *t)
{
    for (size_t k = 0; k < 2; k++) {
        wb_store_close(t->stores[k]);
        wb_free(t->dirs[k]);
    }
    editor_release(&t->editor);
    wb_buf_release(&t->mem);
}

static int commit_both(struct twins *t, bool seal)
{
    struct wb_store_commit_counts counts = {0};
    struct wb_store_snapshot snapshot = {0};
    int err = wb_store_commit(t->stores[0], &counts);

    if (err == 0)
        err = wb_store_commit(t->stores[1], &counts);
    if (err == 0 && seal)
        err = wb_store_seal(t->stores[1], wb_slice(NULL, 0), &person, &snapshot);
    wb_store_snapshot_release(&snapshot);
    return err;
}

static int put_both(struct twins *t, const struct wb_page *page)
{
    int err = wb_store_put(t->stores[0], page, NULL);

    return err < 0 ? err : wb_store_put(t->stores[1], page, NULL);
}

int bench_twin(const struct versions_job *job, struct corpus *corpus)
{
    struct twins t;
    uint64_t seed = 5;
    int err = wb_path_mkdirs(job->dir);

    if (err == 0)
        err = twins_open(job, true, &t);
    if (err == 0)
        err = editor_init(corpus, &t.editor);
    for (size_t i = 0; i < corpus->count && err == 0; i++) {
        err = put_both(&t, &corpus->pages[i]);
        if (err == 0 && ((i + 1) % job->batch == 0 || i + 1 == corpus->count))
            err = commit_both(&t, false);
    }
    for (size_t round = 1; round <= job->snapshots && err == 0; round++) {
        for (size_t i = 0; i < corpus->count / EDITED_AT_ONCE && err == 0; i++) {
            struct wb_page page;

            err = editor_next(&t.editor, &corpus->pages[bench_random(&seed) % corpus->count], seed,
                              (int64_t)round * WB_DAY_MS, &t.mem, &page);
            if (err == 0)
                err = put_both(&t, &page);
        }
        if (err == 0)
            err = commit_both(&t, true);
    }
    for (size_t k = 0; k < 2 && err == 0; k++) {
        struct wb_move_compact_counts done = {0};

        err = wb_move_compact(t.stores[k], NULL, NULL, NULL, NULL, &done);
        if (err == 0)
            printf("{\"bench\":\"twin\",\"with\":%zu,\"disk\":%llu}\n", k,
                   (unsigned long long)bench_dir_bytes(t.dirs[k]));
    }
    twins_close(&t);
    return err;
}

static int scan_latest(struct wb_store *store, uint64_t *pages_out)
{
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    int err = wb_store_scan_open(store, &(struct wb_store_scan_options){.snapshot = 0}, &scan);

    *pages_out = 0;
    if (err < 0)
        return err;
    while ((err = wb_store_scan_next(scan, &page)) == 1)
        ++*pages_out;
    wb_store_scan_close(scan);
    return err;
}

/* One measurement of one of the stores. */
static int read_one(const struct versions_job *job, const struct corpus *corpus, struct twins *t, size_t k,
                    uint64_t seed, bool print)
{
    uint64_t pages = 0;
    struct wb_page page;
    double scan, get = bench_cpu_seconds();
    int err = 0;

    for (size_t i = 0; i < job->gets && err == 0; i++)
        err = wb_store_get(t->stores[k], corpus->pages[bench_random(&seed) % corpus->count].id, &page, &t->mem);
    get = bench_cpu_seconds() - get;
    scan = bench_cpu_seconds();
    if (err == 0)
        err = scan_latest(t->stores[k], &pages);
    scan = bench_cpu_seconds() - scan;
    if (err == 0 && pages != corpus->count)
        err = wb_fail(WB_E_CORRUPT, "%llu pages were scanned, but there are %zu", (unsigned long long)pages,
                      corpus->count);
    if (err == 0 && print)
        printf("{\"bench\":\"held\",\"with\":%zu,\"gets_cpu_s\":%.0f,\"scan_cpu\":%.4f}\n", k, (double)job->gets / get,
               scan);
    return err;
}

int bench_held(const struct versions_job *job, struct corpus *corpus)
{
    struct twins t;
    int err = twins_open(job, false, &t);

    for (size_t round = 0; round <= job->rounds && err == 0; round++)
        for (size_t i = 0; i < 2 && err == 0; i++)
            err = read_one(job, corpus, &t, (i + round) % 2, round + 1, round > 0);
    twins_close(&t);
    return err;
}
