/* linkrows.c - the links to or from a URL, with their texts. */
#include "base/check.h"
#include "base/error.h"
#include "query/searcher.h"

#include <stdlib.h>

struct link_end {
    uint32_t docid;
    uint32_t number; /* in the order in which they came */
    struct wb_slice anchor;
};

struct link_ends {
    struct wb_searcher *searcher;
    enum wb_webdb_direction direction;
    WB_VEC(struct link_end) ends;
};

/* URLs can only be asked for when the walk over the links is over, so that everything is kept until then. */
static int take_end(void *context, uint32_t docid, struct wb_slice anchor)
{
    struct link_ends *links = context;
    struct link_end end = {docid, (uint32_t)links->ends.count, WB_SLICE_EMPTY};

    WB_CHECK(docid < links->searcher->urls);
    if (links->direction == WB_ARCS_IN && wb_searcher_barred(links->searcher, docid))
        return 0;
    int err = wb_arena_copy(&links->searcher->scratch, anchor, &end.anchor);
    return err < 0 ? err : wb_vec_push(&links->ends, end);
}

static int compare_ends(const void *a, const void *b)
{
    const struct link_end *x = a, *y = b;

    if (x->docid != y->docid)
        return x->docid < y->docid ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

int wb_links_of(struct wb_searcher *searcher, uint32_t docid, enum wb_webdb_direction direction,
                int (*each)(void *context, const struct wb_link_row *row), void *context)
{
    struct link_ends links = {.searcher = searcher, .direction = direction};

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    WB_CHECK(direction == WB_ARCS_IN || direction == WB_ARCS_OUT);
    if (wb_searcher_barred(searcher, docid))
        return 0;
    wb_arena_clear(&searcher->scratch);
    int err = wb_index_links(searcher->index, docid, direction, take_end, &links);
    if (err == 0 && links.ends.count)
        qsort(links.ends.items, links.ends.count, sizeof *links.ends.items, compare_ends);
    for (size_t i = 0; err == 0 && i < links.ends.count; i++) {
        struct wb_link_row row = {.anchor = links.ends.items[i].anchor};
        if (i && links.ends.items[i].docid == links.ends.items[i - 1].docid)
            continue; /* two contents of one page can have the same link */
        err = wb_index_url(searcher->index, links.ends.items[i].docid, &row.url);
        if (err == 0)
            err = each(context, &row);
    }
    wb_vec_release(&links.ends);
    return err;
}

int wb_links(struct wb_searcher *searcher, struct wb_slice url, enum wb_webdb_direction direction,
             int (*each)(void *context, const struct wb_link_row *row), void *context)
{
    uint32_t docid = 0;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_searcher_refresh(searcher);
    if (err == 0)
        err = wb_searcher_find(searcher, url, &docid);
    if (err == WB_E_NOTFOUND)
        return wb_fail(WB_E_NOTFOUND, "%.*s is not in the index", WB_SLICE_ARG(url));
    return err < 0 ? err : wb_links_of(searcher, docid, direction, each, context);
}
