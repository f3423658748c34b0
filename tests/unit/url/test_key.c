/* test_key.c - the normal form: which URLs are the same page and which are not, and the site of a key. */
#include "support.h"

enum { LINE_MAX_BYTES = 4096 }; /* of the conformance data */

/* ---- URLs that are the same page, and URLs that are different ones ------------------------ */

#define GROUP_MAX 20

static const char *const same[][GROUP_MAX] = {
    {"http://www.example.org/a/b", "https://www.example.org/a/b", "HTTP://www.example.org/a/b",
     "http://www.example.org:80/a/b", "https://www.example.org:443/a/b", "http://WWW.Example.ORG/a/b",
     "http://www.example.org/a/./b", "http://www.example.org/a/c/../b", "http://www.example.org/a/c/%2e%2E/b",
     "http://www.example.org/../a/b", "http://www.example.org/a/b#part", "http://www.example.org/a/b/",
     "http://www.example.org/a/b//", "http://www.example.org/a/%62", "http://www.example.org/%61/b",
     "http://www.example.org\\a\\b", " http://www.example.org/a/b ", "http://u:p@www.example.org/a/b",
     "http://www.example.org/a/b/?#x"},
    {"http://www.example.org/~user/x-y_z.html", "http://www.example.org/%7Euser/x-y_z.html",
     "http://www.example.org/%7euser/x%2Dy%5fz%2ehtml"},
    {"http://www.example.org/caf%C3%A9", "http://www.example.org/caf%c3%a9", "http://www.example.org/caf\u00e9"},
    {"http://b\u00fccher.example/", "http://xn--bcher-kva.example/", "http://B\u00dcCHER.example",
     "https://XN--BCHER-KVA.example:443/#top"},
    {"http://www.example.org", "http://www.example.org/", "https://www.example.org/", "http://www.example.org/#",
     "http://www.example.org/.", "http://www.example.org/?", "http://www.example.org////"},
    {"http://www.example.org/a/b?q=1", "https://www.example.org/a/b?q=1#part", "https://www.example.org/a/b?%71=%31"},
    {"http://www.example.org/a/b?u=%2Fx%26y", "http://www.example.org/a/b?u=%2fx%26y"},
    {"http://192.0.2.9/x", "http://192.0.2.9:80/x", "https://0xC0.0.2.9/x"},
    {"http://[2001:db8::1]/x", "http://[2001:DB8:0:0::1]/x"},
    {"http://www.example.org/100%25", "http://www.example.org/100%"},
};

static const char *const alone[] = {
    "http://www.example.org/A/b", "http://www.example.org/a/B", "http://www.example.org/a/b?q=2",
    "http://www.example.org/a/b?Q=1", "http://www.example.org/a/b?q=1&r=", "http://www.example.org:8080/a/b",
    "http://www.example.org:443/a/b", "https://www.example.org:80/a/b", "http://example.org/a/b",
    "http://www.example.com/a/b", "http://www.example.org/a", "http://www.example.org/a%2Fb",
    "http://www.example.org/a/%2562", "http://www.example.org/a/b%3Fq=1", "http://www.example.org/a/b%23part",
    "http://www.example.org/a//b", "http://www.example.org/caf%E9", "http://www.example.org/a/b/?q=1",
    "http://www.example.org/a/b?q=1/", "http://www.example.org./a/b", "ftp://www.example.org/a/b",
    "ws://www.example.org/a/b", "wss://www.example.org/a/b", "http://www.example.org//a/b",
};

static void test_same_and_alone(void **state)
{
    (void)state;
    struct wb_pageid ids[COUNT(same) + COUNT(alone)];
    size_t count = 0;

    for (size_t i = 0; i < COUNT(same); i++) {
        const char *key = key_of(same[i][0], 0);
        for (size_t j = 1; j < GROUP_MAX && same[i][j]; j++)
            if (strcmp(key_of(same[i][j], 1), key) != 0)
                fail_msg("'%s' is '%s', not '%s'", same[i][j], key_of(same[i][j], 1), key);
        ids[count++] = wb_pageid_of_key(wb_slice_str(key));
    }
    for (size_t i = 0; i < COUNT(alone); i++)
        ids[count++] = wb_pageid_of_key(wb_slice_str(key_of(alone[i], 0)));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (wb_pageid_equal(ids[i], ids[j]))
                fail_msg("cases %zu and %zu have the same id", i, j);
}

/* ---- keys, byte by byte ---------------------------------------------------------------- */

/* URL, key, site */
static const char *const keys[][3] = {
    {"http://h", "h/", "h"},
    {"http://h:443/", "h:443/", "h:443"},
    {"https://h:443/", "h/", "h"},
    {"https://h:80/", "h:80/", "h:80"},
    {"http://h/a/b//", "h/a/b", "h"},
    {"http://h/a//b", "h/a//b", "h"},
    {"http://h//", "h/", "h"},
    {"http://h//a/", "h//a", "h"},
    {"http://h/a/?", "h/a", "h"},
    {"http://h/a/?q", "h/a/?q", "h"},
    {"http://h/a?q/", "h/a?q/", "h"},
    {"http://h/a/#/b", "h/a", "h"},
    {"http://h/%2562", "h/%2562", "h"},
    {"http://h/%25%36%32", "h/%2562", "h"},
    {"http://h/%%36%31", "h/%2561", "h"},
    {"http://h/%", "h/%25", "h"},
    {"http://h/%4", "h/%254", "h"},
    {"http://h/%c3%bc%2d%41?%3d%5F", "h/%C3%BC-A?%3D_", "h"},
    {"http://h/a/%2e%2e/b", "h/b", "h"},
    {"http://h/a/b/%2E", "h/a/b", "h"},
    {"http://h/a%2e", "h/a.", "h"},
    {"http://u:p@h/", "h/", "h"},
    {"http://[::1]:8/x", "[::1]:8/x", "[::1]:8"},
    {"http://[::1]/", "[::1]/", "[::1]"},
    {"http://h./", "h./", "h."},
    {"ftp://host/path", "ftp://host/path", "host"},
    {"ftp://u@host:21/path/", "ftp://host/path", "host"},
    {"ftp://host:22/path/", "ftp://host:22/path", "host:22"},
    {"ws://h/", "ws://h/", "h"},
    {"foo://h", "foo://h/", "h"},
    {"foo://h?q", "foo://h/?q", "h"},
    {"foo://H:80/a/", "foo://H:80/a", "H:80"},
    {"foo:///a/", "foo:///a", ""},
    {"foo:/a/", "foo:/a", ""},
    {"foo:/.//a/", "foo:/.//a", ""},
    {"foo:/.///", "foo:/", ""},
    {"file:///a/b/#x", "file:///a/b", ""},
    {"file:///%43%7C/x", "file:///C%7C/x", ""},
    {"file:///%43|/x", "file:///C:/x", ""},
    {"file://h/a", "file://h/a", "h"},
    {"mailto:a%62@c?%64#e", "mailto:a%62@c?%64", ""},
    {"mailto:x?", "mailto:x", ""},
    {"dns:www.example.org", "dns:www.example.org", ""},
    {"tel:123", "tel:123", ""},
    {"localhost:8080/x", "localhost:%38080/x", ""},
    {"com:80)/x", "com:%380)/x", ""},
    {"http://localhost:8080/x", "localhost:8080/x", "localhost:8080"},
    {"http://mailto/x", "mailto/x", "mailto"},
};

static void test_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *key = key_of(keys[i][0], 0);
        if (strcmp(key, keys[i][1]) != 0)
            fail_msg("'%s' is '%s', not '%s'", keys[i][0], key, keys[i][1]);
        struct wb_slice site = wb_key_site(wb_slice_str(key));
        if (!slice_is(site, keys[i][2]))
            fail_msg("the site of '%s' is '%.*s'", key, WB_SLICE_ARG(site));
        assert_true(site.ptr >= key && site.ptr + site.len <= key + strlen(key));
    }
}

/* Parsing a key (with "http://" in front if it has no scheme) gives the same key. */
static void test_key_of_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        char again[256];
        bool http = strncmp(keys[i][0], "http", 4) == 0;
        bool tls = strncmp(keys[i][0], "https", 5) == 0;
        snprintf(again, sizeof again, "%s%s", http ? tls ? "https://" : "http://" : "", keys[i][1]);
        assert_string_equal(key_of(again, 0), keys[i][1]);
    }
}

/* For bytes that are not a key wb_key_site() returns something, and does nothing bad. */
static void test_site_of_anything(void **state)
{
    (void)state;
    static const char *const odd[] = {"", ":", "/", "[", "a:", "a:1", "a://", "?", "a:1/"};
    static const char *const sites[] = {"", "", "", "[", "", "", "", "?", "a:1"};

    for (size_t i = 0; i < COUNT(odd); i++)
        assert_slice(wb_key_site(wb_slice_str(odd[i])), sites[i]);
}

/* ---- the cases of crawler-commons that agree with our rules ------------------------------------ */

/*
 * Ours differs on purpose: parameters are not sorted or dropped, inner empty
 * segments and a host's last dot are kept, what WHATWG leaves unescaped stays so,
 * a missing scheme is an error, and "file:/x" has a host.
 */
static const char *const differs[] = {
    "http://x.com/?x[y]=1",
    "http://foo.com//aa/bb/foo.html",
    "http://foo.com/aa//bb/foo.html",
    "http://foo.com/aa/bb//foo.html",
    "http://foo.com//aa//bb//foo.html",
    "http://foo.com////aa////bb//foo.html",
    "http://foo.com////aa////bb////foo.html",
    "ftp:/",
    "http:////",
    "http:///////",
    "http://www.example.com/a/c/../b/search?q=foobar^",
    "http://www.example.com/a/c/../b/search?q=foobar`",
    "http://www.example.com/a/c/../b/search?q=foobar|",
    "foo.com/index.html",
    "https://www.example.org./",
    "file:/var/www/html/////./bar/index.html",
    "http://example.com/?b=1&a=1",
    "http://foo.com/foo.html?b=1&a=1",
    "http://foo.com/index?b=2&a=1",
    "http://foo.com/index?b=2&a=1#c",
    "http://foo.com/index?a=1&b=",
    "http://foo.com/index?b&a=1",
    "http://foo.com/index?b=&a=1",
    "http://foo.com/index?b=1&a=1&",
    "http://foo.com/index?&b=1&a=1",
    "http://foo.com/index?&=1&a=1",
    "http://foo.com/index?=1&b=1&a=1",
};

static bool is_listed(const char *text)
{
    for (size_t i = 0; i < COUNT(differs); i++)
        if (strcmp(differs[i], text) == 0)
            return true;
    return false;
}

/* Takes a trimmed field from the line: in quotes (and then "" is a quote), or up to a comma or the end. */
static char *take_field(char **line)
{
    char *p = *line + strspn(*line, " "), *start = p, *out = p;
    bool quoted = *p == '"';

    if (quoted) {
        start = out = ++p;
        while (*p && (*p != '"' || p[1] == '"')) {
            p += *p == '"';
            *out++ = *p++;
        }
        p += strcspn(p, ",");
    } else {
        out = p += strcspn(p, ",");
        while (out > start && out[-1] == ' ')
            out--;
    }
    *line = p + (*p == ',');
    *out = '\0';
    return start;
}

/* Returns 0 if both have the same key, or neither is a URL. */
static int compare_keys(const char *weird, const char *normal)
{
    struct wb_url a = WB_URL_INIT, b = WB_URL_INIT;
    struct wb_buf ka = WB_BUF_INIT, kb = WB_BUF_INIT;
    int wrong = 1;

    if (wb_url_parse(wb_slice_str(weird), NULL, &a) == 0 && wb_url_parse(wb_slice_str(normal), NULL, &b) == 0 &&
        wb_url_key(&a, &ka) == 0 && wb_url_key(&b, &kb) == 0)
        wrong = !wb_slice_equal(wb_buf_slice(&ka), wb_buf_slice(&kb));
    wb_url_release(&a);
    wb_url_release(&b);
    wb_buf_release(&ka);
    wb_buf_release(&kb);
    return wrong;
}

/* Opens a file of the conformance data. Skips the test if it is not there. */
static FILE *open_data(const char *name)
{
    char path[1024];

    data_path(name, path);
    FILE *file = fopen(path, "r");
    if (!file)
        skip();
    return file;
}

/* Reads the next line that is neither empty nor a comment, without its end. */
static bool read_line(FILE *file, char line[LINE_MAX_BYTES])
{
    while (fgets(line, LINE_MAX_BYTES, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#')
            return true;
    }
    return false;
}

static void test_crawler_commons(void **state)
{
    (void)state;
    char line[LINE_MAX_BYTES];
    int seen = 0, wrong = 0, listed = 0;

    FILE *file = open_data("weirdToNormalizedUrls.csv");
    while (read_line(file, line)) {
        char *rest = line;
        const char *weird = take_field(&rest), *normal = take_field(&rest);
        int differ = compare_keys(weird, normal);
        seen++;
        listed += is_listed(weird);
        if (differ != is_listed(weird)) {
            print_error("'%s' and '%s' %s\n", weird, normal, differ ? "differ" : "should differ");
            wrong++;
        }
    }
    fclose(file);
    assert_in_range(seen, 100, 10000);
    assert_int_equal(listed, COUNT(differs));
    assert_int_equal(wrong, 0);
}

static void test_invalid_and_resolve(void **state)
{
    (void)state;
    char line[LINE_MAX_BYTES];
    struct wb_url base = WB_URL_INIT, url = WB_URL_INIT;
    int seen = 0;

    FILE *file = open_data("invalidUrls.csv");
    while (read_line(file, line))
        assert_int_equal(wb_url_parse(wb_slice_str(line), NULL, &url), WB_E_PROTO);
    fclose(file);
    file = open_data("url-resolve.csv");
    while (read_line(file, line)) {
        char *rest = line;
        const char *spec = take_field(&rest), *from = take_field(&rest), *want = take_field(&rest);
        if (from[0])
            assert_int_equal(wb_url_parse(wb_slice_str(from), NULL, &base), 0);
        assert_int_equal(wb_url_parse(wb_slice_str(spec), from[0] ? &base : NULL, &url), 0);
        assert_slice(wb_url_href(&url), want);
        seen++;
    }
    fclose(file);
    assert_in_range(seen, 20, 1000);
    wb_url_release(&base);
    wb_url_release(&url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_and_alone),   cmocka_unit_test(test_keys),
        cmocka_unit_test(test_key_of_key),       cmocka_unit_test(test_site_of_anything),
        cmocka_unit_test(test_crawler_commons),  cmocka_unit_test(test_invalid_and_resolve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
