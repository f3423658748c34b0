/*
 * typed.c - URLs as people write them: with a scheme, or without one.
 *
 *   example.org   example.org/a   example.org:8080/a   localhost:8080   //example.org/a
 *
 * To the URL standard, "example.org:8080" has the scheme "example.org", so a person who writes a host and a port would
 * be told about a page that nobody means. What is before the colon counts as a host if a port is behind it, unless it
 * is the name of a scheme that has hosts.
 */
#include "base/error.h"
#include "url/url.h"

enum { PORT_MAX = 65535, TEXT_SHOWN = 200 };

/* Whether digits that end the text, or are followed by a path, are in it; *port_out is at most PORT_MAX + 1. */
static bool read_port(struct wb_slice text, unsigned *port_out)
{
    unsigned port = 0;
    size_t len = 0;

    for (; len < text.len && wb_ascii_is_digit(text.ptr[len]); len++)
        port = port > PORT_MAX ? port : port * 10 + (unsigned)(text.ptr[len] - '0');
    *port_out = port > PORT_MAX ? PORT_MAX + 1 : port;
    return len > 0 && (len == text.len || memchr("/?#\\", text.ptr[len], 4));
}

static bool is_scheme(struct wb_slice name)
{
    static const char *const schemes[] = {"http", "https", "ftp", "ws", "wss", "file"};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (wb_slice_equal_nocase(name, wb_slice_str(schemes[i])))
            return true;
    return false;
}

/* Whether the text begins with a host and a port. A phone number is no port, unless what is before it is a host. */
static bool has_port(struct wb_slice text, unsigned *port_out)
{
    const char *colon = memchr(text.ptr, ':', text.len);
    size_t at = colon ? (size_t)(colon - text.ptr) : 0;

    if (at == 0 || is_scheme(wb_slice(text.ptr, at)))
        return false;
    return read_port(wb_slice(colon + 1, text.len - at - 1), port_out) &&
           (*port_out <= PORT_MAX || memchr(text.ptr, '.', at));
}

/* Whether the text begins like "scheme://". */
static bool has_scheme(struct wb_slice text)
{
    size_t at = 0;

    while (at < text.len && !memchr(":/?#", text.ptr[at], 4))
        at++;
    return text.len - at > 2 && memcmp(text.ptr + at, "://", 3) == 0;
}

/* With a scheme in front. The default port of https is left out of a page's name only if the scheme is https. */
static int parse_after(const char *before, struct wb_slice text, struct wb_url *url_out)
{
    struct wb_buf whole = WB_BUF_INIT;
    int err = wb_buf_append_str(&whole, before);

    if (err == 0)
        err = wb_buf_append_slice(&whole, text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&whole), NULL, url_out);
    wb_buf_release(&whole);
    return err;
}

int wb_url_parse_typed(struct wb_slice text, struct wb_url *url_out)
{
    unsigned port = 0;
    int err = 0;

    text = wb_slice_trim(text);
    bool host_first = text.len && has_port(text, &port);
    if (!host_first)
        err = wb_url_parse(text, NULL, url_out);
    if (!host_first && (err != WB_E_PROTO || has_scheme(text)))
        return err;
    err = WB_E_PROTO;
    if (text.len > 2 && memcmp(text.ptr, "//", 2) == 0)
        err = parse_after("http:", text, url_out);
    else if (text.len && !memchr("/\\?#", text.ptr[0], 4))
        err = parse_after(host_first && port == 443 ? "https://" : "http://", text, url_out);
    if (err == WB_E_PROTO)
        err = wb_fail(WB_E_PROTO, "'%.*s' is neither a URL nor a host",
                      (int)(text.len < TEXT_SHOWN ? text.len : TEXT_SHOWN), text.ptr);
    return err;
}
