/* planplaces.c - leaves for where a page is: in a site, and in the graph of links. */
#include "base/check.h"
#include "base/error.h"
#include "query/queryplan.h"
#include "url/url.h"

#include <stdlib.h>

enum { RELATED_MAX = 1000 };

static int nothing(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    return wb_plan_leaf_node(plan, wb_qplan_leaf(plan, ask, WB_LEAF_NOTHING), node_out);
}

/* ---- sites ------------------------------------------------------------------------------------- */

/* "https://Example.org/x", "example.org." and ".edu" as a host. */
static struct wb_slice bare_host(struct wb_slice text)
{
    for (size_t i = 0; i + 3 <= text.len; i++)
        if (memcmp(text.ptr + i, "://", 3) == 0) {
            text = wb_slice(text.ptr + i + 3, text.len - i - 3);
            break;
        }
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '/')
            text.len = i;
    while (text.len && text.ptr[0] == '.')
        text = wb_slice(text.ptr + 1, text.len - 1);
    while (text.len && text.ptr[text.len - 1] == '.')
        text.len--;
    return text;
}

/* Host names with letters other than ASCII are known by their IDNA form. */
static int ascii_host(struct wb_slice text, struct wb_buf *host_out)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf href = WB_BUF_INIT;
    bool ascii = true;

    for (size_t i = 0; i < text.len; i++)
        ascii &= (unsigned char)text.ptr[i] < 0x80;
    int err = ascii ? wb_buf_append_slice(host_out, text) : wb_buf_printf(&href, "http://%.*s/", WB_SLICE_ARG(text));
    if (err == 0 && !ascii) {
        if (wb_url_parse(wb_buf_slice(&href), NULL, &url) == 0) {
            err = wb_buf_append_slice(host_out, wb_url_host(&url));
            if (err == 0 && wb_url_port(&url).len)
                err = wb_buf_printf(host_out, ":%.*s", WB_SLICE_ARG(wb_url_port(&url)));
        }
    }
    wb_url_release(&url);
    wb_buf_release(&href);
    return err;
}

struct site_ranges {
    struct wb_leaf *leaf;
    WB_VEC(struct wb_index_range) ranges;
};

static int add_range(void *context, struct wb_index_range range)
{
    struct site_ranges *found = context;
    size_t count = found->ranges.count;

    WB_CHECK(range.first < range.end);
    WB_CHECK(count == 0 || found->ranges.items[count - 1].end <= range.first); /* leaves search them */
    found->leaf->cost += range.end - range.first;
    if (count && found->ranges.items[count - 1].end == range.first) {
        found->ranges.items[count - 1].end = range.end;
        return 0;
    }
    return wb_vec_push(&found->ranges, range);
}

static int site_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_qnode **node_out)
{
    struct site_ranges found = {wb_qplan_leaf(plan, ask, WB_LEAF_RANGES), WB_VEC_INIT};
    struct wb_buf host = WB_BUF_INIT;
    int err = found.leaf ? ascii_host(bare_host(ask->text), &host) : WB_E_NOMEM;

    if (err == 0 && host.len)
        err = wb_index_sites(plan->searcher->index, wb_buf_slice(&host), add_range, &found);
    wb_buf_release(&host);
    if (err == 0 && found.ranges.count) {
        size_t size = found.ranges.count * sizeof *found.ranges.items;
        struct wb_leaf_ranges *ranges = WB_RANGES_OF(found.leaf);
        ranges->items = wb_qplan_take(plan, size);
        if (ranges->items)
            memcpy(ranges->items, found.ranges.items, size);
        err = ranges->items ? 0 : WB_E_NOMEM;
        ranges->count = found.ranges.count;
    }
    wb_vec_release(&found.ranges);
    return err < 0 ? err : wb_plan_leaf_node(plan, found.leaf, node_out);
}

/* ---- links --------------------------------------------------------------------------------------- */

/* Leaves search them. */
static bool ascend(const uint32_t *docs, size_t count)
{
    bool all = true;

    for (size_t i = 1; i < count; i++)
        all &= docs[i - 1] < docs[i];
    return all;
}

static int link_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, uint32_t docid, struct wb_qnode **node_out)
{
    enum wb_webdb_direction direction = ask->field == WB_ASK_LINK ? WB_ARCS_IN : WB_ARCS_OUT;

    WB_CHECK(ask->field == WB_ASK_LINK || ask->field == WB_ASK_LINKFROM);
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_DOCS);
    const uint32_t *list = NULL;
    size_t count = 0;
    int err = leaf ? wb_searcher_arcs(plan->searcher, direction, docid, &list, &count) : WB_E_NOMEM;

    if (err < 0)
        return err;
    uint32_t *docs = wb_qplan_take(plan, (count ? count : 1) * sizeof *docs);
    if (!docs)
        return WB_E_NOMEM;
    if (count)
        memcpy(docs, list, count * sizeof *docs);
    WB_CHECK(ascend(docs, count));
    *WB_DOCS_OF(leaf) = (struct wb_leaf_docs){.items = docs, .count = count};
    leaf->cost = count;
    return wb_plan_leaf_node(plan, leaf, node_out);
}

static int compare_docids(const void *a, const void *b)
{
    const struct wb_sibling *x = a, *y = b;

    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

/* The most similar page scores about as much as a rare word, so that related pages come in the order of similarity. */
static int related_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, uint32_t docid, bool scored,
                        struct wb_qnode **node_out)
{
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_DOCS);
    struct wb_siblings siblings = WB_VEC_INIT;
    int err = leaf ? wb_siblings_find(plan->searcher, docid, RELATED_MAX, &siblings) : WB_E_NOMEM;

    uint32_t *docs = err == 0 ? wb_qplan_take(plan, (siblings.count + 1) * sizeof *docs) : NULL;
    uint32_t *scores = err == 0 ? wb_qplan_take(plan, (siblings.count + 1) * sizeof *scores) : NULL;
    if (err == 0 && (!docs || !scores))
        err = WB_E_NOMEM;
    if (err == 0 && siblings.count)
        qsort(siblings.items, siblings.count, sizeof *siblings.items, compare_docids);
    for (size_t i = 0; err == 0 && i < siblings.count; i++) {
        docs[i] = siblings.items[i].docid;
        WB_CHECK(siblings.items[i].score >= 0 && siblings.items[i].score <= 1);
        scores[i] = (uint32_t)(siblings.items[i].score * 16 * WB_SCORE_ONE);
        leaf->constant = scores[i] > leaf->constant ? scores[i] : leaf->constant;
    }
    WB_CHECK(err < 0 || ascend(docs, siblings.count));
    if (err == 0) {
        *WB_DOCS_OF(leaf) = (struct wb_leaf_docs){.items = docs, .count = siblings.count, .scores = scores};
        leaf->cost = siblings.count;
        leaf->scored = scored;
        err = wb_plan_leaf_node(plan, leaf, node_out);
    }
    wb_vec_release(&siblings);
    return err;
}

int wb_plan_place(struct wb_qplan *plan, const struct wb_ask_node *ask, bool scored, struct wb_qnode **node_out)
{
    uint32_t docid = 0;

    WB_CHECK(ask->kind == WB_ASK_VALUE);
    *node_out = NULL;
    if (ask->field == WB_ASK_SITE || ask->field == WB_ASK_SUFFIX)
        return site_leaf(plan, ask, node_out);
    int err = wb_searcher_find(plan->searcher, ask->text, &docid);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    /* A page that was taken down is unknown to every predicate. */
    if (err == WB_E_NOTFOUND || wb_searcher_barred(plan->searcher, docid))
        return nothing(plan, ask, node_out);
    return ask->field == WB_ASK_RELATED ? related_leaf(plan, ask, docid, scored, node_out)
                                        : link_leaf(plan, ask, docid, node_out);
}
