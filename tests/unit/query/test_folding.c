/*
 * test_folding.c - folded results against the same results without folding: nothing is lost, nothing is there twice,
 * and what a page of results shows does not depend on how many hits it has.
 */
#include "search_support.h"
#include "extract/extract.h"
#include "url/url.h"

enum { REACH = 40, PLACES = 5000, TITLE_BITS = 12, ALL = 100000 };

static struct wb_results search(struct web *web, const char *query, struct wb_search_options options)
{
    struct wb_results results;

    options.query = wb_slice_str(query);
    options.no_texts = true;
    options.count = true;
    if (wb_search(web->searcher, &options, &results) < 0)
        fail_msg("%s: %s", query, wb_error_message());
    return results;
}

/* Why a document is folded under another one. The web has no languages. */
static enum wb_fold_why why_folded(struct web *web, uint32_t a, uint32_t b)
{
    struct wb_index *index = wb_searcher_index(web->searcher);
    const void *near = NULL, *site = NULL, *title = NULL, *prints = NULL;

    if (a >= wb_index_info(index)->pages || b >= wb_index_info(index)->pages)
        return WB_FOLD_NOT;
    ok(wb_index_fact(index, WB_FACT_NEAR, &near));
    ok(wb_index_fact(index, WB_FACT_SITE, &site));
    ok(wb_index_fact(index, WB_FACT_TITLE, &title));
    ok(wb_index_fact(index, WB_FACT_SIMHASH, &prints));
    const uint32_t *nears = near, *sites = site, *titles = title;
    const uint64_t *print = prints;
    if (nears[a] == nears[b])
        return WB_FOLD_NEAR;
    if (sites[a] == sites[b] && titles[a] == titles[b] && titles[a] && print[a] && print[b] &&
        wb_simhash_distance(print[a], print[b]) <= TITLE_BITS)
        return WB_FOLD_TITLE;
    return WB_FOLD_NOT;
}

/* What becomes of each result, by its place: the place of the hit that it is folded under, or its own. */
static void fold_plainly(struct web *web, const struct wb_results *all, size_t *under)
{
    for (size_t place = 0; place < all->hit_count; place++) {
        under[place] = place;
        for (size_t i = place > REACH ? place - REACH : 0; i < place && place < PLACES && under[place] == place; i++)
            if (under[i] == i && why_folded(web, all->hits[place].docid, all->hits[i].docid) != WB_FOLD_NOT)
                under[place] = i;
    }
}

/* Turns over all pages of so many hits, and compares hits and what is folded. Returns how many are folded. */
static size_t turn_over(struct web *web, const char *query, struct wb_search_options options,
                        const struct wb_results *all, const size_t *under)
{
    size_t place = 0, folded = 0, hits = 0;

    options.fold = true;
    for (options.offset = 0;; options.offset += options.limit) {
        struct wb_results page = search(web, query, options);
        assert_int_equal(page.total, all->total);
        for (size_t i = 0; i < page.hit_count; i++, place++, hits++) {
            const struct wb_hit *hit = &page.hits[i];
            size_t count = 0;
            while (place < all->hit_count && under[place] != place)
                place++;
            assert_true(place < all->hit_count);
            assert_int_equal(hit->docid, all->hits[place].docid);
            for (size_t k = place + 1; k < all->hit_count && k <= place + REACH; k++)
                if (under[k] == place) {
                    assert_true(count < hit->folded_count);
                    assert_int_equal(hit->folded[count].docid, all->hits[k].docid);
                    assert_int_equal(hit->folded[count].why, why_folded(web, hit->docid, all->hits[k].docid));
                    count++;
                }
            assert_int_equal(hit->folded_count, count);
            folded += count;
        }
        bool end = page.hit_count < options.limit;
        /* The number of hits is never too small, and right on the last page. */
        assert_true(page.hit_total >= hits && page.hit_total <= page.total);
        if (end)
            assert_true(page.hit_total_exact && page.hit_total == hits);
        wb_results_release(&page);
        if (end)
            break;
    }
    assert_int_equal(hits + folded, all->hit_count);
    return folded;
}

static size_t compare(struct web *web, const char *query, struct wb_ask_sort sort)
{
    static const uint64_t limits[] = {1, 7, 10, 100, ALL};
    static size_t under[ALL];
    struct wb_results all = search(web, query, (struct wb_search_options){.sort = sort, .limit = ALL});
    size_t folded = 0;

    assert_true(all.hit_count < ALL && all.total == all.hit_count);
    fold_plainly(web, &all, under);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (all.hit_count > 300 * limits[i])
            continue;
        size_t now = turn_over(web, query, (struct wb_search_options){.sort = sort, .limit = limits[i]}, &all, under);
        assert_true(i == 0 || folded == 0 || folded == now);
        folded = now;
    }
    wb_results_release(&all);
    return folded;
}

static void words(void **state)
{
    struct web *web = *state;
    size_t folded = 0;

    for (int i = 0; i < 40; i++) {
        char query[64];
        const char *one = web->vocabulary[pick_word(web)], *other = web->vocabulary[pick_word(web)];
        snprintf(query, sizeof query, "%s %s %s", one, chance_one_in(&web->chance, 2) ? "OR" : "", other);
        folded += compare(web, query, (struct wb_ask_sort){.field = WB_ASK_ANY});
    }
    assert_true(folded > 0);
}

/* More results than are ever folded, and URLs that were never fetched. */
static void other_orders(void **state)
{
    struct web *web = *state;
    char query[128];

    snprintf(query, sizeof query, "%s OR %s OR NOT %s", web->vocabulary[0], web->vocabulary[1], web->vocabulary[2]);
    for (int reverse = 0; reverse < 2; reverse++) {
        compare(web, query, (struct wb_ask_sort){.field = WB_ASK_FETCHED, .reverse = reverse});
        compare(web, query, (struct wb_ask_sort){.field = WB_ASK_INLINKS, .reverse = reverse});
    }
}

/* Offsets and limits at the ends. */
static void limits(void **state)
{
    struct web *web = *state;
    struct wb_search_options options = {.fold = true};

    struct wb_results none = search(web, web->vocabulary[0], options);
    assert_true(none.hit_count == 0 && none.total > 0);
    wb_results_release(&none);
    options.limit = UINT64_MAX;
    struct wb_results all = search(web, web->vocabulary[0], options);
    assert_true(all.hit_count == all.hit_total && all.hit_total_exact && all.hit_total <= all.total);
    options.offset = all.hit_count - 1;
    struct wb_results last = search(web, web->vocabulary[0], options);
    assert_int_equal(last.hit_count, 1);
    assert_int_equal(last.hits[0].docid, all.hits[all.hit_count - 1].docid);
    wb_results_release(&last);
    wb_results_release(&all);
    options.offset = UINT64_MAX;
    none = search(web, web->vocabulary[0], options);
    assert_int_equal(none.hit_count, 0);
    wb_results_release(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(other_orders),
        cmocka_unit_test(limits),
    };

    return cmocka_run_group_tests_name("folding", tests, set_up_web, tear_down_web);
}
