/* bench_versions.h - a measurement, as requested on the command line of bench_versions. */
#ifndef WB_BENCH_BENCH_VERSIONS_H
#define WB_BENCH_BENCH_VERSIONS_H

#include "bench.h"
#include "store/store.h"

#define VERSION_STEP_MS (7 * INT64_C(86400000)) /* from one version to the next */

struct versions_job {
    const char *dir, *corpus_dir;
    size_t batch; /* pages per commit */
    size_t pages; /* how many pages of the corpus; 0: all */
    size_t gets;  /* for each version, in each round */
    size_t rounds;
    size_t versions;
    size_t snapshots; /* that are sealed */
};

/* bench_snapshots.c */
int bench_seal(const struct versions_job *job, struct corpus *corpus);
int bench_twin(const struct versions_job *job, struct corpus *corpus);
int bench_held(const struct versions_job *job, struct corpus *corpus);

#endif
