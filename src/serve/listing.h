/*
 * listing.h - private to serve: the URLs of a site, or of all that begins with a text, with how often and when each was
 * captured. One row for each URL key (url.h), so spellings of a URL are one.
 *
 *   parameters --wb_listing_read()--> struct wb_listing --> api_listing.c (JSON), page_listing.c (people)
 *
 * In the order of URL keys, any number of URLs can be paged through: each answer begins behind a key. A filter looks at
 * about WB_LISTING_LOOKS URLs for one answer at most, and the answer says where to go on. Other orders need all rows,
 * so they are for up to WB_LISTING_SORTED URLs.
 */
#ifndef WB_SERVE_LISTING_H
#define WB_SERVE_LISTING_H

#include "serve/cdx_server.h"

enum { WB_LISTING_LOOKS = 20000, WB_LISTING_SORTED = 10000, WB_LISTING_DEFAULT = 100, WB_LISTING_MAX = 1000 };

enum wb_listing_sort { WB_LISTING_BY_URL, WB_LISTING_BY_CAPTURES, WB_LISTING_BY_FIRST, WB_LISTING_BY_LAST };

struct wb_listing_row {
    struct wb_slice key, url; /* the URL as it was crawled; of several spellings the first one */
    struct wb_slice type;     /* of the newest version that the index knows; empty if it knows none */
    uint64_t captures, versions;
    int64_t first_ms, last_ms;
    uint16_t status; /* of the newest capture */
};

struct wb_listing {
    struct wb_slice q, type, status; /* filters: a part of the URL; "image" or "image/png"; "404" or "4xx" */
    enum wb_listing_sort sort;
    bool down; /* the largest or newest first */
    uint64_t limit;
    struct wb_slice after; /* as the answer before gave it; empty: from the beginning */
    struct cdx_query query;
    WB_VEC(struct wb_listing_row) rows;
    struct wb_arena texts;
    uint64_t urls;        /* that begin like this, captured or not, in the generation */
    uint64_t looked_at;   /* for this answer... */
    uint64_t captures;    /* ...and captures that they have */
    struct wb_slice next; /* for the answer after this one; empty: this is the last one */
};

/* Reads the parameters url, q, type, status, sort, limit and after, and the rows. Release it even after an error. */
int wb_listing_read(struct wb_call *call, struct wb_listing *listing_out);
void wb_listing_release(struct wb_listing *listing);

/* The word of a sort order in parameters: "url", "captures", "first", "last". */
const char *wb_listing_sort_name(enum wb_listing_sort sort);

#endif
