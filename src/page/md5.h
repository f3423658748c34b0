/* md5.h - private to page: MD5 of many messages at once. */
#ifndef WB_PAGE_MD5_H
#define WB_PAGE_MD5_H

#include "page/page.h"

/*
 * The MD5 of each message. Several times faster than one after another where
 * there are several of similar length; takes no memory from the heap.
 */
void wb_md5_many(const struct wb_slice *messages, size_t count, uint8_t (*digests_out)[WB_MD5_BYTES]);

#endif
