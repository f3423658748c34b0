/* hittexts.c - what makes results readable: the words to highlight, snippets, and suggestions for misspelt words. */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "query/results.h"

enum { FEW_RESULTS = 5 }; /* a query with more results is not taken for a misspelt one */

/* ---- keys of the cache ---------------------------------------------------------------------------- */

enum text_kind { TEXT_HIT, TEXT_NAMES, TEXT_SPELLING };

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

/* Takes a text with its length off the rest. */
static struct wb_slice take_text(struct wb_slice *rest)
{
    WB_CHECK(rest->len >= 4);
    size_t len = wb_get32(rest->ptr);
    WB_CHECK(len <= rest->len - 4);
    struct wb_slice text = wb_slice(rest->ptr + 4, len);
    *rest = wb_slice(rest->ptr + 4 + len, rest->len - 4 - len);
    return text;
}

/* Begins the key of a text in the cache of the searcher. */
static int begin_any_key(const struct wb_qplan *plan, enum text_kind kind, struct wb_buf *key)
{
    int err = put_number(key, wb_index_info(plan->searcher->index)->generation);

    return err == 0 ? put_number(key, kind) : err;
}

/* ---- what is folded: URLs and titles ---------------------------------------------------------------- */

/* Both in one text: the length of the URL, the URL, the title. */
static int join_names(const struct wb_qplan *plan, uint32_t docid, struct wb_buf *names)
{
    struct wb_slice text = WB_SLICE_EMPTY;

    WB_CHECK(docid < plan->searcher->urls);
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
    int err = begin_any_key(plan, TEXT_NAMES, &key);

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
    *url_out = take_text(&text);
    if (docid < plan->searcher->pages)
        *title_out = text;
    return 0;
}

/* ---- what to highlight ---------------------------------------------------------------------------- */

struct wb_wanted_list WB_VEC_OF(struct wb_wanted);

/* The words of the query, apart from those that must not be there. */
static int find_wanted(const struct wb_qplan *plan, struct wb_wanted_list *list)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < plan->leaves.count; i++) {
        const struct wb_leaf *leaf = plan->leaves.items[i];
        if (!leaf->scored)
            continue;
        if (leaf->kind == WB_LEAF_BITS && WB_BITS_OF(leaf)->prefix.len)
            err = wb_vec_push(list, (struct wb_wanted){.exact = WB_BITS_OF(leaf)->prefix, .prefix = true});
        const struct wb_leaf_words *words = leaf->kind == WB_LEAF_WORDS ? WB_WORDS_OF(leaf) : NULL;
        for (size_t s = 0; err == 0 && words && s < words->slot_count; s++) {
            const struct wb_slot *slot = &words->slots[s];
            err = wb_vec_push(list, (struct wb_wanted){slot->text, slot->stems, slot->stem_count, slot->open});
        }
    }
    return err;
}

/* ---- URLs, titles and snippets ---------------------------------------------------------------------- */

/* What the texts of all hits need. */
struct wb_hit_work {
    struct wb_qplan *plan;
    struct wb_arena *arena;
    struct wb_wanted_list wanted;
    const uint8_t *languages; /* by docid */
    struct wb_buf html, texts;
    struct wb_buf key; /* of the cache: what all hits share, then the docid of one */
};

/* Begins the key: everything but the docid that a snippet depends on. */
static int begin_key(struct wb_hit_work *work)
{
    struct wb_buf *key = &work->key;

    WB_CHECK(key->len == 0);
    int err = begin_any_key(work->plan, TEXT_HIT, key);
    for (size_t i = 0; err == 0 && i < work->wanted.count; i++) {
        const struct wb_wanted *wanted = &work->wanted.items[i];
        err = put_text(key, wanted->exact);
        if (err == 0)
            err = put_number(key, (uint32_t)wanted->stem_count << 1 | wanted->prefix);
        for (size_t s = 0; err == 0 && s < wanted->stem_count; s++)
            err = put_text(key, wanted->stems[s]);
    }
    return err == 0 ? put_number(key, 0) : err; /* room for the docid */
}

static struct wb_slice key_of(struct wb_hit_work *work, uint32_t docid)
{
    WB_CHECK(work->key.len >= sizeof docid);
    wb_put32(work->key.ptr + work->key.len - sizeof docid, docid);
    return wb_buf_slice(&work->key);
}

static int more_text(struct wb_snippet_text *text)
{
    struct wb_index_text read;
    int more = wb_index_text_more(text->reader, &read);

    if (more > 0)
        text->bytes = read.text;
    return more;
}

/*
 * Appends title and snippet of a page to the texts. If what is kept of it is damaged, it has no snippet, and the title
 * is that of the table of titles: `verify` reports it, and it is no reason not to answer.
 */
static int add_page(struct wb_hit_work *work, uint32_t docid)
{
    struct wb_searcher *searcher = work->plan->searcher;
    struct wb_slice title = WB_SLICE_EMPTY;
    struct wb_index_text kept;

    WB_CHECK(docid < searcher->pages); /* languages are those of pages */
    uint8_t number = work->languages[docid];
    const char *language = number < WB_LANGUAGES ? wb_language_code(number) : "";
    size_t before = work->texts.len;
    int err = wb_index_text(searcher->index, searcher->reader, docid, &kept);

    if (err == 0) {
        struct wb_snippet_text text = {kept.text, language, kept.lines, more_text, searcher->reader};
        err = put_text(&work->texts, kept.title);
        if (err == 0)
            err = wb_snippet(searcher->snippeter, &text, &work->html);
        return err == 0 ? wb_buf_append_slice(&work->texts, wb_buf_slice(&work->html)) : err;
    }
    if (err != WB_E_CORRUPT)
        return err;
    work->texts.len = before;
    err = wb_index_title(searcher->index, docid, &title);
    return err < 0 ? err : put_text(&work->texts, title);
}

/* Makes the texts of a hit, each behind its length, but the last one: URL; of pages also title, snippet. */
static int make_texts(struct wb_hit_work *work, uint32_t docid)
{
    struct wb_slice url = WB_SLICE_EMPTY;
    int err = wb_index_url(work->plan->searcher->index, docid, &url);

    wb_buf_clear(&work->texts);
    if (err == 0)
        err = put_text(&work->texts, url);
    return err < 0 || docid >= work->plan->searcher->pages ? err : add_page(work, docid);
}

/* The texts of one hit: from the cache, or new. */
static int fill_hit(struct wb_hit_work *work, struct wb_hit *hit)
{
    struct wb_text_cache *cache = work->plan->searcher->texts;
    struct wb_slice rest = WB_SLICE_EMPTY;

    int found = cache ? wb_text_cache_find(cache, key_of(work, hit->docid), work->arena, &rest) : 0, err = 0;
    if (found < 0)
        return found;
    if (found == 0) {
        err = make_texts(work, hit->docid);
        if (err == 0)
            err = wb_arena_copy(work->arena, wb_buf_slice(&work->texts), &rest);
        if (err == 0 && cache)
            wb_text_cache_put(cache, key_of(work, hit->docid), rest);
    }
    if (err < 0)
        return err;
    hit->url = take_text(&rest);
    if (hit->docid < work->plan->searcher->pages) {
        hit->title = take_text(&rest);
        hit->snippet = rest;
    }
    return 0;
}

int wb_hits_texts(struct wb_qplan *plan, struct wb_results *results)
{
    struct wb_hit_work work = {.plan = plan, .arena = &results->arena, .wanted = WB_VEC_INIT};
    const void *languages = NULL;
    int err = wb_index_fact(plan->searcher->index, WB_FACT_LANG, &languages);

    work.languages = languages;
    if (err == 0)
        err = find_wanted(plan, &work.wanted);
    if (err == 0 && plan->searcher->texts)
        err = begin_key(&work);
    wb_snippeter_want(plan->searcher->snippeter, work.wanted.items, work.wanted.count);
    for (size_t i = 0; err == 0 && i < results->hit_count; i++)
        err = fill_hit(&work, &results->hits[i]);
    wb_buf_release(&work.html);
    wb_buf_release(&work.texts);
    wb_buf_release(&work.key);
    wb_vec_release(&work.wanted);
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

    WB_CHECK(slot->df == 0); /* a word that any page has is meant as it is */
    int err = begin_any_key(plan, TEXT_SPELLING, &key);
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
    const struct wb_slot *slot = leaf->kind == WB_LEAF_NOTHING ? WB_NOTHING_OF(leaf)->slot : NULL;

    wb_buf_clear(word);
    if (!slot || !slot->stems || !leaf->ask || leaf->ask->kind != WB_ASK_WORD)
        return 0;
    return spell_slot(plan, slot, arena, word);
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
        WB_CHECK(leaf->ask->begin <= leaf->ask->end);
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
