/*
 * gather.c - looks at all results: counts them, also by site, type, language and status; collects them as a set; puts
 * them in another order than that of scores; leaves out near duplicates; keeps the best of each site.
 */
#include "base/check.h"
#include "base/error.h"
#include "query/results.h"

#include <math.h>

/* ---- keys ----------------------------------------------------------------------------------------- */

/* How results are ordered. A greater key is better; 0: the page has no value, so it comes last either way. */
struct wb_sortkey {
    struct wb_qplan *plan;
    enum wb_ask_field field;
    bool reverse;
    const void *values;
    uint32_t end; /* documents from here on have no value */
    enum wb_value_kind value;
    const uint32_t *codes; /* of a column of words */
};

struct wb_sort_fact {
    enum wb_ask_field field;
    enum wb_fact fact;
    enum wb_value_kind value;
};

static const struct wb_sort_fact sort_facts[] = {
    {WB_ASK_RANK, WB_FACT_RANK, WB_VALUE_DOUBLE},
    {WB_ASK_HOSTRANK, WB_FACT_HOSTRANK, WB_VALUE_DOUBLE},
    {WB_ASK_FETCHED, WB_FACT_TIME, WB_VALUE_I64},
    {WB_ASK_CHANGED, WB_FACT_CHANGED, WB_VALUE_I64},
    {WB_ASK_PUBLISHED, WB_FACT_PUBLISHED, WB_VALUE_I64},
    {WB_ASK_MODIFIED, WB_FACT_MODIFIED, WB_VALUE_I64},
    {WB_ASK_SIZE, WB_FACT_SIZE, WB_VALUE_U64},
    {WB_ASK_INLINKS, WB_FACT_INLINKS, WB_VALUE_U32},
    {WB_ASK_OUTLINKS, WB_FACT_OUTLINKS, WB_VALUE_U32},
    {WB_ASK_DEPTH, WB_FACT_DEPTH, WB_VALUE_U16},
    {WB_ASK_VERSIONS, WB_FACT_VERSIONS, WB_VALUE_U32},
};

static int find_column(struct wb_qplan *plan, struct wb_slice name, struct wb_sortkey *key)
{
    const struct wb_index_column *column = NULL;
    int err = wb_index_column(plan->searcher->index, name, &column);

    if (err < 0)
        return err == WB_E_NOTFOUND ? wb_fail(WB_E_INVALID, "results cannot be sorted by %.*s", WB_SLICE_ARG(name))
                                    : err;
    key->end = plan->searcher->urls;
    key->value = column->words ? WB_VALUE_U32 : WB_VALUE_DOUBLE;
    key->values = column->words ? (const void *)column->codes : column->numbers;
    key->codes = column->words ? column->codes : NULL;
    WB_CHECK(key->values);
    return 0;
}

/* Where the values are that results are sorted by; the score and the order of URLs need none. */
static int find_key(struct wb_qplan *plan, struct wb_sortkey *key)
{
    const struct wb_ask_sort *sort = &plan->options->sort;
    const uint32_t *inlinks = NULL;

    WB_CHECK(plan->options->sort.field <= WB_ASK_COLUMN);
    *key = (struct wb_sortkey){.plan = plan, .field = sort->field, .reverse = sort->reverse};
    if (sort->field == WB_ASK_ANY || sort->field == WB_ASK_URL)
        return 0;
    if (sort->field == WB_ASK_COLUMN)
        return find_column(plan, sort->column, key);
    for (size_t i = 0; i < sizeof sort_facts / sizeof *sort_facts; i++) {
        if (sort_facts[i].field != sort->field)
            continue;
        key->value = sort_facts[i].value;
        key->end = sort_facts[i].fact < WB_FACT_FIRST_OF_PAGES ? plan->searcher->urls : plan->searcher->pages;
        int err = sort->field == WB_ASK_INLINKS
                      ? wb_searcher_inlinks(plan->searcher, &inlinks)
                      : wb_index_fact(plan->searcher->index, sort_facts[i].fact, &key->values);
        key->values = inlinks ? inlinks : key->values;
        WB_CHECK(err < 0 || key->values);
        return err;
    }
    return wb_fail(WB_E_INVALID, "results cannot be sorted by %s", wb_ask_field_name(sort->field));
}

/* A number as bits that are in the same order. */
static uint64_t order_of_double(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

/* The value of a document, from 1 on; 0: none. */
static uint64_t value_of(const struct wb_sortkey *key, uint32_t docid, uint32_t score)
{
    if (key->field == WB_ASK_ANY && docid == key->plan->typed)
        return UINT64_MAX - 1;
    if (key->field == WB_ASK_ANY)
        return (uint64_t)score + 1;
    if (key->field == WB_ASK_URL)
        return UINT64_MAX - 1 - wb_index_order(key->plan->searcher->index, docid);
    if (docid >= key->end)
        return 0;
    int64_t time = 0;
    double number = 0;
    switch (key->value) {
    case WB_VALUE_U16:
        return (uint64_t)((const uint16_t *)key->values)[docid] + 1;
    case WB_VALUE_U32:
        if (key->codes)
            return key->codes[docid];
        return (uint64_t)((const uint32_t *)key->values)[docid] + 1;
    case WB_VALUE_U64:
        return ((const uint64_t *)key->values)[docid] / 2 + 1;
    case WB_VALUE_I64:
        time = ((const int64_t *)key->values)[docid];
        return time ? (uint64_t)time ^ 1ull << 63 : 0;
    case WB_VALUE_DOUBLE:
        number = ((const double *)key->values)[docid];
        return isnan(number) ? 0 : order_of_double(number);
    case WB_VALUE_U8:
    case WB_VALUE_SELF:
        break;
    }
    WB_CHECK(false); /* nothing is sorted by these */
    return 0;
}

static uint64_t key_of(const struct wb_sortkey *key, uint32_t docid, uint32_t score)
{
    uint64_t value = value_of(key, docid, score);

    return value && key->reverse ? UINT64_MAX - value : value;
}

/* ---- facets ----------------------------------------------------------------------------------------- */

static const enum wb_fact facet_facts[WB_FACETS] = {
    [WB_FACET_SITE] = WB_FACT_SITE,
    [WB_FACET_TYPE] = WB_FACT_TYPE,
    [WB_FACET_LANG] = WB_FACT_LANG,
    [WB_FACET_STATUS] = WB_FACT_STATUS,
};

/* The state of a walk over all results. */
struct wb_gathering {
    struct wb_qplan *plan;
    struct wb_gather *gather;
    struct wb_sortkey key;
    const void *facets[WB_FACETS];
    const uint32_t *near;  /* of dup:no */
    uint64_t *seen;        /* a bit for each page whose near duplicates have been seen */
    const uint32_t *sites; /* of collapsing */
    struct wb_found *best; /* of each site; docid WB_DOCID_NONE: none yet */
    size_t site_count;
    bool scores;
    uint32_t sums[WB_WINDOW];
};

/* Sites are numbered in the order of URLs, so the last one is that of the last page or of the last other URL. */
static int find_sites(struct wb_searcher *searcher, const uint32_t **sites_out, size_t *count_out)
{
    const void *sites = NULL;
    int err = wb_index_fact(searcher->index, WB_FACT_SITE, &sites);
    uint32_t last = 0;

    *sites_out = sites;
    for (uint32_t docid = 0; err == 0 && docid < searcher->urls; docid++)
        last = (*sites_out)[docid] > last ? (*sites_out)[docid] : last;
    *count_out = (size_t)last + 1;
    return err;
}

static int count_types(struct wb_searcher *searcher, size_t *count_out)
{
    const void *types = NULL;
    uint32_t last = 0;
    int err = wb_index_fact(searcher->index, WB_FACT_TYPE, &types);

    for (uint32_t docid = 0; err == 0 && docid < searcher->pages; docid++)
        last = ((const uint32_t *)types)[docid] > last ? ((const uint32_t *)types)[docid] : last;
    *count_out = (size_t)last + 1;
    return err;
}

static int open_facet(struct wb_gathering *g, enum wb_facet facet)
{
    struct wb_searcher *searcher = g->plan->searcher;
    struct wb_gather *gather = g->gather;
    const uint32_t *sites;
    size_t count = facet == WB_FACET_LANG ? 256 : 65536;

    WB_CHECK(!gather->counts[facet]);
    int err = wb_index_fact(searcher->index, facet_facts[facet], &g->facets[facet]);
    if (err == 0 && facet == WB_FACET_SITE)
        err = find_sites(searcher, &sites, &count);
    if (err == 0 && facet == WB_FACET_TYPE)
        err = count_types(searcher, &count);
    if (err < 0)
        return err;
    gather->counts[facet] = wb_alloc_zero(count, sizeof *gather->counts[facet]);
    gather->count_sizes[facet] = count;
    return gather->counts[facet] ? 0 : WB_E_NOMEM;
}

static void count_facets(struct wb_gathering *g, struct wb_window window, const struct wb_windowbits *bits)
{
    uint32_t *const *counts = g->gather->counts;
    uint32_t pages = g->plan->searcher->pages;

    WB_EACH_DOC(window, bits, docid, {
        if (counts[WB_FACET_SITE])
            counts[WB_FACET_SITE][((const uint32_t *)g->facets[WB_FACET_SITE])[docid]]++;
        if (docid >= pages)
            continue;
        if (counts[WB_FACET_TYPE])
            counts[WB_FACET_TYPE][((const uint32_t *)g->facets[WB_FACET_TYPE])[docid]]++;
        if (counts[WB_FACET_LANG])
            counts[WB_FACET_LANG][((const uint8_t *)g->facets[WB_FACET_LANG])[docid]]++;
        if (counts[WB_FACET_STATUS])
            counts[WB_FACET_STATUS][((const uint16_t *)g->facets[WB_FACET_STATUS])[docid]]++;
    })
}

/* ---- the walk ---------------------------------------------------------------------------------------- */

static int start(struct wb_gathering *g)
{
    struct wb_searcher *searcher = g->plan->searcher;
    const void *near = NULL;

    WB_CHECK(!g->gather->topk || (g->gather->topk->max > 0 && g->gather->topk->items.count == 0));
    WB_CHECK(g->gather->facets >> WB_FACETS == 0);
    int err = g->gather->topk ? find_key(g->plan, &g->key) : 0;
    g->scores = g->gather->topk != NULL && g->plan->options->sort.field == WB_ASK_ANY;
    for (int facet = 0; err == 0 && facet < WB_FACETS; facet++)
        if (g->gather->facets >> facet & 1)
            err = open_facet(g, (enum wb_facet)facet);
    if (err == 0 && g->plan->dup_no) {
        err = wb_index_fact(searcher->index, WB_FACT_NEAR, &near);
        g->near = near;
        g->seen = wb_alloc_zero((size_t)searcher->pages / 64 + 1, sizeof *g->seen);
        err = err < 0 ? err : g->seen ? 0 : WB_E_NOMEM;
    }
    if (err == 0 && g->plan->options->collapse_site) {
        err = find_sites(searcher, &g->sites, &g->site_count);
        g->best = err == 0 ? wb_alloc(g->site_count * sizeof *g->best) : NULL;
        err = err < 0 ? err : g->best ? 0 : WB_E_NOMEM;
        for (size_t i = 0; err == 0 && i < g->site_count; i++)
            g->best[i] = (struct wb_found){0, WB_DOCID_NONE, 0};
    }
    return err;
}

/* Of each group of near duplicates, the first among the results. Documents come in ascending order. */
static void drop_duplicates(struct wb_gathering *g, struct wb_window window, struct wb_windowbits *bits)
{
    uint32_t pages = g->plan->searcher->pages;

    WB_CHECK(g->seen);
    WB_EACH_DOC(window, bits, docid, {
        uint32_t group = docid < pages && g->near[docid] < pages ? g->near[docid] : docid;
        if (group < pages && g->seen[group / 64] >> group % 64 & 1)
            wb_bits_drop(bits, docid - window.base);
        else if (group < pages)
            g->seen[group / 64] |= 1ull << group % 64;
    })
}

static int add_found(struct wb_gathering *g, uint32_t docid)
{
    uint32_t score = g->scores ? g->sums[docid & (WB_WINDOW - 1)] : 0;
    struct wb_found found = {key_of(&g->key, docid, score), docid, score};

    if (!g->best)
        return wb_topk_add(g->gather->topk, found);
    WB_CHECK(g->sites[docid] < g->site_count);
    struct wb_found *best = &g->best[g->sites[docid]];
    if (best->docid == WB_DOCID_NONE || found.key > best->key)
        *best = found;
    return 0;
}

static int take_window(struct wb_gathering *g, struct wb_window window)
{
    struct wb_windowbits bits;
    int err = 0;

    WB_CHECK(window.base % WB_WINDOW == 0); /* add_found() finds the sum of a document so */
    if (!wb_qplan_eval(g->plan, window, &bits))
        return 0;
    wb_qplan_verify(g->plan, window, &bits);
    if (g->near)
        drop_duplicates(g, window, &bits);
    g->gather->total += wb_bits_count(window, &bits);
    if (g->gather->facets)
        count_facets(g, window, &bits);
    WB_CHECK((window.base + window.size) / 64 <= g->plan->searcher->bit_words);
    if (g->gather->bits)
        memcpy(g->gather->bits + window.base / 64, bits.word, window.size / 8);
    if (!g->gather->topk && !g->best)
        return 0;
    if (g->scores)
        wb_scoring_sum(g->plan, window, &bits, 0, g->sums);
    WB_EACH_DOC(window, &bits, docid, err = err < 0 ? err : add_found(g, docid);)
    return err;
}

/* The results are the best of each site, and that is how many there are. */
static int take_best(struct wb_gathering *g)
{
    int err = 0;

    WB_CHECK(!g->gather->topk || g->gather->topk->items.count == 0); /* nothing but the best of a site gets there */
    g->gather->total = 0;
    for (size_t i = 0; err == 0 && i < g->site_count; i++) {
        if (g->best[i].docid == WB_DOCID_NONE)
            continue;
        g->gather->total++;
        if (g->gather->topk)
            err = wb_topk_add(g->gather->topk, g->best[i]);
    }
    return err;
}

/* One list that has the whole truth: the dictionary knows how many documents it has. */
static bool count_is_known(const struct wb_qplan *plan, const struct wb_gather *gather, uint64_t *count_out)
{
    const struct wb_leaf *leaf = plan->root && plan->root->kind == WB_QNODE_LEAF ? plan->root->leaf : NULL;
    bool everything = plan->with_status ? plan->searcher->barred == 0 : plan->searcher->all_shown;

    if (!leaf || !everything || leaf->kind != WB_LEAF_WORDS || leaf->verify || gather->topk || gather->facets ||
        gather->bits || plan->dup_no || plan->options->collapse_site)
        return false;
    const struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    if (words->slot_count != 1 || words->slots[0].list_count != 1)
        return false;
    *count_out = words->slots[0].df;
    return true;
}

int wb_gather_all(struct wb_qplan *plan, struct wb_gather *gather)
{
    struct wb_gathering *g;
    struct wb_window window;
    int err;

    WB_CHECK(gather->total == 0);
    if (count_is_known(plan, gather, &gather->total))
        return 0;
    g = wb_alloc_zero(1, sizeof *g);
    if (!g)
        return WB_E_NOMEM;
    g->plan = plan;
    g->gather = gather;
    err = start(g);
    for (uint32_t from = 0; err == 0 && (window = wb_qplan_window(plan, from)).size; from = window.base + window.size) {
        err = take_window(g, window);
        if (plan->err < 0)
            err = plan->err;
    }
    if (err == 0 && g->best)
        err = take_best(g);
    wb_free(g->seen);
    wb_free(g->best);
    wb_free(g);
    return err;
}

void wb_gather_release(struct wb_gather *gather)
{
    for (int facet = 0; facet < WB_FACETS; facet++)
        wb_free(gather->counts[facet]);
}
