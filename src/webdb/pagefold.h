/* pagefold.h - applies the edits of one page, in order, to its row. pagefold.c says what each of them does. */
#ifndef WB_WEBDB_PAGEFOLD_H
#define WB_WEBDB_PAGEFOLD_H

#include "webdb/pageedit.h"

/* A page while edits are applied to it. Zeroed memory is a new one; its buffers are reused from page to page. */
struct wb_pagefold {
    struct wb_webdb_page page;  /* its texts are in mem */
    bool exists;                /* there is a row: of a page, or of a mere target of links (WB_PAGE_TARGET) */
    bool touched;               /* an edit has changed it */
    struct wb_buf mem[8];       /* one for each text, and the row */
};

/* Starts with a row, or with nothing if row.ptr is NULL. */
int wb_pagefold_begin(struct wb_pagefold *fold, struct wb_slice surt, struct wb_slice row);

/*
 * Applies an edit. Returns 1 if it had an effect or if the page exists now; 0 if neither. For ADD_ABSENT, 1 only if the
 * page was added: a link may depend on that.
 */
int wb_pagefold_apply(struct wb_pagefold *fold, const struct wb_pageedit *edit);
void wb_pagefold_release(struct wb_pagefold *fold);

#endif
