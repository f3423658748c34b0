/*
 * madepage.h - pages made from numbers. The content of a page is a function of its struct spec. So a test does not have
 * to keep what it has put: it makes the page again and compares.
 */
#ifndef WB_TESTS_MADEPAGE_H
#define WB_TESTS_MADEPAGE_H

#include "page/page.h"

struct spec {
    uint32_t site, number; /* which page */
    int64_t time_ms;
    uint32_t size;    /* of the body */
    uint32_t variant; /* of everything else */
    uint32_t content; /* if not 0, the body depends on this instead of the time: contents that return */
    uint32_t cut;     /* if not 0, so many bytes at the end are missing, and the page is truncated */
    uint32_t dress;   /* changes what is not content: URL, head, charset, lifetime, digest of the payload */
};

struct made {
    struct wb_page page;
    struct wb_buf text, body; /* what page borrows from */
};

struct wb_pageid spec_id(const struct spec *spec);

/* The site of the page; the result borrows from room. */
struct wb_slice spec_site(const struct spec *spec, struct wb_buf *room);
void make_page(const struct spec *spec, struct made *made_out);
void made_release(struct made *made);

#endif
