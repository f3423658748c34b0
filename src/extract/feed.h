/* feed.h - private to extract: feeds, that is RSS 0.9 to 2.0, RDF, Atom 0.3 and 1.0. Used by xmlpage.c. */
#ifndef WB_EXTRACT_FEED_H
#define WB_EXTRACT_FEED_H

#include "extract/module.h"
#include "extract/xml.h"

/* True if a document with this root element is a feed; an RDF document is one if it mentions RSS. */
bool wb_feed_is_root(const struct wb_xml_token *root);

/*
 * Reads the feed in x->utf8. The pages of its entries become links (WB_EXTRACT_LINK_FEED, with time
 * and title), other links become WB_EXTRACT_LINK_LINK with their rel; title, description, language and
 * dates of the feed become facts, and its text becomes text.
 */
int wb_feed_read(struct wb_extractor *x);

#endif
