/*
 * bench_sort.c - compares our external sort with GNU sort, and measures tables. Prints one JSON line per measurement.
 *
 *   bench_sort make ORDER BYTES FILE        writes link records, one per line, as "md5<TAB>target<TAB>anchor" if ORDER
 *                                           is md5; if it is target, the target comes first
 *   bench_sort webbase|gnu FILE OUT DIR MEMORY THREADS      sorts the lines of FILE by all their bytes into OUT
 *   bench_sort table FILE DIR               writes, walks and queries a table of the sorted lines of FILE
 *
 * The records are always the same. A page has a few dozen links, most of them within its site, which is one of a few
 * hundred; URLs have long common prefixes, like real ones. Pages come in the order of a crawl of many sites.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/mem.h"
#include "bench.h"
#include "os/file.h"
#include "os/path.h"
#include "table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IO_BYTES = 1 << 20, SITES = 400, GETS = 20000 };

static _Noreturn void give_up(void)
{
    fprintf(stderr, "bench_sort: %s\n", wb_error_message());
    exit(1);
}

static void must(int err)
{
    if (err < 0)
        give_up();
}

/* ---- lines in and out ---------------------------------------------------------------------- */

struct out {
    struct wb_file file;
    struct wb_buf buf;
    uint64_t at;
};

static void out_open(struct out *out, const char *path)
{
    *out = (struct out){.file = WB_FILE_INIT};
    must(wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_TRUNCATE, &out->file));
    must(wb_buf_reserve(&out->buf, 2 * IO_BYTES));
}

static void out_flush(struct out *out)
{
    must(wb_file_write_at(&out->file, out->at, out->buf.ptr, out->buf.len));
    out->at += out->buf.len;
    wb_buf_clear(&out->buf);
}

static void out_line(struct out *out, struct wb_slice line)
{
    must(wb_buf_append_slice(&out->buf, line));
    must(wb_buf_append_char(&out->buf, '\n'));
    if (out->buf.len >= IO_BYTES)
        out_flush(out);
}

static void out_close(struct out *out)
{
    out_flush(out);
    wb_file_close(&out->file);
    wb_buf_release(&out->buf);
}

struct in {
    struct wb_file file;
    char *buf;
    size_t start, end;
    uint64_t at;
};

static void in_open(struct in *in, const char *path)
{
    *in = (struct in){.file = WB_FILE_INIT, .buf = wb_alloc(IO_BYTES)};
    must(wb_file_open(path, WB_FILE_READ, &in->file));
    must(in->buf ? 0 : WB_E_NOMEM);
}

static bool in_line(struct in *in, struct wb_slice *line_out)
{
    for (;;) {
        char *end = memchr(in->buf + in->start, '\n', in->end - in->start);
        if (end) {
            *line_out = wb_slice(in->buf + in->start, (size_t)(end - in->buf) - in->start);
            in->start = (size_t)(end - in->buf) + 1;
            return true;
        }
        size_t got, left = in->end - in->start;
        memmove(in->buf, in->buf + in->start, left);
        must(wb_file_read_at(&in->file, in->at, in->buf + left, IO_BYTES - left, &got));
        if (got == 0)
            return false;
        in->at += got;
        in->start = 0;
        in->end = left + got;
    }
}

static void in_close(struct in *in)
{
    wb_file_close(&in->file);
    wb_free(in->buf);
}

/* ---- making records ---------------------------------------------------------------------------- */

static const char *const words[] = {"news",     "archive",  "about",  "products", "library", "reference",
                                    "download", "guide",    "public", "research", "contact", "history",
                                    "article",  "category", "images", "home"};

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)(bench_random(state) >> 11) % n;
}

static const char *word(uint64_t *state)
{
    return words[below(state, sizeof words / sizeof *words)];
}

/* Writes the URL of a page. The lower the number of a page, the more links lead to it. */
static int put_url(char *to, size_t room, size_t site, size_t page)
{
    uint64_t path = (site + 1) * 0x9e3779b97f4a7c15 ^ page / 40;

    const char *first = word(&path), *second = word(&path), *third = word(&path);
    return snprintf(to, room, "https://www.%s-%s%zu.example.%s/%s/%s/%s-%zu/%zu-%s-%s.html", words[site % 16],
                    words[site / 16 % 16], site, site % 3 ? "com" : "org", first, second, third, page / 40, page,
                    words[page % 16], words[page / 7 % 16]);
}

static void make(const char *order, uint64_t bytes, const char *path)
{
    uint64_t state = 20261115, done = 0;
    struct out out;
    char url[256], anchor[128], line[512], md5[33];

    out_open(&out, path);
    while (done < bytes) {
        uint64_t hash[2];
        hash[0] = bench_random(&state);
        hash[1] = bench_random(&state);
        size_t site = below(&state, SITES), links = 5 + below(&state, 50);
        wb_hex_encode(hash, sizeof hash, md5);
        for (size_t i = 0; i < links; i++) {
            size_t to = below(&state, 5) ? site : below(&state, SITES);
            put_url(url, sizeof url, to, below(&state, below(&state, 3) ? 60 : 20000));
            const char *first = word(&state), *second = word(&state);
            snprintf(anchor, sizeof anchor, "%s %s %zu", first, second, below(&state, 100));
            int len = *order == 't' ? snprintf(line, sizeof line, "%s\t%s\t%s", url, md5, anchor)
                                    : snprintf(line, sizeof line, "%s\t%s\t%s", md5, url, anchor);
            out_line(&out, wb_slice(line, (size_t)len));
            done += (uint64_t)len + 1;
        }
    }
    out_close(&out);
}

/* ---- sorting --------------------------------------------------------------------------------------- */

static uint64_t size_of(const char *path)
{
    struct wb_file file;
    uint64_t size;

    must(wb_file_open(path, WB_FILE_READ, &file));
    must(wb_file_size(&file, &size));
    wb_file_close(&file);
    return size;
}

static void print_sort(const char *peer, const char *path, double seconds, double cpu, uint64_t memory)
{
    uint64_t size = size_of(path);

    printf("{\"bench\":\"sort\",\"peer\":\"%s\",\"bytes\":%llu,\"seconds\":%.3f,\"mb_s\":%.1f,\"cpu\":%.2f,"
           "\"memory\":%llu",
           peer, (unsigned long long)size, seconds, (double)size / 1e6 / seconds, cpu, (unsigned long long)memory);
}

static void sort_webbase(const char *from, const char *to, const char *dir, size_t memory, unsigned threads)
{
    double start = bench_seconds(), merged;
    struct wb_sorter *sorter;
    struct wb_sorter_stat stat;
    struct wb_table_record record;
    struct wb_slice line;
    struct out out;
    struct in in;
    int more;

    must(wb_sorter_open(&(struct wb_sorter_options){dir, memory, threads}, &sorter));
    in_open(&in, from);
    while (in_line(&in, &line))
        must(wb_sorter_add(sorter, line, WB_SLICE_EMPTY));
    in_close(&in);
    must(wb_sorter_sort(sorter));
    merged = bench_seconds();
    out_open(&out, to);
    while ((more = wb_sorter_next(sorter, &record)) == 1)
        out_line(&out, record.key);
    must(more);
    out_close(&out);
    wb_sorter_stat(sorter, &stat);
    wb_sorter_close(sorter);
    print_sort("webbase", from, bench_seconds() - start, bench_cpu_seconds(), bench_rss_peak_bytes());
    printf(",\"runs\":%llu,\"passes\":%llu,\"run_bytes\":%llu,\"records\":%llu,\"runs_seconds\":%.3f}\n",
           (unsigned long long)stat.runs, (unsigned long long)stat.passes, (unsigned long long)stat.run_bytes,
           (unsigned long long)stat.records, merged - start);
}

static void sort_gnu(const char *from, const char *to, const char *dir, const char *memory, const char *threads)
{
    char parallel[64], size[64];
    struct rusage usage;
    int status;
    double start = bench_seconds();

    snprintf(parallel, sizeof parallel, "--parallel=%s", threads);
    snprintf(size, sizeof size, "%sb", memory);
    pid_t child = fork();
    if (child == 0) {
        setenv("LC_ALL", "C", 1);
        execlp("sort", "sort", parallel, "-S", size, "-T", dir, "-o", to, from, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
        must(wb_fail(WB_E_IO, "sort did not end well"));
    double cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    print_sort("gnu", from, bench_seconds() - start, cpu, (uint64_t)usage.ru_maxrss * 1024);
    printf("}\n");
}

/* ---- tables ---------------------------------------------------------------------------------------------- */

/* The part of a line before its last tab is the key. Of lines with equal keys, the first counts. */
static void write_table(const char *from, const char *path, unsigned threads)
{
    struct wb_table_writer *writer;
    struct wb_table_stat stat;
    struct wb_buf last = WB_BUF_INIT;
    struct wb_slice line;
    struct in in;
    double start = bench_seconds(), cpu = bench_cpu_seconds();

    must(wb_table_create(path, &(struct wb_table_options){.kind = "link", .threads = threads}, &writer));
    in_open(&in, from);
    while (in_line(&in, &line)) {
        const char *tab = memrchr(line.ptr, '\t', line.len);
        struct wb_slice key = wb_slice(line.ptr, tab ? (size_t)(tab - line.ptr) : line.len);
        if (wb_slice_equal(key, wb_buf_slice(&last)))
            continue;
        must(wb_table_add(writer, key, wb_slice(key.ptr + key.len, line.len - key.len)));
        wb_buf_clear(&last);
        must(wb_buf_append_slice(&last, key));
    }
    in_close(&in);
    must(wb_table_finish(writer, &stat));
    double seconds = bench_seconds() - start;
    printf("{\"bench\":\"table_write\",\"threads\":%u,\"mb_s\":%.1f,\"records_s\":%.0f,\"cpu\":%.2f,\"raw\":%llu,"
           "\"disk\":%llu,\"records\":%llu,\"bytes_record\":%.2f}\n",
           threads, (double)stat.raw_bytes / 1e6 / seconds, (double)stat.records / seconds, bench_cpu_seconds() - cpu,
           (unsigned long long)stat.raw_bytes, (unsigned long long)stat.bytes, (unsigned long long)stat.records,
           (double)stat.bytes / (double)stat.records);
    wb_buf_release(&last);
}

static void scan_table(struct wb_table *table)
{
    struct wb_cursor *cursor;
    struct wb_table_record record;
    struct wb_table_stat stat;
    uint64_t sum = 0;
    double start = bench_seconds();
    int more;

    wb_table_stat(table, &stat);
    must(wb_cursor_open(table, &cursor));
    while ((more = wb_cursor_next(cursor, &record)) == 1)
        sum += record.key.len + record.value.len;
    must(more);
    WB_CHECK(sum == stat.raw_bytes);
    double seconds = bench_seconds() - start;
    printf("{\"bench\":\"table_scan\",\"mb_s\":%.1f,\"records_s\":%.0f}\n", (double)sum / 1e6 / seconds,
           (double)stat.records / seconds);
    wb_cursor_close(cursor);
}

static void get_random(struct wb_table *table)
{
    struct wb_cursor *cursor;
    struct wb_table_record record;
    struct wb_table_stat stat;
    uint64_t state = 7;
    struct wb_buf key = WB_BUF_INIT;
    double *us = wb_alloc(GETS * sizeof *us);

    must(us ? 0 : WB_E_NOMEM);
    wb_table_stat(table, &stat);
    must(wb_cursor_open(table, &cursor));
    for (size_t i = 0; i < GETS; i++) {
        must(wb_cursor_get_number(cursor, bench_random(&state) % stat.records, &record));
        wb_buf_clear(&key);
        must(wb_buf_append_slice(&key, record.key));
        for (int k = 0; k < 12; k++) /* skip ahead, so that the block is not one that is cached */
            must(wb_cursor_get_number(cursor, bench_random(&state) % stat.records, &record));
        double start = bench_seconds();
        must(wb_cursor_get(cursor, wb_buf_slice(&key), &record));
        us[i] = (bench_seconds() - start) * 1e6;
    }
    printf("{\"bench\":\"table_get\",\"p50_us\":%.2f,\"p99_us\":%.2f}\n", bench_quantile(us, GETS, 0.5),
           bench_quantile(us, GETS, 0.99));
    wb_cursor_close(cursor);
    wb_buf_release(&key);
    wb_free(us);
}

static void tables(const char *from, const char *dir)
{
    char *path = wb_path_join(dir, "bench.table");
    struct wb_table *table;

    must(path ? 0 : WB_E_NOMEM);
    for (unsigned threads = 0; threads < 3; threads += 2)
        write_table(from, path, threads);
    double start = bench_seconds();
    must(wb_table_open(path, "link", &table));
    printf("{\"bench\":\"table_open\",\"ms\":%.2f}\n", (bench_seconds() - start) * 1e3);
    scan_table(table);
    get_random(table);
    wb_table_close(table);
    must(wb_path_unlink(path));
    wb_free(path);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "make") == 0)
        make(argv[2], strtoull(argv[3], NULL, 10), argv[4]);
    else if (argc == 7 && strcmp(argv[1], "webbase") == 0)
        sort_webbase(argv[2], argv[3], argv[4], strtoull(argv[5], NULL, 10), (unsigned)atoi(argv[6]));
    else if (argc == 7 && strcmp(argv[1], "gnu") == 0)
        sort_gnu(argv[2], argv[3], argv[4], argv[5], argv[6]);
    else if (argc == 4 && strcmp(argv[1], "table") == 0)
        tables(argv[2], argv[3]);
    else
        must(wb_fail(WB_E_INVALID, "see the head of bench_sort.c"));
    return 0;
}
