/* test_httpd_tls.c - the same server behind TLS. */
#include "httpd_support.h"

#include "../fetch/certificate.h"
#include "base/error.h"
#include "os/hangup.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define END " HTTP/1.1\r\nHost: x\r\n\r\n"
#define LAST " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static char certificate[300], key[300];

static void start(struct site *site)
{
    site->options.certificate = certificate;
    site->options.key = key;
    site_start(site);
}

/* A TLS client with at most this version; NULL if the handshake fails. */
static SSL *dial_tls(struct site *site, SSL_CTX *context, int version)
{
    SSL *ssl = SSL_new(context);

    SSL_set_max_proto_version(ssl, version);
    SSL_set_min_proto_version(ssl, version);
    SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    SSL_set_fd(ssl, dial(site));
    if (SSL_connect(ssl) == 1)
        return ssl;
    close(SSL_get_fd(ssl));
    SSL_free(ssl);
    return NULL;
}

static void hang_up(SSL *ssl)
{
    close(SSL_get_fd(ssl));
    SSL_free(ssl);
}

static void hear_tls(SSL *ssl, struct wb_buf *out)
{
    char bytes[4096];
    int n;

    while ((n = SSL_read(ssl, bytes, sizeof bytes)) > 0)
        wb_buf_append(out, bytes, (size_t)n);
}

static void test_requests(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static const char text[] = "GET /fields" END "GET /pieces?count=30&bytes=50000" END "GET /big?bytes=3000000" LAST;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    start(&site);
    for (size_t i = 0; i < 2; i++)
        for (size_t step = sizeof text; step > 0; step = step > 1 ? 1 : 0) {
            SSL *ssl = dial_tls(&site, context, versions[i]);
            const unsigned char *protocol;
            unsigned len;
            assert_non_null(ssl);
            SSL_get0_alpn_selected(ssl, &protocol, &len);
            assert_int_equal(len, 8);
            for (size_t at = 0; at < sizeof text - 1; at += step)
                assert_true(SSL_write(ssl, text + at, (int)(step > 1 ? sizeof text - 1 : 1)) > 0);
            wb_buf_clear(&reply);
            hear_tls(ssl, &reply);
            assert_int_equal(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
            assert_true(has(&reply, " 127.0.0.1 1 1\n"));
            assert_true(has(&reply, "\r\n0\r\n\r\nHTTP/1.1 200 "));
            assert_true(reply.len > 3000000 + 30 * 50000);
            hang_up(ssl);
        }
    ERR_clear_error();
    SSL_CTX_free(context);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* A body in records of all sizes arrives completely, although OpenSSL reads ahead. */
static void test_body(void **state)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct site site = {0};
    struct wb_buf reply = WB_BUF_INIT, text = WB_BUF_INIT;

    (void)state;
    start(&site);
    SSL *ssl = dial_tls(&site, context, TLS1_3_VERSION);
    assert_non_null(ssl);
    for (unsigned i = 0; i < 3; i++) {
        wb_buf_printf(&text, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %u\r\n%s\r\n", BODY_MAX,
                      i == 2 ? "Connection: close\r\n" : "");
        for (unsigned k = 0; k < BODY_MAX; k++)
            wb_buf_append_char(&text, 'z');
    }
    for (size_t at = 0, n; at < text.len; at += n) {
        n = 1 + at % 16000;
        n = n > text.len - at ? text.len - at : n;
        assert_true(SSL_write(ssl, text.ptr + at, (int)n) > 0);
    }
    hear_tls(ssl, &reply);
    assert_true(reply.len > 3 * BODY_MAX);
    assert_int_equal(site.handled, 3);
    hang_up(ssl);
    SSL_CTX_free(context);
    wb_buf_release(&text);
    wb_buf_release(&reply);
    site_stop(&site);
}

/* Old versions, plain HTTP, half a handshake and no handshake. */
static void test_refused(void **state)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct site site = {.options.limits = {.head_ms = 200}};
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    start(&site);
    SSL_CTX_set_security_level(context, 0);
    assert_null(dial_tls(&site, context, TLS1_1_VERSION));
    ERR_clear_error();
    int plain = dial(&site), half = dial(&site), silent = dial(&site);
    say(plain, "GET /hello" END);
    hear_all(plain, &reply);
    assert_false(has(&reply, "hello"));
    say_bytes(half, "\x16\x03\x01\x02\x00\x01", 6, 6);
    hear_all(half, &reply);
    hear_all(silent, &reply);
    close(plain);
    close(half);
    close(silent);
    SSL *ssl = dial_tls(&site, context, TLS1_3_VERSION);
    assert_non_null(ssl);
    hang_up(ssl);
    await_connections(&site, 0);
    assert_int_equal(site.handled, 0);
    SSL_CTX_free(context);
    wb_buf_release(&reply);
    site_stop(&site);
}

static void test_bad_files(void **state)
{
    struct site site = {0};
    struct wb_httpd *httpd;

    (void)state;
    start(&site);
    struct wb_httpd_options options = site.options;
    options.listen = WB_SLICE_LIT("127.0.0.1:0");
    options.certificate = "/no/such/file.pem";
    assert_int_equal(wb_httpd_new(&options, &httpd), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "/no/such/file.pem"));
    options.certificate = certificate;
    options.key = certificate;
    assert_int_equal(wb_httpd_new(&options, &httpd), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "cert.pem"));
    site_stop(&site);
}

/* The serial number of the certificate that the server shows, as text. */
static void shown_serial(struct site *site, SSL_CTX *context, char text_out[100])
{
    SSL *ssl = dial_tls(site, context, TLS1_3_VERSION);

    assert_non_null(ssl);
    X509 *shown = SSL_get1_peer_certificate(ssl);
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(shown), NULL);
    char *text = BN_bn2hex(number);
    snprintf(text_out, 100, "%s", text);
    OPENSSL_free(text);
    BN_free(number);
    X509_free(shown);
    hang_up(ssl);
}

/* After SIGHUP the files are read again; those who are connected notice nothing, and bad files change nothing. */
static void test_renewed(void **state)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct site site = {0};
    char first[100], second[100], third[100];
    struct wb_buf reply = WB_BUF_INIT;

    (void)state;
    wb_hangup_count();
    start(&site);
    shown_serial(&site, context, first);
    SSL *old = dial_tls(&site, context, TLS1_3_VERSION);
    assert_non_null(old);
    assert_true(make_certificate());
    raise(SIGHUP);
    await_count(site.certified, 1);
    shown_serial(&site, context, second);
    assert_string_not_equal(first, second);
    assert_int_equal(site.certified_err, 0);
    assert_int_equal(truncate(key, 20), 0);
    raise(SIGHUP);
    await_count(site.certified, 2);
    assert_true(site.certified_err < 0);
    shown_serial(&site, context, third);
    assert_string_equal(second, third);
    static const char text[] = "GET /hello" LAST;
    assert_true(SSL_write(old, text, sizeof text - 1) > 0);
    hear_tls(old, &reply);
    assert_true(has(&reply, "hello\n"));
    hang_up(old);
    assert_true(make_certificate());
    SSL_CTX_free(context);
    wb_buf_release(&reply);
    site_stop(&site);
}

static int set_up(void **state)
{
    int err = make_root(state);

    snprintf(certificate, sizeof certificate, "%s/cert.pem", test_root);
    snprintf(key, sizeof key, "%s/key.pem", test_root);
    return err == 0 && make_certificate() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_renewed),
    };

    return cmocka_run_group_tests(tests, set_up, remove_root);
}
