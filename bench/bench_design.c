/*
 * bench_design.c - random access and streaming through the door of the store, for a repository of any design. Prints
 * one JSON line.
 *
 *   bench_design ids DIR                  the ids of all pages, a line each
 *   bench_design get DIR IDS COUNT SEED   reads COUNT pages, chosen from the file IDS by chance
 *   bench_design stream DIR               reads all pages in the order of the store
 *
 * "reads" is the number of system calls that read, and "disk" the bytes that came from the disk; what is read through
 * memory (mapped files) is in the second only. To measure a disk, drop the files from the page cache before.
 */
#include "base/codec.h"
#include "base/error.h"
#include "base/mem.h"
#include "bench.h"
#include "store/store.h"
#include "url/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int err)
{
    if (err >= 0)
        return;
    fprintf(stderr, "bench_design: %s\n", wb_error_message());
    exit(1);
}

struct io_counts {
    unsigned long long reads, disk;
};

static struct io_counts io_counts(void)
{
    struct io_counts counts = {0, 0};
    unsigned long long value;
    char name[32];
    FILE *in = fopen("/proc/self/io", "r");

    while (in && fscanf(in, "%31[^:]: %llu\n", name, &value) == 2) {
        if (strcmp(name, "syscr") == 0)
            counts.reads = value;
        if (strcmp(name, "read_bytes") == 0)
            counts.disk = value;
    }
    if (in)
        fclose(in);
    return counts;
}

static void print_result(const char *bench, unsigned long long pages, unsigned long long bytes, double seconds,
                         double cpu, struct io_counts before)
{
    struct io_counts after = io_counts();

    /* Reading the counts is itself a few reads, the same number each time. */
    printf("{\"bench\":\"%s\",\"pages\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"cpu\":%.6f,\"reads\":%llu,"
           "\"disk\":%llu}\n",
           bench, pages, bytes, seconds, cpu, after.reads - before.reads, after.disk - before.disk);
}

static unsigned long long scan(struct wb_store *store, bool print, unsigned long long *bytes_out)
{
    struct wb_store_scan_options options = {.facts = print};
    char text[WB_PAGEID_HEX + 1];
    struct wb_store_scan *scan = NULL;
    unsigned long long pages = 0;
    struct wb_page page;
    int err;

    must(wb_store_scan_open(store, &options, &scan));
    while ((err = wb_store_scan_next(scan, &page)) > 0) {
        pages++;
        *bytes_out += page.head.len + page.body.len;
        if (print) {
            wb_pageid_hex(page.id, text);
            puts(text);
        }
    }
    must(err);
    wb_store_scan_close(scan);
    return pages;
}

static struct wb_pageid *read_ids(const char *path, size_t *count_out)
{
    struct wb_pageid *ids = NULL;
    size_t room = 0;
    uint8_t bytes[WB_PAGEID_BYTES];
    char line[128];
    FILE *in = fopen(path, "r");

    *count_out = 0;
    must(in ? 0 : wb_fail_errno("cannot open %s", path));
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (*count_out == room) {
            room = room ? 2 * room : 1024;
            ids = wb_realloc(ids, room * sizeof *ids);
            must(ids ? 0 : WB_E_NOMEM);
        }
        if (wb_hex_decode(wb_slice_str(line), bytes, sizeof bytes))
            ids[(*count_out)++] = wb_pageid_get(bytes);
    }
    fclose(in);
    return ids;
}

static void get_pages(struct wb_store *store, const struct wb_pageid *ids, size_t known, size_t count, uint64_t seed)
{
    struct io_counts before = io_counts();
    double start = bench_seconds(), cpu = bench_cpu_seconds();
    struct wb_buf mem = WB_BUF_INIT;
    unsigned long long bytes = 0;
    struct wb_page page;

    for (size_t i = 0; i < count; i++) {
        must(wb_store_get(store, ids[bench_random(&seed) % known], &page, &mem));
        bytes += page.head.len + page.body.len;
    }
    print_result("get", count, bytes, bench_seconds() - start, bench_cpu_seconds() - cpu, before);
    wb_buf_release(&mem);
}

int main(int argc, char **argv)
{
    const char *command = argc > 2 ? argv[1] : "";
    struct wb_store *store = NULL;
    unsigned long long bytes = 0;

    if (strcmp(command, "ids") != 0 && strcmp(command, "stream") != 0 && (strcmp(command, "get") != 0 || argc != 6)) {
        fprintf(stderr, "bench_design: see the top of bench/bench_design.c\n");
        return 2;
    }
    must(wb_store_open(argv[2], WB_STORE_READ, &store));
    if (strcmp(command, "ids") == 0) {
        scan(store, true, &bytes);
    } else if (strcmp(command, "stream") == 0) {
        struct io_counts before = io_counts();
        double start = bench_seconds(), cpu = bench_cpu_seconds();
        unsigned long long pages = scan(store, false, &bytes);
        print_result("stream", pages, bytes, bench_seconds() - start, bench_cpu_seconds() - cpu, before);
    } else {
        size_t known = 0;
        struct wb_pageid *ids = read_ids(argv[3], &known);
        must(known ? 0 : wb_fail(WB_E_INVALID, "%s has no ids", argv[3]));
        get_pages(store, ids, known, (size_t)strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10) * 2 + 1);
        wb_free(ids);
    }
    wb_store_close(store);
    return 0;
}
