/*
 * api_complete.c - GET /api/complete?q=&limit=&format=: what a query that is being typed may become.
 *
 *   {"q":"filt","completions":[{"text":"filter tables","kind":"title","url":...},{"text":"filter","kind":"word"}]}
 *   format=opensearch: ["filt",["filter tables","filter"]], which browsers ask for as application/x-suggestions+json
 *
 * Nothing of what is asked is kept.
 */
#include "base/check.h"
#include "base/error.h"
#include "serve/server.h"

enum { LIMIT_DEFAULT = 8 };

static void add_completion(struct wb_json *j, const struct wb_found_completion *completion)
{
    static const char *const kinds[] = {
        [WB_COMPLETION_TITLE] = "title", [WB_COMPLETION_WORD] = "word", [WB_COMPLETION_WORDS] = "words"};

    WB_CHECK((size_t)completion->kind < sizeof kinds / sizeof *kinds);
    wb_json_object(j);
    wb_json_field_slice(j, "text", completion->text);
    wb_json_field_str(j, "kind", kinds[completion->kind]);
    if (completion->url.ptr)
        wb_json_field_slice(j, "url", completion->url);
    wb_json_object_end(j);
}

/* The format of OpenSearch: an array of what was typed and an array of completions. */
static void send_suggestions(struct wb_call *call, struct wb_slice typed, const struct wb_completions_found *found)
{
    struct wb_json j;

    wb_call_type(call, "application/x-suggestions+json; charset=utf-8");
    wb_json_init(&j, &call->reply->body);
    wb_json_array(&j);
    wb_json_slice(&j, typed);
    wb_json_array(&j);
    for (size_t i = 0; i < found->count; i++)
        wb_json_slice(&j, found->items[i].text);
    wb_json_array_end(&j);
    wb_json_array_end(&j);
    int err = wb_json_line(&j);
    if (err < 0)
        wb_call_fail(call, err);
}

static void send_completions(struct wb_call *call, struct wb_slice typed, const struct wb_completions_found *found)
{
    struct wb_json j;

    wb_call_json(call, &j);
    wb_json_field_slice(&j, "q", typed);
    wb_json_key(&j, "completions");
    wb_json_array(&j);
    for (size_t i = 0; i < found->count; i++)
        add_completion(&j, &found->items[i]);
    wb_json_array_end(&j);
    wb_call_json_end(call, &j, 0);
}

void wb_handle_complete(struct wb_call *call)
{
    WB_CHECK(wb_call_is_fresh(call));
    struct wb_completions_found found = {.count = 0};
    struct wb_searcher *searcher = NULL;
    struct wb_slice typed, format = wb_call_param(call, "format");
    bool opensearch = wb_slice_equal(format, WB_SLICE_LIT("opensearch"));
    uint64_t limit = 0;

    int err = wb_call_required(call, "q", &typed);
    if (err == 0)
        err = wb_call_number(call, "limit", LIMIT_DEFAULT, WB_COMPLETIONS_MAX, &limit);
    if (err == 0 && format.ptr && !opensearch)
        err = wb_fail(WB_E_INVALID, "format %.*s: there is only opensearch", WB_SLICE_ARG(format));
    if (err == 0)
        err = wb_call_searcher(call, &searcher);
    if (err == 0)
        err = wb_complete(searcher, typed, (size_t)limit, wb_patience_begin(call->worker), &found);
    wb_patience_end(call->worker);
    if (err < 0)
        wb_call_fail(call, err);
    else if (opensearch)
        send_suggestions(call, typed, &found);
    else
        send_completions(call, typed, &found);
    wb_completions_found_release(&found);
}
