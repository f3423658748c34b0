/*
 * bench_disk.c - the paper's simulator (disk.h) and its study of bucket sizes. Prints one JSON line per figure.
 *
 *   bench_disk model                            the operations of Table S-4 on the model of the paper's disk
 *   bench_disk files DIR BYTES SECONDS          the same on files in DIR, each operation for so many seconds
 *   bench_disk tables S R1 ... R12              Tables 3 and 4 from the times of the operations, on a disk of S bytes
 *   bench_disk fit                              fits the model to Table S-4 and prints its constants
 *   bench_disk sizes REPOSITORY                 the sizes of its pages, a line each: as they are, compressed
 *   bench_disk buckets MEAN SIGMA FIRST PER_KB  the study for a lognormal distribution; a bucket takes FIRST ms and
 *   bench_disk buckets FILE COLUMN FIRST PER_KB     PER_KB ms per KB; or for the sizes in a column of a file
 */
#include "base/error.h"
#include "base/mem.h"
#include "bench.h"
#include "bucketstudy.h"
#include "disk.h"
#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MODEL_TIMES = 4000, LEVEL = 3, KB = 1024, BUCKETS = 1 << 18, SAMPLE = 1 << 20, BUCKET_MAX_KB = 2048 };

static void must(int err)
{
    if (err >= 0)
        return;
    fprintf(stderr, "bench_disk: %s\n", wb_error_message());
    exit(1);
}

static double number_of(const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);

    if (end == text || *end || !isfinite(value)) {
        fprintf(stderr, "bench_disk: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

static void *must_alloc(size_t count, size_t size)
{
    void *memory = wb_alloc_zero(count, size);

    must(memory ? 0 : WB_E_NOMEM);
    return memory;
}

/* ---- operations ------------------------------------------------------------------------------------ */

static void run_model(const struct wb_disk_model *model, size_t rows, double *ms_out)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_for(model->bytes);

    for (size_t i = 0; i < rows; i++) {
        struct wb_disk disk;
        must(wb_disk_model_init(model, &disk));
        must(wb_disk_run(&disk, &sizes, &wb_disk_sequences[i], (struct wb_disk_budget){.times = MODEL_TIMES},
                         &ms_out[i]));
        wb_disk_release(&disk);
    }
}

static void print_rows(const char *disk, const double *ms)
{
    for (size_t i = 0; i < WB_DISK_SEQUENCES; i++) {
        const struct wb_disk_sequence *s = &wb_disk_sequences[i];
        printf("{\"bench\":\"row\",\"disk\":\"%s\",\"row\":%zu,\"operation\":\"%s\",\"organisation\":\"%s\","
               "\"unit\":\"%s\",\"paper\":%g,\"ms\":%.6g}\n",
               disk, i + 1, s->operation, s->organisation, s->unit, s->paper_ms, ms[i]);
    }
}

static void print_tables(const char *disk, const double *ms, const struct wb_disk_sizes *sizes)
{
    static const char *const names[] = {"log", "hash", "hashed-log"};

    for (int o = 0; o < WB_DISK_ORGS; o++) {
        struct wb_disk_rates r = wb_disk_rates(ms, sizes, (enum wb_disk_organisation)o);
        struct wb_disk_batch b = wb_disk_batch(ms, sizes, (enum wb_disk_organisation)o);
        printf("{\"bench\":\"table3\",\"disk\":\"%s\",\"organisation\":\"%s\",\"stream\":%.6g,\"get\":%.6g,"
               "\"add\":%.6g,\"add_buffered\":%.6g,\"add_sorted\":%.6g,\"space\":%.4g}\n",
               disk, names[o], r.stream, r.get, r.add, r.add_buffered, r.add_sorted, r.space);
        printf("{\"bench\":\"table4\",\"disk\":\"%s\",\"update\":\"%s\",\"add\":%.6g,\"update_s\":%.6g}\n", disk,
               names[o], b.add, b.update_s);
    }
}

static int cmd_model(void)
{
    double ms[WB_DISK_SEQUENCES];
    struct wb_disk_sizes sizes = wb_disk_sizes_for(wb_disk_paper.bytes);

    run_model(&wb_disk_paper, WB_DISK_SEQUENCES, ms);
    print_rows("model", ms);
    print_tables("model", ms, &sizes);
    return 0;
}

static int cmd_files(const char *dir, uint64_t bytes, double seconds)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_for(bytes);
    double ms[WB_DISK_SEQUENCES];
    struct wb_disk disk;
    bool direct;

    must(wb_disk_files_init(dir, bytes, &disk, &direct));
    printf("{\"bench\":\"files\",\"bytes\":%llu,\"seconds\":%g,\"direct\":%s}\n", (unsigned long long)bytes, seconds,
           direct ? "true" : "false");
    for (size_t i = 0; i < WB_DISK_SEQUENCES; i++)
        must(wb_disk_run(&disk, &sizes, &wb_disk_sequences[i], (struct wb_disk_budget){.ms = 1000 * seconds}, &ms[i]));
    wb_disk_release(&disk);
    print_rows("files", ms);
    print_tables("files", ms, &sizes);
    return 0;
}

static int cmd_tables(char **argv)
{
    struct wb_disk_sizes sizes = wb_disk_sizes_for((uint64_t)number_of(argv[0]));
    double ms[WB_DISK_SEQUENCES];

    for (size_t i = 0; i < WB_DISK_SEQUENCES; i++)
        ms[i] = number_of(argv[i + 1]);
    print_tables("given", ms, &sizes);
    return 0;
}

/* ---- the fit --------------------------------------------------------------------------------------- */

/* The sum of the fourth powers of the deviations from Table S-4: large ones count most, but small ones count too. */
static double misfit(const struct wb_disk_model *model)
{
    double ms[WB_DISK_ROWS], sum = 0;

    run_model(model, WB_DISK_ROWS, ms);
    for (size_t i = 0; i < WB_DISK_ROWS; i++)
        sum += pow(ms[i] / wb_disk_sequences[i].paper_ms - 1, 4);
    return sum;
}

/* Changes one constant at a time, up or down, as long as that helps; then in smaller steps. */
static int cmd_fit(void)
{
    struct wb_disk_model m = wb_disk_paper;
    double *const free_ones[] = {&m.rate, &m.near_ms, &m.far_ms, &m.write_ms, &m.leave_ms};
    double best, ms[WB_DISK_ROWS];

    /* What a data sheet of 1998 might say. The speed, the size and the overhead of a request are not fitted. */
    m.rate = 16000;
    m.near_ms = 2;
    m.far_ms = 18;
    m.write_ms = 0.1;
    m.leave_ms = m.turn_ms;
    best = misfit(&m);
    for (double step = 0.2; step > 0.002; step /= 2) {
        for (bool better = true; better;) {
            better = false;
            for (size_t i = 0; i < 2 * sizeof free_ones / sizeof *free_ones; i++) {
                double *one = free_ones[i / 2], before = *one;
                *one *= i % 2 ? 1 + step : 1 / (1 + step);
                double now = misfit(&m);
                better = better || now < best * (1 - 1e-6);
                if (now < best * (1 - 1e-6))
                    best = now;
                else
                    *one = before;
            }
        }
    }
    run_model(&m, WB_DISK_ROWS, ms);
    printf("{\"bench\":\"fit\",\"misfit\":%.3g,\"bytes\":%llu,\"turn_ms\":%.3f,\"rate\":%.0f,\"near_ms\":%.2f,"
           "\"far_ms\":%.2f,\"request_ms\":%.2f,\"write_ms\":%.3f,\"leave_ms\":%.2f}\n",
           best, (unsigned long long)m.bytes, m.turn_ms, m.rate, m.near_ms, m.far_ms, m.request_ms, m.write_ms,
           m.leave_ms);
    for (size_t i = 0; i < WB_DISK_ROWS; i++)
        printf("{\"bench\":\"fitted\",\"row\":%zu,\"paper\":%g,\"ms\":%.4g,\"deviation\":%.3f}\n", i + 1,
               wb_disk_sequences[i].paper_ms, ms[i], ms[i] / wb_disk_sequences[i].paper_ms - 1);
    return 0;
}

/* ---- pages ----------------------------------------------------------------------------------------- */

/* A page is compressed alone, as a bucket would have to: its neighbours change with every addition. */
static int cmd_sizes(const char *dir)
{
    struct wb_store_scan_options options = {.snapshot = 0};
    struct wb_store *store = NULL;
    struct wb_store_scan *scan = NULL;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    struct wb_buf packed = WB_BUF_INIT;
    struct wb_page page;
    int err;

    must(zstd ? 0 : WB_E_NOMEM);
    must(wb_store_open(dir, WB_STORE_READ, &store));
    must(wb_store_scan_open(store, &options, &scan));
    while ((err = wb_store_scan_next(scan, &page)) > 0) {
        size_t bound = ZSTD_compressBound(page.body.len);
        must(wb_buf_reserve(&packed, bound));
        size_t len = ZSTD_compressCCtx(zstd, packed.ptr, bound, page.body.ptr, page.body.len, LEVEL);
        must(ZSTD_isError(len) ? wb_fail(WB_E_INVALID, "zstd: %s", ZSTD_getErrorName(len)) : 0);
        printf("%zu %zu\n", page.head.len + page.body.len, page.head.len + len);
    }
    must(err);
    wb_store_scan_close(scan);
    wb_store_close(store);
    wb_buf_release(&packed);
    ZSTD_freeCCtx(zstd);
    return 0;
}

/* ---- buckets --------------------------------------------------------------------------------------- */

static uint32_t *read_column(const char *path, unsigned column, size_t *count_out)
{
    uint32_t *sizes = must_alloc(SAMPLE, sizeof *sizes);
    unsigned long raw, packed;
    FILE *in = fopen(path, "r");

    *count_out = 0;
    must(in ? 0 : wb_fail_errno("cannot open %s", path));
    /* A sample of the first million pages is enough for shares of a thousandth. */
    while (*count_out < SAMPLE && fscanf(in, "%lu %lu", &raw, &packed) == 2)
        sizes[(*count_out)++] = (uint32_t)(column == 1 ? raw : packed);
    fclose(in);
    return sizes;
}

/* Figure 4: all plots as functions of the bucket size. */
static void print_figure4(const struct wb_bucketstudy *study, const struct wb_bucketstudy_cost *cost, unsigned mean_kb)
{
    unsigned step = mean_kb > 80 ? mean_kb / 20 : 4;

    for (unsigned kb = step; kb <= 4 * mean_kb + step; kb += step) {
        uint64_t z = (uint64_t)kb * KB;
        double reads = wb_bucketstudy_reads(study, z), ms = wb_bucketstudy_read_ms(cost, z);
        printf("{\"bench\":\"figure4\",\"kb\":%u,\"a\":%.5g,\"b\":%.5g,\"c\":%.5g,\"d\":%.5g}\n", kb, reads * ms, ms,
               reads, wb_bucketstudy_share(study, z - step * KB / 2, z + step * KB / 2) / step);
    }
}

/* Figure 5: what the best bucket size is, and what it gives, for different numbers of pages per bucket. */
static void print_figure5(const uint32_t *sizes, size_t known, const struct wb_bucketstudy_cost *cost)
{
    for (unsigned per = 2; per <= 128; per *= 2) {
        struct wb_bucketstudy study;
        must(wb_bucketstudy_deal(sizes, known, per, BUCKETS / per * 2, &study));
        uint64_t best = wb_bucketstudy_best(&study, cost, (uint64_t)BUCKET_MAX_KB * KB);
        double ms = wb_bucketstudy_reads(&study, best) * wb_bucketstudy_read_ms(cost, best);
        printf("{\"bench\":\"figure5\",\"per_bucket\":%u,\"kb\":%llu,\"rate\":%.5g,\"use\":%.4g,\"ms\":%.5g}\n", per,
               (unsigned long long)best / KB, 1000 / ms, wb_bucketstudy_use(&study, best), ms);
        if (per == 16)
            print_figure4(&study, cost, (unsigned)(study.total_bytes / study.count / KB) + 1);
        wb_bucketstudy_release(&study);
    }
}

static int cmd_buckets(char **argv)
{
    struct wb_bucketstudy_cost cost = {number_of(argv[2]), number_of(argv[3])};
    size_t count = SAMPLE;
    uint32_t *sizes;
    double sum = 0;
    char *end = NULL;
    double mean = strtod(argv[0], &end);

    if (*end) {
        sizes = read_column(argv[0], (unsigned)number_of(argv[1]), &count);
    } else {
        sizes = must_alloc(count, sizeof *sizes);
        wb_bucketstudy_lognormal(mean, number_of(argv[1]), 1, sizes, count);
    }
    for (size_t i = 0; i < count; i++)
        sum += sizes[i];
    printf("{\"bench\":\"pages\",\"pages\":%zu,\"mean\":%.6g}\n", count, count ? sum / (double)count : 0);
    print_figure5(sizes, count, &cost);
    wb_free(sizes);
    return 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";

    if (strcmp(command, "model") == 0 && argc == 2)
        return cmd_model();
    if (strcmp(command, "files") == 0 && argc == 5)
        return cmd_files(argv[2], (uint64_t)number_of(argv[3]), number_of(argv[4]));
    if (strcmp(command, "tables") == 0 && argc == 3 + WB_DISK_SEQUENCES)
        return cmd_tables(argv + 2);
    if (strcmp(command, "fit") == 0 && argc == 2)
        return cmd_fit();
    if (strcmp(command, "sizes") == 0 && argc == 3)
        return cmd_sizes(argv[2]);
    if (strcmp(command, "buckets") == 0 && argc == 6)
        return cmd_buckets(argv + 2);
    fprintf(stderr, "bench_disk: see the top of bench/bench_disk.c\n");
    return 2;
}
