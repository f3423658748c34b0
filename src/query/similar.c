/*
 * similar.c - pages that are like a given one: near duplicates first, then by words and by common in-linking pages.
 *
 * By words: the words of the page that say most about it (often here, seldom elsewhere) are looked for like a query.
 * The page itself scores most; the similarity of another page is its score in relation to that.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/map.h"
#include "extract/extract.h"
#include "query/results.h"

#include <math.h>
#include <stdlib.h>

enum { WORDS_READ = 100000, WORDS_KEPT = 40, SIBLINGS_KEPT = 1000, FOUND_EXTRA = 50, NEAR_BITS = 3 };

/* ---- the words of a page -------------------------------------------------------------------------- */

struct wb_ownword {
    struct wb_slice text;
    char space;
    uint32_t frequency;
    double weight;
};

struct wb_ownword_entry {
    uint64_t hash;
    uint32_t number;
};

struct wb_ownwords {
    struct wb_arena texts;
    WB_MAP(struct wb_ownword_entry) table;
    WB_VEC(struct wb_ownword) words;
};

static int count_word(struct wb_ownwords *own, const struct wb_word *word)
{
    struct wb_slice text = word->kind == WB_WORD_PLAIN ? word->stem : word->exact;
    char space = word->kind == WB_WORD_PLAIN ? 'S' : 'E';
    uint64_t hash = wb_hash64_seeded(text.ptr, text.len, (uint64_t)space);
    struct wb_ownword_entry *entry = NULL;

    WB_CHECK(text.len <= WB_WORD_BYTES_MAX);
    while ((entry = wb_map_next(&own->table, hash, entry)))
        if (wb_slice_equal(own->words.items[entry->number].text, text)) {
            own->words.items[entry->number].frequency++;
            return 0;
        }
    struct wb_ownword fresh = {.space = space, .frequency = 1};
    int err = wb_arena_copy(&own->texts, text, &fresh.text);
    if (err == 0)
        err = wb_vec_push(&own->words, fresh);
    entry = err == 0 ? wb_map_add(&own->table, hash) : NULL;
    if (err == 0 && !entry)
        err = WB_E_NOMEM;
    if (entry)
        entry->number = (uint32_t)own->words.count - 1;
    return err;
}

static int count_words(struct wb_searcher *searcher, uint32_t docid, const struct wb_index_text *kept,
                       struct wb_ownwords *own)
{
    struct wb_slice texts[2] = {kept->title, kept->text};
    const void *languages = NULL;

    WB_CHECK(docid < searcher->pages);
    int more = 0, err = wb_index_fact(searcher->index, WB_FACT_LANG, &languages);
    uint8_t language = err == 0 ? ((const uint8_t *)languages)[docid] : 0;
    struct wb_word word;
    for (int i = 0; err == 0 && i < 2; i++) {
        size_t left = WORDS_READ;
        err = wb_words_begin(searcher->words, texts[i], wb_language_code(language < WB_LANGUAGES ? language : 0));
        while (err == 0 && left-- && (more = wb_words_next(searcher->words, &word)) > 0)
            err = word.kind == WB_WORD_COMPOUND ? 0 : count_word(own, &word);
        if (more < 0)
            err = more;
    }
    return err;
}

/* Reads what the generation keeps of the page. */
static int read_words(struct wb_searcher *searcher, uint32_t docid, struct wb_ownwords *own)
{
    struct wb_index_text kept;
    int more = 1, err = wb_index_text(searcher->index, searcher->reader, docid, &kept);

    while (err == 0 && more > 0)
        more = wb_index_text_more(searcher->reader, &kept);
    err = err < 0 ? err : more;
    return err < 0 ? err : count_words(searcher, docid, &kept, own);
}

static int compare_words(const void *a, const void *b)
{
    const struct wb_ownword *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return wb_slice_compare(x->text, y->text);
}

/* Weighs the words and puts the best first. Words that only this page has cannot lead to others. */
static int weigh_words(struct wb_searcher *searcher, struct wb_ownwords *own)
{
    for (size_t i = 0; i < own->words.count; i++) {
        struct wb_ownword *word = &own->words.items[i];
        char key[WB_WORD_BYTES_MAX + 2];
        struct wb_term term;
        WB_CHECK(word->text.len <= WB_WORD_BYTES_MAX);
        memcpy(key, word->text.ptr, word->text.len);
        key[word->text.len] = 0;
        key[word->text.len + 1] = word->space;
        int found = wb_postings_find(wb_index_postings(searcher->index), wb_slice(key, word->text.len + 2), &term);
        if (found < 0)
            return found;
        uint64_t docs = searcher->pages > term.df ? searcher->pages : term.df;
        word->weight = found && term.df > 1 ? log(1.0 + word->frequency) * wb_idf(docs, term.df) : 0;
    }
    if (own->words.count)
        qsort(own->words.items, own->words.count, sizeof *own->words.items, compare_words);
    return 0;
}

/* ---- pages with these words --------------------------------------------------------------------------- */

static const struct wb_ask_node one_word = {.kind = WB_ASK_WORD, .count = 1};

static int make_plan(struct wb_qplan *plan, const struct wb_ownwords *own)
{
    plan->root = wb_qplan_node(plan, WB_QNODE_OR, WORDS_KEPT);
    int err = plan->root ? 0 : WB_E_NOMEM;

    for (size_t i = 0; err == 0 && i < own->words.count && i < WORDS_KEPT && own->words.items[i].weight > 0; i++) {
        struct wb_leaf *leaf = wb_qplan_leaf(plan, &one_word, WB_LEAF_WORDS);
        struct wb_slot *slot = leaf ? wb_qplan_take(plan, sizeof *slot) : NULL;
        uint32_t df = 0;
        if (!slot || !(slot->lists = wb_qplan_take(plan, sizeof *slot->lists)))
            return WB_E_NOMEM;
        err = wb_plan_list(plan, own->words.items[i].text, own->words.items[i].space, &slot->lists[0], &df);
        if (err < 0 || !slot->lists[0])
            continue;
        slot->list_count = 1;
        slot->df = leaf->cost = df;
        leaf->scored = true;
        *WB_WORDS_OF(leaf) = (struct wb_leaf_words){.slots = slot, .slot_count = 1, .docs = plan->searcher->urls};
        WB_CHECK(plan->root->item_count < WORDS_KEPT);
        err = wb_plan_leaf_node(plan, leaf, &plan->root->items[plan->root->item_count++]);
    }
    plan->any_of_words = true;
    return err < 0 ? err : wb_scoring_prepare(plan);
}

/* What the page itself scores, without PageRank. */
static uint32_t own_score(const struct wb_qplan *plan, uint32_t docid)
{
    uint32_t score = 0;

    WB_CHECK(plan->order.count == plan->terms.count); /* the scores were prepared */
    for (size_t i = 0; i < plan->terms.count; i++)
        if (wb_postlist_seek(plan->terms.items[i].list, docid) == docid)
            score += wb_postlist_score(plan->terms.items[i].list, plan->terms.items[i].scorer);
    return score;
}

static int find_by_words(struct wb_searcher *searcher, uint32_t docid, size_t limit, struct wb_siblings *found)
{
    struct wb_search_options options = {.no_texts = true};
    struct wb_ownwords own = {.words = WB_VEC_INIT};
    struct wb_topk topk = {.max = limit + FOUND_EXTRA};
    struct wb_qplan plan = {.searcher = searcher, .options = &options, .arena = &searcher->scratch, .scale = 1};
    uint64_t counted;
    bool exact;
    int err = docid < searcher->pages ? read_words(searcher, docid, &own) : 0;

    if (err == 0)
        err = weigh_words(searcher, &own);
    if (err == 0)
        err = make_plan(&plan, &own);
    if (err == 0 && plan.root->item_count)
        err = wb_topk_search(&plan, &topk, &counted, &exact);
    uint32_t most = err == 0 ? own_score(&plan, docid) : 0;
    if (err == 0)
        err = wb_qplan_error(&plan);
    for (size_t i = 0; err == 0 && most && i < topk.items.count; i++) {
        uint32_t other = topk.items.items[i].docid;
        WB_CHECK(topk.items.items[i].score >= wb_scoring_static(&plan, searcher->statics[other]));
        double score = (double)(topk.items.items[i].score - wb_scoring_static(&plan, searcher->statics[other])) / most;
        if (other != docid)
            err = wb_vec_push(found, (struct wb_sibling){other, score < 1 ? score : 1});
    }
    wb_vec_release(&topk.items);
    wb_qplan_release(&plan);
    wb_arena_release(&own.texts);
    wb_map_release(&own.table);
    wb_vec_release(&own.words);
    return err;
}

/* ---- together ------------------------------------------------------------------------------------------- */

static int compare_docids(const void *a, const void *b)
{
    const struct wb_sibling *x = a, *y = b;

    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

static int compare_scores(const void *a, const void *b)
{
    const struct wb_sibling *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

/* A page that is similar in both ways is more similar than in either. */
static void put_together(struct wb_siblings *found)
{
    size_t count = 0;

    if (found->count)
        qsort(found->items, found->count, sizeof *found->items, compare_docids);
    for (size_t i = 0; i < found->count; i++) {
        if (count && found->items[count - 1].docid == found->items[i].docid)
            found->items[count - 1].score = 1 - (1 - found->items[count - 1].score) * (1 - found->items[i].score);
        else
            found->items[count++] = found->items[i];
    }
    found->count = count;
}

/* The near duplicates that are looked for. */
struct near_search {
    struct wb_searcher *searcher;
    uint32_t docid;
    uint64_t print;         /* of the page */
    const uint64_t *prints; /* of pages, by docid */
    const uint32_t *groups;
    bool family;            /* only its group, and what is further away than NEAR_BITS: the others were found before */
    size_t limit;
    struct wb_near {
        unsigned distance;
        uint32_t docid;
    } worst;                /* of `limit` pages, if there are as many */
    bool full;
    WB_VEC(struct wb_near) items;
};

static int compare_near(const void *a, const void *b)
{
    const struct wb_near *x = a, *y = b;

    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->docid < y->docid ? -1 : x->docid > y->docid;
}

/* Keeps the nearest ones. */
static void cut_near(struct near_search *n)
{
    WB_CHECK(!n->full || n->items.count >= n->limit);
    if (n->items.count)
        qsort(n->items.items, n->items.count, sizeof *n->items.items, compare_near);
    n->full = n->items.count >= n->limit;
    n->items.count = n->full ? n->limit : n->items.count;
    if (n->full && n->limit)
        n->worst = n->items.items[n->limit - 1];
}

static int take_near(void *context, uint32_t docid, unsigned distance)
{
    struct near_search *n = context;

    WB_CHECK(docid < n->searcher->pages); /* prints and groups are those of pages */
    struct wb_near item = {n->family ? wb_simhash_distance(n->prints[docid], n->print) : distance, docid};
    if (n->limit == 0 || (n->full && compare_near(&item, &n->worst) > 0))
        return 1; /* those with the same fingerprint that follow are no better */
    if (docid == n->docid || wb_searcher_barred(n->searcher, docid) ||
        (n->family && (item.distance <= NEAR_BITS || n->groups[docid] != n->groups[n->docid])))
        return 0;
    int err = wb_vec_push(&n->items, item);
    if (err == 0 && n->items.count >= 2 * n->limit + NEAR_BITS)
        cut_near(n);
    return err;
}

/*
 * The pages whose fingerprints differ in at most NEAR_BITS bits, and those of the same group: they differ in as many
 * bits at most from the first page of the group, which need not be a page of this generation.
 */
static int find_near(struct near_search *n)
{
    struct wb_index *index = n->searcher->index;
    const void *groups = NULL, *prints = NULL;
    uint64_t head = 0;

    WB_CHECK(n->docid < n->searcher->pages && n->items.count == 0);
    int err = wb_index_fact(index, WB_FACT_NEAR, &groups);
    if (err == 0)
        err = wb_index_fact(index, WB_FACT_SIMHASH, &prints);
    n->groups = groups;
    n->prints = prints;
    n->print = err == 0 ? n->prints[n->docid] : 0;
    if (err == 0 && n->print)
        err = wb_index_near(index, n->print, NEAR_BITS, take_near, n);
    if (err == 0 && n->groups[n->docid] != n->docid && n->groups[n->docid] < n->searcher->urls)
        err = wb_index_print(index, n->groups[n->docid], &head);
    n->family = true;
    if (err == 0 && head)
        err = wb_index_near(index, head, NEAR_BITS, take_near, n);
    if (err == 0)
        cut_near(n);
    return err;
}

/* Near duplicates come first: they score more than 0.95, all others at most that. */
static int add_near(struct wb_searcher *searcher, uint32_t docid, size_t limit, struct wb_siblings *found)
{
    struct near_search n = {.searcher = searcher, .docid = docid, .limit = limit};
    int err = docid < searcher->pages ? find_near(&n) : 0;

    for (size_t i = 0; i < found->count; i++)
        found->items[i].score *= 0.95;
    for (size_t i = 0; err == 0 && i < n.items.count; i++)
        err = wb_vec_push(found, (struct wb_sibling){n.items.items[i].docid,
                                                     1 - 0.05 * n.items.items[i].distance / 64});
    wb_vec_release(&n.items);
    return err;
}

int wb_similar(struct wb_searcher *searcher, uint32_t docid, unsigned kinds, size_t limit,
               struct wb_similar_page *pages_out, size_t *count_out)
{
    struct wb_siblings found = WB_VEC_INIT;

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    int err = wb_searcher_refresh(searcher);
    *count_out = 0;
    wb_arena_clear(&searcher->scratch);
    if (docid >= searcher->urls)
        return wb_fail(WB_E_INVALID, "there is no document %u", docid);
    if (err == 0 && wb_searcher_barred(searcher, docid))
        return wb_fail(WB_E_NOTFOUND, "the page was taken down");
    if (err == 0 && (kinds & 1 || kinds == 0))
        err = find_by_words(searcher, docid, limit, &found);
    if (err == 0 && (kinds & 2 || kinds == 0))
        err = wb_siblings_find(searcher, docid, SIBLINGS_KEPT, &found);
    if (err == 0)
        put_together(&found);
    if (err == 0)
        err = add_near(searcher, docid, limit, &found);
    if (err == 0 && found.count)
        qsort(found.items, found.count, sizeof *found.items, compare_scores);
    for (size_t i = 0; err == 0 && i < found.count && *count_out < limit; i++) {
        bool again = false; /* a near duplicate that was found by words or links, too */
        for (size_t k = 0; !again && k < *count_out; k++)
            again = pages_out[k].docid == found.items[i].docid;
        WB_CHECK(found.items[i].docid < searcher->urls);
        if (!again)
            pages_out[(*count_out)++] = (struct wb_similar_page){found.items[i].docid, found.items[i].score};
    }
    wb_vec_release(&found);
    return err;
}
