/*
 * api_search.c - GET /api/search?q=&limit=&offset=&sort=&facet=&explain=&one_per_site=&fold=&quick=
 *
 *   {"hits":[{"rank":1,"url":...,"title":...,"score":...,"snippet":...,"time":...,"lang":...}],"total":17,...}
 *
 * The fields are those of `webbase search --json`. cut: the time ran out, and this is what was found until then.
 */
#include "base/check.h"
#include "base/error.h"
#include "os/clock.h"
#include "serve/server.h"

enum { LIMIT_DEFAULT = 10, LIMIT_MAX = 1000 };
#define OFFSET_MAX UINT64_C(1000000)

static int read_facets(const struct wb_http_request *request, unsigned *facets_out)
{
    int err = 0;

    *facets_out = 0;
    for (size_t i = 0; i < request->param_count && err == 0; i++)
        if (wb_slice_equal(request->params[i].name, WB_SLICE_LIT("facet")))
            err = wb_answer_facet(request->params[i].value, facets_out);
    return err;
}

int wb_call_search(struct wb_call *call, struct wb_searcher *searcher, struct wb_search_options *search)
{
    WB_CHECK(call->magic == WB_CALL_MAGIC);
    struct wb_slice sort = wb_http_param(call->request, "sort");
    bool quick;

    *search = (struct wb_search_options){.query = wb_http_param(call->request, "q")};
    int err = wb_call_number(call, "limit", LIMIT_DEFAULT, UINT64_MAX, &search->limit);
    if (err == 0)
        err = wb_call_number(call, "offset", 0, OFFSET_MAX, &search->offset);
    if (err == 0)
        err = wb_call_flag(call, "explain", &search->explain);
    if (err == 0)
        err = wb_call_flag(call, "one_per_site", &search->collapse_site);
    if (err == 0)
        err = wb_call_flag(call, "fold", &search->fold);
    if (err == 0)
        err = wb_call_flag(call, "quick", &quick);
    if (err == 0)
        err = read_facets(call->request, &search->facets);
    if (err == 0 && sort.len)
        err = wb_answer_sort(searcher, sort, &search->sort);
    if (err < 0)
        return err;
    search->limit = search->limit < LIMIT_MAX ? search->limit : LIMIT_MAX;
    search->count = !quick;
    search->give_up = wb_patience_begin(call->worker);
    return 0;
}

void wb_handle_search(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    int64_t began = wb_clock_mono_ns();
    struct wb_searcher *searcher = NULL;
    struct wb_search_options search;
    struct wb_results results = {.total = 0};
    struct wb_slice query;
    struct wb_json j;

    int err = wb_call_required(call, "q", &query);
    if (err == 0)
        err = wb_call_searcher(call, &searcher);
    if (err == 0)
        err = wb_call_search(call, searcher, &search);
    if (err == 0)
        err = wb_search(searcher, &search, &results);
    wb_patience_end(call->worker);
    if (err == 0) {
        wb_call_json(call, &j);
        wb_json_key(&j, "hits");
        wb_json_array(&j);
        for (size_t i = 0; i < results.hit_count; i++) {
            wb_json_object(&j);
            wb_answer_hit(&j, &search, &results.hits[i], search.offset + i + 1);
            wb_json_object_end(&j);
        }
        wb_json_array_end(&j);
        wb_answer_results(&j, &search, &results, (double)(wb_clock_mono_ns() - began) / 1e6);
        wb_json_field_u64(&j, "generation", call->worker->generation);
        wb_json_field_u64(&j, "limit", search.limit);
        wb_call_json_end(call, &j, 0);
    } else {
        wb_call_fail(call, err);
    }
    wb_results_release(&results);
}
