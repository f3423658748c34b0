/* sniff.h - private to page: what kind of document bytes are, by the bytes. */
#ifndef WB_EXTRACT_SNIFF_H
#define WB_EXTRACT_SNIFF_H

#include "base/slice.h"

/* The media type of bytes that nobody told the type of. Static text. */
struct wb_slice wb_sniff_type(struct wb_slice bytes);

/* The name of the first element, behind white space, comments, <?...?> and <!...>; empty where something else comes first. */
struct wb_slice wb_sniff_root(struct wb_slice bytes);

/* Whether a root element is one of a feed or a sitemap. */
bool wb_sniff_is_feed(struct wb_slice root);

#endif
