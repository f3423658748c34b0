/* test_languages.c - the numbers of languages, which files depend on. */
#include "words_support.h"

static void test_numbers(void **state)
{
    (void)state;
    assert_string_equal(wb_language_code(0), "");
    for (unsigned i = 1; i < WB_LANGUAGES; i++) {
        const char *code = wb_language_code((uint8_t)i);
        assert_true(strlen(code) == 2 || strlen(code) == 3);
        assert_int_equal(wb_language_number(wb_slice_str(code)), i); /* no code occurs twice */
    }
}

/* These are on disk. They never change. */
static void test_fixed(void **state)
{
    static const struct {
        const char *code;
        uint8_t number;
    } cases[] = {{"", 0},      {"aa", 1},    {"de", 33}, {"en", 38},    {"zh", 183},    {"zu", 184}, {"sh", 185},
                 {"ceb", 186}, {"war", 206}, {"DE", 33}, {"de-CH", 33}, {"zh_TW", 183}, {"xx", 0},   {"deu", 0},
                 {"d", 0},     {"dezz", 0},  {"-", 0},   {"de-", 33},   {"haw", 190}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (wb_language_number(wb_slice_str(cases[i].code)) != cases[i].number)
            fail_msg("'%s' is number %u", cases[i].code, wb_language_number(wb_slice_str(cases[i].code)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_fixed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
