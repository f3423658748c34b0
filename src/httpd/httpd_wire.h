/*
 * httpd_wire.h - reading from and writing to a client, plain or through TLS. Nothing here waits.
 *
 * TLS is OpenSSL on the socket itself. bufferevent_openssl would add a second pair of buffers that nobody bounds.
 */
#ifndef WB_HTTPD_HTTPD_WIRE_H
#define WB_HTTPD_HTTPD_WIRE_H

#include "base/slice.h"

#include <openssl/ssl.h>

enum wb_wire_result {
    WB_WIRE_CLOSED = 0,      /* the client will send nothing more */
    WB_WIRE_WANTS_READ = -1, /* try again when the socket is readable */
    WB_WIRE_WANTS_WRITE = -2,
    WB_WIRE_BROKEN = -3,
};

struct wb_httpd_wire {
    int fd;
    SSL *ssl; /* NULL: plain */
};

/* Reads the certificate and the key. The message of an error names the file. */
int wb_httpd_tls_new(const char *certificate, const char *key, SSL_CTX **tls_out);

/* Puts TLS onto a connection. */
int wb_httpd_wire_secure(struct wb_httpd_wire *wire, SSL_CTX *tls);

/* 1 when the handshake is done; else an enum wb_wire_result. */
int wb_httpd_wire_handshake(struct wb_httpd_wire *wire);

/* The number of bytes, or an enum wb_wire_result. */
long wb_httpd_wire_read(struct wb_httpd_wire *wire, char *bytes, size_t len);

/* Writes some of the parts, in order. The number of bytes, or an enum wb_wire_result. */
long wb_httpd_wire_write(struct wb_httpd_wire *wire, const struct wb_slice *parts, unsigned count);

/* Tells the client that nothing more will come, but keeps receiving. False if that is not possible. */
bool wb_httpd_wire_finish(struct wb_httpd_wire *wire);

/* Closes. With reset, the client sees an error instead of an end. */
void wb_httpd_wire_close(struct wb_httpd_wire *wire, bool reset);

#endif
