/*
 * complete.c - what a query that is being typed may become.
 *
 *   filter t      titles in which words begin like this, one after the other: "Netfilter manual: filter tables"
 *   netfilter tab     no title has that: words that begin like the last one, if there are pages with all of them
 *
 * Completions come from the generation alone; what other readers ask is not known. They obey takedowns: a title whose
 * page was taken down is not shown, and if any page was, a word only if one that is left has it.
 */
#include "base/check.h"
#include "base/error.h"
#include "query/searcher.h"

enum {
    TYPED_BYTES_MAX = 256, /* of more, nothing is completed */
    SEARCHES_MAX = 16,     /* for words that go with the others */
    WORDS_MAX = 64,        /* whose stems are compared */
};

struct completing {
    struct wb_searcher *searcher;
    struct wb_completions_found *found;
    size_t limit;
    struct wb_slice typed; /* without blanks at its end */
    struct wb_slice before; /* what is before the last word */
    struct wb_buf text;
    const _Atomic bool *give_up;
    unsigned searches;
    size_t words, words_max; /* single words among the completions, while there may be titles */
    struct wb_slice stems[WORDS_MAX];
    size_t stem_count;
};

/* ---- texts ------------------------------------------------------------------------------------------------- */

static bool is_operator(struct wb_slice word)
{
    return wb_slice_equal(word, WB_SLICE_LIT("AND")) || wb_slice_equal(word, WB_SLICE_LIT("OR")) ||
           wb_slice_equal(word, WB_SLICE_LIT("NOT"));
}

/* Appends a word of a title so that a query reads it as a word: without what means something in the language. */
static int append_plain_word(struct wb_buf *out, struct wb_slice word)
{
    int err = 0;

    while (word.len && strchr("-+", *word.ptr))
        word = wb_slice(word.ptr + 1, word.len - 1);
    if (word.len && out->len && out->ptr[out->len - 1] != ' ')
        err = wb_buf_append_char(out, ' ');
    for (size_t i = 0; err == 0 && i < word.len; i++) {
        char c = word.ptr[i];
        bool field = c == ':' && wb_ask_is_field(wb_slice(word.ptr, i));
        bool gap = field || strchr("\"()*~\\", c);
        if (is_operator(word))
            c = (char)(c - 'A' + 'a');
        if (!gap || (out->len && out->ptr[out->len - 1] != ' '))
            err = wb_buf_append_char(out, gap ? ' ' : c);
    }
    return err;
}

static int append_plain(struct wb_buf *out, struct wb_slice text)
{
    int err = 0;

    for (size_t at = 0; err == 0 && at < text.len;) {
        const char *blank = memchr(text.ptr + at, ' ', text.len - at);
        size_t end = blank ? (size_t)(blank - text.ptr) : text.len;
        err = append_plain_word(out, wb_slice(text.ptr + at, end - at));
        at = end + 1;
    }
    return err;
}

static bool is_there(const struct completing *c, struct wb_slice text)
{
    for (size_t i = 0; i < c->found->count; i++)
        if (wb_slice_equal_nocase(c->found->items[i].text, text))
            return true;
    return wb_slice_equal_nocase(c->typed, text);
}

/* Adds what is in c->text, unless it is there already. Returns 1 if there are enough then. */
static int add_text(struct completing *c, enum wb_completion_kind kind, uint32_t docid)
{
    struct wb_completions_found *found = c->found;

    WB_CHECK(found->count < c->limit && c->limit <= WB_COMPLETIONS_MAX);
    struct wb_slice text = wb_slice_trim(wb_buf_slice(&c->text));
    struct wb_found_completion *item = &found->items[found->count];
    if (text.len == 0 || is_there(c, text))
        return 0;
    *item = (struct wb_found_completion){.kind = kind};
    int err = wb_arena_copy(&found->arena, text, &item->text);
    if (err == 0 && docid != WB_DOCID_NONE) {
        struct wb_slice url;
        err = wb_index_url(c->searcher->index, docid, &url);
        if (err == 0)
            err = wb_arena_copy(&found->arena, url, &item->url);
    }
    if (err < 0)
        return err;
    return ++found->count == c->limit;
}

/*
 * Whether a word has another stem than those before it. A search finds all words with one stem, so that one of them is
 * enough. Stems are English ones here: of other languages, fewer words fall together.
 */
static int is_new_word(struct completing *c, struct wb_slice folded, bool *new_out)
{
    struct wb_word word;
    int err = wb_words_begin(c->searcher->words, folded, "");
    int got = err < 0 ? err : wb_words_next(c->searcher->words, &word);

    *new_out = false;
    for (size_t i = 0; got > 0 && i < c->stem_count; i++)
        if (wb_slice_equal(c->stems[i], word.stem))
            return 0;
    if (got <= 0 || c->stem_count == WORDS_MAX)
        return got < 0 ? got : 0;
    *new_out = true;
    return wb_arena_copy(&c->found->arena, word.stem, &c->stems[c->stem_count++]);
}

/* Whether a query finds anything. A query that cannot be understood does not. */
static int finds(struct completing *c, struct wb_slice query)
{
    struct wb_search_options options = {.query = query, .limit = 1, .no_texts = true, .give_up = c->give_up};
    struct wb_results results;

    WB_CHECK(c->searches > 0 && c->searches <= SEARCHES_MAX); /* each of them takes a while */
    int err = wb_search(c->searcher, &options, &results);
    int found = err < 0 ? err : results.hit_count > 0;

    wb_results_release(&results);
    return err == WB_E_INVALID || err == WB_E_LIMIT ? 0 : found;
}

/* ---- titles and words ---------------------------------------------------------------------------------------- */

/* A title; or a word, of which there are only so many that titles have room. */
static int each_text(void *context, const struct wb_completion *completion)
{
    struct completing *c = context;
    uint32_t docid = completion->docid;
    int err = 0;

    if (docid != WB_DOCID_NONE && docid >= c->searcher->pages)
        return wb_fail(WB_E_CORRUPT, "a completion belongs to a page that does not exist; build the index again");
    bool title = docid != WB_DOCID_NONE && !wb_searcher_barred(c->searcher, docid), fits = title;
    if (!title && completion->is_word && c->words < c->words_max)
        err = is_new_word(c, completion->folded, &fits);
    if (err < 0 || !fits)
        return err;
    wb_buf_clear(&c->text);
    err = append_plain(&c->text, title ? completion->text : completion->folded);
    if (err == 0 && !title && c->searcher->barred) {
        int found = c->searches++ < SEARCHES_MAX ? finds(c, wb_buf_slice(&c->text)) : 0;
        if (found <= 0)
            return found;
    }
    c->words += !title;
    return err < 0 ? err : add_text(c, title ? WB_COMPLETION_TITLE : WB_COMPLETION_WORD, title ? docid : WB_DOCID_NONE);
}

/* A word instead of the last one, if there are pages that have it and the others. */
static int each_word(void *context, const struct wb_completion *completion)
{
    struct completing *c = context;
    bool fits = false;
    int err = completion->is_word ? is_new_word(c, completion->folded, &fits) : 0;

    if (err < 0 || !fits)
        return err;
    if (c->searches++ >= SEARCHES_MAX)
        return 1;
    wb_buf_clear(&c->text);
    err = wb_buf_append_slice(&c->text, c->before);
    if (err == 0)
        err = wb_buf_append_slice(&c->text, completion->folded);
    int found = err == 0 ? finds(c, wb_buf_slice(&c->text)) : err;
    return found <= 0 ? found : add_text(c, c->before.len ? WB_COMPLETION_WORDS : WB_COMPLETION_WORD, WB_DOCID_NONE);
}

/* Words that begin like the last one, which nothing follows. */
static int complete_last(struct completing *c, const struct wb_completion_text *text)
{
    struct wb_completion_text last;

    WB_CHECK(text->last <= c->typed.len);
    int err = wb_completion_fold(c->searcher->words, wb_slice(c->typed.ptr + text->last, c->typed.len - text->last),
                                 false, &last);
    if (err < 0 || last.start_count != 1 || text->end != c->typed.len)
        return err;
    c->before = wb_slice(c->typed.ptr, text->last);
    return wb_index_complete(c->searcher->index, wb_slice(last.folded, last.folded_len), each_word, c);
}

int wb_complete(struct wb_searcher *searcher, struct wb_slice typed, size_t limit, const _Atomic bool *give_up,
                struct wb_completions_found *found_out)
{
    struct completing c = {.searcher = searcher, .found = found_out, .give_up = give_up};
    struct wb_completion_text text = {.folded_len = 0};
    bool ended = typed.len && typed.ptr[typed.len - 1] == ' ';

    WB_CHECK(searcher->magic == WB_SEARCHER_MAGIC);
    *found_out = (struct wb_completions_found){.count = 0};
    c.limit = limit < WB_COMPLETIONS_MAX ? limit : WB_COMPLETIONS_MAX;
    c.words_max = (c.limit + 1) / 2;
    c.typed = wb_slice_trim(typed);
    if (c.typed.len == 0 || typed.len > TYPED_BYTES_MAX || c.limit == 0)
        return 0;
    int err = wb_searcher_refresh(searcher);
    if (err == 0)
        err = wb_completion_fold(searcher->words, typed, true, &text);
    if (err == 0 && !text.cut)
        err = wb_index_complete(searcher->index, wb_slice(text.folded, text.folded_len), each_text, &c);
    if (err == 0 && !text.cut && !ended && found_out->count < c.limit) {
        err = wb_completion_fold(searcher->words, c.typed, true, &text);
        if (err == 0)
            err = complete_last(&c, &text);
    }
    wb_buf_release(&c.text);
    return err < 0 ? err : 0;
}

void wb_completions_found_release(struct wb_completions_found *found)
{
    wb_arena_release(&found->arena);
    *found = (struct wb_completions_found){.count = 0};
}
