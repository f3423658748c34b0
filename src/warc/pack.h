/* pack.h - private to warc: records as they go to the sink: plain, a gzip member or a zstd frame each. */
#ifndef WB_WARC_PACK_H
#define WB_WARC_PACK_H

#include "warc/warc.h"

struct wb_pack;

int wb_pack_new(enum wb_warc_coding coding, wb_warc_sink sink, void *context, struct wb_pack **pack_out);

/* One record, given in parts. */
int wb_pack_write(struct wb_pack *pack, const struct wb_slice *parts, size_t count);
void wb_pack_free(struct wb_pack *pack);

#endif
