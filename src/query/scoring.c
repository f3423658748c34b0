/*
 * scoring.c - what documents score: the sum over all words of the query that they have, plus a part from PageRank.
 *
 * Scores are whole numbers, so that a sum does not depend on the order of its parts, and a document that is looked at
 * in whatever way has the same score. A word counts if the document has it (in the field that was asked for, or as part
 * of the phrase), whichever branch of the query it belongs to; words of negations never count.
 */
#include "base/check.h"
#include "query/results.h"

#include <math.h>
#include <stdlib.h>

/* ---- preparing ----------------------------------------------------------------------------------- */

/* The score of an infinite frequency of a word in df documents. */
static double unit_of(const struct wb_qplan *plan, const struct wb_leaf *leaf, uint64_t df)
{
    uint64_t docs = plan->searcher->pages > df ? plan->searcher->pages : df;

    WB_CHECK(df > 0 && leaf->ask);
    return wb_idf(docs, df) * (plan->k1 + 1) * WB_SCORE_ONE * leaf->ask->count;
}

/*
 * Sets the units of all words, and returns the most that a document could score: *units_out is the sum of the units,
 * and the total is more where a word has lists in several languages.
 */
static double set_units(struct wb_qplan *plan, double *greatest_out, double *units_out)
{
    double total = 0, greatest = 0, units = 0;

    for (size_t i = 0; i < plan->leaves.count; i++) {
        struct wb_leaf *leaf = plan->leaves.items[i];
        if (!leaf->scored)
            continue;
        const struct wb_leaf_words *words = leaf->kind == WB_LEAF_WORDS ? WB_WORDS_OF(leaf) : NULL;
        for (size_t s = 0; words && s < words->slot_count; s++) {
            struct wb_slot *slot = &words->slots[s];
            slot->unit = unit_of(plan, leaf, slot->df);
            greatest = slot->unit > greatest ? slot->unit : greatest;
            total += slot->unit * (double)slot->list_count;
            units += slot->unit;
        }
        /* A beginning of words counts as one word that occurs once in a page of average length. */
        if (leaf->kind == WB_LEAF_BITS)
            leaf->constant = (uint32_t)(unit_of(plan, leaf, leaf->cost ? leaf->cost : 1) / (1 + plan->k1));
        total += leaf->constant;
        units += leaf->constant;
    }
    *greatest_out = greatest;
    *units_out = units;
    return total;
}

/*
 * PageRank adds at most a fifth of what the words can score. Otherwise it would decide alone where words are on many
 * pages, and what every page of a site links to (its index, contents, copyright) would be first for all of them.
 */
enum { WORDS_TO_STATIC = 5 };

static uint32_t static_share(double words)
{
    double share = words / WORDS_TO_STATIC / WB_SCORE_ONE;

    return words > 0 && share < 1 ? (uint32_t)(share * WB_STATIC_WHOLE) : WB_STATIC_WHOLE;
}

static void set_scale(struct wb_qplan *plan)
{
    double greatest, words, total = set_units(plan, &greatest, &words);
    uint32_t statics = 0;
    size_t panes = plan->plain ? 0 : (size_t)plan->searcher->urls / WB_PANE + (plan->searcher->urls % WB_PANE != 0);

    WB_CHECK(plan->scale == 1 && plan->shift == 0);
    WB_CHECK(panes == 0 || plan->searcher->static_max);
    for (size_t i = 0; i < panes; i++)
        statics = plan->searcher->static_max[i] > statics ? plan->searcher->static_max[i] : statics;
    plan->static_share = static_share(words);
    /* Each part may be rounded up. */
    while ((total + statics) * plan->scale + (double)plan->lists.count >= (double)(1u << 31) ||
           greatest * plan->scale >= (double)(1u << 30)) {
        plan->scale /= 2;
        plan->shift++;
    }
    for (size_t i = 0; i < plan->leaves.count; i++) {
        struct wb_leaf *leaf = plan->leaves.items[i];
        leaf->constant = leaf->scored ? leaf->constant >> plan->shift : 0;
        plan->constants += leaf->constant;
    }
}

/* The scorer of all words but for their units. Most searches have the same parameters as the one before. */
static void prepare_model(struct wb_qplan *plan)
{
    struct wb_searcher *searcher = plan->searcher;

    if (searcher->model_k1 == plan->k1 && searcher->model_b == plan->b)
        return;
    wb_scorer_init(&searcher->model, 1, plan->k1, plan->b, plan->average, 1);
    searcher->model_k1 = plan->k1;
    searcher->model_b = plan->b;
}

static int add_terms(struct wb_qplan *plan, struct wb_leaf *leaf)
{
    const struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    int err = 0;

    WB_CHECK(leaf->scored);
    for (size_t s = 0; err == 0 && s < words->slot_count; s++) {
        struct wb_slot *slot = &words->slots[s];
        WB_CHECK(!slot->scorer && slot->unit > 0);
        slot->scorer = wb_qplan_take(plan, sizeof *slot->scorer);
        if (!slot->scorer)
            return WB_E_NOMEM;
        *slot->scorer = plan->searcher->model;
        slot->scorer->unit = (float)(slot->unit * plan->scale);
        slot->first_term = plan->terms.count;
        for (size_t i = 0; err == 0 && i < slot->list_count; i++)
            err = wb_vec_push(
                &plan->terms,
                (struct wb_scoreterm){.list = slot->lists[i], .scorer = slot->scorer, .leaf = leaf, .slot = slot});
    }
    return err;
}

int wb_scoring_prepare(struct wb_qplan *plan)
{
    const struct wb_index_info *info = wb_index_info(plan->searcher->index);
    const struct wb_ranking *ranking = &plan->options->ranking;
    const void *words = NULL;
    int err = 0;

    WB_CHECK(!plan->terms.count && !plan->order.count);
    plan->plain = ranking->plain;
    plan->k1 = ranking->k1 > 0 ? ranking->k1 : 1.2;
    plan->b = ranking->b > 0 ? ranking->b : 0.75;
    plan->average = info->pages && info->words ? (double)info->words / (double)info->pages : 1;
    if (plan->plain)
        err = wb_index_fact(plan->searcher->index, WB_FACT_WORDS, &words);
    else
        err = wb_searcher_statics(plan->searcher);
    if (err < 0)
        return err;
    plan->words = words;
    set_scale(plan);
    prepare_model(plan);
    for (size_t i = 0; err == 0 && i < plan->leaves.count; i++)
        if (plan->leaves.items[i]->scored && plan->leaves.items[i]->kind == WB_LEAF_WORDS)
            err = add_terms(plan, plan->leaves.items[i]);
    if (err == 0)
        err = wb_vec_reserve(&plan->order, plan->terms.count + 1);
    for (size_t i = 0; err == 0 && i < plan->terms.count; i++)
        plan->order.items[plan->order.count++] = &plan->terms.items[i];
    return err;
}

double wb_scoring_value(const struct wb_qplan *plan, uint32_t score)
{
    WB_CHECK(plan->scale > 0);
    return (double)score / WB_SCORE_ONE / plan->scale;
}

/* ---- bounds -------------------------------------------------------------------------------------- */

/* Bounds are the same as far as a block reaches, so a list whose blocks are longer than panes is asked less often. */
static void look_at_term(struct wb_scoreterm *term, uint32_t base)
{
    uint64_t known_to = 0; /* up to this document the bound is `known` */
    uint32_t known = 0;

    for (uint32_t pane = 0; pane < WB_PANES; pane++) {
        uint32_t first = base + pane * WB_PANE, last = first + (WB_PANE - 1);
        if (last < known_to) {
            term->panes[pane] = known;
            continue;
        }
        term->panes[pane] = wb_postlist_bound_range(term->list, term->scorer, first, last);
        known_to = (uint64_t)wb_postlist_block_last(term->list, last) + 1;
        if (known_to > (uint64_t)last + WB_PANE)
            known = wb_postlist_bound_range(term->list, term->scorer, last, (uint32_t)(known_to - 1));
    }
}

void wb_scoring_look(struct wb_qplan *plan, uint32_t base)
{
    WB_CHECK(base % WB_WINDOW == 0 && base < plan->searcher->urls);
    for (size_t i = 0; i < plan->terms.count; i++)
        look_at_term(&plan->terms.items[i], base);
}

uint32_t wb_scoring_bound(struct wb_qplan *plan, uint32_t base, uint32_t first, uint32_t end)
{
    const uint32_t *maxima = plan->searcher->static_max + base / WB_PANE;
    uint64_t bound = plan->constants;
    uint32_t statics = 0;

    WB_CHECK(first < end && end <= WB_PANES);
    WB_CHECK(plan->searcher->statics && base % WB_WINDOW == 0);
    for (uint32_t pane = first; pane < end; pane++)
        statics = maxima[pane] > statics ? maxima[pane] : statics;
    bound += plan->statics = wb_scoring_static(plan, statics);
    for (size_t i = 0; i < plan->terms.count; i++) {
        struct wb_scoreterm *term = &plan->terms.items[i];
        term->bound = term->panes[first];
        for (uint32_t pane = first + 1; pane < end; pane++)
            term->bound = term->panes[pane] > term->bound ? term->panes[pane] : term->bound;
        bound += term->bound;
    }
    return bound < UINT32_MAX ? (uint32_t)bound : UINT32_MAX;
}

/* ---- sums ---------------------------------------------------------------------------------------- */

/* Drops the documents that cannot score more than `least`, even with all that is still to come. */
static void prune(struct wb_window window, struct wb_windowbits *bits, const uint32_t *sums, uint64_t rest,
                  uint32_t least)
{
    if (rest > least)
        return;
    uint32_t needed = least - (uint32_t)rest;
    WB_EACH_DOC(window, bits, docid, {
        if (sums[docid - window.base] <= needed)
            wb_bits_drop(bits, docid - window.base);
    })
}

static void add_constants(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_window window,
                          const struct wb_windowbits *bits, uint32_t *sums)
{
    WB_CHECK(leaf->scored);
    if (leaf->kind == WB_LEAF_BITS) {
        const uint64_t *words = WB_BITS_OF(leaf)->words;
        WB_EACH_DOC(window, bits, docid, {
            if (words[docid / 64] >> docid % 64 & 1)
                sums[docid - window.base] += leaf->constant;
        })
        return;
    }
    const struct wb_leaf_docs *docs = WB_DOCS_OF(leaf);
    for (size_t i = 0; docs->scores && i < docs->count; i++) {
        uint32_t at = docs->items[i] - window.base;
        if (docs->items[i] >= window.base && at < window.size && bits->word[at / 64] >> at % 64 & 1)
            sums[at] += docs->scores[i] >> plan->shift;
    }
}

/* The documents among these for which a leaf counts, if that is not all of them. */
static const uint64_t *mask_of(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_window window,
                               const struct wb_windowbits *bits, struct wb_windowbits *mask)
{
    if (!leaf->verify || leaf->deferred)
        return bits->word;
    struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    WB_CHECK(words->matched);
    if (words->matched_at.size != window.size || words->matched_at.base != window.base) {
        memcpy(words->matched->word, bits->word, window.size / 8);
        wb_leaf_filter(leaf, window, words->matched);
        wb_leaf_verify(plan, leaf, window, words->matched);
        words->matched_at = window;
    }
    memcpy(mask->word, bits->word, window.size / 8);
    wb_bits_and(window, mask, words->matched->word);
    return mask->word;
}

void wb_scoring_add(const struct wb_qplan *plan, const struct wb_scoreterm *term, struct wb_window window,
                    const uint64_t *mask, uint32_t *sums)
{
    uint64_t expected = (uint64_t)term->list->df * window.size / plan->searcher->urls, wanted = 0;

    WB_CHECK(wb_window_is_sound(window));
    for (uint32_t w = 0; w < window.size / 64 && wanted * 16 <= expected + 64; w++)
        wanted += (uint64_t)__builtin_popcountll(mask[w]);
    if (wanted * 16 > expected + 64) {
        wb_postlist_sum_masked(term->list, window.base, window.size, term->scorer, sums, mask, NULL);
        return;
    }
    for (uint32_t w = 0; w < window.size / 64; w++)
        for (uint64_t left = mask[w]; left; left &= left - 1) {
            uint32_t at = 64 * w + (uint32_t)__builtin_ctzll(left);
            if (wb_list_has(term->list, window.base + at))
                sums[at] += wb_postlist_score(term->list, term->scorer);
        }
}

static int compare_bounds(const void *a, const void *b)
{
    const struct wb_scoreterm *x = *(struct wb_scoreterm *const *)a, *y = *(struct wb_scoreterm *const *)b;

    return x->bound > y->bound ? -1 : x->bound < y->bound;
}

uint32_t wb_scoring_plain(const struct wb_qplan *plan, const struct wb_slot *slot, uint32_t docid,
                          const uint32_t frequency[WB_FIELDS])
{
    WB_CHECK(plan->plain && plan->words && plan->average > 0);
    double f = 0, length = docid < plan->searcher->pages ? plan->words[docid] : plan->average;
    for (int i = 0; i < WB_FIELDS; i++)
        f += frequency[i];
    return (uint32_t)(slot->unit * plan->scale * f / (f + plan->k1 * (1 - plan->b + plan->b * length / plan->average)) +
                      0.5);
}

static void sum_plain(struct wb_qplan *plan, struct wb_scoreterm *term, struct wb_window window, const uint64_t *mask,
                      uint32_t *sums)
{
    uint32_t docid = wb_postlist_seek(term->list, window.base), frequency[WB_FIELDS];

    for (; docid != WB_DOCID_END && docid - window.base < window.size; docid = wb_postlist_next(term->list)) {
        uint32_t at = docid - window.base;
        if ((mask[at / 64] >> at % 64 & 1) && wb_postlist_frequencies(term->list, frequency) == 0)
            sums[at] += wb_scoring_plain(plan, term->slot, docid, frequency);
    }
}

void wb_scoring_sum(struct wb_qplan *plan, struct wb_window window, struct wb_windowbits *bits, uint32_t least,
                    uint32_t *sums)
{
    const uint32_t *statics = plan->searcher->statics;
    struct wb_windowbits mask;
    uint64_t rest = 0;

    WB_CHECK(wb_window_is_sound(window));
    WB_CHECK(plan->plain || statics);
    WB_CHECK(plan->order.count == plan->terms.count); /* the scores were prepared */
    WB_EACH_DOC(window, bits, docid,
                sums[docid - window.base] = plan->plain ? 0 : wb_scoring_static(plan, statics[docid]);)
    for (size_t i = 0; i < plan->leaves.count; i++)
        if (plan->leaves.items[i]->scored && plan->leaves.items[i]->constant)
            add_constants(plan, plan->leaves.items[i], window, bits, sums);
    if (least) {
        if (plan->order.count)
            qsort(plan->order.items, plan->order.count, sizeof *plan->order.items, compare_bounds);
        for (size_t i = 0; i < plan->order.count; i++)
            rest += plan->order.items[i]->bound;
    }
    for (size_t i = 0; i < plan->order.count; i++) {
        struct wb_scoreterm *term = plan->order.items[i];
        if (least) {
            prune(window, bits, sums, rest, least);
            if (!wb_bits_any(window, bits))
                break;
        }
        const uint64_t *wanted = mask_of(plan, term->leaf, window, bits, &mask);
        if (plan->plain)
            sum_plain(plan, term, window, wanted, sums);
        else
            wb_scoring_add(plan, term, window, wanted, sums);
        rest -= least ? term->bound : 0;
    }
    if (least)
        prune(window, bits, sums, 0, least);
    /* What was found for these candidates must not be taken for all documents of the window. */
    for (size_t i = 0; i < plan->leaves.count; i++)
        if (plan->leaves.items[i]->verify)
            WB_WORDS_OF(plan->leaves.items[i])->matched_at.size = 0;
}
