/* httpd_listen.h - the socket on which the server listens. */
#ifndef WB_HTTPD_HTTPD_LISTEN_H
#define WB_HTTPD_HTTPD_LISTEN_H

#include "base/slice.h"

#include <sys/socket.h>

#define WB_HTTPD_ADDRESS_TEXT 64

struct wb_httpd_listener {
    int fd;
    char text[WB_HTTPD_ADDRESS_TEXT]; /* the address as in a URL, with the real port */
    bool loopback;
    struct sockaddr_storage address;
};

/* See wb_httpd_has_address(). */
bool wb_httpd_listens_on(const struct wb_httpd_listener *listener, struct wb_slice host);

/* Binds and listens: "127.0.0.1:8080", "localhost:0", "[::1]:80", "*:80". The caller closes the fd. */
int wb_httpd_listen(struct wb_slice where, struct wb_httpd_listener *listener_out);

#endif
