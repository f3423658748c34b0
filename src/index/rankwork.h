/*
 * rankwork.h - the ranks of the next generation, which are all computed from its graph in each build:
 *
 *   PageRank       of every URL: the walk jumps to any URL
 *   host rank      of every site: PageRank on the graph of sites. Every URL has that of its site
 *   personal rank  of every URL: the walk jumps only to the seeds that a user has named
 */
#ifndef WB_INDEX_RANKWORK_H
#define WB_INDEX_RANKWORK_H

#include "index/build.h"

/* Fills in build->outlinks, ranks and site_ranks. The graph out.wbg must be complete. */
int wb_rankwork(struct wb_build *build);

/* Documents that the seeds of a personal rank stand for. */
struct wb_seedset {
    WB_VEC(uint32_t) docids;
    uint64_t seeds, unknown; /* seeds, and those that stand for no document */
};

/*
 * Finds the documents of a table of seeds (columnfile.h): a URL stands for itself, and a host for its pages and for its
 * vertices of a graph that was loaded, since these are what can have links. Needs the roster only.
 */
int wb_seedset_match(struct wb_build *build, const char *table, struct wb_seedset *set_out);
void wb_seedset_release(struct wb_seedset *set);

/* Computes the rank of every URL from these seeds, of which there must be one at least; out.wbg must be complete. */
int wb_rankwork_personal(struct wb_build *build, const struct wb_seedset *set, double *ranks_out);

/* The part of a score that a PageRank gives, for a graph of so many URLs. */
uint32_t wb_static_score(double rank, uint64_t urls);

#endif
