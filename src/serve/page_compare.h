/* page_compare.h - private to serve: comparing two versions of a page. */
#ifndef WB_SERVE_PAGE_COMPARE_H
#define WB_SERVE_PAGE_COMPARE_H

#include "serve/page_view.h"

/*
 * The policy of the frames. They are of our origin, so that our page can scroll them; therefore, unlike any other
 * stored page, this one may never run scripts, whatever the options of the server are. Two locks: the sandbox, and
 * script-src.
 */
#define WB_COMPARE_POLICY                                                                                              \
    "sandbox allow-same-origin; default-src 'self' data: blob:; style-src 'self' 'unsafe-inline' data: blob:; "        \
    "script-src 'none'; connect-src 'none'; object-src 'none'; worker-src 'none'; base-uri 'none'; "                   \
    "form-action 'none'; frame-ancestors 'self'"

#endif
