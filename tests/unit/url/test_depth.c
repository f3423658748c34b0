/* test_depth.c - depths as 16 bits: what is written reads the same, and nothing else is taken for a depth. */
#include "../expect.h"
#include "url/url.h"

static void test_codes(void **state)
{
    static const struct {
        struct wb_depth depth;
        unsigned code;
    } cases[] = {
        {{.links = 0}, 0},
        {{.links = 1}, 1},
        {{.links = WB_DEPTH_LINKS_MAX}, 0x7fff},
        {{.links = WB_DEPTH_UNKNOWN}, 0xffff},
        {{.need = 1}, 0x8001},
        {{.need = WB_DEPTH_NEED_MAX}, 0x8008},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_depth_code(cases[i].depth), cases[i].code);
        struct wb_depth depth = wb_depth_of_code(cases[i].code);
        assert_true(depth.links == cases[i].depth.links && depth.need == cases[i].depth.need);
    }
}

/* An import may bring a depth that no crawl reaches. It must not read as something that a page needs. */
static void test_too_many_links(void **state)
{
    (void)state;
    for (unsigned links = WB_DEPTH_LINKS_MAX + 1; links < WB_DEPTH_UNKNOWN; links++)
        assert_int_equal(wb_depth_code((struct wb_depth){.links = (uint16_t)links}), 0xffff);
}

static void test_every_number(void **state)
{
    (void)state;
    for (uint64_t code = 0; code < 0x20000; code++) {
        struct wb_depth depth = wb_depth_of_code(code);
        if (wb_depth_is_code(code))
            assert_int_equal(wb_depth_code(depth), code);
        else
            assert_true(depth.links == WB_DEPTH_UNKNOWN && depth.need == 0);
    }
    assert_false(wb_depth_is_code(0x8000) || wb_depth_is_code(0x8009) || wb_depth_is_code(0x10001));
    assert_false(wb_depth_is_code(UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_too_many_links),
        cmocka_unit_test(test_every_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
