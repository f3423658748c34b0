/* plaintext.h - private to extract: texts in which every line is a URL, which may be sitemaps. Used by sitemap.c. */
#ifndef WB_EXTRACT_PLAINTEXT_H
#define WB_EXTRACT_PLAINTEXT_H

#include "extract/module.h"

/* True if there is a line that is not empty, and every such line is an http or https URL. */
bool wb_plaintext_is_urls(struct wb_slice utf8);

/* Takes the lines of x->utf8 that are URLs as links of a sitemap, and marks the page as one; skips other lines. */
int wb_plaintext_urls(struct wb_extractor *x);

#endif
