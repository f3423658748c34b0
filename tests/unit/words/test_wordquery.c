/* test_wordquery.c - what a piece of a query asks for, and that pages with the same characters have it. */
#include "../allocfail.h"
#include "words_support.h"

static void test_shapes(void **state)
{
    static const struct {
        const char *piece;
        enum wb_wordlist_shape shape;
        const char *words; /* with positions */
        uint32_t positions;
    } cases[] = {
        {"", WB_WORDLIST_NOTHING, "", 0},
        {"...", WB_WORDLIST_NOTHING, "", 0},
        {"Hello!", WB_WORDLIST_WORD, "hello@0", 1},
        {"don't", WB_WORDLIST_WORD, "don't@0", 1},
        {"C++", WB_WORDLIST_COMPOUND, "c++@0 c@0", 1},
        {"(std::vector)", WB_WORDLIST_COMPOUND, "std::vector@0 std@0 vector@1", 2},
        {"std::vector<int>", WB_WORDLIST_SEQUENCE, "std::vector@0 std@0 vector@1 int@2", 3},
        {"e-mail", WB_WORDLIST_SEQUENCE, "e@0 mail@1", 2},
        {"TCP/IP", WB_WORDLIST_SEQUENCE, "tcp@0 ip@1", 2},
        {"日本", WB_WORDLIST_WORD, "日本@0", 2},
        {"本", WB_WORDLIST_WORD, "本@0", 1},
        {"東京都", WB_WORDLIST_SEQUENCE, "東京@0 京都@1", 3},
        {"手机iPhone", WB_WORDLIST_SEQUENCE, "手机@0 iphone@2", 3},
        {"a本b", WB_WORDLIST_SEQUENCE, "a@0 本@1 b@2", 3},
    };
    struct wb_wordlist list = WB_WORDLIST_INIT;
    struct wb_buf line = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_words_of_query(*state, wb_slice_str(cases[i].piece), &list), 0);
        wb_buf_clear(&line);
        for (size_t k = 0; k < list.count; k++)
            assert_int_equal(wb_buf_printf(&line, "%s%.*s@%u", k ? " " : "", WB_SLICE_ARG(list.words[k].exact),
                                           list.words[k].position),
                             0);
        if (!wb_slice_equal(wb_buf_slice(&line), wb_slice_str(cases[i].words)))
            fail_msg("'%s' gives '%.*s'", cases[i].piece, WB_SLICE_ARG(wb_buf_slice(&line)));
        assert_int_equal(list.shape, cases[i].shape);
        assert_int_equal(list.positions, cases[i].positions);
        assert_false(list.cut);
    }
    wb_buf_release(&line);
    wb_wordlist_release(&list);
}

/* A single character stands for all grams that begin with it. */
static void test_single_character(void **state)
{
    struct wb_wordlist list = WB_WORDLIST_INIT;

    assert_int_equal(wb_words_of_query(*state, WB_SLICE_LIT("本"), &list), 0);
    assert_true(list.count == 1 && list.words[0].kind == WB_WORD_GRAM && list.words[0].last);
    assert_int_equal(wb_words_of_query(*state, WB_SLICE_LIT("日本"), &list), 0);
    assert_true(list.count == 1 && list.words[0].kind == WB_WORD_GRAM && !list.words[0].last);
    wb_wordlist_release(&list);
}

/* True if the page has the word at this position or, with position UINT32_MAX, anywhere; *position_out is where. */
static bool has_word(struct wb_words *words, const char *page, const struct wb_word *wanted, uint32_t after,
                     uint32_t *position_out)
{
    struct wb_word word;
    bool found = false;

    assert_int_equal(wb_words_begin(words, wb_slice_str(page), "en"), 0);
    while (!found && wb_words_next(words, &word) > 0)
        found = word.position >= after && word.kind == wanted->kind && wb_slice_equal(word.exact, wanted->exact);
    *position_out = found ? word.position : 0;
    return found;
}

/* Looks for the words of the list in a page as an index would: compounds as one word, sequences by their distances. */
static bool finds(struct wb_words *words, const struct wb_wordlist *list, const char *page)
{
    uint32_t first, at;

    for (uint32_t from = 0; has_word(words, page, &list->words[0], from, &first); from = first + 1) {
        bool all = true;
        for (size_t i = 0; all && i < list->count; i += 1 + (size_t)list->words[i].parts)
            all = has_word(words, page, &list->words[i], first + list->words[i].position, &at) &&
                  at == first + list->words[i].position;
        if (all)
            return true;
    }
    return false;
}

static void test_tokens_as_typed(void **state)
{
    static const char *const cases[][3] = {
        {"std::vector", "Use std::vector for lists.", "The vector of a field in space."},
        {"c++", "A c++ compiler, written by hand.", "A c compiler, written by hand."},
        {"C++", "Templates in C++ are compiled twice.", "Vitamin C and minerals."},
        {"3.11.7", "Python 3.11.7 was released.", "Python 3.11.2 came 7 weeks earlier."},
        {"AT&T", "The AT&T laboratories in the hills.", "Meet at the t junction."},
        {"e-mail", "Send an e-mail to us.", "Send a mail to e."},
        {"naive", "A na\u00efve assumption.", "A native speaker."},
        {"na\u00efve", "A naive reader.", "The navel of the world."},
        {"stra\u00dfe", "Die Stra\u00dfe ist lang.", "Die Strahlen der Sonne."},
        {"strasse", "Eine andere Stra\u00dfe.", "Der Strauss im Zoo."},
        {"日本", "東京都は日本の首都です。", "これは本です。"},
        {"北京", "我们在北京大学学习。", "我们在南方学习。"},
        {"ประเทศไทย", "ฉันรักประเทศไทย", "ฉันรักแมว"},
        {"москва", "МОСКВА зимой.", "Мост через реку."},
        {"Москва", "город москва", "город Тула"},
        {"αθηνα", "Η Αθήνα τη νύχτα.", "Η αθωότητα."},
        {"CAF\u00c9", "A cafe by the sea.", "A cage by the sea."},
        {"cafe\u0301", "Another caf\u00e9 at the port.", "Another cave at the port."},
        {"U.S.", "The U.S. census of 1890.", "The census of 1890."},
        {"u.s", "The U.S. census of 1890.", "The us census of 1890."},
        {"foo_bar", "Call foo_bar(1) first.", "Call bar(1) first."},
        {"foo_bar", "Call foo_bar(1) first.", "Call foo-bar(1) first."},
        {"0x1F", "The mask is 0x1F here.", "The mask is 0x2F here."},
        {"C#", "Written in C#.", "Written in C++ or C."},
        {".net", "On .NET only.", "On the net only."},
        {"__init__", "It calls __init__() first.", "It calls init() first."},
    };
    struct wb_wordlist list = WB_WORDLIST_INIT;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_words_of_query(*state, wb_slice_str(cases[i][0]), &list), 0);
        assert_true(list.count > 0);
        if (!finds(*state, &list, cases[i][1]))
            fail_msg("'%s' does not find '%s'", cases[i][0], cases[i][1]);
        if (finds(*state, &list, cases[i][2]))
            fail_msg("'%s' finds '%s'", cases[i][0], cases[i][2]);
    }
    wb_wordlist_release(&list);
}

static void test_too_many(void **state)
{
    struct wb_wordlist list = WB_WORDLIST_INIT;
    char text[2001];

    for (size_t i = 0; i < 1000; i++)
        memcpy(text + 2 * i, i < 990 ? "a/" : "a.", 3);
    assert_int_equal(wb_words_of_query(*state, wb_slice_str(text), &list), 0);
    assert_true(list.cut && list.count == WB_WORDLIST_MAX && list.shape == WB_WORDLIST_SEQUENCE);
    assert_int_equal(wb_words_of_query(*state, WB_SLICE_LIT("one"), &list), 0);
    assert_true(!list.cut && list.count == 1 && list.shape == WB_WORDLIST_WORD);
    wb_wordlist_release(&list);
}

/* Makes every allocation fail in turn. */
static void test_no_memory(void **state)
{
    bool failed = true;
    size_t n;

    for (n = 0; failed; n++) {
        struct wb_words *words;
        alloc_fail_nth(n);
        int err = wb_words_new(&words);
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        wb_words_free(words);
    }
    assert_int_equal(n, 3);
    failed = true;
    for (n = 0; failed; n++) {
        struct wb_wordlist list = WB_WORDLIST_INIT;
        alloc_fail_nth(n);
        int err = wb_words_of_query(*state, WB_SLICE_LIT("std::vector"), &list);
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        wb_wordlist_release(&list);
    }
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),          cmocka_unit_test(test_single_character),
        cmocka_unit_test(test_tokens_as_typed), cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, words_setup, words_teardown);
}
