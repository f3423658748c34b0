/*
 * spelling.h - between the URL of a page and its SURT.
 *
 * A row is stored under the SURT of its page, so the URL itself need not be stored: two bits beside the SURT are nearly
 * always enough to restore it.
 */
#ifndef WB_WEBDB_SPELLING_H
#define WB_WEBDB_SPELLING_H

#include "base/buf.h"
#include "url/url.h"

enum wb_spelling {
    WB_SPELLING_HTTPS = 1 << 0, /* https, otherwise http */
    WB_SPELLING_SLASH = 1 << 1, /* the URL ends in a slash that the SURT does not have */
    WB_SPELLING_TEXT = 1 << 2,  /* the bits are not enough: store the URL. Never together with the others */
};

/* How a URL is spelled, given its SURT. TEXT if surt is empty or if the two bits do not give exactly this URL. */
unsigned wb_spelling_of(struct wb_slice surt, struct wb_slice url);

/*
 * Restores the URL in mem, replacing what was there, and leaves room for `more` bytes after it. WB_E_CORRUPT if surt is
 * not the SURT of a page. The spelling must not be TEXT.
 */
int wb_spelling_url(struct wb_slice surt, unsigned spelling, size_t more, struct wb_buf *mem);

/*
 * The SURT of a URL such as "http://Example.org/x/". WB_E_INVALID if the text is not an http or https URL. url and key
 * are memory that the caller reuses.
 */
int wb_spelling_surt(struct wb_slice text, struct wb_url *url, struct wb_buf *key, struct wb_buf *surt_out);

/* The id of the page with this SURT. WB_E_CORRUPT if it is not the SURT of a page. key: memory that is reused. */
int wb_spelling_id(struct wb_slice surt, struct wb_buf *key, struct wb_pageid *id_out);

/* The prefix that the SURTs of all pages of a site have: "org,example:8080)". WB_E_INVALID if site is not a host. */
int wb_spelling_site_surt(struct wb_slice site, struct wb_buf *surt_out);

#endif
