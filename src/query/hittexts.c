/* hittexts.c - what makes results readable: the words to highlight, snippets, and suggestions for misspelt words. */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "query/engine.h"

enum { FEW_RESULTS = 5 }; /* a query with more results is not taken for a misspelt one */

/* ---- keys of the cache ---------------------------------------------------------------------------- */

static int put_number(struct wb_buf *key, uint32_t number)
{
    char bytes[4];

    wb_put32(bytes, number);
    return wb_buf_append(key, bytes, sizeof bytes);
}

static int put_text(struct wb_buf *key, struct wb_slice text)
{
    int err = put_number(key, (uint32_t)text.len);

    return err == 0 ? wb_buf_append_slice(key, text) : err;
}

int wb_hits_key(const struct wb_qplan *plan, enum wb_text_kind kind, struct wb_buf *key)
{
    int err = put_number(key, wb_index_info(plan->searcher->index)->generation);

    return err == 0 ? put_number(key, kind) : err;
}

/* ---- URLs and titles ------------------------------------------------------------------------------- */

/* Both in one text: the length of the URL, the URL, the title. */
static int join_names(const struct wb_qplan *plan, uint32_t docid, struct wb_buf *names)
{
    struct wb_slice text = WB_SLICE_EMPTY;
    int err = wb_index_url(plan->searcher->index, docid, &text);

    if (err == 0)
        err = put_text(names, text);
    if (err == 0 && docid < plan->searcher->pages) {
        err = wb_index_title(plan->searcher->index, docid, &text);
        if (err == 0)
            err = wb_buf_append_slice(names, text);
    }
    return err;
}

int wb_hits_names(const struct wb_qplan *plan, struct wb_arena *arena, uint32_t docid, struct wb_slice *url_out,
                  struct wb_slice *title_out)
{
    struct wb_text_cache *cache = plan->searcher->texts;
    struct wb_buf key = WB_BUF_INIT, names = WB_BUF_INIT;
    struct wb_slice text = WB_SLICE_EMPTY;
    int err = wb_hits_key(plan, WB_TEXT_NAMES, &key);

    if (err == 0)
        err = put_number(&key, docid);
    int found = err == 0 && cache ? wb_text_cache_find(cache, wb_buf_slice(&key), arena, &text) : err;
    if (found == 0) {
        err = join_names(plan, docid, &names);
        if (err == 0)
            err = wb_arena_copy(arena, wb_buf_slice(&names), &text);
        if (err == 0 && cache)
            wb_text_cache_put(cache, wb_buf_slice(&key), text);
    }
    wb_buf_release(&key);
    wb_buf_release(&names);
    if (found < 0 || err < 0)
        return found < 0 ? found : err;
    size_t len = wb_get32(text.ptr);
    WB_CHECK(len <= text.len - 4);
    *url_out = wb_slice(text.ptr + 4, len);
    if (docid < plan->searcher->pages)
        *title_out = wb_slice(text.ptr + 4 + len, text.len - 4 - len);
    return 0;
}

/* ---- snippets ------------------------------------------------------------------------------------- */

struct wb_wanted_list WB_VEC_OF(struct wb_wanted);

/* The words of the query, apart from those that must not be there. */
static int find_wanted(const struct wb_qplan *plan, struct wb_wanted_list *list)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < plan->leaves.count; i++) {
        const struct wb_leaf *leaf = plan->leaves.items[i];
        if (!leaf->scored)
            continue;
        if (leaf->kind == WB_LEAF_BITS && leaf->prefix.len)
            err = wb_vec_push(list, (struct wb_wanted){.exact = leaf->prefix, .prefix = true});
        for (size_t s = 0; err == 0 && leaf->kind == WB_LEAF_WORDS && s < leaf->slot_count; s++) {
            const struct wb_slot *slot = &leaf->slots[s];
            err = wb_vec_push(list, (struct wb_wanted){slot->text, slot->stems, slot->stem_count, slot->open});
        }
    }
    return err;
}

struct wb_snippet_work {
    struct wb_qplan *plan;
    struct wb_results *results;
    const struct wb_wanted_list *wanted;
    const uint8_t *languages; /* by docid */
    WB_VEC(struct wb_pageid) ids;
    WB_VEC(size_t) hits; /* the number of the hit of each id */
    struct wb_buf html;
    struct wb_buf key; /* of the cache: what all hits share, then the docid of one */
};

/* Begins the key: everything but the docid that a snippet depends on. */
static int begin_key(struct wb_snippet_work *work)
{
    struct wb_buf *key = &work->key;
    int err = wb_hits_key(work->plan, WB_TEXT_SNIPPET, key);

    for (size_t i = 0; err == 0 && i < work->wanted->count; i++) {
        const struct wb_wanted *wanted = &work->wanted->items[i];
        err = put_text(key, wanted->exact);
        if (err == 0)
            err = put_number(key, (uint32_t)wanted->stem_count << 1 | wanted->prefix);
        for (size_t s = 0; err == 0 && s < wanted->stem_count; s++)
            err = put_text(key, wanted->stems[s]);
    }
    return err == 0 ? put_number(key, 0) : err; /* room for the docid */
}

static struct wb_slice key_of(struct wb_snippet_work *work, uint32_t docid)
{
    wb_put32(work->key.ptr + work->key.len - sizeof docid, docid);
    return wb_buf_slice(&work->key);
}

/* A page that cannot be read any more has no snippet; that is no reason not to answer. */
static int take_page(void *context, size_t number, int err, const struct wb_page *page)
{
    struct wb_snippet_work *work = context;
    struct wb_text_cache *cache = work->plan->searcher->texts;
    struct wb_hit *hit = &work->results->hits[work->hits.items[number]];

    if (err < 0)
        return 0;
    uint8_t language = work->languages[hit->docid];
    struct wb_snippet_wish wish = {work->wanted->items, work->wanted->count,
                                   language < WB_LANGUAGES ? wb_language_code(language) : ""};
    err = wb_excerpt(work->plan->searcher->snippeter, page, &wish, &work->html);
    if (err == 0)
        err = wb_arena_copy(&work->results->arena, wb_buf_slice(&work->html), &hit->snippet);
    if (err == 0 && cache)
        wb_text_cache_put(cache, key_of(work, hit->docid), hit->snippet);
    return err;
}

int wb_hits_snippets(struct wb_qplan *plan, struct wb_results *results)
{
    struct wb_searcher *searcher = plan->searcher;
    struct wb_store_when when = {.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = wb_index_info(searcher->index)->snapshot};
    struct wb_wanted_list wanted = WB_VEC_INIT;
    struct wb_snippet_work work = {.plan = plan, .results = results, .wanted = &wanted};
    const void *ids = NULL, *languages = NULL;
    int err = wb_index_fact(searcher->index, WB_FACT_ID, &ids);

    if (err == 0)
        err = wb_index_fact(searcher->index, WB_FACT_LANG, &languages);
    work.languages = languages;
    if (err == 0)
        err = find_wanted(plan, &wanted);
    if (err == 0 && searcher->texts)
        err = begin_key(&work);
    for (size_t i = 0; err == 0 && i < results->hit_count; i++) {
        uint32_t docid = results->hits[i].docid;
        if (docid >= searcher->pages)
            continue;
        int found = searcher->texts ? wb_text_cache_find(searcher->texts, key_of(&work, docid), &results->arena,
                                                         &results->hits[i].snippet)
                                    : 0;
        if (found != 0) {
            err = found < 0 ? found : 0;
            continue;
        }
        err = wb_vec_push(&work.ids, wb_pageid_get((const char *)ids + (size_t)docid * WB_PAGEID_BYTES));
        if (err == 0)
            err = wb_vec_push(&work.hits, i);
    }
    if (err == 0 && work.ids.count)
        err = wb_store_get_many(searcher->store, work.ids.items, work.ids.count, &when, take_page, &work);
    wb_buf_release(&work.html);
    wb_buf_release(&work.key);
    wb_vec_release(&work.ids);
    wb_vec_release(&work.hits);
    wb_vec_release(&wanted);
    return err;
}

/* ---- suggestions ------------------------------------------------------------------------------------ */

/* The word for a misspelt one, from the cache if it was looked for before; empty: none. */
static int spell_slot(const struct wb_qplan *plan, const struct wb_slot *slot, struct wb_arena *arena,
                      struct wb_buf *word)
{
    struct wb_text_cache *cache = plan->searcher->texts;
    struct wb_buf key = WB_BUF_INIT;
    struct wb_slice known = WB_SLICE_EMPTY;
    int err = wb_hits_key(plan, WB_TEXT_SPELLING, &key);

    if (err == 0)
        err = wb_buf_append_slice(&key, slot->text);
    int found = err == 0 && cache ? wb_text_cache_find(cache, wb_buf_slice(&key), arena, &known) : err;
    if (found > 0)
        err = wb_buf_append_slice(word, known);
    if (found == 0) {
        err = wb_spell(wb_index_postings(plan->searcher->index), slot->text, word);
        if (err >= 0 && cache)
            wb_text_cache_put(cache, wb_buf_slice(&key), wb_buf_slice(word));
    }
    wb_buf_release(&key);
    return found < 0 ? found : err < 0 ? err : 0;
}

/* The word that was probably meant instead of this leaf; empty: none. A word that any page has is meant as it is. */
static int spell_leaf(const struct wb_qplan *plan, const struct wb_leaf *leaf, struct wb_arena *arena,
                      struct wb_buf *word)
{
    wb_buf_clear(word);
    if (!leaf->ask || leaf->ask->kind != WB_ASK_WORD || leaf->slot_count != 1 || leaf->slots[0].df > 0 ||
        !leaf->slots[0].stems)
        return 0;
    return spell_slot(plan, &leaf->slots[0], arena, word);
}

/* Writes the query again with other words; leaves are in the order of the query. */
int wb_hits_suggest(struct wb_qplan *plan, struct wb_results *results)
{
    struct wb_slice query = plan->ask.text;
    struct wb_buf text = WB_BUF_INIT, word = WB_BUF_INIT;
    size_t at = 0;
    int err = 0;

    if (!results->exact || results->total > FEW_RESULTS)
        return 0;
    for (size_t i = 0; err == 0 && i < plan->leaves.count; i++) {
        const struct wb_leaf *leaf = plan->leaves.items[i];
        err = spell_leaf(plan, leaf, &results->arena, &word);
        if (err < 0 || word.len == 0 || leaf->ask->begin < at || leaf->ask->end > query.len)
            continue;
        /* The word is at the end of its part: what is before it is the name of a field, or nothing. */
        size_t begin = leaf->ask->end - leaf->ask->text.len;
        if (leaf->ask->text.len > leaf->ask->end - at ||
            !wb_slice_equal(wb_slice(query.ptr + begin, leaf->ask->text.len), leaf->ask->text))
            continue;
        err = wb_buf_append(&text, query.ptr + at, begin - at);
        if (err == 0)
            err = wb_buf_append_slice(&text, wb_buf_slice(&word));
        at = leaf->ask->end;
    }
    if (err == 0 && at) {
        err = wb_buf_append(&text, query.ptr + at, query.len - at);
        if (err == 0)
            err = wb_arena_copy(&results->arena, wb_buf_slice(&text), &results->suggestion);
    }
    wb_buf_release(&text);
    wb_buf_release(&word);
    return err;
}
