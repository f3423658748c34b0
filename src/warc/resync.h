/* resync.h - private to warc: finding the next record after damage. */
#ifndef WB_WARC_RESYNC_H
#define WB_WARC_RESYNC_H

#include "warc/warcreader.h"

/* Puts the reader before the next record: 1, 0 where there is none any more, or an error that is final. */
int wb_resync_find(struct wb_warc_reader *r);

#endif
