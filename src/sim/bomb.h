/* bomb.h - a decompression bomb: a small file that unpacks to a huge one. */
#ifndef WB_SIM_BOMB_H
#define WB_SIM_BOMB_H

#include "base/buf.h"

/* Makes a gzip member of a gigabyte of zeros; it is about one megabyte long. */
int wb_bomb_make(struct wb_buf *bytes_out);

#endif
