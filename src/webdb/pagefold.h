/*
 * pagefold.h - edits of a page as they are sorted, and what they make of its row.
 *
 *   sorter key:   SURT, 0, time (8 bytes, big-endian)      edits of one page lie together, in order of time, then of arrival
 *   sorter value: wb_pageedit_encode()
 */
#ifndef WB_WEBDB_PAGEFOLD_H
#define WB_WEBDB_PAGEFOLD_H

#include "webdb/webdb.h"

#define WB_PAGEEDIT_SUFFIX 9
#define WB_PAGEEDIT_NO_ID UINT32_MAX

enum wb_pageedit_kind {
    WB_PAGEEDIT_TARGET = 1, /* a link leads there: the row must be there, page or not */
    WB_PAGEEDIT_KNOWN,      /* heard of: depth, wanted, hint_ms (told by a sitemap or feed; 0: not) */
    WB_PAGEEDIT_VISIT,      /* the outcome of a request: visit */
    WB_PAGEEDIT_PUSH,       /* count: enum wb_push */
    WB_PAGEEDIT_EXPUNGE,    /* count: enum wb_expunge */
    WB_PAGEEDIT_ASK,        /* handed out because its lifetime ends */
    WB_PAGEEDIT_ADD,        /* row replaces what is there, but for a score that was set */
    WB_PAGEEDIT_ADD_SCORE,  /* row replaces what is there */
    WB_PAGEEDIT_ADD_ABSENT, /* row, where there is no page */
    WB_PAGEEDIT_DELETE,
};

struct wb_pageedit {
    enum wb_pageedit_kind kind;
    int64_t time_ms;            /* is in the key, too */
    uint32_t id;                /* by which link edits name this page until it has a number; NO_ID: none do */
    struct wb_slice url;        /* with its scheme */
    struct wb_slice surt;       /* of the URL. When encoding it may be left empty: the URL takes more bytes then */
    uint16_t depth;
    bool wanted;
    int64_t hint_ms;
    uint32_t count;
    struct wb_edit_page visit;  /* VISIT: without url and links */
    struct wb_webdb_page row;   /* ADD...: as wb_pagerow_encode() has it */
};

int wb_pageedit_encode(const struct wb_pageedit *edit, struct wb_buf *value_out);

/* Only the id, for those who need no more. */
uint32_t wb_pageedit_id(struct wb_slice value);

/* Borrows from surt, value and mem. WB_E_CORRUPT. */
int wb_pageedit_decode(struct wb_slice surt, int64_t time_ms, struct wb_slice value, struct wb_buf *mem, struct wb_pageedit *edit_out);

/* A page while edits are applied to it. Zero it before its first use; what it holds is reused from page to page. */
struct wb_pagefold {
    struct wb_webdb_page page;  /* its text lies in mem */
    bool exists;                /* there is a row: a page, or a mere target of links (WB_PAGE_TARGET) */
    bool touched;               /* an edit changed it */
    struct wb_buf mem[8];       /* one for each text and the row's own memory */
};

/* Begins with a row, or with nothing (row.ptr NULL). */
int wb_pagefold_begin(struct wb_pagefold *fold, struct wb_slice surt, struct wb_slice row);

/* 1: it had an effect, or there is such a page now (what ADD_ABSENT's link hangs on: there 1 only where the page was added); 0: none. */
int wb_pagefold_apply(struct wb_pagefold *fold, const struct wb_pageedit *edit);
void wb_pagefold_release(struct wb_pagefold *fold);

#endif
