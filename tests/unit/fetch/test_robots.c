/* test_robots.c - robots.txt: the decisions of other parsers' test suites, a naive twin, and what these leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../testdata.h"
#include "../cost.h"
#include "base/date.h"
#include "base/error.h"
#include "fetch/fetch_probe.h"
#include "os/clock.h"
#include "os/fault.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct wb_robots *parse(const char *text, const char *agent)
{
    struct wb_robots *robots;

    assert_int_equal(wb_robots_parse(wb_slice_str(text), wb_slice_str(agent), &robots), 0);
    return robots;
}

static struct wb_robots_verdict check(const struct wb_robots *robots, const char *url)
{
    struct wb_robots_verdict verdict;

    wb_robots_check(robots, wb_slice_str(url), &verdict);
    return verdict;
}

/* ---- others' suites ---------------------------------------------------------------------- */

static json_t *load_cases(const char *name)
{
    char below[256], path[1024];

    snprintf(below, sizeof below, "robots/%s", name);
    test_data_path(below, path);
    return json_load_file(path, JSON_ALLOW_NUL, NULL);
}

static struct wb_slice json_slice(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return wb_slice(json_string_value(value), json_string_length(value));
}

/* Cases that only concern an agent without a name, or with a blank in it. */
static bool is_optional(const char *test)
{
    return strcmp(test, "GoogleOnly_SystemTest") == 0 || strcmp(test, "GoogleOnly_AcceptUserAgentUpToFirstSpace") == 0;
}

static void check_suite(const char *name, int seen_min)
{
    json_t *cases = load_cases(name), *c;
    int wrong = 0, seen = 0;
    size_t i;

    if (!cases)
        skip();
    json_array_foreach(cases, i, c) {
        json_t *oracle = json_object_get(c, "google_oracle");
        bool allowed = json_is_true(json_object_get(c, "allowed"));
        struct wb_robots *robots;
        struct wb_robots_verdict verdict;

        if (is_optional(json_string_value(json_object_get(c, "test"))) || (oracle && json_is_true(oracle) != allowed))
            continue;
        seen++;
        assert_int_equal(wb_robots_parse(json_slice(c, "robots"), json_slice(c, "agent"), &robots), 0);
        wb_robots_check(robots, json_slice(c, "url"), &verdict);
        if (verdict.allowed != allowed) {
            struct wb_slice agent = json_slice(c, "agent"), url = json_slice(c, "url");
            print_error("%s: %.*s %.*s should %sbe allowed; line %u\n", json_string_value(json_object_get(c, "test")),
                        WB_SLICE_ARG(agent), WB_SLICE_ARG(url), allowed ? "" : "not ", verdict.line);
            wrong++;
        }
        wb_robots_free(robots);
    }
    json_decref(cases);
    assert_in_range(seen, seen_min, 100000);
    assert_int_equal(wrong, 0);
}

static void test_google(void **state)
{
    (void)state;
    check_suite("google_robots_test.json", 130);
}

static void test_protego(void **state)
{
    (void)state;
    check_suite("protego_cases.json", 300);
}

/* ---- by hand -------------------------------------------------------------------------------- */

static const struct {
    const char *text, *agent, *url;
    bool allowed;
    uint32_t line;
    const char *rule;
} decisions[] = {
    {"", "webbase", "/", true, 0, ""},
    {"User-agent: *\n  Disallow: /x # why\n", "webbase", "http://h/x/y", false, 2, "Disallow: /x"},
    {"User-agent: *\r\rDisallow: /x", "webbase", "/x", false, 3, "Disallow: /x"},
    {"User-agent: *\r\n\r\nDisallow : /x", "webbase", "/x", false, 3, "Disallow : /x"},
    {"\xef\xbb\xbfUser-agent: *\nDisallow: /", "webbase", "/x", false, 2, "Disallow: /"},
    {"User-agent: *\nDisallow: /", "webbase", "https://h/robots.txt", true, 0, ""},
    {"User-agent: *\nDisallow: /", "webbase", "https://h/robots.txt?x", false, 2, "Disallow: /"},
    {"User-agent: *\nDisallow: /", "webbase", "https://h", false, 2, "Disallow: /"},
    {"User-agent: *\nDisallow: /?q", "webbase", "https://h?q=1", false, 2, "Disallow: /?q"},
    {"User-agent: *\nDisallow:\n", "webbase", "/", true, 0, ""},
    /* groups */
    {"User-agent: *\nDisallow: /\nUser-agent: WebBase\nDisallow:", "webbase/1.0 (x)", "/a", true, 0, ""},
    {"User-agent: webbase/2\nDisallow: /a\n\nUser-agent: x\nDisallow: /\nUser-agent: webbase\nDisallow: /b", "webbase",
     "/b", false, 7, "Disallow: /b"},
    {"User-agent: webbase/2\nDisallow: /a\n\nUser-agent: x\nDisallow: /\nUser-agent: webbase\nDisallow: /b", "webbase",
     "/a", false, 2, "Disallow: /a"},
    {"User-agent: webbase\nSitemap: http://h/s\nCrawl-delay: 1\nNoise\nUser-agent: x\nDisallow: /", "webbase", "/a",
     false, 6, "Disallow: /"},
    {"User-agent: web2base\nDisallow: /", "Web2Base/1", "/a", false, 2, "Disallow: /"},
    {"User-agent: web2base\nDisallow: /", "web", "/a", false, 2, "Disallow: /"},
    {"User-agent: webbasebot\nDisallow: /", "webbase", "/a", true, 0, ""},
    {"User-agent:\nDisallow: /", "webbase", "/a", true, 0, ""},
    {"User-agent:\nDisallow: /", "", "/a", true, 0, ""},
    /* the longest match, however it is indexed */
    {"User-agent: *\nDisallow: /a\nDisallow: /a/b\n", "webbase", "/a/c", false, 2, "Disallow: /a"},
    {"User-agent: *\nDisallow: /a\nAllow: /a/b/c\nDisallow: /a/b/d\n", "webbase", "/a/b/cc", true, 3, "Allow: /a/b/c"},
    {"User-agent: *\nDisallow: /*.pdf$\n", "webbase", "/x.pdf.pdf", false, 2, "Disallow: /*.pdf$"},
    {"User-agent: *\nDisallow: /a*b*a$\n", "webbase", "/aba", false, 2, "Disallow: /a*b*a$"},
    {"User-agent: *\nDisallow: /ab*ba$\n", "webbase", "/aba", true, 0, ""},
    {"User-agent: *\nDisallow: /a**$\n", "webbase", "/ab", false, 2, "Disallow: /a**$"},
    {"User-agent: *\nDisallow: *\nAllow: /$\n", "webbase", "/", true, 3, "Allow: /$"},
    {"User-agent: *\nDisallow: *\nAllow: /$\n", "webbase", "/x", false, 2, "Disallow: *"},
    {"User-agent: *\nDisallow: a\n", "webbase", "/a", true, 0, ""},
    /* spellings */
    {"User-agent: *\nDisallow: /%7euser\n", "webbase", "/~user", false, 2, "Disallow: /%7euser"},
    {"User-agent: *\nDisallow: /~user\n", "webbase", "/%7Euser", false, 2, "Disallow: /~user"},
    {"User-agent: *\nDisallow: /\nAllow: /~user\n", "webbase", "/%7Euser", true, 3, "Allow: /~user"},
    {"User-agent: *\nDisallow: /%62az\n", "webbase", "/baz", false, 2, "Disallow: /%62az"},
    {"User-agent: *\nDisallow: /baz\n", "webbase", "/b%61z", false, 2, "Disallow: /baz"},
    {"User-agent: *\nDisallow: /%7eu/\nAllow: /%7eu\n", "webbase", "/~u/", false, 2, "Disallow: /%7eu/"},
    {"User-agent: *\nDisallow: /%61%61/\nAllow: /%61%61\n", "webbase", "/%61%61/", false, 2, "Disallow: /%61%61/"},
    {"User-agent: *\nDisallow: /a%2fb\n", "webbase", "/a%2Fb", false, 2, "Disallow: /a%2fb"},
    {"User-agent: *\nDisallow: /a%2fb\n", "webbase", "/a/b", true, 0, ""},
    {"User-agent: *\nDisallow: /\nAllow: /a<b\n", "webbase", "/a%3Cb", true, 3, "Allow: /a<b"},
    {"User-agent: *\nDisallow: /file-with-a-%2A.html\n", "webbase", "/file-with-a-*.html", false, 2,
     "Disallow: /file-with-a-%2A.html"},
    {"User-agent: *\nDisallow: /file-with-a-%2A.html\n", "webbase", "/file-with-a-b.html", true, 0, ""},
    {"User-agent: *\nDisallow: /foo-%24\n", "webbase", "/foo-$", false, 2, "Disallow: /foo-%24"},
    {"User-agent: *\nDisallow: /\xe3\x83\x84\n", "webbase", "/%e3%83%84", false, 2, "Disallow: /\xe3\x83\x84"},
    {"User-agent: *\nDisallow: /\xe3\x83\x84\n", "webbase", "/\xe3\x83\x84", false, 2, "Disallow: /\xe3\x83\x84"},
    {"User-agent: *\nDisallow: /a%\n", "webbase", "/a%", false, 2, "Disallow: /a%"},
};

static void test_decisions(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(decisions); i++) {
        struct wb_robots *robots = parse(decisions[i].text, decisions[i].agent);
        struct wb_robots_verdict v = check(robots, decisions[i].url);
        if (v.allowed != decisions[i].allowed || v.line != decisions[i].line ||
            !wb_slice_equal(v.rule, wb_slice_str(decisions[i].rule)))
            fail_msg("decision %zu, %s: %d by line %u '%.*s'", i, decisions[i].url, v.allowed, v.line,
                     WB_SLICE_ARG(v.rule));
        wb_robots_free(robots);
    }
}

static void test_utf16(void **state)
{
    (void)state;
    static const char text[] = "User-agent: *\r\nDisallow: /x\r\n";
    char wide[2][2 + 2 * sizeof text] = {"\xff\xfe", "\xfe\xff"};
    size_t len = 2 * sizeof text;

    for (size_t i = 0; i < sizeof text - 1; i++) {
        wide[0][2 + 2 * i] = wide[1][3 + 2 * i] = text[i];
        wide[1][2 + 2 * i] = wide[0][3 + 2 * i] = 0;
    }
    for (int i = 0; i < 2; i++) {
        struct wb_robots *robots;
        assert_int_equal(wb_robots_parse(wb_slice(wide[i], len), WB_SLICE_LIT("webbase"), &robots), 0);
        assert_int_equal(check(robots, "/x/y").line, 2);
        assert_true(check(robots, "/y").allowed);
        wb_robots_free(robots);
    }
}

static void test_delay_and_sitemaps(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t delay_ms;
    } delays[] = {
        {"", -1},
        {"Crawl-delay: 3", -1},
        {"User-agent: *\nCrawl-delay: 3", 3000},
        {"User-agent: *\ncrawl-delay:0.25", 250},
        {"User-agent: *\nCrawl-delay: 1.0009s", 1000},
        {"User-agent: *\nCrawl-delay: .5", 500},
        {"User-agent: *\nCrawl-delay: -1", -1},
        {"User-agent: *\nCrawl-delay: soon", -1},
        {"User-agent: *\nCrawl-delay: 99999999999999999999999999", WB_DAY_MS},
        {"User-agent: *\nCrawl-delay: 9\nUser-agent: webbase\nCrawl-delay: 2\nDisallow: /x\n"
         "User-agent: b\nCrawl-delay: 5", 2000},
        {"User-agent: *\nCrawl-delay: 9\nDisallow: /x\nUser-agent: webbase\nDisallow: /x", -1},
        {"User-agent: *\nCrawl-delay: 2\nCrawl-delay: 9\nCrawl-delay: 3", 9000},
    };
    for (size_t i = 0; i < COUNT(delays); i++) {
        struct wb_robots *robots = parse(delays[i].text, "webbase");
        if (wb_robots_delay_ms(robots) != delays[i].delay_ms)
            fail_msg("'%s': %lld ms", delays[i].text, (long long)wb_robots_delay_ms(robots));
        wb_robots_free(robots);
    }

    struct wb_robots *robots = parse("Sitemap: http://h/1.xml\nUser-agent: x\nSITEMAP:  /2.xml # two\n"
                                     "Site-Map: 3\nSitemap:\n", "webbase");
    static const char *const urls[] = {"http://h/1.xml", "/2.xml", "3"};
    struct wb_slice url;
    for (size_t i = 0; i < COUNT(urls); i++) {
        assert_true(wb_robots_sitemap(robots, i, &url));
        assert_true(wb_slice_equal(url, wb_slice_str(urls[i])));
    }
    assert_false(wb_robots_sitemap(robots, COUNT(urls), &url));
    wb_robots_free(robots);
}

/* ---- a naive twin: every rule tried, octet by octet ----------------------------------------- */

static bool naive_match(const char *pattern, const char *path)
{
    if (*pattern == 0 || (*pattern == '$' && pattern[1] == 0))
        return *pattern == 0 || *path == 0;
    if (*pattern == '*')
        return naive_match(pattern + 1, path) || (*path && naive_match(pattern, path + 1));
    return *pattern == *path && naive_match(pattern + 1, path + 1);
}

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void random_text(unsigned *seed, const char *letters, size_t max, char *out)
{
    size_t len = next_random(seed) % max, kinds = strlen(letters);

    *out++ = '/';
    while (len--)
        *out++ = letters[next_random(seed) % kinds];
    *out = 0;
}

static void test_twin(void **state)
{
    (void)state;
    unsigned seed = (unsigned)wb_clock_mono_ns();
    char patterns[400][16], path[16];
    bool allow[400];

    print_message("# seed %u\n", seed);
    for (int round = 0; round < 400; round++) {
        struct wb_buf text = WB_BUF_INIT;
        size_t count = 1 + next_random(&seed) % (round % 2 ? 20 : COUNT(patterns));

        assert_int_equal(wb_buf_append_str(&text, "User-agent: *\n"), 0);
        for (size_t i = 0; i < count; i++) {
            random_text(&seed, "ab*$", 8, patterns[i]);
            for (char *dollar; (dollar = strchr(patterns[i], '$')) && dollar[1];)
                *dollar = 'b';
            allow[i] = next_random(&seed) % 2;
            assert_int_equal(wb_buf_printf(&text, "%s: %s\n", allow[i] ? "Allow" : "Disallow", patterns[i]), 0);
        }
        assert_int_equal(wb_buf_terminate(&text), 0);
        struct wb_robots *robots = parse(text.ptr, "webbase");
        for (int k = 0; k < 100; k++) {
            size_t best = SIZE_MAX;
            random_text(&seed, "ab", 10, path);
            for (size_t i = 0; i < count; i++)
                if (naive_match(patterns[i], path) &&
                    (best == SIZE_MAX || strlen(patterns[i]) > strlen(patterns[best]) ||
                     (strlen(patterns[i]) == strlen(patterns[best]) && allow[i] && !allow[best])))
                    best = i;
            struct wb_robots_verdict v = check(robots, path);
            uint32_t line = best == SIZE_MAX ? 0 : (uint32_t)best + 2;
            if (v.line != line || v.allowed != (line == 0 || allow[best]))
                fail_msg("%s: line %u, not %u of\n%s", path, v.line, line, text.ptr);
        }
        wb_robots_free(robots);
        wb_buf_release(&text);
    }
}

/* ---- size, time, memory --------------------------------------------------------------------- */

static void fill(struct wb_buf *text, const char *format, size_t max)
{
    assert_int_equal(wb_buf_append_str(text, "User-agent: *\n"), 0);
    for (unsigned i = 0; text->len < max; i++)
        assert_int_equal(wb_buf_printf(text, format, i), 0);
}

/* Milliseconds of processor time of `count` checks of a path made by a format. */
static int64_t time_checks(const struct wb_robots *robots, const char *format, int count)
{
    struct wb_robots_verdict v;
    char path[128];
    int64_t start = test_cpu_ns();

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, format, (unsigned)i * 7919u % 100000u);
        wb_robots_check(robots, wb_slice_str(path), &v);
    }
    return (test_cpu_ns() - start) / 1000000;
}

static void test_many_rules(void **state)
{
    (void)state;
    static const char *const formats[][2] = {
        {"Allow:/%x\n", "/%x/some/page.html?with=query"},
        {"Allow:/*%x$\n", "/some/page/%x.html?with=query"},
        {"Disallow: /*?p%u=*&q\n", "/some/page?p%u=1"},
    };
    for (size_t i = 0; i < COUNT(formats); i++) {
        struct wb_buf text = WB_BUF_INIT;
        fill(&text, formats[i][0], WB_ROBOTS_BYTES_MAX - 64);
        assert_int_equal(wb_buf_terminate(&text), 0);
        struct wb_robots *robots = parse(text.ptr, "webbase");
        int64_t ms = time_checks(robots, formats[i][1], 200);
        print_message("# %s: %lld us a check\n", i ? "stars" : "prefixes", (long long)ms * 5);
        assert_true(ms < 8000); /* 40 ms per check, a thousand times as long as it takes */
        wb_robots_free(robots);
        wb_buf_release(&text);
    }
}

/* A path and patterns that are made to be slow: the time is bounded, and in doubt the path is forbidden. */
static void test_hostile_stars(void **state)
{
    (void)state;
    struct wb_buf text = WB_BUF_INIT, path = WB_BUF_INIT;

    fill(&text, "Allow: /*aaaaaaaaaaaaaaaaaaaaaaaab*a%u\n", 200000);
    assert_int_equal(wb_buf_append_str(&text, "Disallow: /*aab*aab\n"), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    assert_int_equal(wb_buf_append_str(&path, "/"), 0);
    for (int i = 0; i < 60000; i++)
        assert_int_equal(wb_buf_append_char(&path, i % 25 ? 'a' : 'b'), 0);
    assert_int_equal(wb_buf_terminate(&path), 0);
    struct wb_robots *robots = parse(text.ptr, "webbase");
    int64_t start = test_cpu_ns();
    assert_false(check(robots, path.ptr).allowed);
    assert_true(test_cpu_ns() - start < INT64_C(20000000000));
    wb_robots_free(robots);
    wb_buf_release(&text);
    wb_buf_release(&path);
}

static void test_bounds(void **state)
{
    (void)state;
    struct wb_buf text = WB_BUF_INIT;

    /* Lines beyond the limit are ignored, those before it are read: at least 500 KiB. */
    assert_int_equal(wb_buf_append_str(&text, "User-agent: *\n"), 0);
    while (text.len < 500 * 1024)
        assert_int_equal(wb_buf_append_str(&text, "# a comment that takes its place\n"), 0);
    assert_int_equal(wb_buf_append_str(&text, "Disallow: /early\n"), 0);
    while (text.len < WB_ROBOTS_BYTES_MAX)
        assert_int_equal(wb_buf_append_str(&text, "#\n"), 0);
    assert_int_equal(wb_buf_append_str(&text, "Disallow: /late\n"), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    struct wb_robots *robots = parse(text.ptr, "webbase");
    assert_false(check(robots, "/early").allowed);
    assert_true(check(robots, "/late").allowed);
    assert_in_range(wb_robots_bytes(robots), 1, 400);
    wb_robots_free(robots);

    /* A long line is cut, and the rest of it is ignored. */
    wb_buf_clear(&text);
    assert_int_equal(wb_buf_append_str(&text, "User-agent: *\nDisallow: /x/"), 0);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(wb_buf_append_char(&text, 'y'), 0);
    assert_int_equal(wb_buf_append_str(&text, "\nDisallow: /z\n"), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    robots = parse(text.ptr, "webbase");
    assert_int_equal(check(robots, "/z").line, 3);
    text.ptr[text.len - 20] = 0;
    assert_false(check(robots, strchr(text.ptr, '/')).allowed);
    wb_robots_free(robots);

    /* Only the rules that concern us take memory: 100 of ours among 10,000. */
    wb_buf_clear(&text);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(wb_buf_printf(&text, "User-agent: bot%c\nDisallow: /private/area/%d/\n", i % 100 ? 'x' : 'y',
                                       i), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    robots = parse(text.ptr, "boty");
    assert_in_range(wb_robots_bytes(robots), 2000, 10000);
    wb_robots_free(robots);
    wb_buf_release(&text);
}

static void test_memory(void **state)
{
    (void)state;
    static const char text[] = "User-agent: *\nDisallow: /a<b*c\nAllow: /x/index.html\nSitemap: http://h/s\n";
    struct wb_robots *robots = NULL;
    int err = WB_E_NOMEM;
    uint64_t nth;

    for (nth = 1; nth < 1000 && err == WB_E_NOMEM; nth++) {
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        err = wb_robots_parse(WB_SLICE_LIT(text), WB_SLICE_LIT("webbase"), &robots);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(err == 0 || (err == WB_E_NOMEM && !robots && struck));
    }
    assert_int_equal(err, 0);
    assert_in_range(nth, 5, 999);

    wb_fault_arm(WB_FAULT_ALLOC, 1, ENOMEM);
    struct wb_robots_verdict v = check(robots, "/elsewhere");
    wb_fault_disarm();
    assert_false(v.allowed); /* out of memory: forbidden */
    assert_true(check(robots, "/elsewhere").allowed);
    wb_robots_free(robots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_google),
        cmocka_unit_test(test_protego),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_utf16),
        cmocka_unit_test(test_delay_and_sitemaps),
        cmocka_unit_test(test_twin),
        cmocka_unit_test(test_many_rules),
        cmocka_unit_test(test_hostile_stars),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
