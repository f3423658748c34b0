/*
 * bench_hash.c - the organisation hash: what adding pages costs in each of its three ways, and what reading costs.
 * Prints a JSON line for each measurement.
 *
 *   bench_hash DIR CORPUS [PAGES [merge]]
 *
 *   merge     all pages (or PAGES of them) in one commit: sorted by id, and merged into an empty store
 *   random    further pages in random order, each in a commit of its own
 *   buffered  further pages in random order, collected, and written by one sweep over the buckets that they concern
 *   get       pages chosen by chance, from the page cache; "reads" is the number of system calls that read, for each
 * page stream    all pages in the order of the store
 *
 * With "merge", only that. "user" and "kernel" are the processor time of all threads.
 */
#include "base/error.h"
#include "bench.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { RANDOM_PAGES = 300, BUFFERED_PAGES = 1000, GETS = 20000 };

static void must(int err)
{
    if (err >= 0)
        return;
    fprintf(stderr, "bench_hash: %s\n", wb_error_message());
    exit(1);
}

static unsigned long long count_reads(void)
{
    unsigned long long value, reads = 0;
    char name[32];
    FILE *in = fopen("/proc/self/io", "r");

    while (in && fscanf(in, "%31[^:]: %llu\n", name, &value) == 2)
        if (strcmp(name, "syscr") == 0)
            reads = value;
    if (in)
        fclose(in);
    return reads;
}

static void commit(struct wb_store *store)
{
    must(wb_store_commit(store, &(struct wb_store_commit_counts){0}));
}

/* When something began, by the clock and by the processor time of all threads. */
struct timer {
    double clock, user, kernel;
};

static struct timer now(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (struct timer){bench_seconds(), (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
                          (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6};
}

static void report(const char *what, size_t pages, uint64_t bytes, const struct timer *start)
{
    struct timer end = now();
    double seconds = end.clock - start->clock;

    printf("{\"bench\":\"hash_%s\",\"pages\":%zu,\"seconds\":%.6f,\"user\":%.3f,\"kernel\":%.3f,\"pages_s\":%.1f,"
           "\"mb_s\":%.1f}\n",
           what, pages, seconds, end.user - start->user, end.kernel - start->kernel, (double)pages / seconds,
           (double)bytes / seconds / 1e6);
    fflush(stdout);
}

/* Adds variants of pages chosen by chance, with a commit after every `batch` of them. */
static void add_random(struct wb_store *store, const struct corpus *corpus, const char *what, size_t count,
                       size_t batch, uint32_t version)
{
    struct wb_buf memory = WB_BUF_INIT;
    uint64_t chance = 7 + version, bytes = 0;
    struct timer start = now();

    for (size_t i = 0; i < count; i++) {
        struct wb_page page;
        wb_buf_clear(&memory);
        must(corpus_variant(&corpus->pages[bench_random(&chance) % corpus->count], version + (uint32_t)i, true, &memory,
                            &page));
        bytes += page.head.len + page.body.len;
        must(wb_store_put(store, &page, NULL));
        if ((i + 1) % batch == 0 || i + 1 == count)
            commit(store);
    }
    report(what, count, bytes, &start);
    wb_buf_release(&memory);
}

static void get_random(struct wb_store *store, const struct corpus *corpus, size_t pages)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    uint64_t chance = 99, bytes = 0;

    must(wb_store_get(store, corpus->pages[0].id, &page, &memory)); /* opens the files */
    unsigned long long reads = count_reads();
    double start = bench_seconds();
    for (size_t i = 0; i < GETS; i++) {
        must(wb_store_get(store, corpus->pages[bench_random(&chance) % pages].id, &page, &memory));
        bytes += page.head.len + page.body.len;
    }
    double seconds = bench_seconds() - start;
    printf("{\"bench\":\"hash_get\",\"pages\":%d,\"seconds\":%.6f,\"pages_s\":%.1f,\"reads\":%.3f}\n", GETS, seconds,
           GETS / seconds, (double)(count_reads() - reads) / GETS);
    wb_buf_release(&memory);
}

static void stream(struct wb_store *store)
{
    struct wb_store_scan *scan;
    struct wb_page page;
    uint64_t bytes = 0;
    size_t pages = 0;
    struct timer start = now();
    int got;

    must(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    while ((got = wb_store_scan_next(scan, &page)) > 0) {
        bytes += page.head.len + page.body.len;
        pages++;
    }
    must(got);
    wb_store_scan_close(scan);
    report("stream", pages, bytes, &start);
}

int main(int argc, char **argv)
{
    const struct wb_store_options options = {.design.read.organisation = WB_ORGANISATION_HASH};
    struct corpus corpus = CORPUS_INIT;
    struct wb_store *store;
    uint64_t bytes = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: bench_hash DIR CORPUS [PAGES [merge]]\n");
        return 2;
    }
    must(corpus_load(argv[2], &corpus));
    corpus_shuffle(&corpus, 3);
    size_t pages = argc > 3 ? strtoul(argv[3], NULL, 10) : corpus.count;
    pages = pages < corpus.count ? pages : corpus.count;
    must(wb_store_create(argv[1], &options));
    must(wb_store_open(argv[1], WB_STORE_WRITE, &store));
    struct timer start = now();
    for (size_t i = 0; i < pages; i++) {
        must(wb_store_put(store, &corpus.pages[i], NULL));
        bytes += corpus.pages[i].head.len + corpus.pages[i].body.len;
    }
    commit(store);
    report("merge", pages, bytes, &start);
    printf("{\"bench\":\"hash_size\",\"bytes\":%llu,\"raw\":%llu}\n", (unsigned long long)bench_dir_bytes(argv[1]),
           (unsigned long long)bytes);
    if (argc <= 4) {
        get_random(store, &corpus, pages);
        stream(store);
        add_random(store, &corpus, "random", RANDOM_PAGES, 1, 1000000);
        add_random(store, &corpus, "buffered", BUFFERED_PAGES, BUFFERED_PAGES, 2000000);
    }
    wb_store_close(store);
    corpus_release(&corpus);
    return 0;
}
