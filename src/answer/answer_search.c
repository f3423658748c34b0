/* answer_search.c - options of a search, and its hits, as JSON. */
#include "answer/answer.h"
#include "base/error.h"

/* ---- options ------------------------------------------------------------------------------------- */

const char *wb_answer_facet_name(enum wb_facet facet)
{
    static const char *const names[WB_FACETS] = {"site", "type", "lang", "status"};

    return names[facet];
}

int wb_answer_facet(struct wb_slice name, unsigned *facets_inout)
{
    for (unsigned facet = 0; facet < WB_FACETS; facet++)
        if (wb_slice_equal(name, wb_slice_str(wb_answer_facet_name(facet)))) {
            *facets_inout |= 1u << facet;
            return 0;
        }
    return wb_fail(WB_E_INVALID, "%.*s is not a facet; there are site, type, lang and status", WB_SLICE_ARG(name));
}

static bool has_column(void *context, struct wb_slice name)
{
    const struct wb_index_column *columns;
    size_t count = wb_index_columns(context, &columns);

    for (size_t i = 0; i < count; i++)
        if (wb_slice_equal(name, wb_slice_str(columns[i].name)))
            return true;
    return false;
}

int wb_answer_sort(struct wb_searcher *searcher, struct wb_slice text, struct wb_ask_sort *sort_out)
{
    struct wb_ask_options ask = {has_column, wb_searcher_index(searcher)};

    return wb_ask_sort_parse(text, &ask, sort_out);
}

/* ---- hits ---------------------------------------------------------------------------------------- */

static void add_parts(struct wb_json *j, const struct wb_hit *hit)
{
    static const char *const fields[WB_FIELDS] = {"title", "heading", "main", "other", "url", "anchor"};

    wb_json_key(j, "parts");
    wb_json_array(j);
    for (size_t i = 0; i < hit->part_count; i++) {
        const struct wb_hit_part *part = &hit->parts[i];
        wb_json_object(j);
        wb_json_field_slice(j, "term", part->term);
        wb_json_field_double(j, "score", part->score);
        for (int field = 0; field < WB_FIELDS; field++)
            if (part->frequency[field])
                wb_json_field_u64(j, fields[field], part->frequency[field]);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
    wb_json_field_u64(j, "length", hit->length);
}

/* A text that is null if there is none, and may be empty. */
static void add_text(struct wb_json *j, const char *key, struct wb_slice text)
{
    wb_json_key(j, key);
    if (text.ptr)
        wb_json_slice(j, text);
    else
        wb_json_null(j);
}

static void add_folded(struct wb_json *j, const struct wb_hit *hit)
{
    static const char *const why[] = {
        [WB_FOLD_NOT] = "", [WB_FOLD_NEAR] = "near", [WB_FOLD_LANGUAGE] = "language", [WB_FOLD_TITLE] = "title"};

    wb_json_key(j, "folded");
    wb_json_array(j);
    for (size_t i = 0; i < hit->folded_count; i++) {
        const struct wb_folded *folded = &hit->folded[i];
        wb_json_object(j);
        wb_json_field_slice(j, "url", folded->url);
        add_text(j, "title", folded->title);
        wb_json_field_time(j, "time", folded->time_ms);
        wb_json_field_str(j, "lang", folded->language);
        wb_json_field_str(j, "why", why[folded->why]);
        wb_json_object_end(j);
    }
    wb_json_array_end(j);
}

void wb_answer_hit(struct wb_json *j, const struct wb_search_options *search, const struct wb_hit *hit, uint64_t rank)
{
    wb_json_field_u64(j, "rank", rank);
    wb_json_field_slice(j, "url", hit->url);
    add_text(j, "title", hit->title);
    wb_json_field_double(j, "score", hit->score);
    add_text(j, "snippet", hit->snippet);
    wb_json_field_time(j, "time", hit->time_ms);
    wb_json_field_str(j, "lang", hit->language);
    if (search->fold)
        add_folded(j, hit);
    if (search->explain)
        add_parts(j, hit);
}

static void add_facets(struct wb_json *j, const struct wb_results *results, unsigned facets)
{
    wb_json_key(j, "facets");
    wb_json_object(j);
    for (unsigned facet = 0; facet < WB_FACETS; facet++) {
        if (!(facets >> facet & 1))
            continue;
        wb_json_key(j, wb_answer_facet_name(facet));
        wb_json_array(j);
        for (size_t i = 0; i < results->facet_counts[facet]; i++) {
            wb_json_object(j);
            wb_json_field_slice(j, "value", results->facets[facet][i].value);
            wb_json_field_u64(j, "count", results->facets[facet][i].count);
            wb_json_object_end(j);
        }
        wb_json_array_end(j);
    }
    wb_json_object_end(j);
}

void wb_answer_results(struct wb_json *j, const struct wb_search_options *search, const struct wb_results *results,
                       double ms)
{
    wb_json_field_u64(j, "total", results->total);
    wb_json_field_bool(j, "exact", results->exact);
    if (search->fold) {
        wb_json_field_u64(j, "hits_total", results->hit_total);
        wb_json_field_bool(j, "hits_exact", results->hit_total_exact);
    }
    if (results->cut)
        wb_json_field_bool(j, "cut", true);
    wb_json_field_double(j, "ms", ms);
    if (search->facets)
        add_facets(j, results, search->facets);
    if (results->suggestion.ptr)
        wb_json_field_slice(j, "suggestion", results->suggestion);
    if (search->explain)
        wb_json_field_slice(j, "plan", results->plan);
}
