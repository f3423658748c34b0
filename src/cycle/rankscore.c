/*
 * rankscore.c - walks over the edition of the active generation beside a walk over the newest edition, and joins the
 * two by URL. Nothing is written: the rank column of the generation is where the scores are.
 */
#include "cycle/rankscore.h"
#include "base/check.h"
#include "base/error.h"

#include <math.h>

int wb_rankscore_open(struct wb_rankscore *scores, const char *dir, uint32_t edition)
{
    const void *ranks = NULL;

    *scores = (struct wb_rankscore){.more = 0};
    int err = wb_index_open(dir, &scores->index);
    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0)
        err = wb_index_fact(scores->index, WB_FACT_RANK, &ranks);
    if (err < 0)
        return err;
    const struct wb_index_info *info = wb_index_info(scores->index);
    scores->ranks = ranks;
    scores->links = (double)info->arcs;
    scores->same_edition = info->edition == edition;
    if (scores->same_edition)
        return 0;
    err = wb_webdb_open_edition(dir, info->edition, &scores->webdb);
    if (err == 0)
        err = wb_webdb_urls(scores->webdb, 0, &scores->walk);
    if (err == 0)
        scores->more = wb_webdb_pages_next(scores->walk, &scores->at);
    return err < 0 ? err : scores->more < 0 ? scores->more : 0;
}

void wb_rankscore_close(struct wb_rankscore *scores)
{
    wb_webdb_pages_close(scores->walk);
    wb_webdb_close(scores->webdb);
    wb_index_close(scores->index);
    *scores = (struct wb_rankscore){.more = 0};
}

/* Returns 1 and the page's number in the generation's edition, 0 if it is not there. */
static int find_number(struct wb_rankscore *scores, const struct wb_webdb_page *page, uint64_t *number_out)
{
    int order = -1;

    WB_CHECK(scores->same_edition || scores->walk);
    *number_out = page->number;
    if (scores->same_edition)
        return 1;
    while (scores->more > 0 && (order = wb_slice_compare(scores->at.surt, page->surt)) < 0)
        scores->more = wb_webdb_pages_next(scores->walk, &scores->at);
    *number_out = scores->at.number;
    return scores->more < 0 ? scores->more : scores->more > 0 && order == 0;
}

int wb_rankscore_set(struct wb_rankscore *scores, struct wb_webdb_page *page)
{
    uint64_t number;

    if (!scores->index || (page->flags & WB_PAGE_SCORED))
        return 0;
    int found = find_number(scores, page, &number);
    if (found <= 0)
        return found;
    uint32_t docid = wb_index_docid(scores->index, number);
    WB_CHECK(docid < wb_index_info(scores->index)->urls);
    double rank = scores->ranks[docid];
    if (rank >= 0 && rank <= 1)
        page->score = log2(2 + rank * scores->links);
    return 0;
}
