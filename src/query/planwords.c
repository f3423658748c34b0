/*
 * planwords.c - leaves for words, phrases and beginnings of words.
 *
 *   bare word            lists of its stems, in all languages of the generation
 *   "word"               the list of the word as it is
 *   compound, c++        the list of the compound; in URLs, where compounds are not indexed, its parts in a row
 *   several words, "a b" lists of the words as they are, and positions
 *   beginning*           all words that begin so, put together into one set of documents
 */
#include "base/check.h"
#include "base/error.h"
#include "query/queryplan.h"

#include <stdlib.h>

static const unsigned field_masks[] = {
    [WB_ASK_ANY] = 0,
    [WB_ASK_TITLE] = 1u << WB_FIELD_TITLE,
    [WB_ASK_HEADING] = 1u << WB_FIELD_HEADING,
    [WB_ASK_URL] = 1u << WB_FIELD_URL,
    [WB_ASK_ANCHOR] = 1u << WB_FIELD_ANCHOR,
};

static int open_term(struct wb_qplan *plan, const struct wb_term *term, struct wb_postlist **list_out)
{
    int err = wb_vec_reserve(&plan->lists, plan->lists.count + 1);

    *list_out = NULL;
    WB_CHECK(!plan->terms.count); /* scores were prepared for the lists that there were */
    if (plan->lists.count >= WB_PLAN_LISTS_MAX)
        return wb_fail(WB_E_INVALID, "the query stands for more than %u different words", WB_PLAN_LISTS_MAX);
    if (err == 0)
        err = wb_postlist_open(wb_index_postings(plan->searcher->index), term, list_out);
    if (err == 0)
        plan->lists.items[plan->lists.count++] = *list_out;
    return err;
}

static size_t make_key(struct wb_slice text, char space, char key[WB_WORD_BYTES_MAX + 2])
{
    WB_CHECK(text.len <= WB_WORD_BYTES_MAX);
    memcpy(key, text.ptr, text.len);
    key[text.len] = 0;
    key[text.len + 1] = space;
    return text.len + 2;
}

int wb_plan_list(struct wb_qplan *plan, struct wb_slice text, char space, struct wb_postlist **list_out,
                 uint32_t *df_out)
{
    char key[WB_WORD_BYTES_MAX + 2];
    struct wb_term term;

    WB_CHECK(space == 'E' || space == 'S');
    int found =
        wb_postings_find(wb_index_postings(plan->searcher->index), wb_slice(key, make_key(text, space, key)), &term);
    *list_out = NULL;
    *df_out = 0;
    if (found <= 0)
        return found;
    *df_out = term.df;
    return open_term(plan, &term, list_out);
}

/* ---- beginnings of words --------------------------------------------------------------------------- */

/* Calls each() for all exact terms that begin with a text. */
static int each_term(struct wb_qplan *plan, struct wb_slice prefix,
                     int (*each)(void *context, struct wb_slice key, const struct wb_term *term), void *context)
{
    struct wb_terms *terms = NULL;
    struct wb_slice key;
    struct wb_term term;
    int more = 0, err = wb_terms_open(wb_index_postings(plan->searcher->index), &terms);

    if (err == 0)
        err = wb_terms_seek(terms, prefix);
    while (err == 0 && (more = wb_terms_next(terms, &key, &term)) > 0 && wb_slice_starts(key, prefix)) {
        if (key.len < 2 || key.ptr[key.len - 2] != 0 || key.ptr[key.len - 1] != 'E')
            continue;
        plan->terms_seen++;
        plan->postings_seen += term.df;
        if (plan->terms_seen > WB_PLAN_TERMS_MAX || plan->postings_seen > WB_PLAN_POSTINGS_MAX)
            err = wb_fail(WB_E_INVALID, "%.*s*: too many words begin like this and others in the query",
                          WB_SLICE_ARG(prefix));
        else
            err = each(context, key, &term);
    }
    wb_terms_close(terms);
    return err < 0 ? err : more < 0 ? more : 0;
}

struct prefix_fill {
    struct wb_postings *postings;
    uint64_t *bits;
    uint32_t size;
    unsigned fields;
};

static int fill_fields(struct wb_postlist *list, const struct prefix_fill *fill)
{
    uint32_t frequency[WB_FIELDS];
    int err = 0;

    WB_CHECK(fill->fields);
    for (uint32_t docid = list->docid; err == 0 && docid != WB_DOCID_END; docid = wb_postlist_next(list)) {
        WB_CHECK(docid < fill->size);
        err = wb_postlist_frequencies(list, frequency);
        for (unsigned f = 0; err == 0 && f < WB_FIELDS; f++)
            if (fill->fields >> f & 1 && frequency[f])
                fill->bits[docid / 64] |= 1ull << docid % 64;
    }
    return err;
}

static int fill_term(void *context, struct wb_slice key, const struct wb_term *term)
{
    const struct prefix_fill *fill = context;
    struct wb_postlist *list = NULL;
    int err = wb_postlist_open(fill->postings, term, &list);

    (void)key;
    if (err == 0 && fill->fields)
        err = fill_fields(list, fill);
    else if (err == 0)
        wb_postlist_fill(list, 0, fill->size, NULL, fill->bits);
    if (err == 0)
        err = wb_postlist_error(list);
    wb_postlist_close(list);
    return err;
}

static int prefix_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, struct wb_slice text, unsigned fields,
                       bool scored, struct wb_qnode **node_out)
{
    size_t words = plan->searcher->bit_words;
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_BITS);
    uint64_t *bits = leaf ? wb_alloc_zero(words, sizeof *bits) : NULL;
    struct prefix_fill fill = {wb_index_postings(plan->searcher->index), bits, (uint32_t)(words * 64), fields};
    int err = wb_qplan_keep(plan, bits);

    *node_out = NULL;
    if (err == 0)
        err = each_term(plan, text, fill_term, &fill);
    if (err < 0)
        return err;
    WB_BITS_OF(leaf)->words = bits;
    err = wb_arena_copy(plan->arena, text, &WB_BITS_OF(leaf)->prefix);
    if (err < 0)
        return err;
    leaf->scored = scored;
    for (size_t i = 0; i < words; i++)
        leaf->cost += (uint64_t)__builtin_popcountll(bits[i]);
    return wb_plan_leaf_node(plan, leaf, node_out);
}

/* ---- slots ------------------------------------------------------------------------------------- */

static int init_slot(struct wb_qplan *plan, struct wb_slot *slot, struct wb_slice text, size_t lists)
{
    WB_CHECK(lists > 0 && !slot->lists);
    slot->lists = wb_qplan_take(plan, lists * sizeof *slot->lists);
    return slot->lists ? wb_arena_copy(plan->arena, text, &slot->text) : WB_E_NOMEM;
}

static int add_list(struct wb_qplan *plan, struct wb_slot *slot, struct wb_slice text, char space)
{
    uint32_t df = 0;
    struct wb_postlist *list = NULL;
    int err = wb_plan_list(plan, text, space, &list, &df);

    WB_CHECK(slot->list_count < WB_STEMS_MAX);
    if (list)
        slot->lists[slot->list_count++] = list;
    slot->df += df;
    return err;
}

static int exact_slot(struct wb_qplan *plan, struct wb_slice text, struct wb_slot *slot)
{
    int err = init_slot(plan, slot, text, 1);

    return err < 0 ? err : add_list(plan, slot, text, 'E');
}

static int stem_slot(struct wb_qplan *plan, struct wb_slice text, struct wb_slot *slot)
{
    struct wb_stems *stems = wb_alloc(sizeof *stems);
    static const uint8_t unknown = 0;
    size_t count = 0;
    const uint8_t *languages = wb_index_languages(plan->searcher->index, &count);
    int err = stems ? init_slot(plan, slot, text, WB_STEMS_MAX) : WB_E_NOMEM;

    /* Texts of links are stemmed as those of pages whose language is unknown. */
    bool has_unknown = count && memchr(languages, 0, count);
    uint8_t all[257];
    WB_CHECK(count < sizeof all); /* and one more */
    memcpy(all, languages, count);
    if (!has_unknown)
        all[count++] = unknown;
    if (err == 0)
        err = wb_words_stems(plan->searcher->words, text, all, count, stems);
    WB_CHECK(err < 0 || stems->count <= WB_STEMS_MAX);
    if (err == 0)
        slot->stems = wb_qplan_take(plan, (stems->count + 1) * sizeof *slot->stems);
    if (err == 0 && !slot->stems)
        err = WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < stems->count; i++) {
        err = add_list(plan, slot, stems->items[i], 'S');
        if (err == 0)
            err = wb_arena_copy(plan->arena, stems->items[i], &slot->stems[slot->stem_count++]);
    }
    wb_free(stems);
    return err;
}

struct slot_terms {
    struct wb_qplan *plan;
    WB_VEC(struct wb_postlist *) lists;
    uint64_t df;
};

static int add_slot_term(void *context, struct wb_slice key, const struct wb_term *term)
{
    struct slot_terms *terms = context;
    struct wb_postlist *list = NULL;
    int err = open_term(terms->plan, term, &list);

    (void)key;
    terms->df += term->df;
    return err < 0 ? err : wb_vec_push(&terms->lists, list);
}

/* A word of a phrase of which only the beginning is known. */
static int open_slot(struct wb_qplan *plan, struct wb_slice text, struct wb_slot *slot)
{
    struct slot_terms terms = {.plan = plan};
    int err = each_term(plan, text, add_slot_term, &terms);

    if (err == 0)
        err = init_slot(plan, slot, text, terms.lists.count ? terms.lists.count : 1);
    if (err == 0 && terms.lists.count)
        memcpy(slot->lists, terms.lists.items, terms.lists.count * sizeof *slot->lists);
    slot->list_count = terms.lists.count;
    slot->df = terms.df;
    slot->open = true;
    wb_vec_release(&terms.lists);
    return err;
}

/* ---- leaves -------------------------------------------------------------------------------------- */

static int compare_slots(const void *a, const void *b)
{
    const struct wb_slot *x = a, *y = b;

    return x->df < y->df ? -1 : x->df > y->df;
}

/* For a leaf that has a word that no page has, or no word. */
static int become_nothing(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_qnode **node_out)
{
    const struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    const struct wb_slot *only = words->slot_count == 1 ? words->slots : NULL;
    leaf->kind = WB_LEAF_NOTHING;
    leaf->scored = false;
    *WB_NOTHING_OF(leaf) = (struct wb_leaf_nothing){.slot = only};
    return wb_plan_leaf_node(plan, leaf, node_out);
}

/* Completes a leaf whose slots are filled in; puts the rarest word first. */
static int finish_words(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_qnode **node_out)
{
    struct wb_leaf_words *words = WB_WORDS_OF(leaf);

    WB_CHECK(words->slot_count <= WB_WORDLIST_MAX);
    bool all = words->slot_count > 0;
    for (size_t i = 0; i < words->slot_count; i++)
        all &= words->slots[i].list_count > 0;
    if (!all)
        return become_nothing(plan, leaf, node_out);
    leaf->verify = words->fields || words->phrase;
    words->docs = plan->searcher->urls;
    words->spaces = words->fields ? 0 : (1u << WB_SPACES) - 1;
    for (unsigned f = 0; f < WB_FIELDS; f++)
        words->spaces |= (words->fields >> f & 1) << wb_space_of_field((enum wb_field)f);
    qsort(words->slots, words->slot_count, sizeof *words->slots, compare_slots);
    leaf->cost = words->slots[0].df;
    if (words->phrase) {
        words->positions = wb_qplan_take(plan, words->slot_count * sizeof *words->positions);
        words->merged = wb_qplan_take(plan, words->slot_count * sizeof *words->merged);
        words->merged_cap = wb_qplan_take(plan, words->slot_count * sizeof *words->merged_cap);
        if (!words->positions || !words->merged || !words->merged_cap)
            return WB_E_NOMEM;
    }
    return wb_plan_leaf_node(plan, leaf, node_out);
}

static struct wb_leaf *words_leaf(struct wb_qplan *plan, const struct wb_ask_node *ask, unsigned fields, bool scored,
                                  size_t slots)
{
    struct wb_leaf *leaf = wb_qplan_leaf(plan, ask, WB_LEAF_WORDS);

    if (!leaf)
        return NULL;
    leaf->scored = scored;
    struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    words->fields = fields;
    words->slot_count = slots;
    words->slots = wb_qplan_take(plan, slots * sizeof *words->slots);
    return words->slots ? leaf : NULL;
}

static int one_word(struct wb_qplan *plan, const struct wb_ask_node *ask, const struct wb_word *word, unsigned fields,
                    bool scored, struct wb_qnode **node_out)
{
    bool stem = ask->kind == WB_ASK_WORD && word->kind == WB_WORD_PLAIN;

    if (word->kind == WB_WORD_GRAM && word->last)
        return prefix_leaf(plan, ask, word->exact, fields, scored, node_out);
    struct wb_leaf *leaf = words_leaf(plan, ask, fields, scored, 1);
    struct wb_slot *slot = leaf ? WB_WORDS_OF(leaf)->slots : NULL;
    int err = !slot ? WB_E_NOMEM : stem ? stem_slot(plan, word->exact, slot) : exact_slot(plan, word->exact, slot);
    return err < 0 ? err : finish_words(plan, leaf, node_out);
}

/* Several words, compounds or their parts. open: of the last word only the beginning is known. */
static int sequence(struct wb_qplan *plan, const struct wb_ask_node *ask, const struct wb_wordlist *list, size_t first,
                    unsigned fields, bool parts, bool scored, bool open, struct wb_qnode **node_out)
{
    struct wb_leaf *leaf = words_leaf(plan, ask, fields, scored, list->count);
    size_t count = 0;
    int err = 0;

    WB_CHECK(first <= list->count && list->count <= WB_WORDLIST_MAX);
    if (!leaf)
        return WB_E_NOMEM;
    struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    for (size_t i = first; err == 0 && i < list->count; i++) {
        const struct wb_word *word = &list->words[i];
        bool compound = word->kind == WB_WORD_COMPOUND;
        if (compound && parts)
            continue;
        size_t next = i + (compound ? word->parts : 0);
        struct wb_slot *slot = &words->slots[count++];
        WB_CHECK(word->position >= list->words[first].position);
        slot->offset = word->position - list->words[first].position;
        err = (word->kind == WB_WORD_GRAM && word->last) || (open && next + 1 >= list->count)
                  ? open_slot(plan, word->exact, slot)
                  : exact_slot(plan, word->exact, slot);
        i = next;
    }
    if (err < 0)
        return err;
    words->slot_count = count;
    words->phrase = count > 1;
    words->slop = ask->kind == WB_ASK_PHRASE ? ask->slop : 0;
    return finish_words(plan, leaf, node_out);
}

/* A compound: as it is, or as its parts in a URL. */
static int compound(struct wb_qplan *plan, const struct wb_ask_node *ask, const struct wb_wordlist *list,
                    unsigned fields, bool scored, struct wb_qnode **node_out)
{
    unsigned url = field_masks[WB_ASK_URL];
    struct wb_qnode *whole = NULL, *parts = NULL;
    bool in_url = list->words[0].parts > 1;
    int err = 0;

    WB_CHECK(list->words[0].kind == WB_WORD_COMPOUND && list->words[0].parts < list->count);

    if (fields != url || !in_url)
        err = one_word(plan, ask, &list->words[0], fields, scored, &whole);
    if (err == 0 && in_url && (fields == 0 || fields == url))
        err = sequence(plan, ask, list, 1, url, true, scored, false, &parts);
    *node_out = whole ? whole : parts;
    if (err < 0 || !whole || !parts)
        return err;
    if (parts->leaf->kind == WB_LEAF_NOTHING)
        return 0;
    struct wb_qnode *both = wb_qplan_node(plan, WB_QNODE_OR, 2);
    if (!both)
        return WB_E_NOMEM;
    both->items[0] = whole;
    both->items[1] = parts;
    both->item_count = 2;
    both->cost = whole->cost + parts->cost;
    *node_out = both;
    return 0;
}

int wb_plan_words(struct wb_qplan *plan, const struct wb_ask_node *ask, bool scored, struct wb_qnode **node_out)
{
    struct wb_wordlist *list = &plan->searcher->wordlist;

    WB_CHECK(ask->field <= WB_ASK_ANCHOR);
    unsigned fields = field_masks[ask->field];
    bool url = ask->field == WB_ASK_URL, prefix = ask->kind == WB_ASK_PREFIX;
    int err = wb_words_of_query(plan->searcher->words, ask->text, list);
    *node_out = NULL;
    if (err < 0)
        return err;
    switch (list->shape) {
    case WB_WORDLIST_NOTHING:
        return 0;
    case WB_WORDLIST_WORD:
        if (prefix)
            return prefix_leaf(plan, ask, list->words[0].exact, fields, scored, node_out);
        return one_word(plan, ask, &list->words[0], fields, scored, node_out);
    case WB_WORDLIST_COMPOUND:
        if (prefix && !url)
            return prefix_leaf(plan, ask, list->words[0].exact, fields, scored, node_out);
        if (prefix)
            return sequence(plan, ask, list, 1, fields, true, scored, true, node_out);
        return compound(plan, ask, list, fields, scored, node_out);
    case WB_WORDLIST_SEQUENCE:
        break;
    }
    return sequence(plan, ask, list, 0, fields, url, scored, prefix, node_out);
}
