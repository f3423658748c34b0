/* page_hits.h - private to serve: a result of a search, as people see it. */
#ifndef WB_SERVE_PAGE_HITS_H
#define WB_SERVE_PAGE_HITS_H

#include "serve/htmlpen.h"

/* One result. accepted: Accept-Language of the reader; the language of a page is named if it is another one. */
void wb_page_hit(struct wb_htmlpen *h, const struct wb_hit *hit, struct wb_slice accepted);

/* A URL as people read it: "example.org › guide › intro.html". */
void wb_page_place(struct wb_htmlpen *h, struct wb_slice url);

#endif
