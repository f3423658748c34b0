/* test_guesses.c - how fast tokens can be tried. */
#include "serve/guesses.h"
#include "../seeded.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int enter(struct wb_guesses *guesses, const char *peer, const char *forwarded, bool right, int64_t now_ms)
{
    struct wb_http_field field = {WB_SLICE_LIT("X-Forwarded-For"), wb_slice_str(forwarded ? forwarded : "")};
    struct wb_http_request request = {.fields = &field,
                                      .field_count = forwarded != NULL,
                                      .peer = wb_slice_str(peer),
                                      .loopback = strncmp(peer, "127.", 4) == 0};

    return wb_guesses_enter(guesses, &request, right, now_ms);
}

static struct wb_guesses *fresh(void)
{
    struct wb_guesses *guesses;

    assert_int_equal(wb_guesses_new(&guesses), 0);
    return guesses;
}

/* Uses up what is free. */
static void exhaust(struct wb_guesses *guesses, const char *peer, const char *forwarded, int64_t now_ms)
{
    for (unsigned i = 0; i < WB_GUESSES_FREE; i++)
        assert_int_equal(enter(guesses, peer, forwarded, false, now_ms), 0);
}

static void test_turns(void **state)
{
    struct wb_guesses *guesses = fresh();
    int64_t now = 5000;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(enter(guesses, "192.0.2.1", NULL, true, now), 0);
    exhaust(guesses, "192.0.2.1", NULL, now);
    for (int i = 1; i <= WB_GUESSES_WAITING_MAX; i++) /* right ones wait as well */
        assert_int_equal(enter(guesses, "192.0.2.1", NULL, i % 2, now), i * WB_GUESSES_TURN_MS);
    assert_int_equal(enter(guesses, "192.0.2.1", NULL, false, now), -1);
    assert_int_equal(enter(guesses, "192.0.2.1", NULL, true, now), -1);
    assert_int_equal(enter(guesses, "192.0.2.2", NULL, true, now), 0);
    assert_int_equal(enter(guesses, "192.0.2.2", NULL, false, now), 0);
    now += WB_GUESSES_TURN_MS; /* one answer has left */
    assert_int_equal(enter(guesses, "192.0.2.1", NULL, true, now), WB_GUESSES_WAITING_MAX * WB_GUESSES_TURN_MS);
    assert_int_equal(enter(guesses, "192.0.2.1", NULL, true, now), -1);
    now += 2 * WB_GUESSES_FORGET_S * 1000; /* two are forgotten */
    assert_int_equal(enter(guesses, "192.0.2.1", NULL, true, now), 0);
    wb_guesses_free(guesses);
}

static void test_clients(void **state)
{
    struct wb_guesses *guesses = fresh();

    (void)state;
    exhaust(guesses, "2001:db8::1", NULL, 0);
    assert_true(enter(guesses, "2001:db8::ffff:2", NULL, false, 0) > 0); /* the same /64 */
    assert_int_equal(enter(guesses, "2001:db8:0:1::1", NULL, false, 0), 0);
    exhaust(guesses, "127.0.0.1", "203.0.113.5, 198.51.100.7", 0);
    assert_true(enter(guesses, "127.0.0.1", "198.51.100.7", true, 0) > 0);
    assert_true(enter(guesses, "198.51.100.7", "192.0.2.99", true, 0) > 0); /* what it says itself does not count */
    assert_int_equal(enter(guesses, "127.0.0.1", "203.0.113.5", true, 0), 0);
    assert_int_equal(enter(guesses, "127.0.0.1", NULL, true, 0), 0);
    exhaust(guesses, "127.0.0.1", "junk", 0);
    assert_true(enter(guesses, "127.0.0.1", "more junk, that is far longer than any address can ever be", true, 0) > 0);
    wb_guesses_free(guesses);
}

/* Whatever a client does, the answers to its wrong tokens that are not refused leave in turn. */
static void test_rate(void **state)
{
    uint64_t chance = test_seed();
    struct wb_guesses *guesses = fresh();
    int64_t now = 0, answers = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        now += (int64_t)(chance_below(&chance, 100) == 0 ? chance_below(&chance, 20000) : chance_below(&chance, 50));
        int wait_ms = enter(guesses, "192.0.2.1", NULL, chance_below(&chance, 10) == 0, now);
        assert_true(wait_ms >= -1 && wait_ms <= WB_GUESSES_WAITING_MAX * WB_GUESSES_TURN_MS);
        answers += wait_ms >= 0;
    }
    int64_t forgotten = now / (WB_GUESSES_FORGET_S * 1000) + 1;
    assert_true(answers <= now / WB_GUESSES_TURN_MS + WB_GUESSES_WAITING_MAX + 3 * (WB_GUESSES_FREE + forgotten));
    wb_guesses_free(guesses);
}

/* Many clients do not make the table larger, and the one that goes on guessing keeps its place. */
static void test_crowd(void **state)
{
    struct wb_guesses *guesses = fresh();
    char peer[32];

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        snprintf(peer, sizeof peer, "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
        assert_int_equal(enter(guesses, peer, NULL, false, i), 0);
    }
    exhaust(guesses, "192.0.2.1", NULL, 200000);
    assert_true(enter(guesses, "192.0.2.1", NULL, false, 200000) > 0);
    wb_guesses_free(guesses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_crowd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
