/*
 * test_search_orders.c - everything that looks at all results: orders, facets, one hit for each site, near duplicates,
 * columns of users; and what was taken down, links, and similar pages.
 */
#include "search_support.h"
#include "url/url.h"

static struct wb_results search(struct web *web, const char *query, struct wb_search_options options)
{
    struct wb_results results;

    options.query = wb_slice_str(query);
    options.no_texts = true;
    options.limit = options.limit ? options.limit : 100000;
    if (wb_search(web->searcher, &options, &results) < 0)
        fail_msg("%s: %s", query, wb_error_message());
    return results;
}

static uint32_t number_of(struct web *web, uint32_t docid)
{
    for (uint32_t i = 0; i < DOCS + FAR; i++)
        if (web->docs[i].docid == docid)
            return i;
    fail_msg("there is no document %u", docid);
    return 0;
}

/* A query that finds many pages and some URLs that were never fetched. */
static void common_query(struct web *web, char text[128])
{
    snprintf(text, 128, "%s OR %s OR %s", web->vocabulary[0], web->vocabulary[1], web->vocabulary[2]);
}

/* ---- orders ----------------------------------------------------------------------------------------- */

static double key_value(struct web *web, enum wb_ask_field field, uint32_t number, bool *has_out)
{
    const struct doc *doc = &web->docs[number];

    *has_out = true;
    switch (field) {
    case WB_ASK_FETCHED:
        *has_out = !doc->far;
        return number;
    case WB_ASK_INLINKS:
        return doc->inlinks;
    case WB_ASK_COLUMN:
        *has_out = doc->quality >= 0;
        return doc->quality;
    default:
        fail();
        return 0;
    }
}

static void expect_order(struct web *web, const char *query, struct wb_ask_sort sort)
{
    struct wb_results all = search(web, query, (struct wb_search_options){.sort = sort});
    struct wb_results some = search(web, query, (struct wb_search_options){.sort = sort, .offset = 5, .limit = 20});

    assert_true(all.hit_count > 100 && all.exact && all.total == all.hit_count && some.total == all.total);
    for (size_t i = 1; i < all.hit_count; i++) {
        bool had, has;
        double before = key_value(web, sort.field, number_of(web, all.hits[i - 1].docid), &had);
        double value = key_value(web, sort.field, number_of(web, all.hits[i].docid), &has);
        assert_true(had || !has);
        if (!had || !has)
            continue;
        assert_true(sort.reverse ? before <= value : before >= value);
        if (before == value)
            assert_true(all.hits[i - 1].docid < all.hits[i].docid);
    }
    assert_int_equal(some.hit_count, 20);
    for (size_t i = 0; i < some.hit_count; i++)
        assert_int_equal(some.hits[i].docid, all.hits[i + 5].docid);
    wb_results_release(&all);
    wb_results_release(&some);
}

static void orders(void **state)
{
    static const enum wb_ask_field fields[] = {WB_ASK_FETCHED, WB_ASK_INLINKS, WB_ASK_COLUMN};
    struct web *web = *state;
    char query[128];

    common_query(web, query);
    for (size_t i = 0; i < 3; i++)
        for (int reverse = 0; reverse < 2; reverse++)
            expect_order(web, query, (struct wb_ask_sort){fields[i], reverse, WB_SLICE_LIT("quality")});
}

/* A range of a rank finds what the order by that rank has on one side. */
static void orders_and_ranges_of_ranks(void **state)
{
    static const struct {
        enum wb_ask_field field;
        enum wb_fact fact;
    } ranks[] = {{WB_ASK_RANK, WB_FACT_RANK}, {WB_ASK_HOSTRANK, WB_FACT_HOSTRANK}};
    struct web *web = *state;
    const void *fact = NULL;
    char query[128], range[256];

    common_query(web, query);
    for (size_t i = 0; i < 2; i++) {
        ok(wb_index_fact(wb_searcher_index(web->searcher), ranks[i].fact, &fact));
        const double *values = fact;
        struct wb_search_options options = {.sort = {ranks[i].field, false, WB_SLICE_EMPTY}};
        struct wb_results all = search(web, query, options);
        assert_true(all.hit_count > 100);
        for (size_t k = 1; k < all.hit_count; k++)
            assert_true(values[all.hits[k - 1].docid] >= values[all.hits[k].docid]);
        double middle = values[all.hits[all.hit_count / 2].docid];
        assert_true(middle < values[all.hits[0].docid]);
        size_t high = 0;
        while (high < all.hit_count && values[all.hits[high].docid] >= middle)
            high++;
        snprintf(range, sizeof range, "(%s) %s:>=%.17g", query, wb_ask_field_name(ranks[i].field), middle);
        struct wb_results some = search(web, range, options);
        assert_int_equal(some.hit_count, high);
        for (size_t k = 0; k < high; k++)
            assert_int_equal(some.hits[k].docid, all.hits[k].docid);
        wb_results_release(&some);
        wb_results_release(&all);
    }
}

static void order_of_urls(void **state)
{
    struct web *web = *state;
    struct wb_buf last = WB_BUF_INIT, surt = WB_BUF_INIT;
    char query[128];
    uint64_t others = 0;

    common_query(web, query);
    for (int reverse = 0; reverse < 2; reverse++) {
        struct wb_results all =
            search(web, query, (struct wb_search_options){.sort = {WB_ASK_URL, reverse, WB_SLICE_EMPTY}});
        for (size_t i = 0; i < all.hit_count; i++) {
            uint32_t number = number_of(web, all.hits[i].docid);
            others += web->docs[number].far;
            ok(wb_surt_of_key(wb_slice_str(web->docs[number].url), &surt));
            int order = i ? wb_slice_compare(wb_buf_slice(&last), wb_buf_slice(&surt)) : 0;
            assert_true(i == 0 || (reverse ? order > 0 : order < 0));
            wb_buf_clear(&last);
            ok(wb_buf_append_slice(&last, wb_buf_slice(&surt)));
        }
        wb_results_release(&all);
    }
    assert_true(others > 0);
    wb_buf_release(&last);
    wb_buf_release(&surt);
}

static void order_is_refused(void **state)
{
    struct web *web = *state;
    struct wb_search_options options = {
        .query = WB_SLICE_LIT("anything"), .sort = {WB_ASK_COLUMN, false, WB_SLICE_LIT("nosuch")}, .limit = 10};
    struct wb_results results;

    assert_int_equal(wb_search(web->searcher, &options, &results), WB_E_INVALID);
    wb_results_release(&results);
}

/* ---- facets and groups ------------------------------------------------------------------------------- */

static void facets(void **state)
{
    struct web *web = *state;
    char query[128];

    common_query(web, query);
    struct wb_results all = search(web, query, (struct wb_search_options){.facets = (1u << WB_FACETS) - 1});
    uint64_t hosts[HOSTS] = {0}, pages = 0;
    for (size_t i = 0; i < all.hit_count; i++) {
        const struct doc *doc = &web->docs[number_of(web, all.hits[i].docid)];
        hosts[doc->host]++;
        pages += !doc->far;
    }
    assert_int_equal(all.facet_counts[WB_FACET_SITE], HOSTS);
    for (size_t i = 0; i < HOSTS; i++) {
        const struct wb_facet_value *value = &all.facets[WB_FACET_SITE][i];
        size_t host = 0;
        while (host < HOSTS && !wb_slice_equal(value->value, wb_slice_str(host_name((uint16_t)host))))
            host++;
        assert_true(host < HOSTS && value->count == hosts[host]);
        assert_true(i == 0 || value[-1].count >= value->count);
    }
    assert_int_equal(all.facet_counts[WB_FACET_STATUS], 1);
    assert_true(wb_slice_equal(all.facets[WB_FACET_STATUS][0].value, WB_SLICE_LIT("200")));
    assert_int_equal(all.facets[WB_FACET_STATUS][0].count, pages);
    assert_int_equal(all.facet_counts[WB_FACET_TYPE], 1);
    assert_true(wb_slice_equal(all.facets[WB_FACET_TYPE][0].value, WB_SLICE_LIT("text/html")));
    wb_results_release(&all);
}

static void one_of_each_site(void **state)
{
    struct web *web = *state;
    char query[128];

    common_query(web, query);
    struct wb_results all = search(web, query, (struct wb_search_options){.limit = 0});
    struct wb_results few = search(web, query, (struct wb_search_options){.collapse_site = true});
    bool seen[HOSTS] = {false};
    size_t at = 0;
    for (size_t i = 0; i < all.hit_count; i++) {
        uint16_t host = web->docs[number_of(web, all.hits[i].docid)].host;
        if (seen[host])
            continue;
        seen[host] = true;
        assert_true(at < few.hit_count);
        assert_int_equal(few.hits[at].docid, all.hits[i].docid);
        at++;
    }
    assert_int_equal(few.hit_count, at);
    assert_int_equal(few.total, at);
    wb_results_release(&all);
    wb_results_release(&few);
}

static void near_duplicates(void **state)
{
    struct web *web = *state;
    char query[160], plain[128];
    size_t left_out = 0;

    common_query(web, plain);
    snprintf(query, sizeof query, "(%s) dup:no", plain);
    struct wb_results all = search(web, plain, (struct wb_search_options){.limit = 0});
    struct wb_results few = search(web, query, (struct wb_search_options){.limit = 0});
    uint8_t *found = wb_alloc_zero(DOCS + FAR, 1);
    const void *near = NULL;
    ok(wb_index_fact(wb_searcher_index(web->searcher), WB_FACT_NEAR, &near));
    for (size_t i = 0; i < few.hit_count; i++)
        found[few.hits[i].docid] = 1;
    for (size_t i = 0; i < all.hit_count; i++) {
        uint32_t docid = all.hits[i].docid, first = docid;
        for (size_t k = 0; docid < DOCS && k < all.hit_count; k++)
            if (all.hits[k].docid < first &&
                ((const uint32_t *)near)[all.hits[k].docid] == ((const uint32_t *)near)[docid])
                first = all.hits[k].docid;
        assert_int_equal(found[docid], first == docid);
        left_out += first != docid;
    }
    assert_true(left_out > 0);
    assert_int_equal(few.total, all.hit_count - left_out);
    wb_free(found);
    wb_results_release(&all);
    wb_results_release(&few);
}

static void column_of_a_user(void **state)
{
    struct web *web = *state;
    struct wb_results results = search(web, "quality:>=2.5 quality:<4", (struct wb_search_options){.limit = 0});
    uint64_t wanted = 0;

    for (uint32_t i = 0; i < DOCS + FAR; i++)
        wanted += web->docs[i].docid != WB_DOCID_NONE && !web->docs[i].missing && web->docs[i].quality >= 2.5 &&
                  web->docs[i].quality < 4;
    assert_int_equal(results.total, wanted);
    for (size_t i = 0; i < results.hit_count; i++) {
        double quality = web->docs[number_of(web, results.hits[i].docid)].quality;
        assert_true(quality >= 2.5 && quality < 4);
    }
    wb_results_release(&results);
}

/* ---- links and similar pages --------------------------------------------------------------------------- */

struct rows {
    struct web *web;
    uint32_t numbers[DOCS + FAR];
    size_t count;
};

static int take_row(void *context, const struct wb_link_row *row)
{
    struct rows *rows = context;
    uint32_t docid = 0;

    ok(wb_index_find(wb_searcher_index(rows->web->searcher), row->url, &docid));
    rows->numbers[rows->count++] = number_of(rows->web, docid);
    return 0;
}

static bool links_to(const struct doc *doc, uint32_t number)
{
    for (size_t i = 0; i < doc->link_count; i++)
        if (doc->links[i] == number)
            return true;
    return false;
}

static void links(void **state)
{
    struct web *web = *state;
    struct rows *rows = wb_alloc_zero(1, sizeof *rows);

    rows->web = web;
    for (size_t n = 0; n < 40; n++) {
        uint32_t number = n < 20 ? DOCS + (uint32_t)n : (uint32_t)chance_below(&web->chance, DOCS);
        if (web->docs[number].docid == WB_DOCID_NONE)
            continue;
        rows->count = 0;
        ok(wb_links(web->searcher, wb_slice_str(web->docs[number].url), WB_ARCS_IN, take_row, rows));
        assert_int_equal(rows->count, web->docs[number].inlinks);
        for (size_t i = 0; i < rows->count; i++)
            assert_true(links_to(&web->docs[rows->numbers[i]], number));
        rows->count = 0;
        ok(wb_links(web->searcher, wb_slice_str(web->docs[number].url), WB_ARCS_OUT, take_row, rows));
        assert_int_equal(rows->count, web->docs[number].link_count);
        for (size_t i = 0; i < rows->count; i++)
            assert_true(links_to(&web->docs[number], rows->numbers[i]));
    }
    assert_int_equal(wb_links(web->searcher, WB_SLICE_LIT("nowhere.example/"), WB_ARCS_IN, take_row, rows),
                     WB_E_NOTFOUND);
    wb_free(rows);
}

static void similar(void **state)
{
    struct web *web = *state;
    struct wb_similar_page pages[10];
    size_t count, tried = 0;

    for (uint32_t i = 5; i < DOCS && tried < 20; i += 16) {
        if (web->docs[i].copy_of == i)
            continue;
        ok(wb_similar(web->searcher, web->docs[i].docid, 0, 10, pages, &count));
        assert_true(count > 0);
        assert_int_equal(pages[0].docid, web->docs[i - 1].docid);
        for (size_t k = 0; k < count; k++) {
            assert_true(pages[k].docid != web->docs[i].docid);
            assert_true(pages[k].score > 0 && pages[k].score <= 1 && (k == 0 || pages[k].score <= pages[k - 1].score));
        }
        tried++;
    }
    assert_true(tried > 10);
}

/* ---- takedown --------------------------------------------------------------------------------------------- */

static bool finds(struct web *web, const char *query, uint32_t docid)
{
    struct wb_results results = search(web, query, (struct wb_search_options){.limit = 0});
    bool found = false;

    for (size_t i = 0; i < results.hit_count; i++)
        found |= results.hits[i].docid == docid;
    wb_results_release(&results);
    return found;
}

/* A page that has links, and the first page that it links to. */
static void takedown(void **state)
{
    struct web *web = *state;
    struct wb_store *store = NULL;
    uint32_t victim = 100;

    while (web->docs[victim].link_count == 0)
        victim++;
    struct doc *doc = &web->docs[victim], *target = &web->docs[doc->links[0]];
    char title[64], link[96], inlinks[96], site[64];
    snprintf(title, sizeof title, "title:%s", web->vocabulary[doc->title.words[0]]);
    snprintf(link, sizeof link, "link:%s", target->url);
    snprintf(inlinks, sizeof inlinks, "inlinks:>=%u linkfrom:%s", target->inlinks, doc->url);
    snprintf(site, sizeof site, "site:%s", host_name(doc->host));
    assert_true(finds(web, title, doc->docid) && finds(web, link, doc->docid) && finds(web, site, doc->docid));
    assert_true(target->missing || finds(web, inlinks, target->docid));

    struct wb_store_bar bar = {.kind = WB_STORE_BAR_PAGE,
                               .id = wb_pageid_of_key(wb_slice_str(doc->url)),
                               .site = wb_slice_str(host_name(doc->host)),
                               .time_ms = 1};
    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    ok(wb_store_bar(store, &bar));
    assert_false(finds(web, title, doc->docid) || finds(web, link, doc->docid) || finds(web, site, doc->docid));
    snprintf(inlinks, sizeof inlinks, "inlinks:>=%u", target->inlinks);
    assert_false(finds(web, inlinks, target->docid));
    ok(wb_store_allow(store, &bar));
    assert_true(finds(web, title, doc->docid) && finds(web, link, doc->docid) && finds(web, site, doc->docid));

    bar.kind = WB_STORE_BAR_SITE;
    ok(wb_store_bar(store, &bar));
    assert_false(finds(web, title, doc->docid) || finds(web, link, doc->docid) || finds(web, site, doc->docid));
    ok(wb_store_allow(store, &bar));
    assert_true(finds(web, title, doc->docid));
    wb_store_close(store);
}

/* A bar on alder.edu is not one on n0.alder.edu. */
static void takedown_of_a_domain(void **state)
{
    struct web *web = *state;
    struct wb_store *store = NULL;
    struct wb_store_bar bar = {.kind = WB_STORE_BAR_SITE, .site = WB_SLICE_LIT("alder.edu"), .time_ms = 1};

    ok(wb_store_open(web->dir, WB_STORE_WRITE, &store));
    ok(wb_store_bar(store, &bar));
    struct wb_results results = search(web, "site:alder.edu", (struct wb_search_options){.limit = 0});
    assert_true(results.hit_count > 100);
    for (size_t i = 0; i < results.hit_count; i++)
        assert_string_not_equal(host_name(web->docs[number_of(web, results.hits[i].docid)].host), "alder.edu");
    wb_results_release(&results);
    ok(wb_store_allow(store, &bar));
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders),          cmocka_unit_test(orders_and_ranges_of_ranks),
        cmocka_unit_test(order_of_urls),   cmocka_unit_test(order_is_refused),
        cmocka_unit_test(facets),          cmocka_unit_test(one_of_each_site),
        cmocka_unit_test(near_duplicates), cmocka_unit_test(column_of_a_user),
        cmocka_unit_test(links),           cmocka_unit_test(similar),
        cmocka_unit_test(takedown),        cmocka_unit_test(takedown_of_a_domain),
    };

    return cmocka_run_group_tests_name("search_orders", tests, set_up_web, tear_down_web);
}
