/* stream_sink.h - a sink of a stream (stream.h) that writes to standard output. */
#ifndef WB_CLI_STREAM_SINK_H
#define WB_CLI_STREAM_SINK_H

#include "stream/stream.h"

/* Writes records to standard output. */
int wb_stream_sink_print(enum wb_stream_format format, bool tokens, struct wb_stream_sink **sink_out);

#endif
