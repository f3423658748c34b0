/* which.h - which page and which snapshot the words of a command line mean, and finding a version of a page. */
#ifndef WB_CLI_WHICH_H
#define WB_CLI_WHICH_H

#include "store/store.h"

/* Reads 32 hexadecimal digits as a page id, anything else as a URL. WB_E_PROTO names the text if it is neither. */
int wb_which_page(const char *text, struct wb_pageid *id_out);

/* Finds a snapshot by its number or name. WB_E_NOTFOUND, which names it, also if it was dropped or has expired. */
int wb_which_snapshot(struct wb_store *store, const char *text, uint32_t *number_out);

/*
 * Reads a version that a timeline lists. Returns 1; 0 if the page has changed since then, so that the timeline must be
 * read again; or an error. The page borrows from mem_out, whose earlier content is dropped.
 */
int wb_which_version(struct wb_store *store, struct wb_pageid id, const struct wb_store_version *version,
                     struct wb_page *page_out, struct wb_buf *mem_out);

/* Whether the page is this version. */
bool wb_which_is_version(const struct wb_page *page, const struct wb_store_version *version);

#endif
