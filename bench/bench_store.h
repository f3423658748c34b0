/* bench_store.h - a measurement, as requested on the command line of bench_store. */
#ifndef WB_BENCH_BENCH_STORE_H
#define WB_BENCH_BENCH_STORE_H

#include "bench.h"

#define BENCH_THREADS_MAX 16

struct bench_job {
    const struct peer *peer;
    const char *dir, *corpus_dir;
    size_t batch;     /* pages per commit */
    size_t gets;
    size_t pages;     /* how many pages grow adds */
    unsigned threads;
    unsigned versions; /* get: versions of the corpus in the store, if grow made it; 0: it has the corpus itself */
    unsigned times;   /* compact: how many versions of the corpus the store has */
    bool shuffled;
};

/* bench_grow.c */
int bench_grow(const struct bench_job *job, struct corpus *corpus);

/* bench_compact.c */
int bench_compact(const struct bench_job *job, struct corpus *corpus);
int bench_raw(const struct bench_job *job, struct corpus *corpus);

#endif
