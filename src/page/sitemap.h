/* sitemap.h - private to page: sitemaps and sitemap indexes (sitemaps.org 0.9). */
#ifndef WB_PAGE_SITEMAP_H
#define WB_PAGE_SITEMAP_H

#include "page/module.h"
#include "page/xml.h"

/* Whether an element makes the document a sitemap or an index of them. */
bool wb_sitemap_is_root(const struct wb_xml_token *root);

/* Takes the locs of x->utf8 as links, those of an index with WB_REL_INDEX. */
int wb_sitemap_read(struct wb_extractor *x);

/* What was asked for as a sitemap: XML, a feed, or a text of URLs; the links of anything else are not looked for. */
extern const struct wb_module wb_module_sitemap;

#endif
