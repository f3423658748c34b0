/*
 * test_search_faults.c - every allocation of a search can fail, and the searcher goes on working; plain BM25 is what
 * its formula says; absurd queries are answered or refused.
 */
#include "../allocfail.h"
#include "search_support.h"

#include <math.h>

static int search(struct web *web, const char *query, struct wb_search_options options, struct wb_results *results)
{
    options.query = wb_slice_str(query);
    return wb_search(web->searcher, &options, results);
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static void fail_each(struct web *web, const char *query, struct wb_search_options options)
{
    struct wb_results before, results;
    bool failed = true;

    ok(search(web, query, options, &before));
    for (size_t n = 0; failed; n += 1 + n / 20) {
        alloc_fail_nth(n);
        int err = search(web, query, options, &results);
        failed = alloc_has_failed();
        alloc_fail_none();
        if (failed && err != WB_E_NOMEM && err != 0)
            fail_msg("%s: allocation %zu fails with %d, %s", query, n, err, wb_error_message());
        if (!failed)
            assert_int_equal(err, 0);
        if (err == 0)
            assert_int_equal(results.hit_count, before.hit_count);
        wb_results_release(&results);
    }
    ok(search(web, query, options, &results));
    assert_int_equal(results.hit_count, before.hit_count);
    for (size_t i = 0; i < results.hit_count; i++) {
        assert_int_equal(results.hits[i].docid, before.hits[i].docid);
        assert_true(wb_slice_equal(results.hits[i].snippet, before.hits[i].snippet));
    }
    wb_results_release(&results);
    wb_results_release(&before);
}

static void allocations(void **state)
{
    struct web *web = *state;
    char query[256];
    const char(*v)[12] = web->vocabulary;

    snprintf(query, sizeof query, "%s OR title:%s OR \"%s %s\"", v[0], v[1], v[2], v[3]);
    fail_each(web, query, (struct wb_search_options){.limit = 5, .explain = true});
    snprintf(query, sizeof query, "%.2s* -site:%s inlinks:>=1 quality:>=1 dup:no", v[0], host_name(1));
    fail_each(web, query, (struct wb_search_options){.limit = 5, .facets = 15, .collapse_site = true});
    snprintf(query, sizeof query, "related:%s OR link:%s OR linkfrom:%s", web->docs[DOCS].url, web->docs[DOCS + 1].url,
             web->docs[7].url);
    fail_each(web, query, (struct wb_search_options){.limit = 5, .sort = {WB_ASK_URL, true, WB_SLICE_EMPTY}});
}

/* The first search of a searcher reads what all later ones need. If that fails, the next one reads it again. */
static void allocations_of_the_first_search(void **state)
{
    struct web web = *(struct web *)*state;
    struct wb_search_options options = {.limit = 5, .no_texts = true};
    struct wb_results results, wanted;
    bool failed = true;

    ok(search(&web, web.vocabulary[0], options, &wanted));
    for (size_t n = 0; failed; n++) {
        ok(wb_searcher_open(web.dir, &web.searcher));
        alloc_fail_nth(n);
        int err = search(&web, web.vocabulary[0], options, &results);
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_true(err == 0 || (failed && err == WB_E_NOMEM));
        wb_results_release(&results);
        ok(search(&web, web.vocabulary[0], options, &results));
        assert_int_equal(results.hit_count, wanted.hit_count);
        for (size_t i = 0; i < results.hit_count; i++)
            assert_int_equal(results.hits[i].docid, wanted.hits[i].docid);
        wb_results_release(&results);
        wb_searcher_close(web.searcher);
    }
    wb_results_release(&wanted);
}

static void allocations_of_similar(void **state)
{
    struct web *web = *state;
    struct wb_similar_page pages[5];
    size_t count = 0, wanted = 0;
    bool failed = true;

    ok(wb_similar(web->searcher, web->docs[10].docid, 0, 5, pages, &wanted));
    for (size_t n = 0; failed; n += 1 + n / 20) {
        alloc_fail_nth(n);
        int err = wb_similar(web->searcher, web->docs[10].docid, 0, 5, pages, &count);
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_true(err == 0 || err == WB_E_NOMEM);
        if (err == 0)
            assert_int_equal(count, wanted);
    }
}

/* ---- plain BM25 ---------------------------------------------------------------------------------------- */

static uint32_t count_in(const struct text *text, uint16_t word)
{
    uint32_t count = 0;

    for (size_t i = 0; i < text->count; i++)
        count += text->words[i] == word;
    return count;
}

static void plain_bm25(void **state)
{
    struct web *web = *state;
    struct wb_index *index = wb_searcher_index(web->searcher);
    const struct wb_index_info *info = wb_index_info(index);
    struct wb_search_options options = {.limit = 100000, .no_texts = true, .ranking = {true, 0.9, 0.4}};
    const void *lengths = NULL;
    struct wb_results results;
    uint16_t word = 5;
    size_t compared = 0;

    ok(wb_index_fact(index, WB_FACT_WORDS, &lengths));
    ok(search(web, web->vocabulary[word], options, &results));
    char key[16];
    struct wb_term term;
    int len = snprintf(key, sizeof key, "%s%cS", web->vocabulary[word], 0);
    assert_int_equal(wb_postings_find(wb_index_postings(index), wb_slice(key, (size_t)len), &term), 1);
    double average = (double)info->words / (double)info->pages, idf = wb_idf(info->pages, term.df);
    for (size_t i = 0; i < results.hit_count; i++) {
        uint32_t docid = results.hits[i].docid, number = 0;
        while (web->docs[number].docid != docid)
            number++;
        const struct doc *doc = &web->docs[number];
        if (doc->anchor_count || doc->far)
            continue; /* how often the text of a link counts is the business of the index */
        double f = count_in(&doc->title, word) + count_in(&doc->heading, word) + count_in(&doc->body, word);
        double length = ((const uint32_t *)lengths)[docid];
        double wanted = idf * 1.9 * f / (f + 0.9 * (1 - 0.4 + 0.4 * length / average));
        if (fabs(results.hits[i].score - wanted) > 1e-5)
            fail_msg("%s scores %f instead of %f", doc->url, results.hits[i].score, wanted);
        compared++;
    }
    assert_true(compared > 10);
    wb_results_release(&results);
}

/* ---- absurd queries --------------------------------------------------------------------------------------- */

static void many_words(void **state)
{
    struct web *web = *state;
    struct wb_search_options options = {.limit = 10, .no_texts = true}, all = options;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_results results, exhaustive;

    all.exhaustive = true;
    /* Every word many times: more than fits into a score without scaling. */
    for (size_t i = 0; i < 4000; i++)
        ok(wb_buf_printf(&text, "%s%s", i ? " OR " : "", web->vocabulary[i % 40]));
    ok(wb_buf_terminate(&text));
    ok(search(web, text.ptr, options, &results));
    ok(search(web, text.ptr, all, &exhaustive));
    assert_int_equal(results.hit_count, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(results.hits[i].docid, exhaustive.hits[i].docid);
        assert_true(results.hits[i].score == exhaustive.hits[i].score && results.hits[i].score > 100);
    }
    wb_results_release(&results);
    wb_results_release(&exhaustive);
    wb_buf_release(&text);
}

static void nothing_to_look_for(void **state)
{
    static const char *const queries[] = {"&",
                                          "-&",
                                          "& OR ;",
                                          "title:&",
                                          "\"&\"",
                                          "site:.",
                                          "link:%%%",
                                          "lang:xx",
                                          "type:nothing/known",
                                          "related:nowhere.example/"};
    struct web *web = *state;
    struct wb_results results;

    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        ok(search(web, queries[i], (struct wb_search_options){.limit = 10, .explain = true}, &results));
        assert_int_equal(results.total, 0);
        assert_true(results.exact && results.hit_count == 0);
        wb_results_release(&results);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations), cmocka_unit_test(allocations_of_the_first_search),
        cmocka_unit_test(allocations_of_similar), cmocka_unit_test(plain_bm25),
        cmocka_unit_test(many_words),  cmocka_unit_test(nothing_to_look_for),
    };

    return cmocka_run_group_tests_name("search_faults", tests, set_up_web, tear_down_web);
}
