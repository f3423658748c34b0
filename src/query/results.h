/*
 * results.h - what the documents that match a plan score, and what becomes of them.
 *
 *   scoring.c topk.c                what they score, and the best ones
 *   gather.c                        all of them: counts, facets, orders other than by score
 *   folding.c                       results that are much like a better one
 *   hits.c hittexts.c explain.c     what the caller gets; pageset.c: all of them as a set
 */
#ifndef WB_QUERY_RESULTS_H
#define WB_QUERY_RESULTS_H

#include "query/queryplan.h"

/* ---- scores -------------------------------------------------------------------------------------- */

#define WB_STATIC_WHOLE_BITS 11 /* WB_SCORE_ONE << 11 is still a uint32_t */
#define WB_STATIC_WHOLE (1u << WB_STATIC_WHOLE_BITS)

/* What PageRank adds to the score of a document, or to the greatest of some: value is from the column. */
static inline uint32_t wb_scoring_static(const struct wb_qplan *plan, uint32_t value)
{
    return value * plan->static_share >> (WB_STATIC_WHOLE_BITS + plan->shift);
}

/* Prepares the scores of a plan: terms, scorers, scale. */
int wb_scoring_prepare(struct wb_qplan *plan);

/* Finds the bounds of all terms in the panes of a whole window. */
void wb_scoring_look(struct wb_qplan *plan, uint32_t base);

/* No document of these panes of that window scores more than this. Also sets the bounds of the terms. */
uint32_t wb_scoring_bound(struct wb_qplan *plan, uint32_t base, uint32_t first, uint32_t end);

/*
 * Computes the scores of the documents whose bits are set, all parts included. Clears the bits of those that cannot
 * score more than `least`; 0: keeps all. Bounds must be those of the window if least is not 0.
 */
void wb_scoring_sum(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits, uint32_t least,
                    uint32_t *sums);

/* Adds the scores of one term to the documents whose bits are set: one by one if they are few. */
void wb_scoring_add(const struct wb_qplan *plan, const struct wb_scoreterm *term, struct wb_window window,
                    const uint64_t *mask, uint32_t *sums);

/* The score of a document as people see it. */
double wb_scoring_value(const struct wb_qplan *plan, uint32_t score);

/* The score of one posting without fields, for plain BM25. */
uint32_t wb_scoring_plain(const struct wb_qplan *plan, const struct wb_slot *slot, uint32_t docid,
                          const uint32_t frequency[WB_FIELDS]);

/* ---- results -------------------------------------------------------------------------------------- */

/* A result: the greater the key the better; equal keys by docid ascending. */
struct wb_found {
    uint64_t key;
    uint32_t docid, score;
};

/* The best `max` of what is added. */
struct wb_topk {
    uint64_t max;
    bool sorted;                   /* nothing more can be added */
    WB_VEC(struct wb_found) items; /* a heap, the worst first; when they are sorted, the best first */
};

int wb_topk_add(struct wb_topk *topk, struct wb_found found);

/* Puts them in order, the best first. */
void wb_topk_sort(struct wb_topk *topk);

/* The best by score. *counted_out is how many results were seen; *exact_out whether these were all. */
int wb_topk_search(struct wb_qplan *plan, struct wb_topk *topk, uint64_t *counted_out, bool *exact_out);

/* What is wanted of all results. */
struct wb_gather {
    struct wb_topk *topk;      /* the best by the order of the options; NULL: not wanted */
    unsigned facets;
    uint64_t *bits;            /* a bit for each document, all zero, to be set for results; NULL: not wanted */
    uint64_t total;
    uint32_t *counts[WB_FACETS]; /* by number of site, type, language, status; NULL if not wanted */
    size_t count_sizes[WB_FACETS];
};

/* Looks at all results: those of each group of near duplicates once if the query has dup:no. */
int wb_gather_all(struct wb_qplan *plan, struct wb_gather *gather);
void wb_gather_release(struct wb_gather *gather);

/* How the best results are folded (folding.c). Places are those in the order of results. */
struct wb_foldmember {
    size_t hit; /* the number of the hit */
    size_t place;
    enum wb_fold_why why;
};

struct wb_foldlist {
    WB_VEC(size_t) hits;                  /* the place of each hit */
    WB_VEC(struct wb_foldmember) members; /* what is folded under the hits that are wanted */
    uint64_t folded;                      /* under any hit */
    bool whole;                           /* these are all results */
    bool enough;                          /* nothing that was not found could change the hits that are wanted */
};

/*
 * How many results must be found for the hits that are wanted; before: how many were found that were not enough, or 0.
 * Without folding, these are offset + limit.
 */
uint64_t wb_fold_depth(const struct wb_search_options *options, uint64_t before);

/* Folds results that are in order. The list is empty at first; its vectors are the caller's to release. */
int wb_fold(const struct wb_qplan *plan, const struct wb_topk *topk, struct wb_foldlist *list);

/* Fetches the URL and the title of a document; a URL that was never fetched has no title. */
int wb_hits_names(const struct wb_qplan *plan, struct wb_arena *arena, uint32_t docid, struct wb_slice *url_out,
                  struct wb_slice *title_out);

/*
 * Fills in URLs, titles and snippets of the hits; a URL that was never fetched has neither of the latter. And suggests
 * another spelling of the query if it found little.
 */
int wb_hits_texts(struct wb_qplan *plan, struct wb_results *results);
int wb_hits_suggest(struct wb_qplan *plan, struct wb_results *results);

/* The plan as lines of text, with the number of documents of each part. */
int wb_explain_plan(struct wb_qplan *plan, struct wb_buf *lines_out);

/* The parts of a document's score. */
int wb_explain_hit(struct wb_qplan *plan, uint32_t docid, struct wb_arena *arena, struct wb_hit *hit);

#endif
