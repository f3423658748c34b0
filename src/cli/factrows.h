/*
 * factrows.h - the facts about the pages of the active generation as rows: one per stored page, in the order of URLs,
 * with the built-in columns first and those of users after them.
 */
#ifndef WB_CLI_FACTROWS_H
#define WB_CLI_FACTROWS_H

#include "base/arena.h"
#include "base/vec.h"
#include "cli/factpen.h"
#include "query/query.h"
#include "stream/stream.h"

struct wb_factrows {
    struct wb_searcher *searcher; /* the caller's */
    WB_VEC(struct wb_factcolumn) columns;
    WB_VEC(struct wb_factcell) cells;
    const void *facts[WB_FACTS]; /* those that are needed */
    const uint32_t *inlinks;     /* without links of pages that were taken down */
    struct wb_arena texts;       /* of the row under way */
    uint32_t site;               /* the last one that the selection was asked about... */
    bool site_known, site_wanted; /* ...and its answer */
    uint64_t pages, links;       /* written */
};

/* Which pages are wanted. */
struct wb_factrows_selection {
    const uint64_t *bits; /* only these docids */
    const struct wb_selection *pages;
    uint8_t language; /* wb_language_number(); 0: any */
};

/* Called before each page with the numbers of pages looked at and in all; a negative code stops the work. */
typedef int (*wb_factrows_step)(void *context, uint64_t done, uint64_t total);

/* Finds the columns. Must be released even if this fails. */
int wb_factrows_init(struct wb_factrows *rows, struct wb_searcher *searcher);
void wb_factrows_release(struct wb_factrows *rows);

/* Writes the rows, and the links if the pen takes them. */
int wb_factrows_write(struct wb_factrows *rows, const struct wb_factrows_selection *selection, struct wb_factpen *pen,
                      wb_factrows_step step, void *context);

#endif
