/* test_url.c - the parser against the standard's own test cases, and what those do not cover: limits, reuse, memory. */
#include "support.h"
#include "os/fault.h"

#include <errno.h>

/* ---- the standard's cases ---------------------------------------------------------- */

static struct wb_slice json_slice(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_string(value))
        return WB_SLICE_EMPTY;
    return wb_slice(json_string_value(value), json_string_length(value));
}

static struct wb_slice between(const struct wb_url *u, uint32_t from, uint32_t to)
{
    return wb_slice(u->href.ptr + from, to - from);
}

/* What the getters of the standard's API return, by our offsets. */
static struct wb_slice getter(const struct wb_url *u, const char *name)
{
    uint32_t end = (uint32_t)u->href.len;

    if (strcmp(name, "href") == 0)
        return wb_url_href(u);
    if (strcmp(name, "protocol") == 0)
        return between(u, 0, u->scheme_end + 1);
    if (strcmp(name, "username") == 0)
        return between(u, u->username_at, u->username_end);
    if (strcmp(name, "password") == 0)
        return between(u, u->password_at, u->password_end);
    if (strcmp(name, "host") == 0)
        return between(u, u->host_at, u->port_end);
    if (strcmp(name, "hostname") == 0)
        return wb_url_host(u);
    if (strcmp(name, "port") == 0)
        return wb_url_port(u);
    if (strcmp(name, "pathname") == 0)
        return wb_url_path(u);
    if (strcmp(name, "search") == 0)
        return u->query_at < u->query_end ? between(u, u->query_at - 1, u->query_end) : WB_SLICE_EMPTY;
    assert_string_equal(name, "hash");
    return u->fragment_at < end ? between(u, u->fragment_at - 1, end) : WB_SLICE_EMPTY;
}

/* 1 if a case gives anything but what the standard says. */
static int check_case(const json_t *c)
{
    static const char *const names[] = {"href", "protocol", "username", "password", "host",
                                        "hostname", "port", "pathname", "search", "hash"};
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    struct wb_slice input = json_slice(c, "input");
    bool has_base = json_is_string(json_object_get(c, "base"));
    bool failure = json_is_true(json_object_get(c, "failure"));
    int wrong = 0;

    int err = has_base ? wb_url_parse(json_slice(c, "base"), NULL, &base) : 0;
    if (err == 0)
        err = wb_url_parse(input, has_base ? &base : NULL, &url);
    if ((err < 0) != failure) {
        print_error("'%.*s': %s\n", WB_SLICE_ARG(input), err < 0 ? wb_error_message() : "should fail");
        wrong = 1;
    }
    for (size_t i = 0; err == 0 && !failure && i < COUNT(names); i++) {
        struct wb_slice want = json_slice(c, names[i]), got = getter(&url, names[i]);
        if (!wb_slice_equal(want, got)) {
            print_error("'%.*s': %s is '%.*s', not '%.*s'\n", WB_SLICE_ARG(input), names[i], WB_SLICE_ARG(got),
                        WB_SLICE_ARG(want));
            wrong = 1;
        }
    }
    wb_url_release(&url);
    wb_url_release(&base);
    return wrong;
}

static void test_standard(void **state)
{
    (void)state;
    assert_int_equal(each_case("urltestdata.json", 500, check_case), 0);
}

/* ---- by hand ------------------------------------------------------------------------- */

/* input, base or NULL, href or NULL for failure */
static const char *const cases[][3] = {
    {"  http://h/  ", NULL, "http://h/"},
    {"ht\ntp\t://h\r/a\tb", NULL, "http://h/ab"},
    {"x", NULL, NULL},
    {"", NULL, NULL},
    {"", "http://h/a?b#c", "http://h/a?b"},
    {"#d", "http://h/a?b#c", "http://h/a?b#d"},
    {"?d", "http://h/a?b#c", "http://h/a?d"},
    {"d", "http://u:p@h:8/a/b?b#c", "http://u:p@h:8/a/d"},
    {"/d", "http://u:p@h:8/a/b?b#c", "http://u:p@h:8/d"},
    {"//d", "http://u:p@h:8/a/b?b#c", "http://d/"},
    {"http:d", "http://h/a/b", "http://h/a/d"},
    {"https:d", "http://h/a/b", "https://d/"},
    {"#f", "mailto:x?y", "mailto:x?y#f"},
    {"f", "mailto:x", NULL},
    {"http://h:/", NULL, "http://h/"},
    {"http://h:00080/", NULL, "http://h/"},
    {"http://h:0/", NULL, "http://h:0/"},
    {"http://h:65536/", NULL, NULL},
    {"http://h:99999999999999999999/", NULL, NULL},
    {"http://h:8o/", NULL, NULL},
    {"ws://h:80/", NULL, "ws://h/"},
    {"wss://h:443/", NULL, "wss://h/"},
    {"ftp://h:21/", NULL, "ftp://h/"},
    {"foo://h:80/", NULL, "foo://h:80/"},
    {"http://a@b@c/", NULL, "http://a%40b@c/"},
    {"http://:@c/", NULL, "http://c/"},
    {"http://u:@c/", NULL, "http://u@c/"},
    {"http://:p:q@c/", NULL, "http://:p%3Aq@c/"},
    {"http://[::1]@c/", NULL, "http://%5B:%3A1%5D@c/"},
    {"http://u@/x", NULL, NULL},
    {"http:///h/x", NULL, "http://h/x"},
    {"http:\\\\h\\x", NULL, "http://h/x"},
    {"foo:\\x", NULL, "foo:\\x"},
    {"foo:/a\\b", NULL, "foo:/a\\b"},
    {"foo:/.//x", NULL, "foo:/.//x"},
    {"x", "foo:/.//y", "foo:/.//x"},
    {"?q", "foo:/.//y", "foo:/.//y?q"},
    {"../x", "foo:/.//y", "foo:/x"},
    {"foo:/..//x", NULL, "foo:/.//x"},
    {"file:c|/x", NULL, "file:///c:/x"},
    {"file:///c|/../..", NULL, "file:///c:/"},
    {"..", "file:///c:/x", "file:///c:/"},
    {"/x", "file:///c:/y", "file:///c:/x"},
    {"file://LOCALHOST/x", NULL, "file:///x"},
    {"http://h/%2e%2E/.%2e/a/%2e/b/.", NULL, "http://h/a/b/"},
    {"http://h/.../%2e%2e%2e", NULL, "http://h/.../%2e%2e%2e"},
    {"http://h/a%", NULL, "http://h/a%"},
    {"http://h/\xff", NULL, "http://h/%EF%BF%BD"},
    {"http://h/?\xe2\x82", NULL, "http://h/?%EF%BF%BD%EF%BF%BD"},
    {"http://\xff/", NULL, NULL},
    {"http://%ff/", NULL, NULL},
    {"http://h%00/", NULL, NULL},
    {"http://h%2Fx/", NULL, NULL},
    {"http://%41/", NULL, "http://a/"},
    {"http://h/?'", NULL, "http://h/?%27"},
    {"foo://h/?'", NULL, "foo://h/?'"},
};

static void test_cases(void **state)
{
    (void)state;
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *in = cases[i][0], *from = cases[i][1], *want = cases[i][2];
        if (from)
            assert_int_equal(wb_url_parse(wb_slice_str(from), NULL, &base), 0);
        int err = wb_url_parse(wb_slice_str(in), from ? &base : NULL, &url);
        if (want && (err < 0 || !slice_is(wb_url_href(&url), want)))
            fail_msg("'%s': '%.*s', not '%s'", in, WB_SLICE_ARG(wb_url_href(&url)), want);
        if (!want && err != WB_E_PROTO)
            fail_msg("'%s' should fail: %d", in, err);
        if (!want)
            assert_int_equal(url.href.len, 0);
    }
    wb_url_release(&base);
    wb_url_release(&url);
}

static void test_parts(void **state)
{
    (void)state;
    struct wb_url url = WB_URL_INIT;

    assert_int_equal(wb_url_parse(WB_SLICE_LIT("HTTPS://U:P@H.Example:81/p/q?r#s"), NULL, &url), 0);
    assert_slice(wb_url_href(&url), "https://U:P@h.example:81/p/q?r#s");
    assert_slice(wb_url_scheme(&url), "https");
    assert_slice(wb_url_host(&url), "h.example");
    assert_slice(wb_url_port(&url), "81");
    assert_slice(wb_url_path(&url), "/p/q");
    assert_slice(wb_url_query(&url), "r");
    assert_true(wb_url_is_http(&url) && url.has_host && url.has_query && url.has_fragment && url.special);
    assert_int_equal(wb_url_parse(WB_SLICE_LIT("http://h/?"), NULL, &url), 0);
    assert_true(url.has_query && !url.has_fragment);
    assert_slice(wb_url_query(&url), "");
    assert_int_equal(wb_url_parse(WB_SLICE_LIT("file:///x"), NULL, &url), 0);
    assert_true(url.has_host && !wb_url_is_http(&url) && !url.has_query);
    assert_slice(wb_url_host(&url), "");
    assert_int_equal(wb_url_parse(WB_SLICE_LIT("mailto:x"), NULL, &url), 0);
    assert_true(!url.has_host && url.opaque_path && !url.special);
    assert_slice(wb_url_path(&url), "x");
    wb_url_release(&url);
    assert_null(url.href.ptr);
}

static void test_message(void **state)
{
    (void)state;
    struct wb_url url = WB_URL_INIT;

    assert_int_equal(wb_url_parse(WB_SLICE_LIT("http://h\x1b[2J:x/"), NULL, &url), WB_E_PROTO);
    assert_non_null(strstr(wb_error_message(), "http://h?[2J:x/"));
    assert_null(strchr(wb_error_message(), '\x1b'));
    wb_url_release(&url);
}

/* ---- limits -------------------------------------------------------------------------- */

/* A URL of len bytes: the prefix, then unit repeated. */
static struct wb_slice long_url(struct wb_buf *mem, const char *prefix, const char *unit, size_t len)
{
    wb_buf_clear(mem);
    assert_int_equal(wb_buf_append_str(mem, prefix), 0);
    while (mem->len < len)
        assert_int_equal(wb_buf_append_str(mem, unit), 0);
    mem->len = len;
    return wb_buf_slice(mem);
}

static void test_limits(void **state)
{
    (void)state;
    struct wb_buf mem = WB_BUF_INIT, key = WB_BUF_INIT;
    struct wb_url url = WB_URL_INIT, base = WB_URL_INIT;
    size_t max = WB_URL_MAX_BYTES;

    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", "x", max), NULL, &base), 0);
    assert_int_equal(base.href.len, max);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", "x", max + 1), NULL, &url), WB_E_LIMIT);
    assert_int_equal(url.href.len, 0);
    /* Short enough as input, but too long when it is written out, or together with its base. */
    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", "\xff", max), NULL, &url), WB_E_LIMIT);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", " <", max / 2), NULL, &url), WB_E_LIMIT);
    assert_int_equal(wb_url_parse(WB_SLICE_LIT("?q"), &base, &url), WB_E_LIMIT);
    assert_int_equal(url.href.len, 0);
    /* URLs that are as long as allowed, and become shorter. */
    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", "../", max), NULL, &url), 0);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", "a/%2e%2E/", max - 10), NULL, &url), 0);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://", "a.", max - 10), NULL, &url), 0);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://", "1.", max - 10), NULL, &url), WB_E_PROTO);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://", "@:", max - 10), NULL, &url), WB_E_PROTO);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://[", ":", max - 10), NULL, &url), WB_E_PROTO);
    assert_int_equal(wb_url_parse(long_url(&mem, "http://", "\xe4\xb8\x80", max - 9), NULL, &url), WB_E_LIMIT);
    /* "%" becomes "%25" in the key. */
    assert_int_equal(wb_url_parse(long_url(&mem, "http://h/", "%", max / 2), NULL, &url), 0);
    assert_int_equal(wb_url_key(&url, &key), WB_E_LIMIT);
    assert_int_equal(key.len, 0);
    assert_int_equal(wb_url_key(&base, &key), 0);
    assert_int_equal(key.len, max - strlen("http://"));
    wb_buf_release(&mem);
    wb_buf_release(&key);
    wb_url_release(&url);
    wb_url_release(&base);
}

static void test_reuse(void **state)
{
    (void)state;
    struct wb_url url = WB_URL_INIT, base = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    assert_int_equal(wb_url_parse(WB_SLICE_LIT("http://h/a/b"), NULL, &base), 0);
    assert_int_equal(wb_url_parse(WB_SLICE_LIT("http://h/a-rather-long-path?and=a-query"), NULL, &url), 0);
    assert_int_equal(wb_url_key(&url, &key), 0);
    wb_fault_arm(WB_FAULT_ALLOC, 1, ENOMEM);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(wb_url_parse(WB_SLICE_LIT("../c?d"), &base, &url), 0);
        assert_int_equal(wb_url_key(&url, &key), 0);
    }
    assert_int_equal(wb_fault_count(), 0);
    wb_fault_disarm();
    assert_slice(wb_buf_slice(&key), "h/c?d");
    wb_url_release(&url);
    wb_url_release(&base);
    wb_buf_release(&key);
}

/* ---- memory --------------------------------------------------------------------------- */

static int do_everything(const char *text)
{
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT;

    int err = wb_url_parse(WB_SLICE_LIT("http://www.example.org/a/b"), NULL, &base);
    if (err == 0)
        err = wb_url_parse(wb_slice_str(text), &base, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_surt_of_key(wb_buf_slice(&key), &surt);
    wb_url_release(&base);
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&surt);
    return err;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char *const texts[] = {"c?d", "http://b\u00fccher.example/\xff\t", "mailto:x", "http://%41/%%"};

    for (size_t i = 0; i < COUNT(texts); i++) {
        unsigned struck = 0;
        for (uint64_t nth = 1;; nth++) {
            wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
            int err = do_everything(texts[i]);
            bool hit = wb_fault_struck();
            wb_fault_disarm();
            assert_int_equal(err, hit ? WB_E_NOMEM : 0);
            if (!hit)
                break;
            struck++;
        }
        assert_in_range(struck, 4, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_standard), cmocka_unit_test(test_cases),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_message),  cmocka_unit_test(test_limits), cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
