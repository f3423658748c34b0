/* feed.h - private to page: RSS 0.9 to 2.0, RDF, Atom 0.3 and 1.0. */
#ifndef WB_EXTRACT_FEED_H
#define WB_EXTRACT_FEED_H

#include "extract/module.h"
#include "extract/xml.h"

/* Whether an element makes the document a feed; RDF does where it speaks of RSS. */
bool wb_feed_is_root(const struct wb_xml_token *root);

/*
 * Takes the entries' pages of x->utf8 as links (WB_EXTRACT_LINK_FEED, with time and title), other
 * links as WB_EXTRACT_LINK_LINK with their rel, and the feed's own facts and text.
 */
int wb_feed_read(struct wb_extractor *x);

#endif
