/*
 * hits.c - answers a query: parses it, plans it, looks for the best results or at all of them, and fetches what is
 * shown of each hit.
 */
#include "base/check.h"
#include "base/error.h"
#include "query/results.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- hits ---------------------------------------------------------------------------------------- */

/* When a page was fetched, and its language; 0 and "" if it never was. */
static int find_facts(const struct wb_qplan *plan, uint32_t docid, int64_t *time_ms_out, const char **language_out)
{
    struct wb_index *index = plan->searcher->index;
    const void *times = NULL, *languages = NULL;

    WB_CHECK(docid < plan->searcher->urls);
    *time_ms_out = 0;
    *language_out = "";
    if (docid >= plan->searcher->pages)
        return 0;
    int err = wb_index_fact(index, WB_FACT_TIME, &times);
    if (err == 0)
        err = wb_index_fact(index, WB_FACT_LANG, &languages);
    if (err < 0)
        return err;
    uint8_t language = ((const uint8_t *)languages)[docid];
    *time_ms_out = ((const int64_t *)times)[docid];
    *language_out = language < WB_LANGUAGES ? wb_language_code(language) : "";
    return 0;
}

static int fill_hit(struct wb_qplan *plan, const struct wb_found *found, struct wb_results *results, struct wb_hit *hit)
{
    int err = 0;

    *hit = (struct wb_hit){
        .docid = found->docid, .score = wb_scoring_value(plan, found->score), .language = ""};
    if (plan->options->explain)
        err = wb_explain_hit(plan, found->docid, &results->arena, hit);
    if (err < 0 || plan->options->no_texts)
        return err;
    return find_facts(plan, found->docid, &hit->time_ms, &hit->language);
}

static int fill_folded(struct wb_qplan *plan, const struct wb_found *found, enum wb_fold_why why,
                       struct wb_results *results, struct wb_folded *folded)
{
    *folded = (struct wb_folded){.docid = found->docid, .why = why, .language = ""};
    if (plan->options->no_texts)
        return 0;
    int err = wb_hits_names(plan, &results->arena, found->docid, &folded->url, &folded->title);
    return err < 0 ? err : find_facts(plan, found->docid, &folded->time_ms, &folded->language);
}

/* Puts what is folded under the hit with this number into the hit. */
static int add_folded(struct wb_qplan *plan, const struct wb_topk *topk, const struct wb_foldlist *list, size_t number,
                      struct wb_results *results, struct wb_hit *hit)
{
    size_t count = 0;
    int err = 0;

    WB_CHECK(number < list->hits.count);
    for (size_t i = 0; i < list->members.count; i++)
        count += list->members.items[i].hit == number;
    struct wb_folded *folded = count ? wb_qplan_take(plan, count * sizeof *folded) : NULL;
    if (count && !folded)
        return WB_E_NOMEM;
    count = 0;
    for (size_t i = 0; err == 0 && i < list->members.count; i++) {
        const struct wb_foldmember *member = &list->members.items[i];
        WB_CHECK(member->place < topk->items.count);
        if (member->hit == number)
            err = fill_folded(plan, &topk->items.items[member->place], member->why, results, &folded[count++]);
    }
    hit->folded = folded;
    hit->folded_count = count;
    return err;
}

/* Turns what was found into what the caller gets. list: NULL if nothing is folded. */
static int make_hits(struct wb_qplan *plan, const struct wb_topk *topk, const struct wb_foldlist *list,
                     struct wb_results *results)
{
    uint64_t offset = plan->options->offset, limit = plan->options->limit;
    size_t all = list ? list->hits.count : topk->items.count, count = all > offset ? all - (size_t)offset : 0;
    int err = 0;

    WB_CHECK(topk->sorted);
    WB_CHECK(!list || list->folded + list->hits.count == topk->items.count); /* each result is one or the other */
    results->hit_total = list && list->whole ? all : results->total - (list ? list->folded : 0);
    results->hit_total_exact = list ? list->whole : results->exact;
    count = count < limit ? count : (size_t)limit;
    if (count == 0)
        return 0;
    results->hits = wb_qplan_take(plan, count * sizeof *results->hits);
    if (!results->hits)
        return WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < count; i++) {
        size_t place = list ? list->hits.items[offset + i] : (size_t)offset + i;
        WB_CHECK(place < topk->items.count);
        err = fill_hit(plan, &topk->items.items[place], results, &results->hits[i]);
        if (err == 0 && list)
            err = add_folded(plan, topk, list, (size_t)offset + i, results, &results->hits[i]);
    }
    results->hit_count = err == 0 ? count : 0;
    return err < 0 || plan->options->no_texts ? err : wb_hits_texts(plan, results);
}

/* ---- facets --------------------------------------------------------------------------------------- */

static int compare_values(const void *a, const void *b)
{
    const struct wb_facet_value *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return wb_slice_compare(x->value, y->value);
}

static int name_of(struct wb_qplan *plan, enum wb_facet facet, uint32_t number, char text[16],
                   struct wb_slice *name_out)
{
    switch (facet) {
    case WB_FACET_SITE:
        return wb_index_site(plan->searcher->index, number, name_out);
    case WB_FACET_TYPE:
        return wb_index_type(plan->searcher->index, number, name_out);
    case WB_FACET_LANG:
        *name_out = number < WB_LANGUAGES ? wb_slice_str(wb_language_code((uint8_t)number)) : WB_SLICE_EMPTY;
        return 0;
    default:
        snprintf(text, 16, "%u", number);
        *name_out = wb_slice_str(text);
        return 0;
    }
}

static int make_facet(struct wb_qplan *plan, const struct wb_gather *gather, enum wb_facet facet,
                      struct wb_results *results)
{
    const uint32_t *counts = gather->counts[facet];
    size_t values = 0;
    int err = 0;

    WB_CHECK(facet < WB_FACETS && !results->facets[facet]);
    for (size_t i = 0; i < gather->count_sizes[facet]; i++)
        values += counts[i] != 0;
    struct wb_facet_value *list = wb_qplan_take(plan, (values + 1) * sizeof *list);
    if (!list)
        return WB_E_NOMEM;
    values = 0;
    for (uint32_t i = 0; err == 0 && i < gather->count_sizes[facet]; i++) {
        struct wb_slice name;
        char text[16];
        if (counts[i] == 0)
            continue;
        err = name_of(plan, facet, i, text, &name);
        /* A page whose language or type is not known is not counted under any. */
        if (err < 0 || name.len == 0)
            continue;
        list[values].count = counts[i];
        err = wb_arena_copy(&results->arena, name, &list[values++].value);
    }
    if (values)
        qsort(list, values, sizeof *list, compare_values);
    results->facets[facet] = list;
    results->facet_counts[facet] = err == 0 ? values : 0;
    return err;
}

static int make_facets(struct wb_qplan *plan, const struct wb_gather *gather, struct wb_results *results)
{
    int err = 0;

    for (int facet = 0; err == 0 && facet < WB_FACETS; facet++)
        if (gather->counts[facet])
            err = make_facet(plan, gather, (enum wb_facet)facet, results);
    return err;
}

/* ---- searching -------------------------------------------------------------------------------------- */

/* Runs a plan: the best by score without looking at everything if that is enough, otherwise all results. */
static int run(struct wb_qplan *plan, struct wb_topk *topk, struct wb_results *results)
{
    const struct wb_search_options *options = plan->options;
    bool by_score = options->sort.field == WB_ASK_ANY && !options->sort.reverse && !plan->dup_no &&
                    !options->collapse_site && plan->typed == WB_DOCID_NONE;
    struct wb_gather gather = {.facets = options->facets};
    uint64_t counted = 0;

    WB_CHECK(topk->items.count == 0 && plan->err == 0);
    int err = wb_scoring_prepare(plan);
    results->exact = false;
    if (err == 0 && by_score && topk->max)
        err = wb_topk_search(plan, topk, &counted, &results->exact);
    results->total = counted;
    if (err == 0 && (!by_score || options->facets || ((options->count || !topk->max) && !results->exact))) {
        gather.topk = !by_score && topk->max ? topk : NULL;
        err = wb_gather_all(plan, &gather);
        results->total = gather.total > counted ? gather.total : counted;
        results->exact = err == 0;
    }
    results->cut = wb_search_is_given_up(options);
    results->exact = results->exact && !results->cut;
    if (err == 0)
        err = wb_qplan_error(plan);
    if (err == 0)
        err = make_facets(plan, &gather, results);
    wb_gather_release(&gather);
    return err;
}

static int explain(struct wb_qplan *plan, struct wb_results *results)
{
    struct wb_buf lines = WB_BUF_INIT;
    int err = wb_explain_plan(plan, &lines);

    if (err == 0)
        err = wb_arena_copy(&results->arena, wb_buf_slice(&lines), &results->plan);
    wb_buf_release(&lines);
    return err;
}

/* The words of a URL as a phrase: without what would end it. */
static int parse_words(struct wb_searcher *searcher, struct wb_slice url, struct wb_arena *arena,
                       struct wb_ask *ask_out)
{
    struct wb_buf text = WB_BUF_INIT;
    int err = wb_buf_append_char(&text, '"');

    for (size_t i = 0; err == 0 && i < url.len; i++)
        err = wb_buf_append_char(&text, url.ptr[i] == '"' || url.ptr[i] == '\\' ? ' ' : url.ptr[i]);
    if (err == 0)
        err = wb_buf_append_char(&text, '"');
    if (err == 0)
        err = wb_searcher_parse(searcher, wb_buf_slice(&text), arena, ask_out);
    wb_buf_release(&text);
    return err;
}

/* *typed_out: the page whose URL the query is. A URL may have characters that mean something in the language. */
static int parse(struct wb_searcher *searcher, struct wb_slice query, struct wb_arena *arena, struct wb_ask *ask_out,
                 uint32_t *typed_out)
{
    int found = wb_search_url(searcher, query, typed_out);
    int err = found < 0 && found != WB_E_NOTFOUND ? found : wb_searcher_parse(searcher, query, arena, ask_out);

    return err == WB_E_INVALID && found == 0 ? parse_words(searcher, query, arena, ask_out) : err;
}

/*
 * Looks for the best `depth` results, and makes hits of them. *enough_out is false if so many of them are folded that
 * more must be looked for; then there are no hits yet.
 */
static int look(struct wb_searcher *searcher, const struct wb_search_options *options, const struct wb_ask *ask,
                uint32_t typed, uint64_t depth, struct wb_results *results, bool *enough_out)
{
    struct wb_foldlist list = {.enough = true};
    struct wb_topk topk = {.max = depth};
    struct wb_qplan plan = {.err = 0};
    bool fold = options->fold && depth > 0;
    int err = wb_qplan_make(searcher, options, &results->arena, ask, typed, &plan);

    if (err == 0)
        err = run(&plan, &topk, results);
    if (err == 0) {
        wb_topk_sort(&topk);
        err = fold ? wb_fold(&plan, &topk, &list) : 0;
    }
    *enough_out = list.enough || results->cut;
    if (err == 0 && *enough_out) {
        err = make_hits(&plan, &topk, fold ? &list : NULL, results);
        if (err == 0 && !options->no_texts && typed == WB_DOCID_NONE)
            err = wb_hits_suggest(&plan, results);
        if (err == 0 && options->explain)
            err = explain(&plan, results);
        if (err == 0)
            err = wb_qplan_error(&plan);
    }
    wb_vec_release(&list.hits);
    wb_vec_release(&list.members);
    wb_vec_release(&topk.items);
    wb_qplan_release(&plan);
    return err;
}

int wb_search(struct wb_searcher *searcher, const struct wb_search_options *options, struct wb_results *results)
{
    struct wb_ask ask = {.bad_at = 0};
    uint32_t typed = WB_DOCID_NONE;
    bool enough = false;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    uint64_t depth = wb_fold_depth(options, 0);
    *results = (struct wb_results){.total = 0};
    int err = wb_searcher_refresh(searcher);
    if (err == 0)
        err = parse(searcher, options->query, &results->arena, &ask, &typed);
    results->bad_at = ask.bad_at;
    while (err == 0 && !enough) {
        err = look(searcher, options, &ask, typed, depth, results, &enough);
        WB_CHECK(err < 0 || enough || wb_fold_depth(options, depth) > depth);
        depth = wb_fold_depth(options, depth);
    }
    return err;
}

void wb_results_release(struct wb_results *results)
{
    wb_arena_release(&results->arena);
    *results = (struct wb_results){.total = 0};
}
