/* test_stem.c - stems: known ones, the words that old versions of the library cannot bear, and the cache. */
#include "../seeded.h"
#include "words_support.h"
#include "words/stem.h"

#include <libstemmer.h>

static void expect_stem(struct wb_words *words, const char *language, const char *word, const char *want)
{
    uint8_t number = wb_language_number(wb_slice_str(language));
    struct wb_stems stems;

    assert_int_equal(wb_words_stems(words, wb_slice_str(word), &number, 1, &stems), 0);
    assert_int_equal(stems.count, 1);
    if (!wb_slice_equal(stems.items[0], wb_slice_str(want)))
        fail_msg("%s (%s) has the stem %.*s, not %s", word, language, WB_SLICE_ARG(stems.items[0]), want);
}

static void test_known(void **state)
{
    static const char *const cases[][3] = {
        {"en", "networks", "network"},
        {"", "networks", "network"},
        {"xx", "running", "run"},
        {"de", "hausern", "haus"},
        {"fr", "continuellement", "continuel"},
        {"ru", "новый", "нов"},
        {"ru", "новая", "нов"},
        {"nb", "hus", "hus"},
        {"es", "cheques", "chequ"},
        {"ja", "networks", "networks"},
        {"pl", "domami", "domami"},
        {"en", "h2os", "h2os"},
        {"en", "knuth's", "knuth"},
        {"de", "knuth's", "knuth"},
        {"en", "don't", "don't"},
        {"en", "'s", "'s"},
        {"en", "1990's", "1990"},
        {"en", "skies", "sky"},
        {"el", "ισαισα", "ισαισα"},
        {"el", "αθηνα", "αθην"},
    };

    for (int round = 0; round < 2; round++) /* the second time, from the cache */
        for (size_t i = 0; i < COUNT(cases); i++)
            expect_stem(*state, cases[i][0], cases[i][1], cases[i][2]);
}

static void test_several(void **state)
{
    uint8_t languages[4] = {0, wb_language_number(WB_SLICE_LIT("de")), wb_language_number(WB_SLICE_LIT("ja")),
                            wb_language_number(WB_SLICE_LIT("en"))};
    struct wb_stems stems;

    assert_int_equal(wb_words_stems(*state, WB_SLICE_LIT("networking"), languages, 4, &stems), 0);
    assert_int_equal(stems.count, 2);
    assert_true(wb_slice_equal(stems.items[0], WB_SLICE_LIT("network")));
    assert_true(wb_slice_equal(stems.items[1], WB_SLICE_LIT("networking")));
    assert_int_equal(wb_words_stems(*state, WB_SLICE_LIT("networking"), languages, 0, &stems), 0);
    assert_int_equal(stems.count, 0);
}

/* Letters from one script, in which the algorithm's endings are likely. */
static size_t make_word(uint64_t *chance, char word[WB_WORD_BYTES_MAX])
{
    static const struct {
        uint32_t from, count;
    } ranges[] = {{'a', 26},   {'a', 26},   {0x3b1, 25}, {0x430, 32},    {0x561, 38}, {0x5d0, 27},
                  {0x627, 36}, {0x905, 72}, {0xb85, 72}, {0x20000, 200}, {0xe0, 31}};
    size_t which = chance_below(chance, COUNT(ranges)), len = 0;

    for (uint64_t n = 1 + chance_below(chance, 14); n > 0; n--)
        len += wb_utf8_encode(ranges[which].from + (uint32_t)chance_below(chance, ranges[which].count), word + len);
    return len;
}

/*
 * The stem does not depend on what was stemmed before: a new stemmer, one that was used for thousands of words, and
 * the cache agree.
 */
static void test_same_again(void **state)
{
    uint64_t chance = test_seed();
    struct wb_stemmers old;
    char memory[WB_STEM_ROOM];

    (void)state;
    assert_int_equal(wb_stemmers_init(&old), 0);
    for (int algorithm = 0; algorithm < WB_STEM_ALGORITHMS; algorithm++) {
        assert_int_equal(wb_stemmers_prepare(&old, algorithm), 0);
        for (int i = 0; i < 300; i++) {
            char word[WB_STEM_ROOM] = {0};
            size_t len = make_word(&chance, word);
            struct wb_slice stem;
            struct sb_stemmer *fresh = sb_stemmer_new(wb_stem_algorithm_name(algorithm), "UTF_8");
            assert_non_null(fresh);
            const sb_symbol *want = sb_stemmer_stem(fresh, (const sb_symbol *)word, (int)len);
            size_t want_len = want ? (size_t)sb_stemmer_length(fresh) : 0;
            for (int round = 0; round < 2; round++) {
                assert_int_equal(wb_stem_find(&old, algorithm, word, len, memory, &stem), 0);
                if (want_len > 0 && wb_utf8_valid(wb_slice((const char *)want, want_len)))
                    assert_true(stem.len == want_len && memcmp(stem.ptr, want, want_len) == 0);
                else
                    assert_true(wb_slice_equal(stem, wb_slice(word, len)));
            }
            sb_stemmer_delete(fresh);
        }
    }
    wb_stemmers_release(&old);
}

/* The library reports an error for this word; the stemmer works afterwards. */
static void test_error(void **state)
{
    expect_stem(*state, "el", "ισαισα", "ισαισα");
    for (int i = 0; i < 3; i++)
        expect_stem(*state, "el", "αθηνα", "αθην");
}

/* The number does not depend on what was read before. */
static void test_version(void **state)
{
    struct wb_words *fresh = NULL;
    uint64_t used_version, version;

    assert_int_equal(wb_words_new(&fresh), 0);
    expect_stem(*state, "el", "ισαισα", "ισαισα");
    assert_int_equal(wb_words_version(*state, &used_version), 0);
    assert_int_equal(wb_words_version(fresh, &version), 0);
    assert_true(version != 0 && version == used_version);
    wb_words_free(fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known), cmocka_unit_test(test_several), cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_error), cmocka_unit_test(test_version),
    };

    return cmocka_run_group_tests(tests, words_setup, words_teardown);
}
