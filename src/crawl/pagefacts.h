/*
 * pagefacts.h - the part of crawl's door that says what the journal is told of a page that has content: its
 * digests, fingerprints and validators, and its links, each target once. For whoever takes in pages: crawlers and imports.
 */
#ifndef WB_CRAWL_PAGEFACTS_H
#define WB_CRAWL_PAGEFACTS_H

#include "extract/extract.h"
#include "webdb/webdb.h"

struct wb_link_slot;

/* Reused from page to page, for one thread. */
struct wb_pagefacts {
    struct wb_extractor *extractor;
    struct wb_edit_link *links;  /* of the page at hand, each target once */
    size_t link_cap;
    struct wb_link_slot *slots;  /* finds a link by its target */
    uint32_t stamp;              /* of the page at hand: slots of earlier ones have another */
};

#define WB_PAGEFACTS_INIT ((struct wb_pagefacts){.extractor = NULL})

/* Release it even where this failed. */
int wb_pagefacts_init(struct wb_pagefacts *facts);
void wb_pagefacts_release(struct wb_pagefacts *facts);

/*
 * Fills in what edit has of a page's content, which must be digested: everything but url, outcome and how it was fetched. agent: the robots token, by which
 * X-Robots-Tag headers are read. wants: WB_WANT_LINKS or 0: without links. What edit and extract_out borrow is valid as long as page is,
 * and until the next call. Only WB_E_NOMEM is an error.
 */
int wb_pagefacts_read(struct wb_pagefacts *facts, const struct wb_page *page, struct wb_slice agent, unsigned wants, struct wb_edit_page *edit,
                      struct wb_extract *extract_out);

/* The links of an extract as the journal has them, in facts->links; nofollow: of the whole page. */
int wb_pagefacts_links(struct wb_pagefacts *facts, const struct wb_extract *extract, bool nofollow, size_t *count_out);

/* Where a redirect leads, without its fragment, in url_out: WB_E_PROTO where the head names no URL of http or https. base is work space. */
int wb_pagefacts_location(struct wb_slice head, struct wb_slice url, struct wb_url *base, struct wb_url *url_out,
                          struct wb_slice *location_out);

/* 301, 302, 303, 307, 308. */
bool wb_status_redirects(uint16_t status);

#endif
