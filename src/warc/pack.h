/*
 * pack.h - private to warc: turns records into the bytes of an archive and passes them to the sink.
 *
 * Each record becomes plain bytes, one gzip member or one zstd frame. Used by warcwriter.c.
 */
#ifndef WB_WARC_PACK_H
#define WB_WARC_PACK_H

#include "warc/warc.h"

struct wb_pack;

int wb_pack_new(enum wb_warc_coding coding, wb_warc_sink sink, void *context, struct wb_pack **pack_out);

/* Writes one record, which is given in parts so that a large body need not be copied. */
int wb_pack_write(struct wb_pack *pack, const struct wb_slice *parts, size_t count);
void wb_pack_free(struct wb_pack *pack);

#endif
