/* plaintext.h - private to page: texts whose lines are URLs, which may be sitemaps. */
#ifndef WB_EXTRACT_PLAINTEXT_H
#define WB_EXTRACT_PLAINTEXT_H

#include "extract/module.h"

/* Whether every line that is not empty is an http or https URL, and there is one. */
bool wb_plaintext_is_urls(struct wb_slice utf8);

/* Takes the lines of x->utf8 that are URLs as links of a sitemap and says that it is one; other lines are passed over. */
int wb_plaintext_urls(struct wb_extractor *x);

#endif
