/*
 * graph_bytes.h - the bytes of a text file, plain or gzip'd, one after the other and in bounded memory. Used by
 * graph_text.c, whose lines can be longer than memory allows to keep.
 */
#ifndef WB_GRAPH_GRAPH_BYTES_H
#define WB_GRAPH_GRAPH_BYTES_H

#include "base/buf.h"
#include "os/file.h"

#include <zlib.h>

struct graph_bytes {
    struct wb_file file;
    uint64_t done, size; /* bytes of the file that were read, and all */
    bool gzip;
    bool in_member; /* of a gzip'd file: a member has begun and not ended */
    z_stream z;
    struct wb_buf packed; /* what was read from the file last */
    struct wb_buf text;   /* what was handed out last, if the file is gzip'd */
};

/* The first two bytes of the file decide whether it is gzip'd. Must be closed even if this fails. */
int wb_graph_bytes_open(const char *path, struct graph_bytes *bytes_out);
void wb_graph_bytes_close(struct graph_bytes *bytes);

/* The next bytes, valid until the next call; none at the end of the file. WB_E_CORRUPT if gzip'd data is damaged. */
int wb_graph_bytes_next(struct graph_bytes *bytes, struct wb_slice *text_out);

#endif
