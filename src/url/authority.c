/*
 * authority.c - user, password, host and port.
 *
 * The last '@' ends the user information, and the first ':' in it begins the password. Like the standard's state
 * machine, split_authority() finds both in one pass. An empty user and password are not written at all.
 */
#include "url/host.h"
#include "base/error.h"

/* Where an authority is split: "user:password@host:port". */
struct authority_split {
    const char *end;      /* of the authority */
    const char *at;       /* the last '@', or NULL */
    const char *port;     /* the first ':' after it that is not in brackets, or NULL */
    const char *password; /* the first ':' before it, or NULL */
};

static struct authority_split split_authority(const struct wb_reader *r)
{
    struct authority_split s = {r->end, NULL, NULL, NULL};
    const char *colon = NULL;
    bool brackets = false;

    for (const char *p = r->at; p < r->end; p++) {
        if (!wb_byte_is(*p, WB_BYTE_AUTHORITY))
            continue;
        if (wb_byte_is(*p, WB_BYTE_SEGMENT_END) || (*p == '\\' && r->url->special)) {
            s.end = p;
            break;
        }
        if (*p == '@') {
            s.at = p;
            s.port = NULL;
            brackets = false;
        } else if (*p == ':') {
            colon = colon ? colon : p;
            if (!s.port && !brackets)
                s.port = p;
        } else if (*p != '\\') {
            brackets = *p == '[';
        }
    }
    s.password = s.at && colon && colon < s.at ? colon : NULL;
    return s;
}

static void write_userinfo(struct wb_reader *r, const struct authority_split *s)
{
    struct wb_url *url = r->url;
    const char *name_end = s->password ? s->password : s->at;
    struct wb_slice name = wb_slice(r->at, (size_t)(name_end - r->at));
    struct wb_slice password = WB_SLICE_EMPTY;

    if (s->password)
        password = wb_slice(s->password + 1, (size_t)(s->at - s->password - 1));
    r->out = wb_escape_text(r->out, name, WB_BYTE_USERINFO);
    url->username_end = url->password_at = url->password_end = wb_reader_mark(r);
    if (password.len) {
        *r->out++ = ':';
        url->password_at = wb_reader_mark(r);
        r->out = wb_escape_text(r->out, password, WB_BYTE_USERINFO);
        url->password_end = wb_reader_mark(r);
    }
    if (name.len || password.len)
        *r->out++ = '@';
}

static uint32_t default_port(struct wb_slice scheme)
{
    switch (scheme.len) {
    case 2:
        return memcmp(scheme.ptr, "ws", 2) == 0 ? 80 : 0;
    case 3:
        return memcmp(scheme.ptr, "wss", 3) == 0 ? 443 : memcmp(scheme.ptr, "ftp", 3) == 0 ? 21 : 0;
    case 4:
        return memcmp(scheme.ptr, "http", 4) == 0 ? 80 : 0;
    default:
        return memcmp(scheme.ptr, "https", 5) == 0 ? 443 : 0;
    }
}

static int read_port(struct wb_reader *r, struct wb_slice text)
{
    struct wb_url *url = r->url;
    uint32_t port = 0;
    char digits[5];
    size_t at = sizeof digits;

    for (size_t i = 0; i < text.len; i++) {
        if (!wb_ascii_is_digit(text.ptr[i]))
            return wb_reader_fail(r, WB_E_PROTO, "the port is not a number");
        port = port * 10 + (uint32_t)(text.ptr[i] - '0');
        if (port > 65535)
            return wb_reader_fail(r, WB_E_PROTO, "the port is larger than 65535");
    }
    if (text.len == 0 || (url->special && port != 0 && port == default_port(wb_slice(url->href.ptr, url->scheme_end))))
        return 0;
    do
        digits[--at] = (char)('0' + port % 10);
    while ((port /= 10) > 0);
    *r->out++ = ':';
    url->port_at = wb_reader_mark(r);
    wb_reader_put(r, digits + at, sizeof digits - at);
    url->port_end = wb_reader_mark(r);
    return 0;
}

int wb_authority_read(struct wb_reader *r)
{
    struct wb_url *url = r->url;
    struct authority_split s = split_authority(r);
    const char *host = s.at ? s.at + 1 : r->at;
    const char *host_end = s.port ? s.port : s.end;

    url->has_host = true;
    url->username_at = url->username_end = url->password_at = url->password_end = wb_reader_mark(r);
    if (host == host_end && (url->special || s.at || s.port))
        return wb_reader_fail(r, WB_E_PROTO, "the host is empty");
    if (s.at)
        write_userinfo(r, &s);
    url->host_at = wb_reader_mark(r);
    int err = wb_host_read(r, wb_slice(host, (size_t)(host_end - host)));
    if (err < 0)
        return err;
    url->host_end = url->port_at = url->port_end = wb_reader_mark(r);
    r->at = s.end;
    return s.port ? read_port(r, wb_slice(s.port + 1, (size_t)(s.end - s.port - 1))) : 0;
}

void wb_authority_none(struct wb_reader *r)
{
    wb_authority_host(r, WB_SLICE_EMPTY);
    r->url->has_host = false;
}

void wb_authority_host(struct wb_reader *r, struct wb_slice host)
{
    struct wb_url *url = r->url;

    url->has_host = true;
    url->username_at = url->username_end = url->password_at = url->password_end = url->host_at = wb_reader_mark(r);
    wb_reader_put(r, host.ptr, host.len);
    url->host_end = url->port_at = url->port_end = wb_reader_mark(r);
}
