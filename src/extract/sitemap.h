/* sitemap.h - private to extract: sitemaps and sitemap indexes (sitemaps.org 0.9). Used by xmlpage.c. */
#ifndef WB_EXTRACT_SITEMAP_H
#define WB_EXTRACT_SITEMAP_H

#include "extract/module.h"
#include "extract/xml.h"

/* True if a document with this root element is a sitemap or a sitemap index. */
bool wb_sitemap_is_root(const struct wb_xml_token *root);

/* Takes the locs of x->utf8 as links; those of an index get WB_EXTRACT_REL_INDEX. */
int wb_sitemap_read(struct wb_extractor *x);

/*
 * wb_sitemap_extract() gives this media type to bytes that were fetched as a sitemap. It makes the xml
 * module call wb_sitemap_run(), which unpacks gzip and then looks at the content: a sitemap, a feed or
 * a list of URLs. In anything else it does not look for links.
 */
#define WB_SITEMAP_TYPE WB_SLICE_LIT("application/x-webbase-sitemap")
int wb_sitemap_run(struct wb_extractor *x);

#endif
