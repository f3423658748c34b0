/* spelling.h - a URL as its SURT and two bits: its scheme, and a slash at its end that the key has not. */
#ifndef WB_WEBDB_SPELLING_H
#define WB_WEBDB_SPELLING_H

#include "base/buf.h"

enum wb_spelling {
    WB_SPELLING_HTTPS = 1 << 0,
    WB_SPELLING_SLASH = 1 << 1,
    WB_SPELLING_TEXT = 1 << 2, /* neither gives it: the URL must be written out. Alone */
};

/* How a URL is spelled, given its SURT; TEXT where the SURT is not known (empty) or does not give exactly this URL. */
unsigned wb_spelling_of(struct wb_slice surt, struct wb_slice url);

/* The URL, put into mem after clearing it, with room for `more` bytes behind it. WB_E_CORRUPT where the SURT is not that of a page. */
int wb_spelling_url(struct wb_slice surt, unsigned spelling, size_t more, struct wb_buf *mem);

#endif
