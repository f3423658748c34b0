/* test_seeds.c - reads seed files. */
#include "../expect.h"
#include "base/error.h"
#include "dispenser/dispenser.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static int line(struct wb_seeds *list, const char *text)
{
    return wb_seeds_line(list, wb_slice_str(text));
}

static void test_lines(void **state)
{
    struct wb_seeds list = {0};

    (void)state;
    assert_int_equal(line(&list, "# nothing"), 0);
    assert_int_equal(line(&list, "   "), 0);
    assert_int_equal(list.count, 0);
    assert_int_equal(line(&list, "http://Example.org:80/a#b"), 0);
    expect(list.plans[0].name, "example.org");
    expect(list.plans[0].scheme, "http");
    expect(list.seeds[0].url, "http://example.org/a");
    assert_int_equal(list.plans[0].delay_ms, -2);
    assert_int_equal(list.plans[0].priority, INT_MIN);
    assert_true(list.plans[0].revisit);
    assert_int_equal(line(&list, "class tiny delay=60 budget=7 priority=-3"), 0);
    assert_int_equal(line(&list, "https://t.example:8443/ class=tiny # why not"), 0);
    expect(list.plans[1].name, "t.example:8443");
    assert_int_equal(list.plans[1].delay_ms, 60000);
    assert_int_equal(list.plans[1].budget, 7);
    assert_int_equal(list.plans[1].priority, -3);
    assert_int_equal(line(&list, "https://s.example/ class=small budget=9"), 0);
    assert_int_equal(list.plans[2].delay_ms, 20000);
    assert_int_equal(list.plans[2].budget, 9);
    assert_int_equal(line(&list, "u.example/x delay=0.25"), 0);
    expect(list.seeds[3].url, "https://u.example/x");
    assert_int_equal(list.plans[3].delay_ms, 250);
    wb_seeds_release(&list);
}

static void test_classes(void **state)
{
    struct wb_seeds list = {0};

    (void)state;
    assert_int_equal(line(&list, "class news fetches=500 delay=2 min=10m max=1.5d # often"), 0);
    assert_int_equal(line(&list, "class plain priority=3"), 0);
    assert_int_equal(list.class_count, 2);
    expect(list.site_classes[0].name, "news");
    assert_int_equal(list.site_classes[0].fetches, 500);
    assert_int_equal(list.site_classes[0].delay_ms, 2000);
    assert_int_equal(list.site_classes[0].min_ms, 600000);
    assert_int_equal(list.site_classes[0].max_ms, 36 * 3600 * 1000);
    assert_int_equal(list.site_classes[1].fetches, -1);
    assert_int_equal(list.site_classes[1].delay_ms, -1);
    assert_int_equal(list.site_classes[1].min_ms, 0);
    /* A class that is defined again gets the new settings. */
    assert_int_equal(line(&list, "class news min=90 max=2h delay=7"), 0);
    assert_int_equal(list.class_count, 2);
    assert_true(list.site_classes[0].fetches == -1 && list.site_classes[0].min_ms == 90000 &&
                list.site_classes[0].max_ms == 7200000);
    assert_int_equal(line(&list, "https://n.example/ class=news"), 0);
    assert_int_equal(list.plans[0].delay_ms, 7000);
    expect(list.plans[0].class_name, "news");
    wb_seeds_release(&list);
}

static void test_nonsense(void **state)
{
    static const char *const lines[] = {"ftp://a.example/", "http://", "http://a b", "https://a.example/ delay=x",
                                        "https://a.example/ class=nobody",
                                        "https://a.example/ colour=red", "https://a.example/ word", "class",
                                        "class x delay=-1",
                                        "https://a.example/ priority=5000", "https://a.example/ budget=-5",
                                        "class x min=1y", "class x max=", "class x min=-1m", "class x fetches=many",
                                        "class x fetches=-1", "class x min=2d max=1d",
                                        "class x delay=1m", "https://a.example/ fetches=5",
                                        "https://a.example/ min=1h"};
    struct wb_seeds list = {0};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(line(&list, lines[i]), WB_E_INVALID);
    assert_int_equal(list.count, 0);
    assert_int_equal(list.class_count, 0);
    wb_seeds_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_nonsense),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
