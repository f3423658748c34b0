/*
 * seen.h - which pages of a site are known: a set of 63-bit fingerprints (of page ids), each with
 * one mark. Starts at a few words; a large one lies in a nameless temporary file that is mapped, so
 * that the kernel can write it out when memory is short.
 */
#ifndef WB_CRAWL_SEEN_H
#define WB_CRAWL_SEEN_H

#include "url/url.h"

struct wb_seen {
    uint64_t *slots;  /* open addressing, a power of two of them */
    size_t cap, count;
    bool mapped;
    uint64_t spread;  /* chosen by chance, so that nobody can name pages that collide */
};

#define WB_SEEN_INIT ((struct wb_seen){NULL, 0, 0, false, 0})

/* dir: where a large set may lie. 1 where it was not there and now is, 0 where it was, WB_E_NOMEM, WB_E_IO. */
int wb_seen_add(struct wb_seen *seen, const char *dir, struct wb_pageid id);
bool wb_seen_has(const struct wb_seen *seen, struct wb_pageid id);

/* The mark of a member (set: fetched). False for what is not in the set. */
bool wb_seen_marked(const struct wb_seen *seen, struct wb_pageid id);
void wb_seen_mark(struct wb_seen *seen, struct wb_pageid id, bool mark);
void wb_seen_release(struct wb_seen *seen);
size_t wb_seen_bytes(const struct wb_seen *seen);

#endif
