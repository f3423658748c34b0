/*
 * topk.c - the best results by score, without looking at documents that cannot be among them.
 *
 * As soon as there are k results, a document has to score more than the worst of them: docids ascend, and of equal
 * scores the lower docid is the better. So windows whose bound is not above that score are passed over (block-max),
 * and so are parts of windows. If any of some words are asked for, those that together cannot reach it are only
 * looked up for documents that the others bring up (MAXSCORE). Phrases are verified last, for documents that would be
 * among the best.
 */
#include "base/check.h"
#include "query/results.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { FEW_OF_WORD = 8 }; /* the sums of so few of 64 documents are compared one by one */

/* ---- the best so far ------------------------------------------------------------------------------ */

static bool worse(const struct wb_found *a, const struct wb_found *b)
{
    return a->key != b->key ? a->key < b->key : a->docid > b->docid;
}

static void sift_down(struct wb_found *items, size_t count)
{
    struct wb_found found = items[0];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && worse(&items[child + 1], &items[child]))
            child++;
        if (!worse(&items[child], &found))
            break;
        items[at] = items[child];
    }
    items[at] = found;
}

int wb_topk_add(struct wb_topk *topk, struct wb_found found)
{
    struct wb_found *items = topk->items.items;
    size_t at = topk->items.count;

    if (at == topk->max) {
        if (at && worse(&items[0], &found)) {
            WB_CHECK(!topk->sorted);
            items[0] = found;
            sift_down(items, at);
        }
        return 0;
    }
    WB_CHECK(!topk->sorted && at < topk->max);
    int err = wb_vec_push(&topk->items, found);
    if (err < 0)
        return err;
    items = topk->items.items;
    for (; at && worse(&found, &items[(at - 1) / 2]); at = (at - 1) / 2)
        items[at] = items[(at - 1) / 2];
    items[at] = found;
    return 0;
}

static int compare_found(const void *a, const void *b)
{
    return worse(a, b) ? 1 : worse(b, a) ? -1 : 0;
}

void wb_topk_sort(struct wb_topk *topk)
{
    WB_CHECK(!topk->sorted);
    topk->sorted = true;
    if (topk->items.count)
        qsort(topk->items.items, topk->items.count, sizeof *topk->items.items, compare_found);
}

/* ---- one window ------------------------------------------------------------------------------------ */

struct top_search {
    struct wb_qplan *plan;
    struct wb_topk *topk;
    bool prune;
    bool pruned;   /* something was passed over */
    bool deferred; /* some leaf is still to be verified when everything else is known */
    uint64_t counted;
    uint32_t sums[WB_WINDOW];
};

/* What a document has to score more than. 0 as long as there are not enough results: even 0 is good enough then. */
static bool full(const struct top_search *search, uint32_t *least_out)
{
    const struct wb_topk *topk = search->topk;
    bool is_full = search->prune && topk->items.count == topk->max;

    *least_out = is_full ? (uint32_t)topk->items.items[0].key : 0;
    return is_full;
}

static int add_all(struct top_search *search, struct wb_window window, const struct wb_windowbits *bits)
{
    struct wb_topk *topk = search->topk;
    int err = 0;

    WB_EACH_DOC(window, bits, docid, {
        uint32_t score = search->sums[docid - window.base];
        if (topk->items.count < topk->max || score > topk->items.items[0].key)
            err = err < 0 ? err : wb_topk_add(topk, (struct wb_found){score, docid, score});
    })
    return err;
}

/* Results of which some leaves are still to be verified: only those that would be among the best are. */
static int add_verified(struct top_search *search, struct wb_window window, const struct wb_windowbits *bits)
{
    struct wb_qplan *plan = search->plan;
    uint32_t least;
    int err = 0;

    WB_CHECK(search->deferred);
    WB_EACH_DOC(window, bits, docid, {
        struct wb_found found = {search->sums[docid - window.base], docid, search->sums[docid - window.base]};
        bool matches = !full(search, &least) || found.score > least;
        search->pruned |= !matches;
        for (size_t i = 0; matches && i < plan->leaves.count; i++)
            if (plan->leaves.items[i]->deferred)
                matches = wb_leaf_matches(plan, plan->leaves.items[i], docid);
        search->counted += matches;
        if (matches && err == 0)
            err = wb_topk_add(search->topk, found);
    })
    return err;
}

/* Any plan. Bounds are those of the window if there are enough results already. */
static int any_plan(struct top_search *search, struct wb_window window)
{
    struct wb_qplan *plan = search->plan;
    struct wb_windowbits bits;
    uint32_t least;
    bool is_full = full(search, &least);

    if (!wb_qplan_eval(plan, window, &bits))
        return 0;
    wb_scoring_sum(plan, window, &bits, least, search->sums);
    if (search->deferred)
        return add_verified(search, window, &bits);
    search->counted += is_full ? 0 : wb_bits_count(window, &bits);
    return add_all(search, window, &bits);
}

static int compare_bounds(const void *a, const void *b)
{
    const struct wb_scoreterm *x = *(struct wb_scoreterm *const *)a, *y = *(struct wb_scoreterm *const *)b;

    return x->bound < y->bound ? -1 : x->bound > y->bound;
}

/* A bit for each of 64 sums: whether it is greater than this. Sums are less than 2^31. */
static uint64_t high_sums(const uint32_t *sums, uint32_t needed)
{
    uint64_t bits = 0;
#ifdef __SSE2__
    __m128i least = _mm_set1_epi32((int)needed);

    for (int i = 0; i < 64; i += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(sums + i));
        bits |= (uint64_t)(unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(four, least))) << i;
    }
#else
    for (int i = 0; i < 64; i++)
        bits |= (uint64_t)(sums[i] > needed) << i;
#endif
    return bits;
}

static void find_high(const uint32_t *sums, struct wb_window window, uint32_t needed, struct wb_windowbits *bits)
{
    WB_CHECK(needed <= INT32_MAX); /* comparisons are signed */
    for (uint32_t w = 0; w < window.size / 64; w++)
        bits->word[w] = high_sums(sums + 64 * w, needed);
}

/* Adds PageRank. */
static void add_statics(struct top_search *search, struct wb_window window, const struct wb_windowbits *bits)
{
    const struct wb_qplan *plan = search->plan;
    const uint32_t *statics = plan->searcher->statics;

    WB_CHECK(statics);
    WB_EACH_DOC(window, bits, docid, search->sums[docid - window.base] += wb_scoring_static(plan, statics[docid]);)
}

/* The bits of a word whose sums are greater than this. No branches: scores at random would mislead the processor. */
static uint64_t keep_high(const uint32_t *sums, uint64_t word, uint32_t needed)
{
    uint64_t kept = 0;

    if (wb_word_count(word) > FEW_OF_WORD)
        return word & high_sums(sums, needed);
    for (; word; word &= word - 1) {
        uint32_t at = (uint32_t)__builtin_ctzll(word);
        kept |= (uint64_t)(sums[at] > needed) << at;
    }
    return kept;
}

/* Drops what cannot score more than `least` with at most `rest` still to come. */
static void drop_low(struct top_search *search, struct wb_window window, struct wb_windowbits *bits, uint64_t rest,
                     uint32_t least)
{
    if (rest > least)
        return;
    WB_CHECK(least <= INT32_MAX);
    for (uint32_t w = 0; w < window.size / 64; w++)
        if (bits->word[w])
            bits->word[w] = keep_high(search->sums + 64 * w, bits->word[w], least - (uint32_t)rest);
}

/* How many of the terms, in ascending order of their bounds, cannot reach `least` together with PageRank. */
static size_t count_weak(const struct wb_qplan *plan, uint32_t least, uint64_t *rest_out)
{
    uint64_t sum = 0;
    size_t weak = 0;

    *rest_out = 0;
    while (weak < plan->order.count) {
        WB_CHECK(weak == 0 || plan->order.items[weak - 1]->bound <= plan->order.items[weak]->bound);
        sum += plan->order.items[weak]->bound;
        if (sum + plan->statics > least)
            break;
        *rest_out = sum;
        weak++;
    }
    return weak;
}

static void sum_terms(struct top_search *search, struct wb_window window, size_t first, struct wb_windowbits *bits)
{
    const struct wb_qplan *plan = search->plan;

    WB_CHECK(first <= plan->order.count);
    memset(search->sums, 0, window.size * sizeof *search->sums);
    for (size_t i = first; i < plan->order.count; i++) {
        const struct wb_scoreterm *term = plan->order.items[i];
        wb_postlist_sum(term->list, window.base, window.size, term->scorer, search->sums, bits ? bits->word : NULL);
    }
}

/* Drops what must not be shown, or does not pass the other tests of the query. */
static void apply_filters(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits)
{
    wb_bits_and(window, bits, wb_qplan_shown(plan, window));
    for (size_t i = 0; i < plan->filter_count && wb_bits_any(window, bits); i++)
        wb_qnode_filter(plan, plan->filters[i], window, bits);
}

/* Adds PageRank, and then the results that are good enough. There are enough already, all better than `least`. */
static int add_better(struct top_search *search, struct wb_window window, const struct wb_windowbits *bits,
                      uint32_t least)
{
    const struct wb_qplan *plan = search->plan;
    const uint32_t *statics = plan->searcher->statics;
    int err = 0;

    WB_CHECK(search->prune && search->topk->items.count == search->topk->max);
    WB_EACH_DOC(window, bits, docid, {
        uint32_t score = search->sums[docid - window.base] + wb_scoring_static(plan, statics[docid]);
        if (score > least && err == 0) {
            err = wb_topk_add(search->topk, (struct wb_found){score, docid, score});
            full(search, &least);
        }
    })
    return err;
}

/* Any of some words; there are enough results already. */
static int better_words(struct top_search *search, struct wb_window window, uint32_t least)
{
    struct wb_qplan *plan = search->plan;
    struct wb_windowbits bits;
    uint64_t rest = 0;

    if (plan->order.count)
        qsort(plan->order.items, plan->order.count, sizeof *plan->order.items, compare_bounds);
    size_t weak = count_weak(plan, least, &rest);
    uint64_t others = rest + plan->statics;
    if (others <= least) {
        sum_terms(search, window, weak, NULL);
        find_high(search->sums, window, least - (uint32_t)others, &bits);
    } else { /* PageRank alone may be enough, so that even a score of 0 is */
        wb_bits_clear(window, &bits);
        sum_terms(search, window, weak, &bits);
    }
    apply_filters(plan, window, &bits);
    add_statics(search, window, &bits);
    for (size_t i = weak; i-- > 0 && wb_bits_any(window, &bits);) {
        const struct wb_scoreterm *term = plan->order.items[i];
        drop_low(search, window, &bits, rest, least);
        wb_scoring_add(plan, term, window, bits.word, search->sums);
        rest -= term->bound;
    }
    return add_all(search, window, &bits);
}

/* Any of some words. */
static int any_words(struct top_search *search, struct wb_window window)
{
    struct wb_windowbits bits;
    uint32_t least;

    if (full(search, &least))
        return better_words(search, window, least);
    wb_bits_clear(window, &bits);
    sum_terms(search, window, 0, &bits);
    apply_filters(search->plan, window, &bits);
    add_statics(search, window, &bits);
    search->counted += wb_bits_count(window, &bits);
    return add_all(search, window, &bits);
}

/* The most that the terms can score together where wb_scoring_bound() was last asked for. */
static uint64_t bound_of_terms(const struct wb_qplan *plan)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->terms.count; i++)
        sum += plan->terms.items[i].bound;
    return sum;
}

/*
 * All of some words, and nothing else. The rarest comes first, and each list is read only once, where documents are
 * left that could score enough: their scores are added while the list says which of them have the word.
 */
static int all_words(struct top_search *search, struct wb_window window)
{
    struct wb_qplan *plan = search->plan;
    struct wb_windowbits bits, found;
    uint32_t least;
    bool is_full = full(search, &least);
    uint64_t rest = is_full ? bound_of_terms(plan) + plan->statics : 0;

    wb_bits_clear(window, &bits);
    memset(search->sums, 0, window.size * sizeof *search->sums);
    for (size_t i = 0; i < plan->root->item_count; i++) {
        const struct wb_slot *slot = &WB_WORDS_OF(plan->root->items[i]->leaf)->slots[0];
        const struct wb_scoreterm *terms = plan->terms.items + slot->first_term;
        WB_CHECK(slot->first_term + slot->list_count <= plan->terms.count);
        wb_bits_clear(window, &found);
        for (size_t j = 0; j < slot->list_count; j++) {
            if (i == 0)
                wb_postlist_sum(terms[j].list, window.base, window.size, terms[j].scorer, search->sums, found.word);
            else
                wb_postlist_sum_masked(terms[j].list, window.base, window.size, terms[j].scorer, search->sums,
                                       bits.word, found.word);
            WB_CHECK(!is_full || rest >= terms[j].bound);
            rest -= is_full ? terms[j].bound : 0;
        }
        bits = found;
        if (i == 0)
            wb_bits_and(window, &bits, wb_qplan_shown(plan, window));
        if (is_full)
            drop_low(search, window, &bits, rest, least);
        if (!wb_bits_any(window, &bits))
            return 0;
    }
    if (is_full)
        return add_better(search, window, &bits, least);
    add_statics(search, window, &bits);
    search->counted += wb_bits_count(window, &bits);
    return add_all(search, window, &bits);
}

static int look_at(struct top_search *search, struct wb_window window)
{
    WB_CHECK(window.size > 0 && wb_window_is_sound(window));
    if (search->plan->all_of_words && !search->plan->plain)
        return all_words(search, window);
    return search->plan->any_of_words && !search->plan->plain ? any_words(search, window) : any_plan(search, window);
}

/* ---- all windows ------------------------------------------------------------------------------------ */

/* Looks at a window pane by pane until there are enough results, because verifying is what takes the time. */
static int look_at_first(struct top_search *search, uint32_t base)
{
    uint32_t least;
    int err = 0;

    WB_CHECK(base % WB_WINDOW == 0);
    for (uint32_t pane = 0; err == 0 && pane < WB_PANES; pane++) {
        if (full(search, &least)) {
            search->pruned = true;
            wb_scoring_look(search->plan, base);
            if (wb_scoring_bound(search->plan, base, pane, WB_PANES) <= least)
                break;
            return look_at(search, (struct wb_window){base + pane * WB_PANE, (WB_PANES - pane) * WB_PANE});
        }
        err = look_at(search, (struct wb_window){base + pane * WB_PANE, WB_PANE});
    }
    return err;
}

/* Looks only at the parts of a window whose bounds are high enough, neighbouring ones at once. */
static int look_at_panes(struct top_search *search, uint32_t base)
{
    struct wb_qplan *plan = search->plan;
    uint32_t least, first = 0;
    int err = 0;

    WB_CHECK(base % WB_WINDOW == 0);
    WB_CHECK(search->prune && search->topk->items.count == search->topk->max);
    search->pruned = true;
    wb_scoring_look(plan, base);
    full(search, &least);
    if (wb_scoring_bound(plan, base, 0, WB_PANES) <= least)
        return 0;
    for (uint32_t pane = 0; err == 0 && pane <= WB_PANES; pane++) {
        if (pane < WB_PANES && full(search, &least) && wb_scoring_bound(plan, base, pane, pane + 1) > least)
            continue;
        if (first < pane && wb_scoring_bound(plan, base, first, pane) > least)
            err = look_at(search, (struct wb_window){base + first * WB_PANE, (pane - first) * WB_PANE});
        first = pane + 1;
    }
    return err;
}

int wb_topk_search(struct wb_qplan *plan, struct wb_topk *topk, uint64_t *counted_out, bool *exact_out)
{
    uint32_t least, from = 0;
    int err = 0;

    WB_CHECK(topk->max > 0 && topk->items.count == 0 && !topk->sorted);
    WB_CHECK(plan->plain ? plan->words != NULL : plan->searcher->statics != NULL); /* the scores were prepared */
    struct top_search *search = wb_alloc(sizeof *search);
    *counted_out = 0;
    *exact_out = false;
    if (!search)
        return WB_E_NOMEM;
    search->plan = plan;
    search->topk = topk;
    search->prune = !plan->options->exhaustive && !plan->plain;
    search->pruned = search->deferred = false;
    for (size_t i = 0; i < plan->leaves.count; i++)
        search->deferred |= plan->leaves.items[i]->deferred;
    search->counted = 0;
    while (err == 0) {
        struct wb_window window = wb_qplan_window(plan, from);
        if (window.size == 0)
            break;
        from = window.base + window.size;
        if (!full(search, &least))
            err = search->deferred ? look_at_first(search, window.base) : look_at(search, window);
        else
            err = look_at_panes(search, window.base);
        if (plan->err < 0)
            err = plan->err;
    }
    *counted_out = search->counted > topk->items.count ? search->counted : topk->items.count;
    *exact_out = !search->pruned;
    wb_free(search);
    return err;
}
