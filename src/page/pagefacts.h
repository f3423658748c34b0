/*
 * pagefacts.h - what is remembered of the content of a page besides its bytes: extract finds it, the journal records
 * it, and webdb keeps it.
 */
#ifndef WB_PAGE_PAGEFACTS_H
#define WB_PAGE_PAGEFACTS_H

#include "base/slice.h"

enum wb_pagelink_flags {
    WB_PAGELINK_FOLLOW = 1 << 0,   /* the link is of a kind that crawlers follow (an <a>, not an <img>) */
    WB_PAGELINK_NOFOLLOW = 1 << 1, /* the page asks crawlers not to follow it */
};

/* The tag of a link from a sitemap index to a sitemap. It extends enum wb_extract_tag of extract. */
#define WB_PAGELINK_TAG_SITEMAP 14

struct wb_pagelink {
    struct wb_slice url;    /* absolute, without its fragment */
    struct wb_slice anchor;
    uint8_t tag;            /* enum wb_extract_tag, or WB_PAGELINK_TAG_SITEMAP */
    uint8_t flags;          /* enum wb_pagelink_flags */
    int64_t modified_ms;    /* last change according to a sitemap or feed; 0: unknown */
};

struct wb_pagefacts {
    const struct wb_pagelink *links; /* each target once */
    size_t link_count;
    uint64_t simhash;                /* 0: no words */
    uint64_t title_hash;             /* 0: no title */
};

#endif
