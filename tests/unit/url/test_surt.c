/*
 * test_surt.c - SURTs: how the labels of a host are reversed; that different keys have different SURTs; that the
 * pages of a site are one range; and the way back to the key.
 */
#include "support.h"
#include "base/mem.h"


/* key, SURT */
static const char *const cases[][2] = {
    {"www.example.com/a?q", "com,example,www)/a?q"},
    {"example.com/", "com,example)/"},
    {"example.com:8080/", "com,example:8080)/"},
    {"localhost/", "localhost)/"},
    {"localhost:80/", "localhost:80)/"},
    {"192.0.2.9/x", "192.0.2.9)/x"},
    {"192.0.2.9:81/x", "192.0.2.9:81)/x"},
    {"[2001:db8::1]/x", "[2001:db8::1])/x"},
    {"[2001:db8::1]:81/x", "[2001:db8::1]:81)/x"},
    {"example.com./", ",com,example)/"},
    {"a..b/", "b,,a)/"},
    {"a,b/", "a%2Cb)/"},
    {"b.a/", "a,b)/"},
    {"a)/", "a%29)/"},
    {"ftp://example.com/x", "com,example)ftp:/x"},
    {"ftp://example.com:22/x", "com,example:22)ftp:/x"},
    {"foo://a%2Cb/", "a%252Cb)foo:/"},
    {"foo://a.1/", "a.1)foo:/"},
    {"mailto:x", "mailto:x"},
    {"file:///x", "file:///x"},
    {"com:%380)/x", "com:%380)/x"},
    {"com:80/x", "com:80)/x"},
    {"foo:/.//x", "foo:/.//x"},
    {"", ""},
};

static void test_cases(void **state)
{
    (void)state;
    struct wb_buf surt = WB_BUF_INIT, key = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_surt_of_key(wb_slice_str(cases[i][0]), &surt), 0);
        assert_slice(wb_buf_slice(&surt), cases[i][1]);
        assert_int_equal(wb_surt_to_key(wb_buf_slice(&surt), &key), 0);
        assert_slice(wb_buf_slice(&key), cases[i][0]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(cases[i][1], cases[j][1]);
    }
    wb_buf_release(&surt);
    wb_buf_release(&key);
}

/* ---- from SURT to key ---------------------------------------------------------------------------- */

static void test_no_surts(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "com,example",     /* a key, but not a SURT */
        "com/x",           "1,a)/",      "0x1,a)/",     ",1,a)/",
        "a.b)/",           "a.1b)/",     "1.2,3)/",     "com,[::1])/",
        "com,a%2c)/",      "com,a%41)/", "com,a%)/",    "com,a%2)/",
        ")/x",             ":80)/",      "com,example)ftp/x", "com,example)x",
        "com,a/b)/",
    };
    struct wb_buf key = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(bad); i++) {
        if (wb_surt_to_key(wb_slice_str(bad[i]), &key) != WB_E_INVALID)
            fail_msg("'%s' is taken for a SURT of '%.*s'", bad[i], WB_SLICE_ARG(wb_buf_slice(&key)));
        assert_int_equal(key.len, 0);
    }
    wb_buf_release(&key);
}

/*
 * If a text is accepted as the SURT of a key, then it is the SURT of that key. Tries all texts of up to five of the
 * bytes that matter.
 */
static void test_all_short_texts(void **state)
{
    static const char letters[] = "a1.,):/%[2C?";
    const size_t base = sizeof letters - 1;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT;
    size_t taken = 0, refused = 0;

    (void)state;
    for (size_t len = 0, count = 1; len <= 5; len++, count *= base) {
        for (size_t n = 0; n < count; n++) {
            char text[8] = "";
            for (size_t i = 0, rest = n; i < len; i++, rest /= base)
                text[i] = letters[rest % base];
            int err = wb_surt_to_key(wb_slice(text, len), &key);
            if (err == WB_E_INVALID) {
                refused++;
                continue;
            }
            assert_int_equal(err, 0);
            assert_int_equal(wb_surt_of_key(wb_buf_slice(&key), &surt), 0);
            if (!slice_is(wb_buf_slice(&surt), text))
                fail_msg("'%s' is not the SURT of '%.*s'", text, WB_SLICE_ARG(wb_buf_slice(&key)));
            taken++;
        }
    }
    assert_in_range(taken, 1000, 1000000);
    assert_in_range(refused, 1000, 1000000);
    wb_buf_release(&key);
    wb_buf_release(&surt);
}

/* Returns 1 if the input is a URL. Then the SURT of its key must lead back to the key. */
static int check_url(const char *input, const char *base_text)
{
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT, again = WB_BUF_INIT;
    bool based = base_text && wb_url_parse(wb_slice_str(base_text), NULL, &base) == 0;
    int parses = wb_url_parse(wb_slice_str(input), based ? &base : NULL, &url) == 0 && wb_url_key(&url, &key) == 0;

    if (parses) {
        assert_int_equal(wb_surt_of_key(wb_buf_slice(&key), &surt), 0);
        struct wb_slice given = wb_buf_slice(&key);
        if (wb_surt_to_key(wb_buf_slice(&surt), &again) < 0 || !wb_slice_equal(given, wb_buf_slice(&again)))
            fail_msg("'%.*s' comes back as '%.*s'", WB_SLICE_ARG(given), WB_SLICE_ARG(wb_buf_slice(&again)));
    }
    wb_url_release(&base);
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&surt);
    wb_buf_release(&again);
    return parses;
}

static int check_case(const json_t *c)
{
    const char *input = json_string_value(json_object_get(c, "input"));

    return input ? check_url(input, json_string_value(json_object_get(c, "base"))) : 0;
}

static void test_standard_urls(void **state)
{
    (void)state;
    assert_in_range(each_case("urltestdata.json", 500, check_case), 300, 100000);
}

static void test_weird_urls(void **state)
{
    char path[1024], line[4096];
    int seen = 0;

    (void)state;
    data_path("weirdToNormalizedUrls.csv", path);
    FILE *file = fopen(path, "r");
    if (!file)
        skip();
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, ",\n")] = '\0';
        seen += check_url(line, NULL);
    }
    fclose(file);
    assert_in_range(seen, 100, 10000);
}

static void test_odd_hosts(void **state)
{
    static const char *const urls[] = {
        "http://example.com./", "http://example.com..:81/x",     "http://a,b.c/",     "http://a)b/",
        "http://1.2.3.4./x",    "http://0x7f.1/",                "http://[::1]/",     "http://[::ffff:1.2.3.4]:1/",
        "foo://a.1/x",          "foo://1/",                      "foo://1.a/",        "foo://.1/",
        "foo://a%2Cb.c/",       "foo://a%2cb.c/",                "foo://[::1]/",      "foo://a..b/",
        "foo://,/",             "foo://a:0/)",                   "foo://./",          "foo://../",
        "mailto:a)b",           "com:80)/x",                     "com:80/x",          "javascript:f(),g()",
        "http://a.b/)c,d:1",    "http://xn--bcher-kva.example/",
    };
    int seen = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(urls); i++)
        seen += check_url(urls[i], NULL);
    assert_in_range(seen, 20, COUNT(urls));
}

/* ---- order -------------------------------------------------------------------------------------------- */

/* The SURT of one of many keys made of few parts, so that sites and paths are combined in all ways. */
static char *make_surt(unsigned n, char site_out[64])
{
    static const char *const labels[] = {"a", "b", "a-b", "a,b", "1", "b!"};
    static const char *const ports[] = {"", ":8", ":80"};
    static const char *const paths[] = {"/", "/a", "/)", "/,?b"};
    char key[128];
    struct wb_buf surt = WB_BUF_INIT;

    snprintf(site_out, 64, "%s.%s.a%s", labels[n % 6], labels[n / 6 % 6], ports[n / 36 % 3]);
    snprintf(key, sizeof key, "%s%s%s", n / 432 % 2 ? "ftp://" : "", site_out, paths[n / 108 % 4]);
    assert_int_equal(wb_surt_of_key(wb_slice_str(key), &surt), 0);
    assert_int_equal(wb_buf_terminate(&surt), 0);
    return surt.ptr;
}

struct entry {
    char *surt;
    char site[64];
};

static int by_surt(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->surt, ((const struct entry *)b)->surt);
}

static void test_sites_are_ranges(void **state)
{
    (void)state;
    static struct entry entries[864];
    unsigned sites = 1;

    for (unsigned i = 0; i < COUNT(entries); i++)
        entries[i].surt = make_surt(i, entries[i].site);
    qsort(entries, COUNT(entries), sizeof *entries, by_surt);
    for (size_t i = 1; i < COUNT(entries); i++) {
        assert_string_not_equal(entries[i].surt, entries[i - 1].surt);
        sites += strcmp(entries[i].site, entries[i - 1].site) != 0;
    }
    assert_int_equal(sites, 6 * 6 * 3);
    for (size_t i = 0; i < COUNT(entries); i++)
        wb_free(entries[i].surt);
}

static void test_site(void **state)
{
    (void)state;
    assert_true(wb_slice_equal(wb_surt_site(WB_SLICE_LIT("com,example:8080)/a)b")), WB_SLICE_LIT("com,example:8080)")));
    assert_true(wb_slice_equal(wb_surt_site(WB_SLICE_LIT("mailto:x")), WB_SLICE_LIT("mailto:x")));
    assert_int_equal(wb_surt_site(WB_SLICE_EMPTY).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_no_surts),
                                       cmocka_unit_test(test_all_short_texts), cmocka_unit_test(test_standard_urls),
                                       cmocka_unit_test(test_weird_urls), cmocka_unit_test(test_odd_hosts),
                                       cmocka_unit_test(test_sites_are_ranges), cmocka_unit_test(test_site)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
