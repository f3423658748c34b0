/* sitemap.h - private to page: sitemaps and sitemap indexes (sitemaps.org 0.9). */
#ifndef WB_EXTRACT_SITEMAP_H
#define WB_EXTRACT_SITEMAP_H

#include "extract/module.h"
#include "extract/xml.h"

/* Whether an element makes the document a sitemap or an index of them. */
bool wb_sitemap_is_root(const struct wb_xml_token *root);

/* Takes the locs of x->utf8 as links, those of an index with WB_EXTRACT_REL_INDEX. */
int wb_sitemap_read(struct wb_extractor *x);

/*
 * The type that wb_sitemap_extract() gives to what was asked for as a sitemap, and how
 * the xml module reads it: unpacked where it is gzip, then by looking: a sitemap, a
 * feed, or a text of URLs. The links of anything else are not looked for.
 */
#define WB_SITEMAP_TYPE WB_SLICE_LIT("application/x-webbase-sitemap")
int wb_sitemap_run(struct wb_extractor *x);

#endif
