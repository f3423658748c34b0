/* test_s3_tls.c - a store behind TLS: whom it trusts. The server of httpd is no store, which shows that it was reached.
 */
#include "../httpd/httpd_support.h"
#include "../testroot.h"
#include "base/error.h"
#include "object/object.h"

#include <stdlib.h>

static char certificate[300], key[300];

static bool make_own_certificate(void)
{
    char command[800];

    snprintf(certificate, sizeof certificate, "%s", test_path("cert.pem"));
    snprintf(key, sizeof key, "%s", test_path("key.pem"));
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=store "
             "-addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s >/dev/null 2>&1",
             key, certificate);
    return system(command) == 0;
}

/* Asks the server for an object. The message must contain a word. */
static void expect_answer(const struct site *site, const char *issuers, int err, const char *word)
{
    struct wb_object_store *store = NULL;
    struct wb_buf bytes;
    char endpoint[64];

    snprintf(endpoint, sizeof endpoint, "https://127.0.0.1:%u", (unsigned)site->port);
    setenv("AWS_ENDPOINT_URL", endpoint, 1);
    setenv("AWS_ACCESS_KEY_ID", "KEY", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    if (issuers)
        setenv("AWS_CA_BUNDLE", issuers, 1);
    else
        unsetenv("AWS_CA_BUNDLE");
    assert_int_equal(wb_object_open("s3://bucket/p", NULL, &store), 0);
    assert_int_equal(wb_object_get(store, "x", 10, &bytes), err);
    if (!strstr(wb_error_message(), word) || !strstr(wb_error_message(), endpoint + strlen("https://")))
        fail_msg("no '%s' in '%s'", word, wb_error_message());
    wb_object_close(store);
}

static void test_trust(void **state)
{
    struct site site = {0};

    (void)state;
    assert_true(make_own_certificate());
    site.options.certificate = certificate;
    site.options.key = key;
    site_start(&site);
    expect_answer(&site, NULL, WB_E_DENIED, "AWS_CA_BUNDLE");
    expect_answer(&site, test_path("nobody.pem"), WB_E_DENIED, "AWS_CA_BUNDLE");
    expect_answer(&site, certificate, WB_E_PROTO, "is it an object store");
    site_stop(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trust)};

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
