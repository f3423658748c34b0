/* bench_tool.c - clocks, memory, quantiles, and the raw copy of a file that the benchmarks are compared with. */
#include "bench.h"

#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double bench_seconds(void)
{
    return (double)wb_clock_mono_ns() * 1e-9;
}

double bench_cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t read_status_kb(const char *format)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long kb = 0;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, format, &kb) == 1)
            break;
    if (f)
        fclose(f);
    return (uint64_t)kb << 10;
}

uint64_t bench_rss_bytes(void)
{
    return read_status_kb("VmRSS: %lu kB");
}

uint64_t bench_rss_peak_bytes(void)
{
    return read_status_kb("VmHWM: %lu kB");
}

struct dir_walk {
    const char *dir;
    uint64_t bytes;
};

static int add_entry(void *context, const struct wb_path_entry *entry)
{
    struct dir_walk *walk = context;
    char *path = wb_path_join(walk->dir, entry->name);

    if (!path)
        return WB_E_NOMEM;
    walk->bytes += entry->kind == WB_PATH_DIR ? bench_dir_bytes(path) : wb_path_disk_bytes(path);
    wb_free(path);
    return 0;
}

uint64_t bench_dir_bytes(const char *dir)
{
    struct dir_walk walk = {dir, 0};

    return wb_path_each(dir, add_entry, &walk) < 0 ? 0 : walk.bytes;
}

uint64_t bench_random(uint64_t *state)
{
    uint64_t x = *state ? *state : 88172645463325252u;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 2685821657736338717u >> 1;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double bench_quantile(double *values, size_t count, double q)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), compare_doubles);
    return values[(size_t)(q * (double)(count - 1))];
}

int bench_copy_file(const char *from, const char *to, uint64_t bytes, double *seconds_out)
{
    struct wb_file in = WB_FILE_INIT, out = WB_FILE_INIT;
    size_t step = 1 << 20, len = 0;
    uint64_t size = 0;
    char *piece = wb_alloc(step);
    double start = 0;
    int err = piece ? wb_file_open(from, WB_FILE_READ, &in) : WB_E_NOMEM;

    *seconds_out = 0;
    if (err == 0)
        err = wb_file_size(&in, &size);
    if (err == 0 && size < bytes && size <= step)
        err = wb_fail(WB_E_CORRUPT, "%s: too small", from);
    if (err == 0)
        err = wb_file_open(to, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &out);
    start = bench_seconds();
    for (uint64_t at = 0; err == 0 && at < bytes; at += len) {
        len = bytes - at < step ? (size_t)(bytes - at) : step;
        err = wb_file_read_exact(&in, size < bytes ? at % (size - step) : at, piece, len);
        if (err == 0)
            err = wb_file_write_at(&out, at, piece, len);
    }
    if (err == 0)
        err = wb_file_sync(&out);
    *seconds_out = bench_seconds() - start;
    wb_file_close(&in);
    wb_file_close(&out);
    wb_free(piece);
    return err;
}
