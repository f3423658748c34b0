/*
 * xmlpage.h - private to extract: what the xml module passes to its parts, and they to each other.
 *
 *   xmlpage.c     the module: looks at the root element and chooses
 *   sitemap.c     sitemaps and sitemap indexes (sitemaps.org 0.9)
 *   feed.c        feeds: RSS 0.9 to 2.0, RDF, Atom 0.3 and 1.0
 *   plaintext.c   the text module, and texts in which every line is a URL, which may be sitemaps
 *
 * All of them read x->utf8 and write into the sink (module.h).
 */
#ifndef WB_EXTRACT_XMLPAGE_H
#define WB_EXTRACT_XMLPAGE_H

#include "extract/module.h"

/* ---- sitemap.c ------------------------------------------------------------------------------ */

/* True if a document with this root element is a sitemap or a sitemap index. */
bool wb_sitemap_is_root(const struct wb_xml_token *root);

/* Takes the locs as links; those of an index get WB_EXTRACT_REL_INDEX. */
int wb_sitemap_read(struct wb_extractor *x);

/*
 * wb_sitemap_extract() gives this media type to bytes that were fetched as a sitemap. It makes the xml
 * module call wb_sitemap_run(), which unpacks gzip and then looks at the content: a sitemap, a feed or
 * a list of URLs. In anything else it does not look for links.
 */
#define WB_SITEMAP_TYPE WB_SLICE_LIT("application/x-webbase-sitemap")
int wb_sitemap_run(struct wb_extractor *x);

/* ---- feed.c --------------------------------------------------------------------------------- */

/* True if a document with this root element is a feed; an RDF document is one if it mentions RSS. */
bool wb_feed_is_root(const struct wb_xml_token *root);

/*
 * Reads a feed. The pages of its entries become links (WB_EXTRACT_LINK_FEED, with time and title), other
 * links become WB_EXTRACT_LINK_LINK with their rel; title, description, language and dates of the feed
 * become facts, and its text becomes text.
 */
int wb_feed_read(struct wb_extractor *x);

/* ---- plaintext.c ---------------------------------------------------------------------------- */

/* True if there is a line that is not empty, and every such line is an http or https URL. */
bool wb_plaintext_is_urls(struct wb_slice utf8);

/* Takes the lines that are URLs as links of a sitemap, and marks the page as one; skips other lines. */
int wb_plaintext_urls(struct wb_extractor *x);

#endif
