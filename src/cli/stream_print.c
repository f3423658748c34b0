/* stream_print.c - a sink that writes records to standard output (stream_sink.h). */
#include "base/error.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/stream_sink.h"

struct print_sink {
    struct wb_stream_sink base; /* must be the first member */
    struct wb_stream_pen *pen;
    struct wb_buf bytes;
};

static int print_begin(struct wb_stream_sink *base, const struct wb_stream_info *info)
{
    (void)base;
    (void)info;
    return 0;
}

static int print_record(struct wb_stream_sink *base, const struct wb_stream_record *record)
{
    struct print_sink *sink = (struct print_sink *)base;

    wb_buf_clear(&sink->bytes);
    int err = wb_stream_pen_write(sink->pen, record, &sink->bytes);
    return err == 0 ? wb_output_write(sink->bytes.ptr, sink->bytes.len) : err;
}

static int print_flush(struct wb_stream_sink *base)
{
    (void)base;
    return wb_output_flush();
}

static void print_close(struct wb_stream_sink *base)
{
    struct print_sink *sink = (struct print_sink *)base;

    wb_stream_pen_free(sink->pen);
    wb_buf_release(&sink->bytes);
    wb_free(sink);
}

int wb_stream_sink_print(enum wb_stream_format format, bool tokens, struct wb_stream_sink **sink_out)
{
    struct print_sink *sink = wb_alloc_zero(1, sizeof *sink);

    *sink_out = NULL;
    if (!sink)
        return WB_E_NOMEM;
    sink->base.kind = (struct wb_stream_sink_kind){.bodies = wb_stream_format_bodies(format),
                                                   .begin = print_begin,
                                                   .record = print_record,
                                                   .flush = print_flush,
                                                   .end = print_flush,
                                                   .close = print_close};
    int err = wb_stream_pen_new(format, tokens, &sink->pen);
    if (err < 0) {
        print_close(&sink->base);
        return err;
    }
    *sink_out = &sink->base;
    return 0;
}
