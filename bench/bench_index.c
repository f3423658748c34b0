/*
 * bench_index.c - builds a generation from scratch with and without the pipeline (the paper's Figures 11 and 12).
 *
 *   bench_index REPOSITORY serial|pipeline THREADS MEMORY
 *
 * Prints one JSON line: seconds of the scan and of the whole, processor time, and the peak of resident memory, mapped
 * files included. `webbase index` must have merged the journal before.
 */
#include "base/error.h"
#include "bench.h"
#include "cycle/cycle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int err)
{
    if (err < 0) {
        fprintf(stderr, "bench_index: %s\n", wb_error_message());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct wb_update_options update = {.dir = argc == 5 ? argv[1] : ""};
    struct wb_index_options options = {.from_scratch = true};
    struct wb_cycle_sink sink = {.context = NULL};
    struct wb_index_result result;

    if (argc != 5) {
        fprintf(stderr, "usage: bench_index REPOSITORY serial|pipeline THREADS MEMORY\n");
        return 2;
    }
    options.serial = strcmp(argv[2], "serial") == 0;
    update.threads = (unsigned)atoi(argv[3]);
    update.memory_bytes = (size_t)atoll(argv[4]);
    double wall = bench_seconds(), cpu = bench_cpu_seconds();
    must(wb_cycle_index(&update, &options, &sink, &result));
    printf("{\"bench\":\"pipeline\",\"way\":\"%s\",\"threads\":%u,\"setting\":%zu,\"scan\":%.3f,\"seconds\":%.3f,"
           "\"cpu\":%.3f,\"peak\":%llu,\"runs\":%llu}\n",
           argv[2], update.threads, update.memory_bytes, result.scan_s, bench_seconds() - wall,
           bench_cpu_seconds() - cpu, (unsigned long long)bench_rss_peak_bytes(), (unsigned long long)result.runs);
    return 0;
}
