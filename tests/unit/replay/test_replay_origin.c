/* test_replay_origin.c - hosts of replay origins: each site and time has one, and only one has it. */
#include "../expect.h"
#include "../seeded.h"
#include "base/error.h"
#include "replay/replay.h"

#define TIME "20260102030405"

static struct wb_url url = WB_URL_INIT;
static struct wb_buf labels = WB_BUF_INIT, origin = WB_BUF_INIT;

static int labels_of(const char *text)
{
    wb_buf_clear(&labels);
    assert_int_equal(wb_url_parse(wb_slice_str(text), NULL, &url), 0);
    return wb_replay_origin_labels(WB_SLICE_LIT(TIME), &url, &labels);
}

static int parse(struct wb_slice text)
{
    struct wb_slice time;

    wb_buf_clear(&origin);
    int err = wb_replay_origin_parse(text, &time, &origin);
    if (err == 0)
        assert_int_equal(time.len, 14);
    return err;
}

static void test_forms(void **state)
{
    static const char *const cases[][2] = {
        {"https://www.example.org/a?b", TIME "-https-www-example-org"},
        {"http://example.org:8080/", TIME "-http8080-example-org"},
        {"https://example.org:443/", TIME "-https-example-org"},
        {"http://my-host.example.org", TIME "-http-my--host-example-org"},
        {"http://xn--bcher-kva.example", TIME "-http-xn----bcher--kva-example"},
        {"http://user:word@127.0.0.1/", TIME "-http-127-0-0-1"},
        {"http://a_b.example/", TIME "-http-a_b-example"},
        {"http://archive/", TIME "-http-archive"},
        {"http://a-.b/", "a-.b." TIME "-http--e3774d95"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i][1]);
        assert_int_equal(labels_of(cases[i][0]), 0);
        bool digest = strstr(cases[i][1], ".") != NULL;
        if (!digest)
            assert_int_equal(labels.len, len);
        assert_memory_equal(labels.ptr, cases[i][1], len);
        assert_int_equal(parse(wb_buf_slice(&labels)), 0);
        assert_memory_equal(origin.ptr, "http", 4);
    }
    assert_int_equal(labels_of("http://[::1]/"), WB_E_PROTO);
    assert_int_equal(labels_of("ftp://example.org/"), WB_E_PROTO);
    assert_int_equal(labels_of("mailto:a@example.org"), WB_E_PROTO);
    assert_int_equal(labels_of("http://example.org./"), WB_E_PROTO);
    assert_int_equal(labels_of("http://a!b.example/"), WB_E_PROTO);
    assert_int_equal(labels_of("http://a..b/"), WB_E_PROTO);
}

static void test_wrong(void **state)
{
    static const char *const cases[] = {
        "",
        TIME,
        TIME "-",
        TIME "-https",
        TIME "-https-",
        TIME "-https--",
        TIME "-ftp-example-org",
        TIME "-http80-example-org",
        TIME "-https443-example-org",
        TIME "-http08080-example-org",
        TIME "-http99999-example-org",
        TIME "-http-Example-org",
        TIME "-http-a---b",
        TIME "-http--a",
        TIME "-http-a-",
        TIME "-http-a%20b",
        TIME "-http-1",
        "20261302030405-http-example-org",
        "2026010203040-http-example-org",
        "x." TIME "-http-example-org",
        "a-.b." TIME "-http--00000000000000000000000000000000",
        "www.example.org." TIME "-http--00000000000000000000000000000000",
        "." TIME "-http-example-org",
        TIME "-http-example-org.",
        TIME "_http-example-org",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (parse(wb_slice_str(cases[i])) != WB_E_PROTO)
            fail_msg("'%s' is taken", cases[i]);
    assert_int_equal(origin.len, 0);
}

/* Random hosts of few characters, so that many are nearly the same: what is read is what was written. */
static void test_round_trip(void **state)
{
    uint64_t chance = test_seed();
    static const char letters[] = "ab--..0_", *const starts[] = {"http://", "https://"};
    struct wb_buf text = WB_BUF_INIT;
    unsigned written = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        wb_buf_clear(&text);
        assert_int_equal(wb_buf_append_str(&text, starts[chance_next(&chance) & 1]), 0);
        size_t len = 1 + chance_next(&chance) % (i % 16 ? 9 : 100);
        for (size_t k = 0; k < len; k++)
            assert_int_equal(wb_buf_append_char(&text, letters[chance_next(&chance) % 8]), 0);
        if (chance_next(&chance) & 1)
            assert_int_equal(wb_buf_printf(&text, ":%u", (unsigned)(chance_next(&chance) % 65536)), 0);
        wb_buf_clear(&labels);
        if (wb_url_parse(wb_buf_slice(&text), NULL, &url) < 0 ||
            wb_replay_origin_labels(WB_SLICE_LIT(TIME), &url, &labels) < 0)
            continue;
        written++;
        assert_true(labels.len <= WB_REPLAY_LABELS_MAX);
        assert_int_equal(parse(wb_buf_slice(&labels)), 0);
        struct wb_slice href = wb_url_href(&url);
        if (!wb_slice_equal(wb_buf_slice(&origin), wb_slice(href.ptr, href.len - 1)))
            fail_msg("%.*s becomes %.*s and then %.*s", WB_SLICE_ARG(href), WB_SLICE_ARG(wb_buf_slice(&labels)),
                     WB_SLICE_ARG(wb_buf_slice(&origin)));
    }
    assert_true(written > 5000);
    wb_buf_release(&text);
}

static void test_addresses(void **state)
{
    struct wb_replay_base base = {true, WB_SLICE_LIT("replay.example:8443")};
    struct wb_slice got;

    (void)state;
    assert_int_equal(wb_url_parse(WB_SLICE_LIT("http://u:p@a.b/c/../d?e#f"), NULL, &url), 0);
    wb_buf_clear(&origin);
    assert_int_equal(wb_replay_origin_address(&base, WB_SLICE_LIT(TIME), &url, &origin), 0);
    expect(wb_buf_slice(&origin), "https://" TIME "-http-a-b.replay.example:8443/d?e#f");
    assert_true(wb_replay_base_labels(&base, WB_SLICE_LIT("x.Replay.example:8443"), &got) && got.len == 1);
    assert_false(wb_replay_base_labels(&base, WB_SLICE_LIT("replay.example:8443"), &got));
    assert_false(wb_replay_base_labels(&base, WB_SLICE_LIT(".replay.example:8443"), &got));
    assert_false(wb_replay_base_labels(&base, WB_SLICE_LIT("x.replay.example"), &got));
    assert_false(wb_replay_base_labels(&base, WB_SLICE_LIT("xreplay.example:8443"), &got));
}

static int release(void **state)
{
    (void)state;
    wb_url_release(&url);
    wb_buf_release(&labels);
    wb_buf_release(&origin);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, release);
}
