/*
 * siblings.c - pages that are alike because the same pages link to them (the paper's similarity by siblings).
 *
 * The similarity is the cosine of the two sets of pages that link: how many link to both, divided by the geometric
 * mean of how many link to each.
 */
#include "base/error.h"
#include "query/searcher.h"

#include <math.h>
#include <stdlib.h>

enum {
    SOURCES_MAX = 5000, /* of more pages that link, some are chosen */
    TARGETS_MAX = 5000, /* a page with more links than this is a directory of everything and says little */
    ARCS_MAX = 4000000,
};

struct wb_docids WB_VEC_OF(uint32_t);

static int compare_docids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static int compare_siblings(const void *a, const void *b)
{
    const struct wb_sibling *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

/* All targets of the pages that link to this one, as often as they occur. */
static int collect(struct wb_searcher *searcher, uint32_t docid, struct wb_docids *targets)
{
    const uint32_t *sources, *list;
    size_t source_count, count;
    int err = wb_searcher_arcs(searcher, WB_ARCS_IN, docid, &sources, &source_count);
    size_t step = err == 0 ? source_count / SOURCES_MAX + 1 : 1;

    for (size_t i = 0; err == 0 && i < source_count && targets->count < ARCS_MAX; i += step) {
        if (sources[i] == docid || wb_searcher_barred(searcher, sources[i]))
            continue;
        err = wb_searcher_arcs(searcher, WB_ARCS_OUT, sources[i], &list, &count);
        for (size_t k = 0; err == 0 && count <= TARGETS_MAX && k < count; k++)
            if (list[k] != docid && list[k] != sources[i] && !wb_searcher_barred(searcher, list[k]))
                err = wb_vec_push(targets, list[k]);
    }
    return err;
}

int wb_siblings_find(struct wb_searcher *searcher, uint32_t docid, size_t max, struct wb_siblings *siblings)
{
    struct wb_docids targets = WB_VEC_INIT;
    const uint32_t *inlinks = NULL;

    WB_CHECK(docid < searcher->urls);
    int err = collect(searcher, docid, &targets);
    if (err == 0)
        err = wb_searcher_inlinks(searcher, &inlinks);
    if (err == 0 && targets.count)
        qsort(targets.items, targets.count, sizeof *targets.items, compare_docids);
    for (size_t i = 0; err == 0 && i < targets.count;) {
        size_t end = i;
        while (end < targets.count && targets.items[end] == targets.items[i])
            end++;
        WB_CHECK(targets.items[i] < searcher->urls);
        double both = sqrt((double)inlinks[docid] * (double)inlinks[targets.items[i]]);
        double score = (double)(end - i) / (both > 1 ? both : 1);
        err = wb_vec_push(siblings, (struct wb_sibling){targets.items[i], score < 1 ? score : 1});
        i = end;
    }
    if (siblings->count)
        qsort(siblings->items, siblings->count, sizeof *siblings->items, compare_siblings);
    if (siblings->count > max)
        siblings->count = max;
    wb_vec_release(&targets);
    return err;
}
