/* test_objecturl.c - which texts are URLs of object stores, and what is in them. */
#include "../expect.h"
#include "object/object.h"
#include "object/objecturl.h"

#include <stdio.h>

static void expect_s3(const char *text, const char *bucket, const char *prefix)
{
    struct wb_object_url url;

    ok(wb_object_url_parse(text, &url));
    assert_true(url.is_s3);
    assert_string_equal(url.text, text);
    assert_string_equal(url.bucket, bucket);
    assert_string_equal(url.prefix, prefix);
    wb_object_url_release(&url);
}

static void expect_file(const char *text, const char *dir)
{
    struct wb_object_url url;

    ok(wb_object_url_parse(text, &url));
    assert_false(url.is_s3);
    assert_string_equal(url.dir, dir);
    wb_object_url_release(&url);
}

static void expect_refused(const char *text)
{
    char quoted[64];

    assert_int_equal(wb_object_url_check(text), WB_E_INVALID);
    snprintf(quoted, sizeof quoted, "'%.50s", text);
    for (char *p = quoted; *p; p++)
        *p = (unsigned char)*p < 0x20 ? '?' : *p;
    assert_non_null(strstr(wb_error_message(), quoted));
    assert_non_null(strstr(wb_error_message(), "s3://BUCKET/PREFIX or file:///DIR"));
}

static void test_s3(void **state)
{
    (void)state;
    expect_s3("s3://vault", "vault", "");
    expect_s3("s3://vault/", "vault", "");
    expect_s3("s3://vault/p", "vault", "p");
    expect_s3("s3://vault/p/q/", "vault", "p/q");
    expect_s3("s3://my.vault-2/p%20q", "my.vault-2", "p%20q");
    expect_s3("s3://vault/team=a+b:c,d@e/v1.0~x", "vault", "team=a+b:c,d@e/v1.0~x");
    expect_s3("s3://vault/a?b#c/../d", "vault", "a?b#c/../d");
}

static void test_file(void **state)
{
    (void)state;
    expect_file("file:///vault", "/vault");
    expect_file("file:///vault/a b%20/../c//", "/vault/a b%20/../c");
    expect_file("file:///", "/");
    expect_file("file:////", "/");
}

static void test_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "vault",
        "/some/dir",
        "./dir",
        "ftp://host/dir",
        "http://127.0.0.1/x",
        "s3:",
        "s3:vault",
        "s3:/vault",
        "s3://",
        "s3:///prefix",
        "S4://vault/x",
        "S3://vault",
        "s3://-a/b",
        "s3://../b",
        "s3://a b/c",
        "s3://user:key@b/c",
        "file:",
        "file:/dir",
        "file://",
        "file://dir",
        "file://relative/dir",
        "file://localhost/dir",
        "FILE:///dir",
        "s3://vault/a\nb",
        "file:///a\x1b[2J",
        "s3://b\xc3\xbc/x",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refused(wrong[i]);
}

static void test_lengths(void **state)
{
    char text[WB_OBJECT_DIR_MAX + 100];

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, "s3://b/", 7);
    text[7 + WB_OBJECT_PREFIX_MAX] = '\0';
    ok(wb_object_url_check(text));
    text[7 + WB_OBJECT_PREFIX_MAX] = 'x';
    text[7 + WB_OBJECT_PREFIX_MAX + 1] = '\0';
    expect_refused(text);
    memcpy(text, "file:///", 8);
    memset(text + 8, 'x', sizeof text - 8);
    text[7 + WB_OBJECT_DIR_MAX] = '\0';
    ok(wb_object_url_check(text));
    text[7 + WB_OBJECT_DIR_MAX] = 'x';
    text[7 + WB_OBJECT_DIR_MAX + 1] = '\0';
    expect_refused(text);
    memset(text, 'x', sizeof text);
    memcpy(text, "s3://", 5);
    text[5 + WB_OBJECT_BUCKET_MAX + 1] = '\0';
    expect_refused(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_s3),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
