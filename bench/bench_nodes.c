/*
 * bench_nodes.c - adds the corpus to a repository of several nodes, and streams it. Prints a JSON line for each.
 *
 *   bench_nodes DIR CORPUS DESIGN NODES [BATCH]
 *
 * The repository is DIR/repository, which must not exist, and its nodes are DIR/disk1, DIR/disk2 and so on. To see what
 * nodes are worth on disks of their own, on a machine with one disk: slow_disk.c.
 */
#include "base/error.h"
#include "bench.h"
#include "place/design.h"
#include "os/path.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 64, PATH_BYTES = 4096 };

static void must(int err)
{
    if (err >= 0)
        return;
    fprintf(stderr, "bench_nodes: %s\n", wb_error_message());
    exit(1);
}

struct stopwatch {
    double seconds, cpu;
};

static struct stopwatch start_watch(void)
{
    return (struct stopwatch){bench_seconds(), bench_cpu_seconds()};
}

static void report(const char *what, const char *design, size_t nodes, const struct corpus *corpus,
                   struct stopwatch start)
{
    double seconds = bench_seconds() - start.seconds;

    printf("{\"bench\":\"nodes_%s\",\"design\":\"%s\",\"nodes\":%zu,\"pages\":%zu,\"seconds\":%.3f,\"cpu\":%.3f,"
           "\"pages_s\":%.0f,\"mb_s\":%.1f,\"memory\":%llu}\n",
           what, design, nodes, corpus->count, seconds, bench_cpu_seconds() - start.cpu,
           (double)corpus->count / seconds, (double)corpus->bytes / seconds / 1e6,
           (unsigned long long)bench_rss_peak_bytes());
    fflush(stdout);
}

static void create(const char *dir, const char *repository, const char *design, size_t count)
{
    static char paths[NODES_MAX][PATH_BYTES];
    const char *dirs[NODES_MAX];
    struct wb_store_options options = {.nodes = {dirs, count}};

    must(wb_design_parse(wb_slice_str(design), &options.design));
    for (size_t i = 0; i < count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/disk%zu", dir, i + 1);
        dirs[i] = paths[i];
    }
    must(wb_store_create(repository, &options));
}

static void add(const char *repository, const struct corpus *corpus, size_t batch)
{
    struct wb_store *store = NULL;

    must(wb_store_open(repository, WB_STORE_WRITE, &store));
    for (size_t i = 0; i < corpus->count; i++) {
        must(wb_store_put(store, &corpus->pages[i], NULL));
        if ((i + 1) % batch == 0 || i + 1 == corpus->count)
            must(wb_store_commit(store, &(struct wb_store_commit_counts){0}));
    }
    wb_store_close(store);
}

/* Streams all pages. The sum of their hashes says whether they are those of the corpus. */
static uint64_t stream(const char *repository, uint64_t *pages_out)
{
    struct wb_store *store = NULL;
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    uint64_t mix = 0;
    int got;

    must(wb_store_open(repository, WB_STORE_READ, &store));
    must(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    for (*pages_out = 0; (got = wb_store_scan_next(scan, &page)) > 0; ++*pages_out)
        mix += page_mix(page.key, page.head, page.body);
    must(got);
    wb_store_scan_close(scan);
    wb_store_close(store);
    return mix;
}

int main(int argc, char **argv)
{
    struct corpus corpus = CORPUS_INIT;
    size_t nodes = argc > 4 ? strtoul(argv[4], NULL, 10) : 0, batch = argc > 5 ? strtoul(argv[5], NULL, 10) : 1000;
    char repository[PATH_BYTES];
    uint64_t pages, mix = 0;

    if (argc < 5 || argc > 6 || nodes == 0 || nodes > NODES_MAX || batch == 0) {
        fprintf(stderr, "usage: bench_nodes DIR CORPUS DESIGN NODES [BATCH]\n");
        return 2;
    }
    must(corpus_load(argv[2], &corpus));
    must(wb_path_mkdirs(argv[1]));
    snprintf(repository, sizeof repository, "%s/repository", argv[1]);
    create(argv[1], repository, argv[3], nodes);
    struct stopwatch watch = start_watch();
    add(repository, &corpus, batch);
    report("add", argv[3], nodes, &corpus, watch);
    watch = start_watch();
    uint64_t got = stream(repository, &pages);
    report("stream", argv[3], nodes, &corpus, watch);
    for (size_t i = 0; i < corpus.count; i++)
        mix += page_mix(corpus.pages[i].key, corpus.pages[i].head, corpus.pages[i].body);
    if (pages != corpus.count || got != mix) {
        fprintf(stderr, "bench_nodes: the pages did not come back as they were put\n");
        return 1;
    }
    corpus_release(&corpus);
    return 0;
}
