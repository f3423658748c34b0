/* test_surt.c - the sort order: how keys are turned round, that no two become one, that a site is one range. */
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
    struct wb_buf surt = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_key_surt(wb_slice_str(cases[i][0]), &surt), 0);
        assert_slice(wb_buf_slice(&surt), cases[i][1]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(cases[i][1], cases[j][1]);
    }
    wb_buf_release(&surt);
}

/* The SURT of one of many keys made of few parts, so that sites and paths meet in all ways. */
static char *make_surt(unsigned n, char site_out[64])
{
    static const char *const labels[] = {"a", "b", "a-b", "a,b", "1", "b!"};
    static const char *const ports[] = {"", ":8", ":80"};
    static const char *const paths[] = {"/", "/a", "/)", "/,?b"};
    char key[128];
    struct wb_buf surt = WB_BUF_INIT;

    snprintf(site_out, 64, "%s.%s.a%s", labels[n % 6], labels[n / 6 % 6], ports[n / 36 % 3]);
    snprintf(key, sizeof key, "%s%s%s", n / 432 % 2 ? "ftp://" : "", site_out, paths[n / 108 % 4]);
    assert_int_equal(wb_key_surt(wb_slice_str(key), &surt), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_sites_are_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
