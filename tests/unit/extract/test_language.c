/* test_language.c - the language of known sentences, of empty text and of nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../testdata.h"
#include "os/path.h"
#include "extract/module.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *text, *want;
} texts[] = {
    {"All human beings are born free and equal in dignity and rights. They are endowed with reason.", "en"},
    {"Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft begabt.", "de"},
    {"Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter. De er utstyrt med fornuft og "
     "samvittighet og bør handle mot hverandre i brorskapets ånd.",
     "nb"},
    {"כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.", "he"},
    {"人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。", "zh"},
    {"人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神相對待。", "zh"},
    {"すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。", "ja"},
    {"Все люди рождаются свободными и равными в своем достоинстве и правах.", "ru"},
    {"Ĉiuj homoj estas denaske liberaj kaj egalaj laŭ digno kaj rajtoj. Ili posedas racion kaj konsciencon.", "eo"},
    {"", ""},
    {"1234 5678 --- ...", ""},
    {"\xff\xfe\x80\x80", ""},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *got = wb_language_of(wb_slice_str(texts[i].text));
        if (strcmp(got, texts[i].want) != 0)
            fail_msg("'%s' is '%s', not '%s'", texts[i].text, got, texts[i].want);
    }
}

/* A single odd or malformed character does not change the language. */
static void test_odd_characters(void **state)
{
    static const char *const odd[] = {"\x01",       "\x0b",     "\x1f",     "\x7f",         "\xc2\x80",
                                      "\xc2\x85",   "\xc2\x92", "\xc2\x9f", "\u00ad",       "\u200b",
                                      "\u2028",     "\ufeff",   "\ue000",   "\ufdd0",       "\ufdef",
                                      "\ufffd",     "\ufffe",   "\uffff",   "\U0001fffe",   "\U0010ffff",
                                      "\U000e0001", "\xff",     "\xc0\x80", "\xed\xa0\x80", "\xe2\x80"};
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++)
        for (int place = 0; place < 3; place++) {
            wb_buf_clear(&text);
            assert_int_equal(wb_buf_printf(&text,
                                           "%sAlle Menschen sind frei und gleich an W\u00fcrde und %sRechten geboren. "
                                           "Sie sind mit Vernunft begabt%s",
                                           place == 0 ? odd[i] : "", place == 1 ? odd[i] : "",
                                           place == 2 ? odd[i] : ""),
                             0);
            const char *got = wb_language_of(wb_buf_slice(&text));
            if (strcmp(got, "de") != 0)
                fail_msg("'%s' with number %zu at %d", got, i, place);
        }
    wb_buf_release(&text);
}

/* The middle of a long text decides, whatever the offsets of its characters. */
static void test_long(void **state)
{
    (void)state;
    struct wb_buf text = WB_BUF_INIT;

    for (int i = 0; i < 2000; i++)
        assert_int_equal(wb_buf_append_str(&text, i < 40 ? "Home Login Contact About " : texts[7].text), 0);
    for (size_t cut = 0; cut < 8; cut++)
        assert_string_equal(wb_language_of(wb_slice(text.ptr, text.len - cut)), "ru");
    wb_buf_release(&text);
}

static void test_sentences(void **state)
{
    (void)state;
    struct wb_buf file = WB_BUF_INIT;
    unsigned right = 0, wrong = 0, all = 0;
    char path[1024];

    test_data_path("lang/sentences.tsv", path);
    if (wb_path_kind(path) != WB_PATH_FILE)
        skip();
    assert_int_equal(wb_path_read(path, 4 << 20, &file), 0);
    assert_int_equal(wb_buf_terminate(&file), 0);
    for (char *line = strtok(file.ptr, "\n"); line; line = strtok(NULL, "\n")) {
        char *text = strchr(line, '\t');
        assert_non_null(text);
        *text++ = '\0';
        const char *got = wb_language_of(wb_slice_str(text));
        right += strcmp(got, line) == 0;
        wrong += *got && strcmp(got, line) != 0;
        all++;
    }
    /* Measured: 94.6 % right, 2.7 % wrong, the rest unsure. */
    if (all < 5000 || right < all * 94 / 100 || wrong > all * 3 / 100)
        fail_msg("%u right and %u wrong of %u", right, wrong, all);
    wb_buf_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_odd_characters), cmocka_unit_test(test_long),
        cmocka_unit_test(test_sentences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
