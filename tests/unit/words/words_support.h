/* words_support.h - words of a text as one line, and what is true of the words of any text. */
#ifndef WB_TESTS_WORDS_SUPPORT_H
#define WB_TESTS_WORDS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "words/words.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Writes the words, with blanks between them: {compound}, <gram>, and "word=stem" if the stem differs. */
static inline void words_line(struct wb_words *words, struct wb_slice text, const char *language, struct wb_buf *line)
{
    static const char open[] = {0, '{', '<'}, close[] = {0, '}', '>'};
    struct wb_word word;

    wb_buf_clear(line);
    assert_int_equal(wb_words_begin(words, text, language), 0);
    int more;
    while ((more = wb_words_next(words, &word)) > 0) {
        if (line->len)
            assert_int_equal(wb_buf_append_char(line, ' '), 0);
        if (word.kind != WB_WORD_PLAIN)
            assert_int_equal(wb_buf_append_char(line, open[word.kind]), 0);
        assert_int_equal(wb_buf_append_slice(line, word.exact), 0);
        if (word.kind != WB_WORD_PLAIN)
            assert_int_equal(wb_buf_append_char(line, close[word.kind]), 0);
        if (!wb_slice_equal(word.stem, word.exact)) {
            assert_int_equal(wb_buf_append_char(line, '='), 0);
            assert_int_equal(wb_buf_append_slice(line, word.stem), 0);
        }
    }
    assert_int_equal(more, 0);
}

static inline void expect_line(struct wb_words *words, const char *text, const char *language, const char *want)
{
    struct wb_buf line = WB_BUF_INIT;

    words_line(words, wb_slice_str(text), language, &line);
    if (!wb_slice_equal(wb_buf_slice(&line), wb_slice_str(want)))
        fail_msg("'%s' gives '%.*s', not '%s'", text, WB_SLICE_ARG(wb_buf_slice(&line)), want);
    wb_buf_release(&line);
}

/* Checks what is true of every word. *last is the word before, or zeros; parts_left counts a compound's parts. */
static inline void check_word(struct wb_slice text, const struct wb_word *word, const struct wb_word *last,
                              unsigned *parts_left, uint32_t *position)
{
    assert_true(word->exact.len > 0 && word->exact.len <= WB_WORD_BYTES_MAX && wb_utf8_valid(word->exact));
    assert_true(word->stem.len > 0 && word->stem.len <= WB_WORD_BYTES_MAX && wb_utf8_valid(word->stem));
    assert_null(memchr(word->exact.ptr, 0, word->exact.len));
    assert_true(word->begin < word->end && word->end <= text.len && word->begin >= last->begin);
    assert_int_equal(word->position, *position);
    if (word->kind == WB_WORD_COMPOUND) {
        assert_true(word->parts > 0 && word->parts <= WB_COMPOUND_PARTS_MAX && *parts_left == 0);
        assert_true(word->exact.len <= WB_COMPOUND_BYTES_MAX && word->begin >= last->end);
        *parts_left = word->parts;
        return;
    }
    assert_true(word->kind == WB_WORD_PLAIN || *parts_left == 0);
    assert_true(word->kind != WB_WORD_PLAIN || last->kind == WB_WORD_COMPOUND || word->begin >= last->end);
    *parts_left -= *parts_left > 0;
    (*position)++;
}

static inline void check_words(struct wb_words *words, struct wb_slice text, const char *language, size_t *count_out)
{
    struct wb_word word, last = {0};
    unsigned parts_left = 0;
    uint32_t position = 0;
    int more;

    *count_out = 0;
    assert_int_equal(wb_words_begin(words, text, language), 0);
    for (; (more = wb_words_next(words, &word)) > 0; last = word, (*count_out)++)
        check_word(text, &word, &last, &parts_left, &position);
    assert_int_equal(more, 0);
    assert_int_equal(parts_left, 0);
    assert_int_equal(wb_words_next(words, &word), 0); /* the end stays the end */
}

static inline int words_setup(void **state)
{
    return wb_words_new((struct wb_words **)state);
}

static inline int words_teardown(void **state)
{
    wb_words_free(*state);
    return 0;
}

#endif
