/*
 * api_links.c - the neighbours of a page in the generation.
 *
 *   GET /api/links?url=&dir=in|out&limit=&after=   {"url":...,"dir":"in","links":[{"url","anchor"}],"next":100}
 *   GET /api/similar?url=&limit=                   {"url":...,"similar":[{"url","title","score"}]}
 *
 * Links are paged: next is the value of `after` (or `offset`) for the next part, null at the end.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/server.h"

enum { LINKS_DEFAULT = 100, LINKS_MAX = 10000, SIMILAR_DEFAULT = 10, SIMILAR_MAX = 100 };

struct link_list {
    struct wb_json *j;
    uint64_t at, after, limit;
    bool more;
};

static int add_link(void *context, const struct wb_link_row *row)
{
    struct link_list *list = context;
    uint64_t at = list->at++;

    WB_CHECK(!list->more); /* that has ended the walk */
    if (at < list->after)
        return 0;
    if (at >= list->after + list->limit) {
        list->more = true;
        return 1; /* ends the walk */
    }
    wb_json_object(list->j);
    wb_json_field_slice(list->j, "url", row->url);
    wb_json_field_slice(list->j, "anchor", row->anchor);
    wb_json_object_end(list->j);
    return 0;
}

static int read_direction(struct wb_call *call, enum wb_webdb_direction *direction_out)
{
    struct wb_slice dir = wb_http_param(call->request, "dir");

    *direction_out = wb_slice_equal(dir, WB_SLICE_LIT("in")) ? WB_ARCS_IN : WB_ARCS_OUT;
    if (!dir.ptr)
        return wb_fail(WB_E_INVALID, "the parameter dir is missing: in or out");
    if (*direction_out == WB_ARCS_OUT && !wb_slice_equal(dir, WB_SLICE_LIT("out")))
        return wb_fail(WB_E_INVALID, "dir=%.*s is neither in nor out", WB_SLICE_ARG(dir));
    return 0;
}

void wb_handle_links(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    const char *from = wb_http_param(call->request, "offset").ptr ? "offset" : "after";
    struct wb_searcher *searcher = NULL;
    enum wb_webdb_direction direction = WB_ARCS_IN;
    struct link_list list = {0};
    struct wb_slice url;
    struct wb_json j;

    int err = wb_call_required(call, "url", &url);
    if (err == 0)
        err = read_direction(call, &direction);
    if (err == 0)
        err = wb_call_number(call, "limit", LINKS_DEFAULT, LINKS_MAX, &list.limit);
    if (err == 0)
        err = wb_call_number(call, from, 0, UINT32_MAX, &list.after);
    if (err == 0)
        err = wb_call_searcher(call, &searcher);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    list.j = &j;
    wb_call_json(call, &j);
    wb_json_field_slice(&j, "url", url);
    wb_json_field_str(&j, "dir", direction == WB_ARCS_IN ? "in" : "out");
    wb_json_key(&j, "links");
    wb_json_array(&j);
    err = wb_links(searcher, url, direction, add_link, &list);
    wb_json_array_end(&j);
    wb_json_key(&j, "next");
    if (list.more)
        wb_json_u64(&j, list.after + list.limit);
    else
        wb_json_null(&j);
    wb_call_json_end(call, &j, err < 0 ? err : 0);
}

static int add_similar(struct wb_searcher *searcher, struct wb_json *j, uint32_t docid, uint64_t limit)
{
    WB_CHECK(limit <= SIMILAR_MAX);
    struct wb_similar_page pages[SIMILAR_MAX];
    struct wb_index *index = wb_searcher_index(searcher);
    struct wb_slice text;
    size_t count = 0;

    int err = wb_similar(searcher, docid, 0, limit, pages, &count);
    for (size_t i = 0; i < count && err == 0; i++) {
        wb_json_object(j);
        err = wb_index_url(index, pages[i].docid, &text);
        if (err == 0)
            wb_json_field_slice(j, "url", text);
        if (err == 0)
            err = wb_index_title(index, pages[i].docid, &text);
        if (err == 0)
            wb_json_field_text(j, "title", text);
        wb_json_field_double(j, "score", pages[i].score);
        wb_json_object_end(j);
    }
    return err;
}

void wb_handle_similar(struct wb_call *call)
{
    struct wb_searcher *searcher = NULL;
    struct wb_slice url;
    uint64_t limit;
    uint32_t docid;
    struct wb_json j;

    WB_CHECK(wb_call_is_fresh(call));
    int err = wb_call_required(call, "url", &url);
    if (err == 0)
        err = wb_call_number(call, "limit", SIMILAR_DEFAULT, SIMILAR_MAX, &limit);
    if (err == 0)
        err = wb_call_searcher(call, &searcher);
    if (err == 0)
        err = wb_searcher_find(searcher, url, &docid);
    if (err < 0) {
        wb_call_fail(call, err);
        return;
    }
    wb_call_json(call, &j);
    wb_json_field_slice(&j, "url", url);
    wb_json_key(&j, "similar");
    wb_json_array(&j);
    err = add_similar(searcher, &j, docid, limit);
    wb_json_array_end(&j);
    wb_call_json_end(call, &j, err);
}
