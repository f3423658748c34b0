/* test_s3_endpoint.c - to which server requests go. */
#include "../expect.h"
#include "object/s3_endpoint.h"

#include <stdlib.h>

static void expect_endpoint(const char *endpoint, const char *region, const char *bucket, const char *origin,
                            const char *host, const char *path, bool loopback)
{
    struct wb_s3_endpoint e;

    ok(wb_s3_endpoint_parse(endpoint, region, bucket, &e));
    assert_string_equal(e.origin, origin);
    assert_string_equal(e.host, host);
    assert_string_equal(e.path, path);
    assert_string_equal(e.region, *region ? region : "us-east-1");
    assert_int_equal(e.loopback, loopback);
    wb_s3_endpoint_release(&e);
}

static void test_endpoints(void **state)
{
    (void)state;
    expect_endpoint("http://127.0.0.1:9000", "", "b", "http://127.0.0.1:9000", "127.0.0.1:9000", "/b", true);
    expect_endpoint("http://LocalHost:9000/", "", "b", "http://localhost:9000", "localhost:9000", "/b", true);
    expect_endpoint("HTTPS://s3.Example.org", "default", "b", "https://s3.example.org", "s3.example.org", "/b", false);
    expect_endpoint("https://h:443/base/%7Ex//", "", "b", "https://h", "h", "/base/%7Ex/b", false);
    expect_endpoint("http://h:80", "", "b", "http://h", "h", "/b", false);
    expect_endpoint("http://h:443", "", "b", "http://h:443", "h:443", "/b", false);
    expect_endpoint("http://[::1]:7480", "", "b", "http://[::1]:7480", "[::1]:7480", "/b", true);
    expect_endpoint("http://[2001:db8::1]", "", "b", "http://[2001:db8::1]", "[2001:db8::1]", "/b", false);
}

static void test_amazon(void **state)
{
    (void)state;
    expect_endpoint("", "", "vault", "https://vault.s3.us-east-1.amazonaws.com", "vault.s3.us-east-1.amazonaws.com", "",
                    false);
    expect_endpoint("", "cn-north-1", "vault", "https://vault.s3.cn-north-1.amazonaws.com.cn",
                    "vault.s3.cn-north-1.amazonaws.com.cn", "", false);
    /* No certificate is good for these names. */
    expect_endpoint("", "eu-west-1", "my.vault", "https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com",
                    "/my.vault", false);
    expect_endpoint("", "eu-west-1", "Vault", "https://s3.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com",
                    "/Vault", false);
}

static void expect_refused(const char *endpoint, const char *region, const char *variable)
{
    struct wb_s3_endpoint e;

    assert_int_equal(wb_s3_endpoint_parse(endpoint, region, "b", &e), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), variable));
    assert_null(e.origin);
}

static void test_refused(void **state)
{
    static const char *const wrong[] = {
        "127.0.0.1:9000", "ftp://h",          "http:/h",         "http://",      "http:///path", "http://h:0",
        "http://h:65536", "http://h:",        "http://h:1x",     "http://u:p@h", "http://h/a b", "http://h?x",
        "http://h/p?x",   "http://h#f",       "http://h/%zz",    "http://h/%4",  "http://[::1",  "http://[::1]x",
        "http://[zz]:1",  "http://h\r\nx: y", "http://\xc3\xbc", "http://h:1:2", "s3://b",       "http://[]:80",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refused(wrong[i], "", "AWS_ENDPOINT_URL");
    expect_refused("", "eu west", "AWS_REGION");
    expect_refused("", "evil.example/", "AWS_REGION");
    expect_refused("", "evil.example", "AWS_REGION");
    expect_refused("http://h", "a/b", "AWS_REGION");
    expect_refused("http://h", "a\nb", "AWS_REGION");
    expect_refused("http://h", "a-region-with-a-name-that-is-longer-than-any-name-of-a-region-can-be", "AWS_REGION");
}

static void test_environment(void **state)
{
    struct wb_object_url url = {.is_s3 = true, .bucket = (char *)"b"};
    struct wb_s3_endpoint e;

    (void)state;
    unsetenv("AWS_ENDPOINT_URL");
    unsetenv("AWS_REGION");
    setenv("AWS_DEFAULT_REGION", "eu-south-1", 1);
    ok(wb_s3_endpoint_find(&url, &e));
    assert_string_equal(e.region, "eu-south-1");
    wb_s3_endpoint_release(&e);
    setenv("AWS_REGION", "eu-north-1", 1);
    setenv("AWS_ENDPOINT_URL", "http://h:1", 1);
    ok(wb_s3_endpoint_find(&url, &e));
    assert_string_equal(e.region, "eu-north-1");
    assert_string_equal(e.origin, "http://h:1");
    wb_s3_endpoint_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_amazon),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
