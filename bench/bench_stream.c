/*
 * bench_stream.c - streams within one process: what they cost without programs, pipes and networks around them.
 *
 *   bench_stream REPOSITORY WAY TIMES [NAME=VALUE...]
 *
 *   records   pages with their bodies, to nobody          facts   without bodies
 *   wire      blocks as they are on disk                  urls, jsonl, text, warc, ...   rendered, to nobody
 *
 * NAME=VALUE is an option of `webbase stream` (order=rank, partition=1/2). The stream is opened, read to its end and
 * closed TIMES times. Prints one JSON line with the sums over all of them; open is the part before the first record.
 */
#include "base/error.h"
#include "bench.h"
#include "stream/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_run {
    struct wb_stream_home *home;
    struct wb_stream_spec spec;
    struct wb_stream_pen *pen; /* NULL: records are not rendered */
    bool wire;
    uint64_t pages, bytes;
    double open;
};

static void must(int err)
{
    if (err < 0) {
        fprintf(stderr, "bench_stream: %s\n", wb_error_message());
        exit(1);
    }
}

/* Bytes that this process has read: with system calls, and from the disk. */
static void read_counters(uint64_t *called_out, uint64_t *disk_out)
{
    FILE *f = fopen("/proc/self/io", "r");
    char line[128];

    *called_out = *disk_out = 0;
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "rchar: %" SCNu64, called_out);
        sscanf(line, "read_bytes: %" SCNu64, disk_out);
    }
    if (f)
        fclose(f);
}

static void set_option(struct bench_run *run, char *text)
{
    char *mark = strchr(text, '=');

    if (!mark) {
        fprintf(stderr, "bench_stream: %s is not NAME=VALUE\n", text);
        exit(2);
    }
    *mark = '\0';
    must(wb_stream_spec_set(&run->spec, text, wb_slice_str(mark + 1), false));
}

static void set_way(struct bench_run *run, const char *way)
{
    enum wb_stream_format format;

    run->wire = strcmp(way, "wire") == 0;
    run->spec.docids = run->wire;
    run->spec.facts = strcmp(way, "facts") == 0;
    if (run->wire || run->spec.facts || strcmp(way, "records") == 0)
        return;
    must(wb_stream_format_parse(wb_slice_str(way), &format));
    must(wb_stream_pen_new(format, false, &run->pen));
    run->spec.facts = !wb_stream_format_bodies(format);
}

static void read_records(struct bench_run *run, struct wb_stream *stream, struct wb_buf *out)
{
    struct wb_stream_record record;
    int got;

    while ((got = wb_stream_next(stream, &record)) > 0) {
        run->bytes += run->pen ? 0 : record.page.head.len + record.page.body.len;
        if (run->pen)
            must(wb_stream_pen_write(run->pen, &record, out));
        if (out->len >= 256 << 10) { /* as the server does */
            run->bytes += out->len;
            wb_buf_clear(out);
        }
    }
    must(got);
    run->bytes += out->len;
    wb_buf_clear(out);
}

static void read_wire(struct bench_run *run, struct wb_stream *stream, struct wb_buf *out)
{
    int got;

    while ((got = wb_stream_next_wire(stream, out)) > 0) {
        run->bytes += out->len;
        wb_buf_clear(out);
    }
    must(got);
}

static void read_once(struct bench_run *run, struct wb_buf *out)
{
    struct wb_stream *stream = NULL;
    struct wb_stream_info info;
    double start = bench_seconds();

    must(wb_stream_open(run->home, &run->spec, false, &stream));
    run->open += bench_seconds() - start;
    if (run->wire)
        read_wire(run, stream, out);
    else
        read_records(run, stream, out);
    wb_stream_info(stream, &info);
    run->pages += info.delivered;
    wb_stream_close(stream);
}

int main(int argc, char **argv)
{
    struct bench_run run = {.spec = WB_STREAM_SPEC_INIT};
    struct wb_buf out = WB_BUF_INIT;
    uint64_t called, disk, called_end, disk_end;

    if (argc < 4) {
        fprintf(stderr, "usage: bench_stream REPOSITORY WAY TIMES [NAME=VALUE...]\n");
        return 2;
    }
    set_way(&run, argv[2]);
    for (int i = 4; i < argc; i++)
        set_option(&run, argv[i]);
    must(wb_stream_home_open(argv[1], &run.home));
    read_counters(&called, &disk);
    double start = bench_seconds(), cpu = bench_cpu_seconds();
    for (int i = 0; i < atoi(argv[3]); i++)
        read_once(&run, &out);
    double seconds = bench_seconds() - start;
    cpu = bench_cpu_seconds() - cpu;
    read_counters(&called_end, &disk_end);
    printf("{\"bench\":\"stream\",\"way\":\"%s\",\"pages\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"seconds\":%.4f,"
           "\"open\":%.4f,\"cpu\":%.4f,\"called\":%" PRIu64 ",\"disk\":%" PRIu64 ",\"memory\":%" PRIu64 "}\n",
           argv[2], run.pages, run.bytes, seconds, run.open, cpu, called_end - called, disk_end - disk,
           bench_rss_peak_bytes());
    wb_buf_release(&out);
    wb_stream_pen_free(run.pen);
    wb_stream_spec_release(&run.spec);
    wb_stream_home_close(run.home);
    return 0;
}
