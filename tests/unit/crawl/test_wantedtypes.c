/* test_wantedtypes.c - media types of --types, and which names promise one. */
#include "crawl/crawl.h"
#include "unit.h"

static void test_sound(void **state)
{
    static const char *const good[] = {"image/png", "image/*", "*/*", "application/vnd.ms-excel", "Image/SVG+xml"};
    static const char *const bad[] = {"", "*", "/", "image", "image/", "/png", "*/png", "a/b/c", "text/html;q=1", "a b/c",
                                      "im*/png", "image/p*"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(wb_crawl_type_is_sound(wb_slice_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(wb_crawl_type_is_sound(wb_slice_str(bad[i])));
}

static void test_have(void **state)
{
    static const char *const items[] = {"image/*,application/pdf", "Text/CSV"};
    struct wb_crawl_types types = {items, 2}, all = {NULL, 0};

    (void)state;
    assert_true(wb_crawl_types_have(&types, WB_SLICE_LIT("image/png")));
    assert_true(wb_crawl_types_have(&types, WB_SLICE_LIT("application/pdf")));
    assert_true(wb_crawl_types_have(&types, WB_SLICE_LIT("text/csv")));
    assert_false(wb_crawl_types_have(&types, WB_SLICE_LIT("text/html")));
    assert_false(wb_crawl_types_have(&types, WB_SLICE_LIT("application/pdfx")));
    assert_false(wb_crawl_types_have(&types, WB_SLICE_EMPTY));
    assert_true(wb_crawl_types_have(&all, WB_SLICE_EMPTY));
}

static void test_promise(void **state)
{
    static const char *const items[] = {"image/*"};
    struct wb_crawl_types types = {items, 1}, all = {NULL, 0};

    (void)state;
    assert_true(wb_crawl_types_promise(&types, WB_SLICE_LIT("/")));
    assert_true(wb_crawl_types_promise(&types, WB_SLICE_LIT("/a.PNG?x=1.zip")));
    assert_true(wb_crawl_types_promise(&types, WB_SLICE_LIT("/a.html")));
    assert_true(wb_crawl_types_promise(&types, WB_SLICE_LIT("/a.php?f=b.zip")));
    assert_false(wb_crawl_types_promise(&types, WB_SLICE_LIT("/a.zip")));
    assert_false(wb_crawl_types_promise(&types, WB_SLICE_LIT("/a.txt?x")));
    assert_true(wb_crawl_types_promise(&all, WB_SLICE_LIT("/a.zip")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_have),
        cmocka_unit_test(test_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
