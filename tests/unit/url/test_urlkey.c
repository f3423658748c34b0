/* test_urlkey.c - keys of web archives' indexes. The expectations follow the rules of the package surt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "url/url.h"

static const struct {
    const char *url, *key;
} cases[] = {
    {"http://example.com/", "com,example)/"},
    {"http://example.com", "com,example)/"},
    {"https://example.com:443/", "com,example)/"},
    {"http://example.com:80", "com,example)/"},
    {"https://example.com:80/", "com,example:80)/"},
    {"http://www.example.com:8080/x", "com,example:8080)/x"},
    {"http://www2.example.co.uk/x/", "uk,co,example)/x"},
    {"http://www34.example.com/", "com,example)/"},
    {"http://www.www.example.com/", "com,example,www)/"},
    {"http://www.com/", "com)/"},
    {"http://wwwx.example.com/", "com,example,wwwx)/"},
    {"http://www2x.example.com/", "com,example,www2x)/"},
    {"http://EXAMPLE.com./A", "com,example)/a"},
    {"http://b\xc3\xbc" "cher.ch/", "ch,xn--bcher-kva)/"},
    {"http://user:pw@example.com/", "com,example)/"},
    {"http://[::1]:81/a", "[::1]:81)/a"},
    {"http://192.168.0.1/a", "1,0,168,192)/a"},
    {"http://example.com/big/", "com,example)/big"},
    {"http://example.com/big//", "com,example)/big"},
    {"http://example.com//a///B/./c/../d?more//slashes", "com,example)/a/b/d?more//slashes"},
    {"http://example.com/%2541%25%32%35", "com,example)/a%25"},
    {"http://example.com/%%%25%32%35asd%%", "com,example)/%25%25%25asd%25%25"},
    {"http://example.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611%252A22%252833%252944_55%252B",
     "com,example)/~a!b@c%23d$e%25f^00&11*22(33)44_55+"},
    {"http://example.com/a%2e%2e/%2E%2e/x", "com,example)/x"},
    {"http://example.com/a%20b\xc3\xa9", "com,example)/a%20b%c3%a9"},
    {"http://example.com/a;b=C,d", "com,example)/a;b=c,d"},
    {"http://example.com/a#frag", "com,example)/a"},
    {"http://example.com/?", "com,example)/"},
    {"http://example.com/a?", "com,example)/a"},
    {"http://example.com/q?r?S", "com,example)/q?r?s"},
    {"http://example.com/dir/?x=1", "com,example)/dir?x=1"},
    {"https://www.Example.com/Path/To?b=2&a=1&B=0", "com,example)/path/to?a=1&b=0&b=2"},
    {"http://example.com/?b=b&a=b&b=a&a=a", "com,example)/?a=a&a=b&b=a&b=b"},
    {"http://example.com/?a-b=1&a=2&a", "com,example)/?a&a=2&a-b=1"},
    {"http://example.com/?a=1&", "com,example)/?&a=1"},
    {"http://example.com/?q=%C3%89&&x=%26y", "com,example)/?&q=%c3%89&x=&y"},
    {"http://example.com/x?jsessionid=0123456789abcdefghijklemopqrstuv&x=1", "com,example)/x?x=1"},
    {"http://example.com/x?x=1&PHPSESSID=0123456789abcdefghijklemopqrstuv", "com,example)/x?&x=1"},
    {"http://example.com/x?sid=0123456789abcdefghijklemopqrstuv", "com,example)/x"},
    {"http://example.com/x?sid=0123456789abcdefghijklemopqrstu", "com,example)/x?sid=0123456789abcdefghijklemopqrstu"},
    {"http://example.com/x?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&x=1", "com,example)/x?x=1"},
    {"http://example.com/x?a=1&cfid=12&cftoken=34&z=2", "com,example)/x?a=1&z=2"},
    {"http://example.com/(S(4hqa0555fwsecu455xqckv45))/mileg.aspx", "com,example)/mileg.aspx"},
    {"http://example.com/(4hqa0555fwsecu455xqckv45)/mileg.aspx", "com,example)/mileg.aspx"},
    {"http://example.com/(a(4hqa0555fwsecu455xqckv45)S(4hqa0555fwsecu455xqckv45)f(4hqa0555fwsecu455xqckv45))/"
     "mileg.aspx?page=sessionschedules", "com,example)/mileg.aspx?page=sessionschedules"},
    {"http://example.com/(4hqa0555fwsecu455xqckv45)/mileg.html", "com,example)/(4hqa0555fwsecu455xqckv45)/mileg.html"},
    {"http://example.com/photos/36050182@N05/", "com,example)/photos/36050182@n05"},
    {"ftp://Example.com/A", "com,example)/a"},
    {"dns:example.com", "dns:example.com"},
    {"mailto:Foo@example.com", "mailto:Foo@example.com"},
    {"not a url", "not a url"},
};

static void test_cases(void **state)
{
    struct wb_buf key = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(wb_urlkey_of_url(wb_slice_str(cases[i].url), &key), 0);
        assert_int_equal(wb_buf_terminate(&key), 0);
        if (strcmp(key.ptr, cases[i].key) != 0)
            fail_msg("%s: %s instead of %s", cases[i].url, key.ptr, cases[i].key);
    }
    wb_buf_release(&key);
}

/* Escapes inside of escapes are undone in one pass, and nothing grows without a limit. */
static void test_long(void **state)
{
    struct wb_buf url = WB_BUF_INIT, key = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_buf_append_str(&url, "http://example.com/%"), 0);
    while (url.len < 60000)
        assert_int_equal(wb_buf_append_str(&url, "25"), 0);
    assert_int_equal(wb_buf_append_str(&url, "41"), 0);
    assert_int_equal(wb_urlkey_of_url(wb_buf_slice(&url), &key), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&key), WB_SLICE_LIT("com,example)/a")));
    wb_buf_clear(&url);
    assert_int_equal(wb_buf_append_str(&url, "http://example.com/"), 0);
    while (url.len < 60000)
        assert_int_equal(wb_buf_append_str(&url, "%01"), 0);
    assert_int_equal(wb_urlkey_of_url(wb_buf_slice(&url), &key), 0);
    assert_true(key.len <= WB_URLKEY_MAX);
    wb_buf_release(&url);
    wb_buf_release(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_long)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
