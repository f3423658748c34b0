/*
 * host.c - the URL standard's host parser: a domain, an address or an opaque host.
 *
 * A domain in ASCII, which nearly all are, is checked and put into lower case in one pass. Labels that begin with
 * "xn--" are not checked there, which agrees with the standard's test data. Only a domain that is not ASCII, before
 * or after its escapes are undone, goes through IDNA. Nothing is ever resolved.
 */
#include "url/host.h"
#include "base/error.h"
#include "url/hostaddress.h"
#include "url/idna.h"

static int read_ipv6(struct wb_reader *r, struct wb_slice host)
{
    uint16_t pieces[8];

    if (host.ptr[host.len - 1] != ']' || !wb_hostaddress_read6(wb_slice(host.ptr + 1, host.len - 2), pieces))
        return wb_reader_fail(r, WB_E_PROTO, "the host is not an IPv6 address");
    r->out = wb_hostaddress_write6(r->out, pieces);
    return 0;
}

static int read_opaque(struct wb_reader *r, struct wb_slice host)
{
    for (size_t i = 0; i < host.len; i++)
        if (wb_byte_is(host.ptr[i], WB_BYTE_BAD_HOST))
            return wb_reader_fail(r, WB_E_PROTO, "the host has a character that no host may have");
    r->out = wb_escape_text(r->out, host, WB_BYTE_C0);
    return 0;
}

/* The domain is ASCII. It may be in the output already, at r->out. */
static int write_domain(struct wb_reader *r, struct wb_slice domain)
{
    char *out = r->out, *last = out;
    uint32_t address = 0;

    if (domain.len == 0)
        return wb_reader_fail(r, WB_E_PROTO, "the host is empty");
    for (size_t i = 0; i < domain.len; i++) {
        char c = domain.ptr[i];
        unsigned classes = wb_byte_class[(uint8_t)c];
        if (classes & WB_BYTE_BAD_DOMAIN)
            return wb_reader_fail(r, WB_E_PROTO, "the host has a character that no domain may have");
        if (c == '.' && i + 1 < domain.len)
            last = out + i + 1;
        out[i] = classes & WB_BYTE_UPPER ? (char)(c + 32) : c;
    }
    struct wb_slice written = wb_slice(out, domain.len);
    if (wb_ascii_is_digit(*last) && wb_hostaddress_ends_in_number(written)) {
        if (!wb_hostaddress_read4(written, &address))
            return wb_reader_fail(r, WB_E_PROTO, "the host ends in a number and is not an IPv4 address");
        r->out = wb_hostaddress_write4(out, address);
        return 0;
    }
    r->out += domain.len;
    return 0;
}

static int write_international(struct wb_reader *r, struct wb_slice domain)
{
    char ascii[WB_IDNA_MAX_BYTES];
    size_t len = 0;
    int err = wb_idna_to_ascii(domain, ascii, &len);

    if (err == WB_E_LIMIT)
        return wb_reader_fail(r, err, "the host is too long");
    if (err == WB_E_PROTO)
        return wb_reader_fail(r, err, "the host is not a valid international domain");
    return err < 0 ? err : write_domain(r, wb_slice(ascii, len));
}

int wb_host_read(struct wb_reader *r, struct wb_slice host)
{
    unsigned seen = 0;
    struct wb_slice domain = host;

    if (host.len > 0 && host.ptr[0] == '[')
        return read_ipv6(r, host);
    if (!r->url->special)
        return read_opaque(r, host);
    if (memchr(host.ptr, '%', host.len))
        domain = wb_slice(r->out, wb_escape_undo(host, r->out));
    for (size_t i = 0; i < domain.len; i++)
        seen |= (uint8_t)domain.ptr[i];
    return seen & 0x80 ? write_international(r, domain) : write_domain(r, domain);
}
