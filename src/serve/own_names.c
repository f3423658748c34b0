/*
 * own_names.c - under which names the server answers, and whose pages may make it change something.
 *
 * A page of any site can have its own name resolve to 127.0.0.1 for a moment (DNS rebinding). For the browser, an open
 * server on that address is then part of that site, and the page may read all of it. The browser still says in Host
 * which name it meant; so requests are answered only under the addresses that lead here (wb_httpd_has_address()) and
 * the names of --allow-host. X-Forwarded-Host says nothing: any client can write it.
 *
 * A browser also sends requests that pages of other sites cause without reading the answer: forms, images. What only
 * reads may answer them; what changes something looks at Origin and Sec-Fetch-Site first.
 */
#include "base/check.h"
#include "base/codec.h"
#include "serve/server.h"

#include <string.h>

/* "Name.:8080" and "[::1]:8080" as host and port. False if it has neither form; no port: empty. */
static bool split_host(struct wb_slice text, struct wb_slice *host_out, struct wb_slice *port_out)
{
    const char *bracket = text.len && text.ptr[0] == '[' ? memchr(text.ptr, ']', text.len) : NULL;
    const char *from = bracket ? bracket : text.ptr;
    const char *colon = text.len ? memchr(from, ':', (size_t)(text.ptr + text.len - from)) : NULL;
    uint64_t port = 0;

    *host_out = colon ? wb_slice(text.ptr, (size_t)(colon - text.ptr)) : text;
    *port_out = colon ? wb_slice(colon + 1, (size_t)(text.ptr + text.len - colon - 1)) : WB_SLICE_EMPTY;
    if (port_out->len && (!wb_slice_to_u64(*port_out, &port) || port > 65535))
        return false;
    if (host_out->len > 1 && host_out->ptr[host_out->len - 1] == '.')
        host_out->len--; /* the root of the DNS */
    return host_out->len > 0;
}

/* Whether --allow-host gives this name. One without a port is good for all ports, unless the port must be the same. */
static bool is_allowed(const struct wb_server *server, struct wb_slice host, struct wb_slice port, bool same_port)
{
    const struct wb_serve_options *o = server->options;
    struct wb_slice own_host, own_port;

    for (size_t i = 0; i < o->host_count; i++)
        if (split_host(o->hosts[i], &own_host, &own_port) && wb_slice_equal_nocase(own_host, host) &&
            (wb_slice_equal(own_port, port) || (own_port.len == 0 && !same_port)))
            return true;
    return false;
}

/*
 * A name without a dot, as machines of a local network and containers have ("archive", "archive:8080"). No site on the
 * web has such a name, so no page of one can make it lead here; only the operator of this network could.
 */
static bool is_local_name(struct wb_slice host)
{
    if (!wb_ascii_is_letter(host.ptr[0]))
        return false; /* a number may be an address in another spelling */
    for (size_t i = 0; i < host.len; i++)
        if (!wb_ascii_is_letter(host.ptr[i]) && !wb_ascii_is_digit(host.ptr[i]) && host.ptr[i] != '-')
            return false;
    return true;
}

/*
 * The port of an address does not matter: a tunnel or a published port of a container may have another one than the
 * server, and no site can choose what an address means.
 */
static bool is_own(const struct wb_server *server, struct wb_slice text)
{
    struct wb_slice host, port;

    return split_host(text, &host, &port) &&
           (is_allowed(server, host, port, false) || is_local_name(host) || wb_httpd_has_address(server->httpd, host));
}

bool wb_own_names_has(const struct wb_server *server, const struct wb_http_request *request,
                      struct wb_slice *foreign_out)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    struct wb_slice field = wb_http_field(request, "Host");

    *foreign_out = request->authority;
    if (request->authority.ptr && !is_own(server, request->authority))
        return false;
    *foreign_out = field;
    /* No browser leaves Host out; programs that speak HTTP/1.0 may. */
    return !field.ptr || is_own(server, field);
}

/* "https://name:443" without what says nothing. */
static struct wb_slice significant_port(bool https, struct wb_slice port)
{
    return wb_slice_equal(port, https ? WB_SLICE_LIT("443") : WB_SLICE_LIT("80")) ? WB_SLICE_EMPTY : port;
}

/*
 * Whether an Origin is this server: what the request says in Host, or a name of --allow-host, because a proxy may have
 * put the server's address into Host. The scheme may differ, as a proxy may add TLS.
 */
static bool is_own_origin(const struct wb_server *server, const struct wb_http_request *request, struct wb_slice origin)
{
    struct wb_slice http = WB_SLICE_LIT("http://"), https = WB_SLICE_LIT("https://"), host, port, own_host, own_port;
    bool tls = wb_slice_starts_nocase(origin, https);

    if (!tls && !wb_slice_starts_nocase(origin, http))
        return false; /* "null" among others: a page in a sandbox, such as those that are replayed */
    size_t skip = tls ? https.len : http.len;
    if (!split_host(wb_slice(origin.ptr + skip, origin.len - skip), &host, &port))
        return false;
    port = significant_port(tls, port);
    if (is_allowed(server, host, port, true))
        return true;
    return split_host(wb_http_field(request, "Host"), &own_host, &own_port) && wb_slice_equal_nocase(host, own_host) &&
           wb_slice_equal(port, significant_port(tls, own_port));
}

bool wb_own_names_trust(const struct wb_server *server, const struct wb_http_request *request)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    for (size_t i = 0; i < request->field_count; i++) {
        struct wb_slice name = request->fields[i].name, value = request->fields[i].value;
        if (wb_slice_equal_nocase(name, WB_SLICE_LIT("Origin")) && !is_own_origin(server, request, value))
            return false;
        if (wb_slice_equal_nocase(name, WB_SLICE_LIT("Sec-Fetch-Site")) &&
            !wb_slice_equal_nocase(value, WB_SLICE_LIT("same-origin")) &&
            !wb_slice_equal_nocase(value, WB_SLICE_LIT("none")))
            return false;
    }
    return true;
}
