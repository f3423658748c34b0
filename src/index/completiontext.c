/* completiontext.c - folds titles, and what people type, in the same way as the words of pages. */
#include "index/completions.h"
#include "base/check.h"

/* Appends bytes; false if there is no room. */
static bool append(struct wb_completion_text *text, const char *bytes, size_t len)
{
    WB_CHECK(text->folded_len <= sizeof text->folded);
    if (text->folded_len + len > sizeof text->folded)
        return false;
    memcpy(text->folded + text->folded_len, bytes, len);
    text->folded_len += len;
    return true;
}

/* The bytes of the first character. A word is well-formed. */
static size_t first_character(struct wb_slice word)
{
    size_t n = 1;

    WB_CHECK(word.len > 0);
    while (n < word.len && ((unsigned char)word.ptr[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/*
 * Appends a word. Of the pairs of characters of scripts without blanks the first character each, so that a run of them
 * is there as it was written.
 */
static bool add_word(struct wb_completion_text *text, const struct wb_word *word, bool joined)
{
    struct wb_slice exact = word->exact;
    size_t before = text->folded_len;

    WB_CHECK(word->begin < word->end && word->kind != WB_WORD_COMPOUND);
    if (word->kind == WB_WORD_GRAM)
        exact = wb_slice(exact.ptr, first_character(exact));
    if (before && !joined && !append(text, " ", 1))
        return false;
    size_t start = text->folded_len;
    if (!append(text, exact.ptr, exact.len)) {
        text->folded_len = before;
        return false;
    }
    if (!joined && text->start_count < WB_COMPLETION_STARTS_MAX)
        text->starts[text->start_count++] = (uint8_t)start;
    if (!joined)
        text->last = word->begin;
    if (before == 0)
        text->begin = word->begin;
    text->end = word->end > text->end ? word->end : text->end;
    return true;
}

int wb_completion_fold(struct wb_words *words, struct wb_slice text, bool typed, struct wb_completion_text *out)
{
    struct wb_word word;
    uint32_t position = 0;
    bool grams = false;
    int more = 0;

    *out = (struct wb_completion_text){.folded_len = 0};
    int err = wb_words_begin(words, text, NULL);
    while (err == 0 && (more = wb_words_next(words, &word)) > 0) {
        bool gram = word.kind == WB_WORD_GRAM;
        if (word.kind == WB_WORD_COMPOUND)
            continue;
        if (!add_word(out, &word, gram && grams && word.position == position + 1 && word.begin < out->end)) {
            out->cut = true;
            break;
        }
        position = word.position;
        grams = gram && !word.last;
    }
    /* "filter " is followed by another word. */
    if (typed && out->folded_len && out->end < text.len && !grams)
        append(out, " ", 1);
    return err < 0 ? err : more < 0 ? more : 0;
}
