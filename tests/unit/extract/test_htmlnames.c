/* test_htmlnames.c - what names and headings say. */
#include "extract/htmlnames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define C WB_NAMES_COMMENT
#define A WB_NAMES_AROUND
#define S WB_NAMES_SMALL
#define N (WB_NAMES_AROUND | WB_NAMES_NEVER)
#define H WB_NAMES_HIDDEN

static struct wb_names_index index_;

static int set_up(void **state)
{
    (void)state;
    wb_names_index_init(&index_);
    return 0;
}

static void names(void **state)
{
    static const struct {
        const char *name;
        unsigned means;
    } cases[] = {
        {"", 0},
        {"content", 0},
        {"comments", C},
        {"post-comments", C},
        {"postComments", C},
        {"post_comments2", C},
        {"commentary", C},
        {"uncommented", 0},
        {"sidebar", A},
        {"sidebarLeft", A},
        {"leftsidebar", A},
        {"article-sidebar main", A},
        {"aside", 0},
        {"ad", N},
        {"ads", N},
        {"add", 0},
        {"header-ad-1", N},
        {"AD", N},
        {"shadow", 0},
        {"nav", A},
        {"navy", 0},
        {"topnav", A},
        {"menu", A},
        {"menuet", 0},
        {"related", A},
        {"relatedPosts", A},
        {"unrelated", 0},
        {"byline", S},
        {"author-name", S},
        {"authority", S},
        {"hidden", H},
        {"label-hidden", 0},
        {"a hidden b", H},
        {"sr-only", H},
        {"post tag-comments category-ads", 0},
        {"tags", S},
        {"kommentare", C},
        {"compartilhar", N},
        {"\xd0\xba\xd0\xbe", 0},
        {"-- __ 12", 0},
        {"\tcomments\n", C},
    };

    (void)state;
    for (int round = 0; round < 2; round++) /* the second time from the cache */
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct wb_names got = wb_names_of(&index_, wb_slice_str(cases[i].name));
            if (got.means != cases[i].means)
                fail_msg("'%s' means %x, not %x", cases[i].name, got.means, cases[i].means);
        }
    assert_int_equal(wb_names_of(&index_, WB_SLICE_LIT("content")).around, 0);
    assert_int_not_equal(wb_names_of(&index_, WB_SLICE_LIT("share")).around, 0);
    assert_int_not_equal(wb_names_of(&index_, WB_SLICE_LIT("share")).around,
                         wb_names_of(&index_, WB_SLICE_LIT("menu")).around);
}

static void headings(void **state)
{
    static const struct {
        const char *text;
        unsigned means;
    } cases[] = {
        {"", 0},
        {"The story", 0},
        {"Related", A},
        {"RELATED ARTICLES:", A},
        {"Related work", 0},
        {"Read next", A},
        {"subscribe", 0},
        {"Subscribe to our newsletter", A},
        {"Recommended settings", 0},
        {"Leave a Reply", C},
        {" Lesen Sie auch", A},
        {"\u00c4HNLICHE ARTIKEL", A},
        {"\u00c0 lire aussi", A},
        {"LE\u00cdA tamb\u00e9m", 0},
        {"Leia tamb\u00e9m", A},
        {"Читайте Также", A},
        {"関連記事", A},
        {"관련기사 5", A},
        {"rel", 0},
        {"Most popular is what nobody in this town would have called the old mayor of the place", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned means = wb_names_of_heading(&index_, wb_slice_str(cases[i].text));
        if (means != cases[i].means)
            fail_msg("'%s' means %x, not %x", cases[i].text, means, cases[i].means);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(headings)};

    return cmocka_run_group_tests(tests, set_up, NULL);
}
