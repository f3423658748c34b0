/* httpd_wire.c - bytes from and to a client. */
#include "httpd/httpd_wire.h"
#include "base/check.h"
#include "base/error.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS_MAX 16u
#define RECORD_BYTES 16384u /* of TLS */

/* ---- TLS ------------------------------------------------------------------------------------- */

/* Browsers offer h2 first. Without this answer some clients give up instead of speaking HTTP/1.1. */
static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *len, const unsigned char *in,
                           unsigned in_len, void *context)
{
    static const unsigned char known[] = "\x08http/1.1";

    (void)ssl;
    (void)context;
    if (SSL_select_next_proto((unsigned char **)out, len, known, sizeof known - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    return SSL_TLSEXT_ERR_OK;
}

static int fail_tls(SSL_CTX *tls, const char *what, const char *path)
{
    char reason[256];

    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    SSL_CTX_free(tls);
    return wb_fail(WB_E_INVALID, "cannot use %s as %s: %s", path, what, reason);
}

int wb_httpd_tls_new(const char *certificate, const char *key, SSL_CTX **tls_out)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());

    *tls_out = NULL;
    if (!tls)
        return wb_fail_nomem();
    SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION);
    SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(tls,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(tls, select_protocol, NULL);
    /* For TLS 1.2: forward secrecy and authenticated encryption only. Those of 1.3 are all of that kind. */
    if (SSL_CTX_set_cipher_list(tls, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
        return fail_tls(tls, "the list of ciphers", "ECDHE+AESGCM:ECDHE+CHACHA20");
    if (SSL_CTX_use_certificate_chain_file(tls, certificate) != 1)
        return fail_tls(tls, "a certificate", certificate);
    if (SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(tls) != 1)
        return fail_tls(tls, "the key of the certificate", key);
    *tls_out = tls;
    return 0;
}

int wb_httpd_wire_secure(struct wb_httpd_wire *wire, SSL_CTX *tls)
{
    wire->ssl = SSL_new(tls);
    if (!wire->ssl || SSL_set_fd(wire->ssl, wire->fd) != 1)
        return wb_fail_nomem();
    SSL_set_accept_state(wire->ssl);
    return 0;
}

/* What OpenSSL's result means. The queue of errors belongs to the thread, so it must be empty before the next call. */
static int tls_result(SSL *ssl, int result)
{
    int error = SSL_get_error(ssl, result);

    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ)
        return WB_WIRE_WANTS_READ;
    if (error == SSL_ERROR_WANT_WRITE)
        return WB_WIRE_WANTS_WRITE;
    return error == SSL_ERROR_ZERO_RETURN ? WB_WIRE_CLOSED : WB_WIRE_BROKEN;
}

int wb_httpd_wire_handshake(struct wb_httpd_wire *wire)
{
    WB_CHECK(wire->ssl);
    int result = SSL_do_handshake(wire->ssl);
    if (result == 1)
        return 1;
    result = tls_result(wire->ssl, result);
    return result == WB_WIRE_CLOSED ? WB_WIRE_BROKEN : result;
}

/* ---- bytes --------------------------------------------------------------------------------------- */

static long plain_result(ssize_t n, int wants)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? wants : WB_WIRE_BROKEN;
}

long wb_httpd_wire_read(struct wb_httpd_wire *wire, char *bytes, size_t len)
{
    WB_CHECK(len > 0 && len <= INT32_MAX);
    if (!wire->ssl)
        return plain_result(recv(wire->fd, bytes, len, 0), WB_WIRE_WANTS_READ);
    int n = SSL_read(wire->ssl, bytes, (int)len);
    return n > 0 ? n : tls_result(wire->ssl, n);
}

/* Copies parts into one record, so that a small reply is not three records. */
static long write_tls(SSL *ssl, const struct wb_slice *parts, unsigned count)
{
    char record[RECORD_BYTES];
    size_t len = 0;

    for (unsigned i = 0; i < count && len < sizeof record; i++) {
        size_t n = parts[i].len < sizeof record - len ? parts[i].len : sizeof record - len;
        memcpy(record + len, parts[i].ptr, n);
        len += n;
    }
    int n = SSL_write(ssl, record, (int)len);
    return n > 0 ? n : tls_result(ssl, n);
}

long wb_httpd_wire_write(struct wb_httpd_wire *wire, const struct wb_slice *parts, unsigned count)
{
    struct iovec vectors[PARTS_MAX];
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};

    WB_CHECK(count > 0 && count <= PARTS_MAX);
    if (wire->ssl)
        return write_tls(wire->ssl, parts, count);
    for (unsigned i = 0; i < count; i++)
        vectors[i] = (struct iovec){(void *)(uintptr_t)parts[i].ptr, parts[i].len};
    return plain_result(sendmsg(wire->fd, &message, MSG_NOSIGNAL), WB_WIRE_WANTS_WRITE);
}

bool wb_httpd_wire_finish(struct wb_httpd_wire *wire)
{
    if (wire->ssl) {
        SSL_shutdown(wire->ssl);
        ERR_clear_error();
        SSL_free(wire->ssl); /* what still arrives is read from the socket, and dropped */
        wire->ssl = NULL;
    }
    return shutdown(wire->fd, SHUT_WR) == 0;
}

void wb_httpd_wire_close(struct wb_httpd_wire *wire, bool reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (wire->ssl)
        SSL_free(wire->ssl);
    if (reset)
        setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(wire->fd);
    *wire = (struct wb_httpd_wire){.fd = -1};
}
