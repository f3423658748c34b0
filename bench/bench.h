/*
 * bench.h - what the benchmark programs share: the corpus, the peers, the clocks.
 *
 * A peer is something that keeps pages. All of them get the same pages in the
 * same order and the same batches; a batch is durable when add returns.
 */
#ifndef WB_BENCH_BENCH_H
#define WB_BENCH_BENCH_H

#include "base/buf.h"
#include "page/page.h"

/* ---- the corpus: bench/corpus writes it, here it is read ------------------------- */

struct corpus {
    struct wb_page *pages; /* borrow from the map and from text */
    size_t count;
    uint64_t bytes;        /* heads and bodies */
    const char *map;       /* pages.warc */
    size_t map_bytes;
    struct wb_buf text;    /* pages.tsv */
    struct wb_buf keys;
};

#define CORPUS_INIT ((struct corpus){.pages = NULL})

int corpus_load(const char *dir, struct corpus *corpus_out);
void corpus_release(struct corpus *corpus);

/* Puts the pages into a random order (the same one for the same seed): the order of a crawl of many sites at once. */
void corpus_shuffle(struct corpus *corpus, uint64_t seed);

/* A copy of a page under another URL (version > 0: "?v=..." is added) and with another body; later in time. */
int corpus_variant(const struct wb_page *page, uint32_t version, bool new_url, struct wb_buf *mem, struct wb_page *page_out);

/* ---- peers ------------------------------------------------------------------------ */

struct scan_sum {
    bool check;      /* asks for mix, which costs time */
    uint64_t pages;
    uint64_t bytes;  /* heads and bodies */
    uint64_t mix;    /* the sum of page_mix() of every page, whatever the order */
};

/* The hash of what must come back: key, head and body. */
uint64_t page_mix(struct wb_slice key, struct wb_slice head, struct wb_slice body);

struct peer {
    const char *name;
    const char *settings; /* in words, for the report */
    int (*open)(const char *dir, bool create, void **state_out);
    int (*add)(void *state, const struct wb_page *pages, size_t count);
    /* Everything that the peer would do later by itself: flushing, compaction. */
    int (*finish)(void *state);
    int (*get)(void *state, struct wb_slice key, struct scan_sum *sum);
    /* Part 0 .. parts-1; split holds the parts-1 keys between them. Called from several threads. */
    int (*scan)(void *state, unsigned part, unsigned parts, const struct wb_slice *split, struct scan_sum *sum);
    void (*close)(void *state);
};

extern const struct peer peer_webbase, peer_sqlite;
extern const struct peer peer_rocksdb, peer_rocksdb_default, peer_rocksdb_64k, peer_rocksdb_dict;

/* ---- clocks and counters ------------------------------------------------------------ */

double bench_seconds(void);     /* that have passed */
double bench_cpu_seconds(void); /* of this process, all threads */
uint64_t bench_rss_bytes(void); /* resident now */
uint64_t bench_rss_peak_bytes(void);
uint64_t bench_dir_bytes(const char *dir); /* on disk, folders below included */

/* xorshift64*: random enough, the same everywhere. */
uint64_t bench_random(uint64_t *state);

/* Sorts the values; the q-quantile, 0 <= q <= 1. */
double bench_quantile(double *values, size_t count, double q);

/* Seconds to copy bytes from one file to another in 1 MB pieces, fsync included. */
int bench_copy_file(const char *from, const char *to, uint64_t bytes, double *seconds_out);

#endif
