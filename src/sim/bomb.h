/* bomb.h - small bytes that unpack to large ones. */
#ifndef WB_SIM_BOMB_H
#define WB_SIM_BOMB_H

#include "base/buf.h"

/* gzip of a gigabyte of zeros, about one megabyte. */
int wb_bomb_make(struct wb_buf *bytes_out);

#endif
