/* sniff.h - private to extract: tells from the bytes what kind of document they are. Used by extract.c. */
#ifndef WB_EXTRACT_SNIFF_H
#define WB_EXTRACT_SNIFF_H

#include "base/slice.h"

/* The media type of bytes for which no type is given. Static text. */
struct wb_slice wb_sniff_type(struct wb_slice bytes);

/*
 * The name of the first element, after white space, comments, <?...?> and <!...>; empty if something
 * else comes first.
 */
struct wb_slice wb_sniff_root(struct wb_slice bytes);

/* True if this is the root element of a feed or a sitemap. */
bool wb_sniff_is_feed(struct wb_slice root);

#endif
