/*
 * bench.h - what the benchmark programs share: the corpus, the peers, the clocks.
 *
 * A peer is a store that we compare: ours, or another. All peers get the same pages in the
 * same order and in the same batches. A batch is durable when add returns.
 */
#ifndef WB_BENCH_BENCH_H
#define WB_BENCH_BENCH_H

#include "base/buf.h"
#include "page/page.h"

/* ---- the corpus, which bench/corpus has written ----------------------------------- */

struct corpus {
    struct wb_page *pages; /* they borrow from map, text and keys */
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

/* Puts the pages into a random order, as in a crawl of many sites at once. The same seed gives the same order. */
void corpus_shuffle(struct corpus *corpus, uint64_t seed);

/* Makes a copy of a page with another body and a later time and, with new_url, another URL ("?v=..." is added). */
int corpus_variant(const struct wb_page *page, uint32_t version, bool new_url, struct wb_buf *mem,
                   struct wb_page *page_out);

/* ---- peers ------------------------------------------------------------------------ */

struct scan_sum {
    bool check;      /* whether to compute mix, which costs time */
    uint64_t pages;
    uint64_t bytes;  /* heads and bodies */
    uint64_t mix;    /* the sum of page_mix() over all pages, which does not depend on their order */
};

/* Returns a hash of what must come back: key, head and body. */
uint64_t page_mix(struct wb_slice key, struct wb_slice head, struct wb_slice body);

struct peer {
    const char *name;
    const char *settings; /* a description for the report */
    int (*open)(const char *dir, bool create, void **state_out);
    int (*add)(void *state, const struct wb_page *pages, size_t count);
    /* Does everything that the peer would otherwise do later on its own: flushing, compaction. */
    int (*finish)(void *state);
    int (*get)(void *state, struct wb_slice key, struct scan_sum *sum);
    /* Scans one of the parts 0 .. parts-1; split holds the parts-1 keys between them. Called from several threads. */
    int (*scan)(void *state, unsigned part, unsigned parts, const struct wb_slice *split, struct scan_sum *sum);
    void (*close)(void *state);
};

extern const struct peer peer_webbase, peer_webbase_hashed_log, peer_sqlite;
extern const struct peer peer_rocksdb, peer_rocksdb_default, peer_rocksdb_64k, peer_rocksdb_dict;

/* ---- clocks and counters ------------------------------------------------------------ */

double bench_seconds(void);     /* of a clock that only moves forward */
double bench_cpu_seconds(void); /* of this process, all threads */
uint64_t bench_rss_bytes(void); /* resident now */
uint64_t bench_rss_peak_bytes(void);
uint64_t bench_dir_bytes(const char *dir); /* on disk, including subfolders */

/* xorshift64*: random enough, and the same on every machine. */
uint64_t bench_random(uint64_t *state);

/* Sorts the values and returns the q-quantile, 0 <= q <= 1. */
double bench_quantile(double *values, size_t count, double q);

/* Copies bytes in pieces of 1 MB and measures the seconds, fsync included. A source that is too short is repeated. */
int bench_copy_file(const char *from, const char *to, uint64_t bytes, double *seconds_out);

#endif
