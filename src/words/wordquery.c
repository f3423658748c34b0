/*
 * wordquery.c - the words of a query: what is to be looked up for a piece of it, and under which stems.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "words/wordscan.h"

void wb_wordlist_release(struct wb_wordlist *list)
{
    wb_free(list->words);
    wb_free(list->bytes);
    *list = (struct wb_wordlist)WB_WORDLIST_INIT;
}

/* A slice of the list is an offset until all bytes are there, because they may move. */
static int append_word(struct wb_wordlist *list, size_t *bytes, const struct wb_word *word)
{
    int err = wb_grow(&list->words, &list->cap, list->count + 1);

    if (err == 0)
        err = wb_grow(&list->bytes, &list->bytes_cap, *bytes + word->exact.len);
    if (err < 0)
        return err;
    memcpy(list->bytes + *bytes, word->exact.ptr, word->exact.len);
    list->words[list->count++] = *word;
    *bytes += word->exact.len;
    return 0;
}

static void place_slices(struct wb_wordlist *list)
{
    size_t at = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct wb_word *word = &list->words[i];
        word->exact = word->stem = wb_slice(list->bytes + at, word->exact.len);
        at += word->exact.len;
    }
}

static enum wb_wordlist_shape shape_of(const struct wb_wordlist *list)
{
    if (list->count == 0)
        return WB_WORDLIST_NOTHING;
    if (list->count == 1)
        return WB_WORDLIST_WORD;
    const struct wb_word *first = &list->words[0];
    return first->kind == WB_WORD_COMPOUND && first->parts == list->count - 1 ? WB_WORDLIST_COMPOUND
                                                                              : WB_WORDLIST_SEQUENCE;
}

int wb_words_of_query(struct wb_words *w, struct wb_slice piece, struct wb_wordlist *list)
{
    struct wb_word word;
    size_t bytes = 0;
    bool in_run = false; /* the word before was a gram, and its run goes on */
    int more, err = wb_words_begin(w, piece, NULL);

    list->count = 0;
    list->shape = WB_WORDLIST_NOTHING;
    list->positions = 0;
    list->cut = false;
    if (err < 0)
        return err;
    while ((more = wb_words_next(w, &word)) > 0) {
        bool implied = word.kind == WB_WORD_GRAM && word.last && in_run;
        in_run = word.kind == WB_WORD_GRAM && !word.last;
        if (list->count + word.parts >= WB_WORDLIST_MAX) {
            list->cut = true;
            break;
        }
        list->positions = word.position + 1;
        err = implied ? 0 : append_word(list, &bytes, &word);
        if (err < 0)
            return err;
    }
    if (more < 0)
        return more;
    place_slices(list);
    list->shape = shape_of(list);
    return 0;
}

/* ---- stems --------------------------------------------------------------------------------------------------- */

/* Adds a stem in its place, unless it is there already. */
static void add_stem(struct wb_stems *stems, struct wb_slice stem)
{
    size_t at = 0;

    while (at < stems->count && wb_slice_compare(stems->items[at], stem) < 0)
        at++;
    if (at < stems->count && wb_slice_equal(stems->items[at], stem))
        return;
    WB_CHECK(stems->count < WB_STEMS_MAX && stem.len <= WB_WORD_BYTES_MAX);
    char *memory = stems->bytes + stems->count * WB_WORD_BYTES_MAX;
    memcpy(memory, stem.ptr, stem.len);
    memmove(stems->items + at + 1, stems->items + at, (stems->count - at) * sizeof *stems->items);
    stems->items[at] = wb_slice(memory, stem.len);
    stems->count++;
}

_Static_assert(WB_STEM_NONE == -1 && WB_STEM_ALGORITHMS < 64, "a word has a bit for each algorithm");

int wb_words_stems(struct wb_words *w, struct wb_slice exact, const uint8_t *languages, size_t count,
                   struct wb_stems *stems_out)
{
    char word[WB_STEM_ROOM] = {0};
    struct wb_slice stem;
    uint64_t asked = 0; /* a bit for each algorithm: several languages may have the same, or none */

    WB_CHECK(w->magic == WB_WORDS_MAGIC && exact.len > 0 && exact.len <= WB_WORD_BYTES_MAX);
    stems_out->count = 0;
    memcpy(word, exact.ptr, exact.len);
    for (size_t i = 0; i < count; i++) {
        int algorithm = wb_stem_algorithm(languages[i]);
        uint64_t bit = 1ull << (algorithm - WB_STEM_NONE);
        if (asked & bit)
            continue;
        asked |= bit;
        int err = wb_stemmers_prepare(&w->stemmers, algorithm);
        if (err == 0)
            err = wb_words_stem(w, algorithm, word, exact.len, &stem);
        if (err < 0)
            return err;
        add_stem(stems_out, stem);
    }
    return 0;
}
