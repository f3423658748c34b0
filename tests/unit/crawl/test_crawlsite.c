/* test_crawlsite.c - how long a site rests, how far stored times are believed, and what waits in a queue. */
#include "base/date.h"
#include "crawl/crawlsite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_rest(void **state)
{
    static const struct {
        int64_t sent, heard, ended, interval, next;
    } cases[] = {
        {1000, 1000, 1000, 0, 1000},    {1000, 1500, 5000, 0, 5000},     /* no interval, no rest */
        {1000, 1000, 1000, 2000, 3000}, {1000, 1100, 1500, 2000, 3100},  /* quick: from the beginning of the answer */
        {1000, 2000, 2000, 2000, 4000}, {1000, 1000, 2500, 2000, 4000},  /* a slow one: the rest counts from its end */
        {1000, 2600, 2600, 2000, 4600}, {1000, 1200, 2600, 2000, 4200},
        {1000, 1000, 3000, 2000, 5000}, {1000, 1000, 9000, 2000, 11000}, /* never for longer than the interval */
        {5000, 1000, 1000, 2000, 7000},                                  /* an end before the beginning */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(wb_site_rest(cases[i].sent, cases[i].heard, cases[i].ended, cases[i].interval), cases[i].next);
}

static void test_trust(void **state)
{
    const int64_t now = 1000000, longest = 5000;

    (void)state;
    assert_int_equal(wb_site_trust(0, 0, now, longest), 0);
    assert_int_equal(wb_site_trust(now, 0, now, longest), now);
    assert_int_equal(wb_site_trust(-77, 99 * now, now, longest), -77);
    assert_int_equal(wb_site_trust(now + 4000, now - 1000, now, longest), now + 4000);
    assert_int_equal(wb_site_trust(now + 6000, now - 1000, now, longest), now + 5000);
    /* Written by a clock that was ahead, when there were still 3000 ms to wait. */
    assert_int_equal(wb_site_trust(9 * now + 3000, 9 * now, now, longest), now + 3000);
    assert_int_equal(wb_site_trust(9 * now + 30000, 9 * now, now, longest), now + 5000);
    /* The wait was already over when it was written. */
    assert_int_equal(wb_site_trust(8 * now, 9 * now, now, longest), now);
    assert_int_equal(wb_site_trust(9 * now, 9 * now, now, longest), now);
    assert_int_equal(wb_site_trust(INT64_MAX, INT64_MIN, now, longest), now + 5000);
    assert_int_equal(wb_site_trust(INT64_MAX, 0, now, longest), now + 5000);
}

static void test_row(void **state)
{
    const int64_t now = 1700000000000, year = 365LL * WB_DAY_MS;
    struct wb_site_row row = {.name = WB_SLICE_LIT("a.test"), .scheme = WB_SLICE_LIT("http"),
                              .next_ms = now + 10 * year, .trail_ms = now + 10 * year - 5000,
                              .sitemaps_ms = now + 10 * year, .address_expires_ms = now + 10 * year};
    struct wb_site *site;
    struct wb_spill *spill;

    (void)state;
    assert_int_equal(wb_spill_open("/tmp", &spill), 0);
    assert_int_equal(wb_site_new(&row, now, &site), 0);
    assert_int_equal(site->next_ms, now + 5000);
    assert_int_equal(site->trail_ms, now);
    assert_int_equal(site->sitemaps_ms, 0);
    assert_true(site->address_expires_ms <= now + WB_ADDRESS_LIFE_MAX_MS);
    /* The clock is set: all moments move, and unknown ones stay unknown. */
    wb_site_shift(site, -year);
    assert_int_equal(site->next_ms, now + 5000 - year);
    assert_int_equal(site->sitemaps_ms, 0);
    wb_site_free(site, spill);
    wb_spill_close(spill);
}

/* What comes out of a queue is what was put in. */
static void test_items(void **state)
{
    static const struct wb_depth depths[] = {{.links = 0}, {.links = 3}, {.links = WB_DEPTH_UNKNOWN}, {.need = 1},
                                             {.need = WB_DEPTH_NEED_MAX}};
    struct wb_site_row row = {.name = WB_SLICE_LIT("a.test"), .scheme = WB_SLICE_LIT("http")};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site *site;
    struct wb_spill *spill;
    struct wb_item found;

    (void)state;
    assert_int_equal(wb_spill_open("/tmp", &spill), 0);
    assert_int_equal(wb_site_new(&row, 0, &site), 0);
    for (unsigned i = 0; i < 5; i++) {
        struct wb_item item = {.kind = WB_ITEM_PAGE, .tries = (uint8_t)i, .hops = (uint8_t)(i + 1), .depth = depths[i],
                               .https = i % 2, .path = WB_SLICE_LIT("/p?q")};
        assert_int_equal(wb_item_push(spill, &site->queue, &item), 0);
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(wb_site_pop(site, spill, &mem, &found), 1);
        assert_true(found.kind == WB_ITEM_PAGE && found.tries == i && found.hops == i + 1 && found.https == (i % 2));
        assert_true(found.depth.links == depths[i].links && found.depth.need == depths[i].need);
        assert_true(wb_slice_equal(found.path, WB_SLICE_LIT("/p?q")));
    }
    assert_int_equal(wb_site_pop(site, spill, &mem, &found), 0);
    wb_buf_release(&mem);
    wb_site_free(site, spill);
    wb_spill_close(spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rest), cmocka_unit_test(test_trust),
                                       cmocka_unit_test(test_row), cmocka_unit_test(test_items)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
