/*
 * bench_url.c - measures how many URLs per second are parsed against a base, brought into
 * normal form and hashed, on one core.
 *
 *   bench_url FILE     URLs or hrefs, one per line
 */
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"
#include "url/url.h"

#include <stdio.h>

#define FILE_MAX ((size_t)1 << 30)
#define SECONDS 2

static int split_lines(struct wb_slice text, struct wb_slice **lines_out, size_t *count_out)
{
    const char *p = text.ptr, *end = p + text.len;
    size_t count = 0;

    *lines_out = NULL;
    *count_out = 0;
    for (const char *q = p; q && q < end; q = memchr(q, '\n', (size_t)(end - q)), q = q ? q + 1 : q)
        count++;
    struct wb_slice *lines = wb_alloc_zero(count, sizeof *lines);
    if (!lines)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        lines[i] = wb_slice(p, (size_t)(stop - p));
        p = stop + 1;
    }
    *lines_out = lines;
    *count_out = count;
    return 0;
}

/* Goes once over all lines. mix keeps the compiler from optimising the work away. */
static int run_once(const struct wb_slice *lines, size_t count, const struct wb_url *base, struct wb_url *url,
                    struct wb_buf *key, uint64_t *mix)
{
    for (size_t i = 0; i < count; i++) {
        int err = wb_url_parse(lines[i], base, url);
        if (err == WB_E_PROTO || err == WB_E_LIMIT)
            continue;
        if (err == 0)
            err = wb_url_key(url, key);
        if (err < 0)
            return err;
        *mix += wb_pageid_of_key(wb_buf_slice(key)).hi;
    }
    return 0;
}

static int bench_file(const char *path)
{
    struct wb_buf text = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    struct wb_slice *lines = NULL;
    size_t count = 0;
    uint64_t done = 0, mix = 0;
    double seconds = 0;

    int err = wb_path_read(path, FILE_MAX, &text);
    if (err == 0)
        err = split_lines(wb_buf_slice(&text), &lines, &count);
    if (err == 0 && count == 0)
        err = wb_fail(WB_E_INVALID, "%s: no lines", path);
    if (err == 0)
        err = wb_url_parse(WB_SLICE_LIT("https://docs.example.org/a/b/c.html"), NULL, &base);
    if (err < 0)
        goto done;
    int64_t start = wb_clock_mono_ns();
    while (seconds < SECONDS) {
        err = run_once(lines, count, &base, &url, &key, &mix);
        if (err < 0)
            goto done;
        done += count;
        seconds = (double)(wb_clock_mono_ns() - start) / 1e9;
    }
    printf("{\"bench\":\"url\",\"urls\":%llu,\"seconds\":%.3f,\"per_second\":%.0f}\n", (unsigned long long)done,
           seconds, (double)done / seconds);
    fprintf(stderr, "mix %016llx\n", (unsigned long long)mix);
done:
    wb_buf_release(&text);
    wb_buf_release(&key);
    wb_url_release(&base);
    wb_url_release(&url);
    wb_free(lines);
    return err;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_url FILE\n");
        return 2;
    }
    if (bench_file(argv[1]) < 0) {
        fprintf(stderr, "bench_url: %s\n", wb_error_message());
        return 1;
    }
    return 0;
}
