/* test_site.c - the registrable domain of a site. */
#include "support.h"

static void test_domains(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"www.example.com", "example.com"},
        {"example.com", "example.com"},
        {"a.b.example.co.uk:8080", "example.co.uk"},
        {"co.uk", "co.uk"},
        {"com", "com"},
        {"localhost", "localhost"},
        {"localhost:80", "localhost"},
        {"192.0.2.9:81", "192.0.2.9"},
        {"[2001:db8::1]:81", "[2001:db8::1]"},
        {"www.example.com.", "example.com"},
        {"a.user.github.io", "user.github.io"},
        {"a.b.unknown-suffix", "b.unknown-suffix"},
        {"www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"},
        {"", ""},
        {".", "."},
        {":80", ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wb_slice site = wb_slice_str(cases[i][0]), domain = wb_site_domain(site);
        assert_slice(domain, cases[i][1]);
        assert_true(domain.ptr >= site.ptr && domain.ptr + domain.len <= site.ptr + site.len);
    }
}

static void test_long_name(void **state)
{
    (void)state;
    char text[1000];

    memset(text, 'a', sizeof text);
    text[sizeof text - 4] = '.';
    struct wb_slice domain = wb_site_domain(wb_slice(text, sizeof text));
    assert_int_equal(domain.len, sizeof text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_domains), cmocka_unit_test(test_long_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
