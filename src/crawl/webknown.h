/* webknown.h - what a crawler process asks the web database, where there is one. */
#ifndef WB_CRAWL_WEBKNOWN_H
#define WB_CRAWL_WEBKNOWN_H

#include "crawl/worker.h"

/* The newest generation, for as long as the process lives; none is no error. */
int wb_known_open(struct wb_worker *w);
void wb_known_close(struct wb_worker *w);

/* Whether webdb or the store has heard of a URL: 1, 0 or an error. w->key is the URL's. */
int wb_known_url(struct wb_worker *w, const struct wb_url *url);

/* Whether the errand's URL or its site has been taken down by now: 1, 0 or an error. */
int wb_known_barred(struct wb_worker *w, const struct wb_errand *errand);

/* Pages of the site that webdb has, content and all, enter its queue. */
int wb_known_recall(struct wb_worker *w, struct wb_site *site);

/* The site's robots.txt, where no log tells of one that holds and webdb does. */
int wb_known_rules(struct wb_worker *w, struct wb_site *site);

#endif
