/*
 * seen.h - a set of page ids, each with one mark: which pages of a site are known, and which of these are dealt with.
 *
 * The set holds 63-bit fingerprints of ids, 8 bytes each. It starts with a few words. A large one is in a temporary
 * file that is mapped, so that the kernel can write it out when memory is short. Nothing is ever removed.
 */
#ifndef WB_CRAWL_SEEN_H
#define WB_CRAWL_SEEN_H

#include "url/url.h"

struct wb_seen {
    uint64_t *slots;  /* a hash table with a power of two of slots */
    size_t cap, count;
    bool mapped;      /* slots is a mapped file */
    uint64_t spread;  /* a random multiplier, so that nobody can choose pages that collide */
};

#define WB_SEEN_INIT ((struct wb_seen){NULL, 0, 0, false, 0})

/* Adds an id. dir: where a large set has its file. 1: it is new, 0: it was there, or WB_E_NOMEM, WB_E_IO. */
int wb_seen_add(struct wb_seen *seen, const char *dir, struct wb_pageid id);
bool wb_seen_has(const struct wb_seen *seen, struct wb_pageid id);

/* The mark of a member; false for an id that is not in the set. */
bool wb_seen_marked(const struct wb_seen *seen, struct wb_pageid id);

/* Sets or clears the mark of a member. Does nothing for an id that is not in the set. */
void wb_seen_mark(struct wb_seen *seen, struct wb_pageid id, bool mark);
void wb_seen_release(struct wb_seen *seen);

/* A test seam: how much memory or file it takes. */
size_t wb_seen_bytes(const struct wb_seen *seen);

#endif
