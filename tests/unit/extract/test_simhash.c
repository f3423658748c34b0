/* test_simhash.c - fingerprints are near for similar texts, far for others, and ignore what is not a word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "extract/module.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static uint64_t of(const char *text)
{
    return wb_simhash_of(wb_slice_str(text));
}

static void test_same(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"The quick brown fox", "the QUICK, brown... FOX!"},
        {"The quick brown fox", "\n\tThe\nquick   brown fox "},
        {"ÄÖÜ Ωmega ʻokina", "äöü ωMEGA ʻOKINA"},
        {"Привет, Мир и все", "привет мир И ВСЕ"},
        {"naïve café “quoted” words", "NAÏVE CAFÉ quoted words"},
        {"word—word word", "word word word"},
        {"漢字かな", "漢 字 か な"},
        {"abcdefghijklmnopqrstuvwxyz next 123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ Next 123456789"},
    };

    for (size_t i = 0; i < COUNT(pairs); i++)
        if (of(pairs[i][0]) != of(pairs[i][1]))
            fail_msg("'%s' and '%s' differ", pairs[i][0], pairs[i][1]);
    assert_int_equal(of(""), 0);
    assert_int_equal(of(" .,;-!"), 0);
    assert_int_equal(of("\xff\xfe\x80 \xe2\x80\x94"), 0);
    assert_true(of("one") != 0 && of("one") != of("two"));
    assert_true(of("one two") != of("two one") && of("one two") != of("one"));
    assert_true(of("a b c") != of("a b c d"));
    assert_true(of("漢字") != of("字漢"));
}

/* Words of any length at any offset of the 64 bytes that are read together; a text may end anywhere. */
static void test_offsets(void **state)
{
    (void)state;
    for (size_t len = 1; len < 200; len++) {
        char word[200], text[1024];
        memset(word, 'w', len);
        int plain = snprintf(text, sizeof text, "%.*s second third", (int)len, word);
        uint64_t want = wb_simhash_of(wb_slice(text, (size_t)plain));
        for (int gap = 1; gap < 140; gap++) {
            int n = snprintf(text, sizeof text, "%*s%.*s%*s\xc3\x97%*ssecond third", gap, "", (int)len, word, gap, "",
                             gap, "");
            assert_int_equal(wb_simhash_of(wb_slice(text, (size_t)n)), want);
        }
        word[0] = 'v';
        snprintf(text, sizeof text, "%.*s second third", (int)len, word);
        assert_true(of(text) != want);
    }
}

static void make_text(struct wb_buf *text, uint64_t seed, unsigned words, unsigned changed)
{
    wb_buf_clear(text);
    for (unsigned i = 0; i < words; i++) {
        uint64_t key[3] = {seed, i, i == changed};
        assert_int_equal(wb_buf_printf(text, "w%u ", (unsigned)(wb_hash64(key, sizeof key) % 5000)), 0);
    }
}

static void test_distances(void **state)
{
    (void)state;
    struct wb_buf a = WB_BUF_INIT, b = WB_BUF_INIT;
    unsigned near = 0, far = 0, nearest = 64, farthest = 0;
    enum { TEXTS = 200, WORDS = 500 };

    for (unsigned i = 0; i < TEXTS; i++) {
        make_text(&a, i, WORDS, WORDS);
        make_text(&b, i, WORDS, i);
        unsigned d = wb_simhash_distance(wb_simhash_of(wb_buf_slice(&a)), wb_simhash_of(wb_buf_slice(&b)));
        near += d;
        farthest = d > farthest ? d : farthest;
        make_text(&b, i + 1000, WORDS, WORDS);
        d = wb_simhash_distance(wb_simhash_of(wb_buf_slice(&a)), wb_simhash_of(wb_buf_slice(&b)));
        far += d;
        nearest = d < nearest ? d : nearest;
    }
    if (near > 3 * TEXTS || farthest > 8)
        fail_msg("one word in %d moves %.2f bits, at most %u", WORDS, (double)near / TEXTS, farthest);
    if (far < 31 * TEXTS || far > 33 * TEXTS || nearest < 12)
        fail_msg("other texts are %.2f bits away, at least %u", (double)far / TEXTS, nearest);
    wb_buf_release(&a);
    wb_buf_release(&b);
}

/* Three shingles, a thousand times each (the first one once more): each bit is that of two of them. */
static void test_majority(void **state)
{
    (void)state;
    struct wb_buf text = WB_BUF_INIT;
    uint64_t one = of("aa bb cc"), second = of("bb cc aa"), third = of("cc aa bb");

    assert_int_equal(wb_buf_append_str(&text, "aa bb cc"), 0);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(wb_buf_append_str(&text, " aa bb cc"), 0);
    uint64_t all = wb_simhash_of(wb_buf_slice(&text));
    assert_int_equal(all, (one & second) | (one & third) | (second & third));
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_majority),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
