/*
 * test_words_random.c - what is true of the words of any text: offsets ascend, folded words are folded to themselves,
 * and a query finds the words that the index has.
 */
#include "../seeded.h"
#include "words_support.h"
#include "words/wordscan.h"

/* Pieces of text that are likely to meet in odd ways. */
static const char *const pieces[] = {
    "network", "Don't",  "c++",    "std::vector", "U.S.",   "3.11.7", "foo_bar",  "e-mail",
    "http://", "a",      "B",      "7",           "ß",      "ï",      "й",        "и\u0306",
    "東",      "京",     "か",     "\u3099",      "ｶ",      "ﾞ",      "ก",        "\u0e48",
    "นำ",      "한",     "\u1112", "\u1161",      "\u11ab", "\u0301", "\u0345",   "\u0308",
    "\u00ad",  "\u200d", "\u200b", "\u2019",      "\u2011", "\u02bc", "ﷺ",        "ﬃ",
    "½",       "Ⅷ",      "İ",      "Σ",           "ς",      "हि",     "न्",        "\u093c",
    "'s",      "'",      ".",      ":",           "::",     "+",      "++",       "#",
    "_",       "___",    "____",   "-",           "&",      "@",      "/",        "\"",
    "<",       "(",      ",",      "😀",           "\xff",   "\xc3",   "\xe2\x80", "supercalifragilisticexpialidocious",
};

static void append_random(uint64_t *chance, struct wb_buf *text)
{
    char bytes[4];
    uint32_t cp = (uint32_t)chance_below(chance, chance_one_in(chance, 2) ? 0x3000 : 0x110000);

    switch (chance_below(chance, 8)) {
    case 0:
        if (cp < 0xd800 || cp > 0xdfff)
            assert_int_equal(wb_buf_append(text, bytes, wb_utf8_encode(cp, bytes)), 0);
        break;
    case 1:
        assert_int_equal(wb_buf_append_char(text, (char)chance_below(chance, 256)), 0);
        break;
    case 2:
        assert_int_equal(wb_buf_append_char(text, ' '), 0);
        break;
    case 3:
        for (uint64_t n = chance_below(chance, 3) ? 1 : chance_below(chance, 90); n > 0; n--)
            assert_int_equal(wb_buf_append_char(text, (char)('a' + chance_below(chance, 26))), 0);
        break;
    default:
        assert_int_equal(wb_buf_append_str(text, pieces[chance_below(chance, COUNT(pieces))]), 0);
        break;
    }
}

static void make_text(uint64_t *chance, struct wb_buf *text)
{
    wb_buf_clear(text);
    for (uint64_t n = chance_below(chance, 40); n > 0; n--)
        append_random(chance, text);
}

/* Words of texts between blanks are the words of the whole text. */
static void compare_pieces(struct wb_words *whole, struct wb_words *piece, struct wb_slice text, const char *language)
{
    struct wb_word a, b;
    size_t from = 0;
    uint32_t positions = 0, last = 0;
    bool any = false;

    assert_int_equal(wb_words_begin(whole, text, language), 0);
    for (;;) {
        const char *blank = memchr(text.ptr + from, ' ', text.len - from);
        size_t to = blank ? (size_t)(blank - text.ptr) : text.len;
        assert_int_equal(wb_words_begin(piece, wb_slice(text.ptr + from, to - from), language), 0);
        for (any = false; wb_words_next(piece, &b) > 0; any = true) {
            assert_int_equal(wb_words_next(whole, &a), 1);
            assert_true(wb_slice_equal(a.exact, b.exact) && wb_slice_equal(a.stem, b.stem));
            assert_true(a.kind == b.kind && a.parts == b.parts && a.last == b.last);
            assert_true(a.begin == b.begin + from && a.end == b.end + from);
            assert_int_equal(a.position, b.position + positions);
            last = b.position;
        }
        positions += any ? last + 1 : 0;
        if (!blank)
            break;
        from = to + 1;
    }
    assert_int_equal(wb_words_next(whole, &a), 0);
}

/* Gets the next word without the shortcut for words of ASCII letters. */
static bool next_slowly(struct wb_words *w, struct wb_word *word_out)
{
    if (w->given == w->queued && !w->in_run && !wb_words_scan(w))
        return false;
    if (w->given < w->queued)
        *word_out = w->queue[w->given++];
    else
        wb_words_next_gram(w, word_out);
    return true;
}

static void compare_slow(struct wb_words *quick, struct wb_words *slow, struct wb_slice text)
{
    struct wb_word a, b;

    assert_int_equal(wb_words_begin(quick, text, NULL), 0);
    assert_int_equal(wb_words_begin(slow, text, NULL), 0);
    while (next_slowly(slow, &b)) {
        assert_int_equal(wb_words_next(quick, &a), 1);
        assert_true(wb_slice_equal(a.exact, b.exact) && a.kind == b.kind && a.parts == b.parts && a.last == b.last);
        assert_true(a.begin == b.begin && a.end == b.end && a.position == b.position);
    }
    assert_int_equal(wb_words_next(quick, &a), 0);
}

/* A word read as a text gives itself. */
static void check_folded(struct wb_words *words, struct wb_words *again, struct wb_slice text)
{
    struct wb_word a, b;

    assert_int_equal(wb_words_begin(words, text, NULL), 0);
    while (wb_words_next(words, &a) > 0) {
        assert_int_equal(wb_words_begin(again, a.exact, NULL), 0);
        assert_int_equal(wb_words_next(again, &b), 1);
        if (!wb_slice_equal(a.exact, b.exact) || a.kind != b.kind)
            fail_msg("'%.*s' is folded to '%.*s'", WB_SLICE_ARG(a.exact), WB_SLICE_ARG(b.exact));
    }
}

static void test_random(void **state)
{
    static const char *const languages[] = {"", "en", "de", "ru", "el", "tr", "da", "ar", "hi", "ja", "sr"};
    uint64_t chance = test_seed();
    struct wb_words *words = *state, *other = NULL;
    struct wb_buf text = WB_BUF_INIT;
    size_t count, total = 0;

    assert_int_equal(wb_words_new(&other), 0);
    for (int i = 0; i < 20000; i++) {
        const char *language = languages[chance_below(&chance, COUNT(languages))];
        make_text(&chance, &text);
        check_words(words, wb_buf_slice(&text), language, &count);
        total += count;
        compare_pieces(words, other, wb_buf_slice(&text), language);
        compare_slow(words, other, wb_buf_slice(&text));
        check_folded(words, other, wb_buf_slice(&text));
    }
    assert_true(total > 20000);
    wb_buf_release(&text);
    wb_words_free(other);
}

/* The words of a query are those that the index has for the same characters. */
static void test_query_random(void **state)
{
    uint64_t chance = test_seed();
    struct wb_wordlist list = WB_WORDLIST_INIT;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_word word;

    for (int i = 0; i < 5000; i++) {
        make_text(&chance, &text);
        assert_int_equal(wb_words_of_query(*state, wb_buf_slice(&text), &list), 0);
        size_t at = 0;
        uint32_t positions = 0;
        assert_int_equal(wb_words_begin(*state, wb_buf_slice(&text), NULL), 0);
        for (; wb_words_next(*state, &word) > 0; positions = word.position + 1) {
            if (at < list.count && wb_slice_equal(list.words[at].exact, word.exact) &&
                list.words[at].position == word.position && list.words[at].kind == word.kind)
                at++;
            else
                assert_true(word.kind == WB_WORD_GRAM && word.last);
        }
        assert_true(at == list.count && positions == list.positions && !list.cut);
    }
    wb_wordlist_release(&list);
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_query_random)};

    return cmocka_run_group_tests(tests, words_setup, words_teardown);
}
