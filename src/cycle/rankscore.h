/*
 * rankscore.h - how important pages are, from the PageRank of the active generation.
 *
 * webdb itself only knows how many contents link to a page. Once there is an index, a page's score is
 *
 *   log2(2 + rank * links)
 *
 * in which links is the number of links of the generation: the rank, expressed as a number of average links. Both kinds
 * of scores have the same scale, so that pages which are newer than the generation can compete. A score that was set
 * (WB_PAGE_SCORED) stays.
 */
#ifndef WB_CYCLE_RANKSCORE_H
#define WB_CYCLE_RANKSCORE_H

#include "index/index.h"

struct wb_rankscore {
    struct wb_index *index; /* NULL: there is none, and scores stay as they are */
    const double *ranks;
    double links;
    bool same_edition;      /* numbers of the generation's edition are those of the walk */
    struct wb_webdb *webdb; /* otherwise: the generation's edition... */
    struct wb_webdb_pages *walk;
    struct wb_webdb_page at; /* ...and where a walk over it is */
    int more;
};

/* Opens the active generation, for a walk over an edition of webdb. Without a generation this succeeds, too. */
int wb_rankscore_open(struct wb_rankscore *scores, const char *dir, uint32_t edition);
void wb_rankscore_close(struct wb_rankscore *scores);

/* Sets the score of a page, if the generation knows it. Pages must come in the order of their URLs. */
int wb_rankscore_set(struct wb_rankscore *scores, struct wb_webdb_page *page);

#endif
