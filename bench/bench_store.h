/* bench_store.h - a measurement as asked for on the command line of bench_store. */
#ifndef WB_BENCH_BENCH_STORE_H
#define WB_BENCH_BENCH_STORE_H

#include "bench.h"

#define BENCH_THREADS_MAX 16

struct bench_job {
    const struct peer *peer;
    const char *dir, *corpus_dir;
    size_t batch;     /* pages a commit */
    size_t gets;
    size_t pages;     /* that grow adds */
    unsigned threads;
    unsigned versions; /* get: the store is one that grow made, with so many versions of the corpus; 0: the corpus itself */
    unsigned times;   /* compact: how many versions of the corpus are in the store */
    bool shuffled;
};

/* bench_grow.c */
int bench_grow(const struct bench_job *job, struct corpus *corpus);

/* bench_compact.c */
int bench_compact(const struct bench_job *job, struct corpus *corpus);
int bench_raw(const struct bench_job *job, struct corpus *corpus);

#endif
