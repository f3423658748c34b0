/* test_s3_keys.c - keys from the environment and from the file, and new ones when the old ones are refused. */
#include "../testroot.h"
#include "object/s3_keys.h"
#include "os/path.h"
#include "s3_support.h"

static const char file_text[] = "\xef\xbb\xbf# comment = [default]\n"
                                "aws_access_key_id = OUTSIDE\n"
                                "[ other ]\r\n"
                                "aws_access_key_id=OTHER\r\n"
                                "aws_secret_access_key = other/secret==\r\n"
                                "; aws_session_token = no\n"
                                "[default]\n"
                                "region = somewhere\n"
                                "  AWS_Access_Key_Id =  DEFAULT  \n"
                                "aws_secret_access_key = a=b\n"
                                "aws_session_token = TOKEN+/=\n"
                                "no sense\n"
                                "[profile third]\n"
                                "aws_access_key_id = first\n"
                                "aws_access_key_id = THIRD\n"
                                "[default]\n"
                                "aws_secret_access_key = later";

static void expect_found(const char *profile, bool any, const char *access, const char *secret, const char *token)
{
    struct wb_slice found[WB_S3_KEY_COUNT];

    assert_int_equal(wb_s3_credentials_find(WB_SLICE_LIT(file_text), wb_slice_str(profile), found), any);
    expect(found[WB_S3_ACCESS], access);
    expect(found[WB_S3_SECRET], secret);
    expect(found[WB_S3_TOKEN], token);
}

static void test_find(void **state)
{
    struct wb_slice found[WB_S3_KEY_COUNT];

    (void)state;
    expect_found("other", true, "OTHER", "other/secret==", "");
    expect_found("default", true, "DEFAULT", "later", "TOKEN+/=");
    expect_found("third", true, "THIRD", "", "");
    expect_found("nobody", false, "", "", "");
    expect_found("", false, "", "", "");
    assert_false(wb_s3_credentials_find(WB_SLICE_EMPTY, WB_SLICE_LIT("default"), found));
    assert_true(wb_s3_credentials_find(WB_SLICE_LIT("[default]"), WB_SLICE_LIT("default"), found));
    assert_false(wb_s3_credentials_find(WB_SLICE_LIT("[default"), WB_SLICE_LIT("default"), found));
}

static void write_keys(const char *access, const char *secret, const char *token)
{
    char text[512];

    snprintf(text, sizeof text, "[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n%s%s\n", access, secret,
             *token ? "aws_session_token=" : "", token);
    ok(wb_path_mkdirs(test_path(".aws")));
    ok(wb_path_replace(test_path(".aws/credentials"), wb_slice_str(text)));
}

static struct wb_s3_keyring *open_ring(void)
{
    struct wb_s3_keyring *ring;

    ok(wb_s3_keyring_open("s3://bucket", &ring));
    return ring;
}

static void expect_keys(struct wb_s3_keyring *ring, const char *access, const char *secret, const char *token)
{
    const struct wb_s3_keys *keys = wb_s3_keyring_hold(ring);

    assert_string_equal(keys->access, access);
    assert_string_equal(keys->secret, secret);
    assert_string_equal(keys->token ? keys->token : "none", token);
    wb_s3_keyring_drop(ring, keys);
}

static void expect_denied(const char *part)
{
    struct wb_s3_keyring *ring;

    assert_int_equal(wb_s3_keyring_open("s3://bucket", &ring), WB_E_DENIED);
    assert_null(ring);
    assert_non_null(strstr(wb_error_message(), "s3://bucket"));
    if (!strstr(wb_error_message(), part))
        fail_msg("no '%s' in '%s'", part, wb_error_message());
    assert_null(strstr(wb_error_message(), "SECRET/bad"));
}

static void test_environment(void **state)
{
    struct wb_s3_keyring *ring;

    (void)state;
    clear_environment();
    setenv("HOME", test_root, 1);
    write_keys("FILE", "file-secret", "");
    setenv("AWS_ACCESS_KEY_ID", "ENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", " env-secret\n", 1);
    ring = open_ring();
    expect_keys(ring, "ENV", "env-secret", "none");
    assert_string_equal(wb_s3_keyring_place(ring, WB_S3_SECRET), "AWS_SECRET_ACCESS_KEY");
    /* The environment does not change while we run. */
    const struct wb_s3_keys *keys = wb_s3_keyring_hold(ring);
    assert_false(wb_s3_keyring_renew(ring, keys));
    wb_s3_keyring_drop(ring, keys);
    wb_s3_keyring_close(ring);
    setenv("AWS_SESSION_TOKEN", "T+/=", 1);
    ring = open_ring();
    expect_keys(ring, "ENV", "env-secret", "T+/=");
    wb_s3_keyring_close(ring);
}

static void test_wrong(void **state)
{
    char large[10000];

    (void)state;
    clear_environment();
    setenv("HOME", test_path("nobody"), 1);
    expect_denied("AWS_ACCESS_KEY_ID");
    expect_denied("nobody/.aws/credentials");
    setenv("AWS_SECRET_ACCESS_KEY", "SECRET/bad", 1);
    expect_denied("AWS_ACCESS_KEY_ID is missing");
    setenv("AWS_ACCESS_KEY_ID", "A/B", 1);
    expect_denied("AWS_ACCESS_KEY_ID");
    setenv("AWS_ACCESS_KEY_ID", "AB", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "SECRET/bad\r\nx-evil: 1", 1);
    expect_denied("AWS_SECRET_ACCESS_KEY");
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    memset(large, 't', sizeof large);
    large[sizeof large - 1] = '\0';
    setenv("AWS_SESSION_TOKEN", large, 1);
    expect_denied("AWS_SESSION_TOKEN");
    clear_environment();
    setenv("HOME", test_root, 1);
    setenv("AWS_PROFILE", "archive", 1);
    write_keys("FILE", "file-secret", "");
    expect_denied("[archive]");
    unsetenv("AWS_PROFILE");
    write_keys("", "SECRET/bad", "");
    expect_denied("aws_access_key_id of [default]");
}

static void test_file(void **state)
{
    struct wb_s3_keyring *ring;

    (void)state;
    clear_environment();
    setenv("HOME", test_root, 1);
    write_keys("FILE", "file-secret", "tok");
    ring = open_ring();
    expect_keys(ring, "FILE", "file-secret", "tok");
    assert_non_null(strstr(wb_s3_keyring_place(ring, WB_S3_SECRET), "[default] in /tmp"));
    wb_s3_keyring_close(ring);
    ok(wb_path_replace(test_path("elsewhere"), wb_slice_str("[p]\naws_access_key_id=P\naws_secret_access_key=s\n")));
    setenv("AWS_SHARED_CREDENTIALS_FILE", test_path("elsewhere"), 1);
    setenv("AWS_PROFILE", "p", 1);
    ring = open_ring();
    expect_keys(ring, "P", "s", "none");
    wb_s3_keyring_close(ring);
}

static void test_renew(void **state)
{
    struct wb_s3_keyring *ring;

    (void)state;
    clear_environment();
    setenv("HOME", test_root, 1);
    write_keys("FILE", "file-secret", "one");
    ring = open_ring();
    const struct wb_s3_keys *old = wb_s3_keyring_hold(ring);
    assert_false(wb_s3_keyring_renew(ring, old));
    write_keys("FILE", "file-secret", "two");
    assert_true(wb_s3_keyring_renew(ring, old));
    expect_keys(ring, "FILE", "file-secret", "two");
    assert_string_equal(old->token, "one");
    /* Another thread has renewed them meanwhile. */
    assert_true(wb_s3_keyring_renew(ring, old));
    wb_s3_keyring_drop(ring, old);
    /* A file that cannot be read leaves the keys and the message as they are. */
    ok(wb_path_replace(test_path(".aws/credentials"), wb_slice_str("[other]")));
    wb_fail(WB_E_DENIED, "refused");
    old = wb_s3_keyring_hold(ring);
    assert_false(wb_s3_keyring_renew(ring, old));
    assert_string_equal(wb_error_message(), "refused");
    wb_s3_keyring_drop(ring, old);
    expect_keys(ring, "FILE", "file-secret", "two");
    wb_s3_keyring_close(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test_setup_teardown(test_environment, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_wrong, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_file, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_renew, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
