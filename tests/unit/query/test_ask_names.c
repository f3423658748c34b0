/* test_ask_names.c - names of fields and columns, numbers and sort keys. */
#include "asktree.h"

static void test_columns(void **state)
{
    (void)state;
    static const char *const good[] = {"quality", "q", "My_column-2", "scores", "dates", "OR"};
    static const char *const bad[] = {"",         "2x",        "_x",  "-x",    "two words", "a\"b",  "a:b",
                                      "\xc3\xa9", "a\xc3\xa9", "a.b", "title", "after",     "dup",   "related",
                                      "score",    "date",      "id",  "Title", "TIME",      "length"};
    char longest[WB_ASK_COLUMN_BYTES_MAX + 1];

    for (size_t i = 0; i < COUNT(good); i++)
        assert_int_equal(wb_ask_check_column(wb_slice_str(good[i])), 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(wb_ask_check_column(wb_slice_str(bad[i])), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), bad[i]));
    }
    memset(longest, 'x', sizeof longest);
    assert_int_equal(wb_ask_check_column(wb_slice(longest, sizeof longest - 1)), 0);
    assert_int_equal(wb_ask_check_column(wb_slice(longest, sizeof longest)), WB_E_INVALID);
}

/* Every field can be asked for by the name that it is printed with. */
static void test_fields(void **state)
{
    (void)state;

    for (enum wb_ask_field field = WB_ASK_ANY + 1; field < WB_ASK_COLUMN; field++)
        assert_true(wb_ask_is_field(wb_slice_str(wb_ask_field_name(field))));
    assert_true(wb_ask_is_field(WB_SLICE_LIT("before")));
    assert_string_equal(wb_ask_field_name(WB_ASK_ANY), "");
    assert_string_equal(wb_ask_field_name(WB_ASK_COLUMN), "");
    assert_false(wb_ask_is_field(WB_SLICE_LIT("Title")) || wb_ask_is_field(WB_SLICE_LIT("score")) ||
                 wb_ask_is_field(WB_SLICE_EMPTY));
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},  {"-3", -3},   {"+3", 3},      {"0.5", 0.5},  {".5", 0.5},
                {"5.", 5}, {"1e6", 1e6}, {"1E-3", 1e-3}, {"1e-999", 0}, {"00012", 12}};
    static const char *const bad[] = {"",   "-",   ".",   "e5",  "1e",    "1e+", "1 ",  " 1",
                                      "1x", "0x1", "inf", "nan", "1e999", "1,5", "--1", "1.2.3"};
    double value;

    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(wb_slice_to_double(wb_slice_str(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        value = 7;
        assert_false(wb_slice_to_double(wb_slice_str(bad[i]), &value));
        assert_true(value == 0);
    }
}

static void test_sorts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum wb_ask_field field;
    } good[] = {{"score", WB_ASK_ANY},         {"rank", WB_ASK_RANK},           {"date", WB_ASK_FETCHED},
                {"url", WB_ASK_URL},           {"published", WB_ASK_PUBLISHED}, {"modified", WB_ASK_MODIFIED},
                {"changed", WB_ASK_CHANGED},   {"size", WB_ASK_SIZE},           {"inlinks", WB_ASK_INLINKS},
                {"outlinks", WB_ASK_OUTLINKS}, {"depth", WB_ASK_DEPTH},         {"versions", WB_ASK_VERSIONS},
                {"hostrank", WB_ASK_HOSTRANK}, {"quality", WB_ASK_COLUMN}};
    static const char *const bad[] = {"", "-", "--rank", "Rank", "rank ", "title", "site", "after", "nosuch", "dup"};
    struct wb_ask_sort sort;
    char reversed[32];

    for (size_t i = 0; i < COUNT(good); i++) {
        assert_int_equal(wb_ask_sort_parse(wb_slice_str(good[i].text), &test_options, &sort), 0);
        assert_true(sort.field == good[i].field && !sort.reverse);
        snprintf(reversed, sizeof reversed, "-%s", good[i].text);
        assert_int_equal(wb_ask_sort_parse(wb_slice_str(reversed), &test_options, &sort), 0);
        assert_true(sort.field == good[i].field && sort.reverse);
        assert_true(
            wb_slice_equal(sort.column, sort.field == WB_ASK_COLUMN ? wb_slice_str(good[i].text) : WB_SLICE_EMPTY));
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(wb_ask_sort_parse(wb_slice_str(bad[i]), &test_options, &sort), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), bad[i]));
    }
    assert_int_equal(wb_ask_sort_parse(WB_SLICE_LIT("quality"), NULL, &sort), WB_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns), cmocka_unit_test(test_fields),
                                       cmocka_unit_test(test_numbers), cmocka_unit_test(test_sorts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
