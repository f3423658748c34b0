/*
 * factrows.h - the facts about the pages of the active generation as rows.
 */
#ifndef WB_FACTS_FACTROWS_H
#define WB_FACTS_FACTROWS_H

#include "base/arena.h"
#include "base/vec.h"
#include "facts/factpen.h"
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
    struct wb_facts_counts counts;
};

/* Which pages are wanted. */
struct wb_factrows_selection {
    const uint64_t *bits; /* only these docids */
    const struct wb_selection *pages;
    uint8_t language; /* wb_language_number(); 0: any */
};

/* Finds the columns. Must be released even if this fails. */
int wb_factrows_init(struct wb_factrows *rows, struct wb_searcher *searcher);
void wb_factrows_release(struct wb_factrows *rows);

/* Writes the rows, and the links if the pen takes them. */
int wb_factrows_write(struct wb_factrows *rows, const struct wb_factrows_selection *selection, struct wb_factpen *pen,
                      const struct wb_facts_options *options);

#endif
