/*
 * stream_sink.h - where the records of a stream go. cmd_stream.c moves them from a stream to a sink:
 *
 *   begin -> record, record ... flush ... -> end -> close          (close also after an error)
 *
 * After flush() has returned, everything so far has arrived, and the stream is told so.
 */
#ifndef WB_CLI_STREAM_SINK_H
#define WB_CLI_STREAM_SINK_H

#include "stream/stream.h"

struct wb_stream_sink;

/* Functions return 0 or a negative code, which ends the stream. */
struct wb_stream_sink_kind {
    bool bodies, docids; /* what it needs of each record */
    int (*begin)(struct wb_stream_sink *sink, const struct wb_stream_info *info);
    int (*record)(struct wb_stream_sink *sink, const struct wb_stream_record *record);
    int (*flush)(struct wb_stream_sink *sink);
    int (*end)(struct wb_stream_sink *sink); /* after the last record and its flush */
    void (*close)(struct wb_stream_sink *sink);
};

/* The first member of every sink. */
struct wb_stream_sink {
    struct wb_stream_sink_kind kind;
};

/* Writes records to standard output. */
int wb_stream_sink_print(enum wb_stream_format format, bool tokens, struct wb_stream_sink **sink_out);

#endif
