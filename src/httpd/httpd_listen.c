/* httpd_listen.c - from an address as text to a listening socket. Names other than localhost are not resolved. */
#include "httpd/httpd_listen.h"
#include "base/error.h"
#include "httpd/httpd_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 4096

union socket_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_storage storage;
};

static socklen_t address_len(const union socket_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof address->six : sizeof address->four;
}

/* "*" is every address of the machine, IPv4 included. */
static bool parse_address(struct wb_slice where, union socket_address *address_out)
{
    const char *colon = where.len ? memrchr(where.ptr, ':', where.len) : NULL;
    size_t n = colon ? (size_t)(colon - where.ptr) : 0;
    char host[INET6_ADDRSTRLEN];
    uint64_t port;

    *address_out = (union socket_address){.storage = {0}};
    if (!colon || !wb_slice_to_u64(wb_slice(colon + 1, where.len - n - 1), &port) || port > 65535)
        return false;
    struct wb_slice name = wb_slice(where.ptr, n);
    bool brackets = n > 2 && name.ptr[0] == '[' && name.ptr[n - 1] == ']';
    if (brackets)
        name = wb_slice(name.ptr + 1, n - 2);
    if (wb_slice_equal(name, WB_SLICE_LIT("localhost")))
        name = WB_SLICE_LIT("127.0.0.1");
    bool all = wb_slice_equal(name, WB_SLICE_LIT("*"));
    if (name.len == 0 || name.len >= sizeof host || memchr(name.ptr, 0, name.len))
        return false;
    snprintf(host, sizeof host, "%.*s", WB_SLICE_ARG(name));
    if (all || brackets) {
        address_out->six.sin6_family = AF_INET6;
        address_out->six.sin6_port = htons((uint16_t)port);
        return all || inet_pton(AF_INET6, host, &address_out->six.sin6_addr) == 1;
    }
    address_out->four.sin_family = AF_INET;
    address_out->four.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &address_out->four.sin_addr) == 1;
}

static int open_socket(union socket_address *address, bool all)
{
    int on = 1, off = 0, fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 && all && errno == EAFNOSUPPORT) { /* a machine without IPv6 */
        in_port_t port = address->six.sin6_port;
        *address = (union socket_address){.four = {.sin_family = AF_INET, .sin_port = port}};
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, all ? &off : &on, sizeof on);
    return fd;
}

int wb_httpd_listen(struct wb_slice where, struct wb_httpd_listener *listener_out)
{
    union socket_address address;
    char host[WB_HTTPD_PEER_TEXT];
    socklen_t len = sizeof address;

    *listener_out = (struct wb_httpd_listener){.fd = -1};
    if (!parse_address(where, &address))
        return wb_fail(WB_E_INVALID, "the address to listen on is ADDRESS:PORT such as 127.0.0.1:8080, not '%.*s'",
                       WB_SLICE_ARG(where));
    int fd = open_socket(&address, where.ptr[0] == '*');
    if (fd < 0 || bind(fd, &address.any, address_len(&address)) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &address.any, &len) < 0) {
        int err = wb_fail_errno("cannot listen on %.*s", WB_SLICE_ARG(where));
        if (fd >= 0)
            close(fd);
        return err;
    }
    listener_out->fd = fd;
    listener_out->address = address.storage;
    listener_out->loopback = wb_httpd_peer_describe(&address.storage, host);
    bool six = address.any.sa_family == AF_INET6;
    snprintf(listener_out->text, sizeof listener_out->text, six ? "[%s]:%u" : "%s:%u", host,
             ntohs(six ? address.six.sin6_port : address.four.sin_port));
    return 0;
}

/* ---- which hosts lead here ----------------------------------------------------------------------- */

/* "192.0.2.7" and "[2001:db8::7]". */
static bool parse_literal(struct wb_slice host, union socket_address *address_out)
{
    bool brackets = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    char text[INET6_ADDRSTRLEN];

    *address_out = (union socket_address){.storage = {0}};
    if (brackets)
        host = wb_slice(host.ptr + 1, host.len - 2);
    if (host.len == 0 || host.len >= sizeof text || memchr(host.ptr, 0, host.len))
        return false;
    snprintf(text, sizeof text, "%.*s", WB_SLICE_ARG(host));
    address_out->any.sa_family = brackets ? AF_INET6 : AF_INET;
    return brackets ? inet_pton(AF_INET6, text, &address_out->six.sin6_addr) == 1
                    : inet_pton(AF_INET, text, &address_out->four.sin_addr) == 1;
}

static bool is_same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    unsigned char x[16], y[16];

    wb_httpd_peer_bytes(a, x);
    wb_httpd_peer_bytes(b, y);
    return memcmp(x, y, sizeof x) == 0;
}

/* 0.0.0.0 and [::]. */
static bool is_any(const struct sockaddr_storage *address)
{
    static const struct sockaddr_storage none = {.ss_family = AF_INET}, six_none = {.ss_family = AF_INET6};

    return is_same(address, &none) || is_same(address, &six_none);
}

/* Addresses come and go while the server runs, so they are looked up each time; few requests need that. */
static bool is_of_machine(const struct sockaddr_storage *address)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *at = list; at && !found; at = at->ifa_next) {
        union socket_address own = {.storage = {0}};
        if (!at->ifa_addr || (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6))
            continue;
        own.any.sa_family = at->ifa_addr->sa_family;
        memcpy(&own, at->ifa_addr, address_len(&own));
        found = is_same(&own.storage, address);
    }
    freeifaddrs(list);
    return found;
}

bool wb_httpd_listens_on(const struct wb_httpd_listener *listener, struct wb_slice host)
{
    bool any = is_any(&listener->address), loopback = listener->loopback || any;
    char text[WB_HTTPD_PEER_TEXT];
    union socket_address address;

    if (wb_slice_equal_nocase(host, WB_SLICE_LIT("localhost")))
        return loopback;
    if (!parse_literal(host, &address))
        return false;
    if (is_same(&address.storage, &listener->address))
        return !any;
    if (wb_httpd_peer_describe(&address.storage, text))
        return loopback;
    return any && is_of_machine(&address.storage);
}
