/* test_fold.c - the table of characters: threads that build it at once, and folding that has an end. */
#include "words_support.h"
#include "words/fold.h"

#include <pthread.h>

#define THREADS 4

static const char *const text = "Straße naïve МОСКВА Αθήνα 東京 ประเทศ 한국 שלום हिन्दी ﬁ Łódź ꜲꝎ 𝔘𝔫𝔦 ａｂｃ";

static void *read_text(void *context)
{
    struct wb_words *words = NULL;

    if (wb_words_new(&words) < 0)
        return NULL;
    words_line(words, wb_slice_str(text), "de", context);
    wb_words_free(words);
    return context;
}

/* Must run first: no page of the table exists yet. */
static void test_threads(void **state)
{
    struct wb_buf lines[THREADS] = {0};
    pthread_t threads[THREADS];
    void *result;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_text, &lines[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &lines[i]);
    }
    assert_true(lines[0].len > strlen("strasse naive"));
    for (int i = 0; i < THREADS; i++)
        assert_true(wb_slice_equal(wb_buf_slice(&lines[i]), wb_buf_slice(&lines[0])));
    for (int i = 0; i < THREADS; i++)
        wb_buf_release(&lines[i]);
}

/* Whatever a character is folded to is folded to itself. */
static void check_code_point(uint32_t cp)
{
    uint32_t entry = wb_fold_of(cp), several[WB_FOLD_SEVERAL_MAX];
    enum wb_fold_class class = wb_fold_class_of(entry);
    size_t count = 1;

    if (class == WB_FOLD_SEPARATOR || class == WB_FOLD_NOTHING || class == WB_FOLD_ACCENT)
        return;
    several[0] = wb_fold_code(entry);
    if (entry & WB_FOLD_PAIR) {
        several[0] = entry & 0x7f;
        several[1] = entry >> 7 & 0x7f;
        count = 2;
    } else if (entry & WB_FOLD_SEVERAL) {
        count = wb_fold_several(cp, several);
        assert_true(count > 1);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t again = wb_fold_of(several[i]);
        if (again & (WB_FOLD_PAIR | WB_FOLD_SEVERAL) || wb_fold_code(again) != several[i])
            fail_msg("U+%04X is folded to U+%04X, which is not folded to itself", cp, several[i]);
        enum wb_fold_class other = wb_fold_class_of(again);
        if (other == WB_FOLD_SEPARATOR || other == WB_FOLD_NOTHING || other == WB_FOLD_ACCENT)
            fail_msg("U+%04X is folded to U+%04X, which is not part of a word", cp, several[i]);
        if (i == 0)
            assert_int_equal(other, class);
    }
}

static void test_all_code_points(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp < 0x32000; cp++)
        check_code_point(cp);
    for (uint32_t cp = 0xe0000; cp < 0xe1000; cp++)
        check_code_point(cp);
    for (uint32_t cp = 0; cp < 0x80; cp++)
        assert_int_equal(wb_fold_class_of(wb_fold_of(cp)) == WB_FOLD_LETTER ? wb_fold_code(wb_fold_of(cp)) : 0,
                         wb_fold_ascii[cp]);
    assert_int_equal(wb_fold_class_of(wb_fold_of(0x10ffff)), WB_FOLD_SEPARATOR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_all_code_points)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
