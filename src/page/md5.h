/* md5.h - private to page: MD5 of many messages at once. Used by digest.c. */
#ifndef WB_PAGE_MD5_H
#define WB_PAGE_MD5_H

#include "page/page.h"

/*
 * Computes the MD5 of each message. If several have a similar length, this is several times
 * faster than one after another. Allocates nothing.
 */
void wb_md5_many(const struct wb_slice *messages, size_t count, uint8_t (*digests_out)[WB_MD5_BYTES]);

#endif
