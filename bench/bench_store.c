/*
 * bench_store.c - measures our store and other stores with the corpus.
 *
 *   bench_store add|scan|get|check|grow --peer NAME --dir DIR --corpus DIR [options]
 *   bench_store compact --dir DIR --corpus DIR      (ours only, compared with a raw copy)
 *   bench_store raw --dir DIR --corpus DIR          (the disk and the page cache alone)
 *
 * A process makes one measurement and prints one JSON line. bench/run repeats measurements, takes
 * turns between the stores and prints tables for people.
 */
#include "bench_store.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct peer *const peers[] = {
    &peer_webbase,     &peer_webbase_hashed_log, &peer_rocksdb, &peer_rocksdb_default,
    &peer_rocksdb_64k, &peer_rocksdb_dict,       &peer_sqlite,
};

static int run_add(const struct bench_job *job, struct corpus *corpus)
{
    uint64_t rss = 0;
    double start = 0, cpu = 0, added = 0, finished = 0;
    void *state = NULL;
    int err;

    if (job->shuffled)
        corpus_shuffle(corpus, 7);
    sync();
    rss = bench_rss_bytes();
    err = job->peer->open(job->dir, true, &state);
    if (err < 0)
        return err;
    start = bench_seconds();
    cpu = bench_cpu_seconds();
    for (size_t i = 0; i < corpus->count && err == 0; i += job->batch)
        err = job->peer->add(state, corpus->pages + i, corpus->count - i < job->batch ? corpus->count - i : job->batch);
    added = bench_seconds() - start;
    if (err == 0)
        err = job->peer->finish(state);
    finished = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    job->peer->close(state);
    if (err < 0)
        return err;
    printf("{\"bench\":\"add\",\"peer\":\"%s\",\"order\":\"%s\",\"pages\":%zu,\"bytes\":%llu,\"batch\":%zu,"
           "\"seconds\":%.3f,\"seconds_before_finish\":%.3f,\"cpu\":%.3f,\"pages_s\":%.0f,\"mb_s\":%.1f,"
           "\"memory\":%llu,\"disk\":%llu,\"settings\":\"%s\"}\n",
           job->peer->name, job->shuffled ? "shuffled" : "sorted", corpus->count, (unsigned long long)corpus->bytes,
           job->batch, finished, added, cpu, (double)corpus->count / finished, (double)corpus->bytes / finished / 1e6,
           (unsigned long long)(bench_rss_peak_bytes() - rss), (unsigned long long)bench_dir_bytes(job->dir),
           job->peer->settings);
    return 0;
}

/* ---- scanning ---------------------------------------------------------------------- */

struct scan_thread {
    const struct bench_job *job;
    void *state;
    const struct wb_slice *split;
    unsigned part;
    struct scan_sum sum;
    struct wb_error_copy error;
    pthread_t thread;
};

static void *scan_part(void *context)
{
    struct scan_thread *t = context;
    int err = t->job->peer->scan(t->state, t->part, t->job->threads, t->split, &t->sum);

    wb_error_save(err, &t->error);
    return NULL;
}

static int compare_keys(const void *a, const void *b)
{
    const struct wb_page *x = a, *y = b;
    size_t len = x->key.len < y->key.len ? x->key.len : y->key.len;
    int order = memcmp(x->key.ptr, y->key.ptr, len);

    return order ? order : x->key.len < y->key.len ? -1 : x->key.len > y->key.len;
}

/* Finds the keys that divide the bytes of the corpus into equal parts. */
static void find_splits(struct corpus *corpus, unsigned parts, struct wb_slice *split_out)
{
    uint64_t seen = 0;
    unsigned cut = 1;

    qsort(corpus->pages, corpus->count, sizeof(*corpus->pages), compare_keys);
    for (size_t i = 0; i < corpus->count && cut < parts; i++) {
        seen += corpus->pages[i].head.len + corpus->pages[i].body.len;
        if (seen >= corpus->bytes * cut / parts)
            split_out[cut++ - 1] = corpus->pages[i].key;
    }
}

static int scan_all(const struct bench_job *job, void *state, const struct wb_slice *split, struct scan_sum *sum)
{
    struct scan_thread threads[BENCH_THREADS_MAX];
    int err = 0;

    for (unsigned i = 0; i < job->threads; i++) {
        threads[i] =
            (struct scan_thread){.job = job, .state = state, .split = split, .part = i, .sum.check = sum->check};
        if (i > 0 && pthread_create(&threads[i].thread, NULL, scan_part, &threads[i]) != 0)
            return wb_fail(WB_E_NOMEM, "cannot start a thread");
    }
    scan_part(&threads[0]);
    for (unsigned i = 0; i < job->threads; i++) {
        if (i > 0)
            pthread_join(threads[i].thread, NULL);
        if (threads[i].error.code < 0 && err == 0)
            err = wb_error_restore(&threads[i].error);
        sum->pages += threads[i].sum.pages;
        sum->bytes += threads[i].sum.bytes;
        sum->mix += threads[i].sum.mix;
    }
    return err;
}

static int run_scan(const struct bench_job *job, struct corpus *corpus)
{
    struct wb_slice split[BENCH_THREADS_MAX];
    struct scan_sum sum = {.pages = 0}, warm = {.pages = 0};
    double start, cpu, seconds;
    void *state = NULL;
    int err = job->peer->open(job->dir, false, &state);

    if (err < 0)
        return err;
    find_splits(corpus, job->threads, split);
    err = scan_all(job, state, split, &warm);
    start = bench_seconds();
    cpu = bench_cpu_seconds();
    if (err == 0)
        err = scan_all(job, state, split, &sum);
    seconds = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    job->peer->close(state);
    if (err < 0)
        return err;
    if (sum.pages != corpus->count)
        return wb_fail(WB_E_CORRUPT, "%s: %llu pages were scanned, but there are %zu", job->peer->name,
                       (unsigned long long)sum.pages, corpus->count);
    printf("{\"bench\":\"scan\",\"peer\":\"%s\",\"threads\":%u,\"pages\":%llu,\"bytes\":%llu,\"seconds\":%.4f,"
           "\"cpu\":%.4f,\"gb_s\":%.3f,\"gb_cpu_s\":%.3f}\n",
           job->peer->name, job->threads, (unsigned long long)sum.pages, (unsigned long long)sum.bytes, seconds, cpu,
           (double)sum.bytes / seconds / 1e9, (double)sum.bytes / cpu / 1e9);
    return 0;
}

/* ---- random reads -------------------------------------------------------------------- */

/* Chooses the key of a random page, as it is in the corpus or as grow changed it. */
static int random_key(const struct bench_job *job, const struct corpus *corpus, uint64_t *seed, struct wb_buf *key)
{
    const struct wb_page *page = &corpus->pages[bench_random(seed) % corpus->count];

    wb_buf_clear(key);
    if (job->versions == 0)
        return wb_buf_append_slice(key, page->key);
    return wb_buf_printf(key, "%.*s?v=%u", WB_SLICE_ARG(page->key), (unsigned)(bench_random(seed) % job->versions));
}

static int get_pages(const struct bench_job *job, const struct corpus *corpus, void *state, struct scan_sum *sum,
                     double *times)
{
    struct wb_buf key = WB_BUF_INIT;
    uint64_t seed = 42;
    int err = 0;

    for (size_t i = 0; i < job->gets && err == 0; i++) {
        double start;

        err = random_key(job, corpus, &seed, &key);
        start = bench_seconds();
        if (err == 0)
            err = job->peer->get(state, wb_buf_slice(&key), sum);
        if (times)
            times[i] = bench_seconds() - start;
    }
    wb_buf_release(&key);
    return err;
}

static int run_get(const struct bench_job *job, struct corpus *corpus)
{
    struct scan_sum sum = {.pages = 0}, warm = {.pages = 0};
    double *times = wb_alloc_zero(job->gets + 1, sizeof(*times)), start, cpu, seconds;
    void *state = NULL;
    int err = times ? job->peer->open(job->dir, false, &state) : WB_E_NOMEM;

    if (err < 0)
        goto done;
    err = get_pages(job, corpus, state, &warm, NULL);
    start = bench_seconds();
    cpu = bench_cpu_seconds();
    if (err == 0)
        err = get_pages(job, corpus, state, &sum, times);
    seconds = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    job->peer->close(state);
    if (err < 0)
        goto done;
    printf("{\"bench\":\"get\",\"peer\":\"%s\",\"versions\":%u,\"gets\":%zu,\"seconds\":%.4f,\"cpu\":%.4f,"
           "\"pages_s\":%.0f,\"pages_cpu_s\":%.0f,\"mb_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f}\n",
           job->peer->name, job->versions, job->gets, seconds, cpu, (double)job->gets / seconds,
           (double)job->gets / cpu, (double)sum.bytes / seconds / 1e6, bench_quantile(times, job->gets, 0.5) * 1e6,
           bench_quantile(times, job->gets, 0.99) * 1e6);
done:
    wb_free(times);
    return err;
}

/* Checks, without measuring time, that a scan and a get of each page return every page as it was put. */
static int run_check(const struct bench_job *job, struct corpus *corpus)
{
    struct wb_slice split[BENCH_THREADS_MAX];
    struct scan_sum scanned = {.check = true}, got = {.check = true};
    uint64_t mix = 0;
    void *state = NULL;
    int err = job->peer->open(job->dir, false, &state);

    if (err < 0)
        return err;
    find_splits(corpus, job->threads, split);
    err = scan_all(job, state, split, &scanned);
    for (size_t i = 0; i < corpus->count && err == 0; i++) {
        mix += page_mix(corpus->pages[i].key, corpus->pages[i].head, corpus->pages[i].body);
        err = job->peer->get(state, corpus->pages[i].key, &got);
    }
    job->peer->close(state);
    if (err < 0)
        return err;
    if (scanned.mix != mix || got.mix != mix || got.pages != corpus->count || got.bytes != corpus->bytes)
        return wb_fail(WB_E_CORRUPT, "%s: pages did not come back as they were put", job->peer->name);
    printf("{\"bench\":\"check\",\"peer\":\"%s\",\"pages\":%llu,\"ok\":true}\n", job->peer->name,
           (unsigned long long)got.pages);
    return 0;
}

/* ---- the command line -------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const struct bench_job *job, struct corpus *corpus);
    bool needs_peer;
} commands[] = {
    {"add", run_add, true},     {"scan", run_scan, true},          {"get", run_get, true}, {"check", run_check, true},
    {"grow", bench_grow, true}, {"compact", bench_compact, false}, {"raw", bench_raw, false},
};

static int usage(void)
{
    fprintf(stderr, "usage: bench_store add|scan|get|check|grow|compact|raw --dir DIR --corpus DIR [--peer NAME]\n"
                    "       [--batch N] [--threads N] [--gets N] [--pages N] [--times N] [--versions N]\n"
                    "       [--order sorted|shuffled]\n"
                    "peers:");
    for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++)
        fprintf(stderr, " %s", peers[i]->name);
    fprintf(stderr, "\n");
    return 2;
}

static bool parse_option(struct bench_job *job, const char *name, const char *value)
{
    size_t number = strtoul(value, NULL, 10);

    if (strcmp(name, "--dir") == 0)
        job->dir = value;
    else if (strcmp(name, "--corpus") == 0)
        job->corpus_dir = value;
    else if (strcmp(name, "--order") == 0)
        job->shuffled = strcmp(value, "shuffled") == 0;
    else if (strcmp(name, "--batch") == 0 && number > 0)
        job->batch = number;
    else if (strcmp(name, "--threads") == 0 && number > 0 && number <= BENCH_THREADS_MAX)
        job->threads = (unsigned)number;
    else if (strcmp(name, "--gets") == 0 && number > 0)
        job->gets = number;
    else if (strcmp(name, "--pages") == 0 && number > 0)
        job->pages = number;
    else if (strcmp(name, "--versions") == 0)
        job->versions = (unsigned)number;
    else if (strcmp(name, "--times") == 0 && number > 0)
        job->times = (unsigned)number;
    else if (strcmp(name, "--peer") == 0)
        for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++)
            job->peer = strcmp(peers[i]->name, value) == 0 ? peers[i] : job->peer;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct bench_job job = {.batch = 1000, .threads = 1, .gets = 50000, .pages = 1000000, .times = 1};
    struct corpus corpus = CORPUS_INIT;
    int err = 0;

    for (int i = 2; i < argc; i += 2)
        if (i + 1 >= argc || !parse_option(&job, argv[i], argv[i + 1]))
            return usage();
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        if (!job.dir || !job.corpus_dir || (commands[i].needs_peer && !job.peer))
            return usage();
        err = corpus_load(job.corpus_dir, &corpus);
        if (err == 0)
            err = wb_path_mkdirs(job.dir);
        if (err == 0)
            err = commands[i].run(&job, &corpus);
        corpus_release(&corpus);
        if (err < 0)
            fprintf(stderr, "bench_store: %s\n", wb_error_message());
        return err < 0 ? 1 : 0;
    }
    return usage();
}
