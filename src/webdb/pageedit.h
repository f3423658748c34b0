/*
 * pageedit.h - an edit of a page, as the writer sorts it and stage 1 of the merge applies it.
 *
 *   sorter key:   SURT, 0, time (8 bytes, big-endian): the edits of a page come together, ordered by time, then arrival
 *   sorter value: wb_pageedit_encode()
 */
#ifndef WB_WEBDB_PAGEEDIT_H
#define WB_WEBDB_PAGEEDIT_H

#include "webdb/webdb.h"

#define WB_PAGEEDIT_SUFFIX 9 /* bytes of the key after the SURT */
#define WB_PAGEEDIT_NO_ID UINT32_MAX

enum wb_pageedit_kind {
    WB_PAGEEDIT_TARGET = 1, /* a link leads there: makes sure that there is a row, be it a page or not */
    WB_PAGEEDIT_KNOWN,      /* somebody mentioned it: depth, wanted, hint_ms (from a sitemap or feed; 0 if none) */
    WB_PAGEEDIT_VISIT,      /* the outcome of a request: visit */
    WB_PAGEEDIT_PUSH,       /* it was announced: count is an enum wb_push */
    WB_PAGEEDIT_EXPUNGE,    /* it was removed: count is an enum wb_expunge */
    WB_PAGEEDIT_ASK,        /* it was given to a crawler because its lifetime ends */
    WB_PAGEEDIT_ADD,        /* row replaces what is there, except for a score that was set */
    WB_PAGEEDIT_ADD_SCORE,  /* row replaces what is there */
    WB_PAGEEDIT_ADD_ABSENT, /* row is added if there is no page */
};

struct wb_pageedit {
    enum wb_pageedit_kind kind;
    int64_t time_ms;            /* also in the key */
    uint32_t id;                /* by which link edits refer to this page until it has a number; NO_ID if none do */
    struct wb_slice url;        /* with its scheme */
    struct wb_slice surt;       /* of the URL. May be empty when encoding; then the URL takes more bytes */
    uint16_t depth;
    bool wanted;
    int64_t hint_ms;
    uint32_t count;
    struct wb_edit_page visit;  /* VISIT: without url and links */
    struct wb_webdb_page row;   /* ADD...: as wb_pagerow_encode() takes it */
};

/* Appends the value of the edit. */
int wb_pageedit_encode(const struct wb_pageedit *edit, struct wb_buf *value_out);

/* The edit borrows from surt, value and mem. WB_E_CORRUPT. */
int wb_pageedit_decode(struct wb_slice surt, int64_t time_ms, struct wb_slice value, struct wb_buf *mem,
                       struct wb_pageedit *edit_out);

#endif
