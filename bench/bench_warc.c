/*
 * bench_warc.c - measures how fast archives are read: every record of a file, with its whole block.
 *
 *   bench_warc FILE...    prints one JSON object per file
 */
#include "base/error.h"
#include "base/json.h"
#include "os/clock.h"
#include "warc/warc.h"

#include <stdio.h>

#define BLOCK_MAX ((size_t)80 << 20)

struct tally {
    uint64_t records, bytes, errors;
};

static int read_file(const char *path, struct tally *tally_out)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_record record;
    int err = wb_warc_open(path, BLOCK_MAX, &reader);

    *tally_out = (struct tally){0, 0, 0};
    while (err >= 0 || err == WB_E_CORRUPT) {
        err = wb_warc_next(reader, &record);
        if (err == 0)
            break;
        tally_out->records += err > 0;
        tally_out->errors += err < 0;
        tally_out->bytes += record.header.len + record.block.len;
    }
    wb_warc_close(reader);
    return err;
}

static int print_tally(const char *path, const struct tally *tally, double seconds)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json json;

    wb_json_init(&json, &line);
    wb_json_object(&json);
    wb_json_field_str(&json, "bench", "warc_read");
    wb_json_field_str(&json, "file", path);
    wb_json_field_u64(&json, "records", tally->records);
    wb_json_field_u64(&json, "bytes", tally->bytes);
    wb_json_field_u64(&json, "errors", tally->errors);
    if (wb_buf_printf(&line, ",\"seconds\":%.4f,\"records_per_second\":%.0f", seconds,
                      (double)tally->records / seconds) < 0)
        json.err = WB_E_NOMEM;
    wb_json_object_end(&json);
    int err = wb_json_line(&json);
    if (err == 0)
        fwrite(line.ptr, 1, line.len, stdout);
    wb_buf_release(&line);
    return err;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_warc FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        struct tally tally;
        int64_t start = wb_clock_mono_ns();
        int err = read_file(argv[i], &tally);
        double seconds = (double)(wb_clock_mono_ns() - start) / 1e9;
        if (err == 0)
            err = print_tally(argv[i], &tally, seconds);
        if (err < 0) {
            fprintf(stderr, "bench_warc: %s\n", wb_error_message());
            return 1;
        }
    }
    return 0;
}
