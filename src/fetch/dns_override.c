/*
 * dns_override.c - reads overrides of the form HOST:PORT:ADDR[,ADDR...], and finds the one for a host and port. It
 * never resolves anything.
 */
#include "fetch/dns_override.h"
#include "base/error.h"
#include "base/mem.h"

/* Takes the part before `stop`. A part in brackets may contain it; the brackets are dropped. *rest is what follows. */
static struct wb_slice take_part(struct wb_slice *rest, char stop)
{
    struct wb_slice part = WB_SLICE_EMPTY;
    size_t i = 0;

    if (rest->len && rest->ptr[0] == '[') {
        const char *close = memchr(rest->ptr, ']', rest->len);
        if (!close)
            return WB_SLICE_EMPTY;
        part = wb_slice(rest->ptr + 1, (size_t)(close - rest->ptr) - 1);
        i = part.len + 2;
        if (i < rest->len && rest->ptr[i] != stop)
            return WB_SLICE_EMPTY;
    } else {
        while (i < rest->len && rest->ptr[i] != stop)
            i++;
        part = wb_slice(rest->ptr, i);
    }
    i += i < rest->len;
    *rest = wb_slice(rest->ptr + i, rest->len - i);
    return part;
}

static bool read_override(struct wb_slice rest, struct wb_dns_override *o, struct wb_slice *host_out)
{
    uint64_t port = 0;

    *host_out = take_part(&rest, ':');
    struct wb_slice port_text = take_part(&rest, ':');
    o->any_port = wb_slice_equal(port_text, WB_SLICE_LIT("*"));
    if (host_out->len == 0 || (!o->any_port && (!wb_slice_to_u64(port_text, &port) || port == 0 || port > UINT16_MAX)))
        return false;
    o->port = (uint16_t)port;
    if (rest.len && rest.ptr[rest.len - 1] == ',')
        return false;
    while (rest.len) {
        if (o->count == WB_DNS_ADDRESSES_MAX || !wb_address_parse(take_part(&rest, ','), &o->addresses[o->count]))
            return false;
        o->count++;
    }
    if (wb_slice_starts(*host_out, WB_SLICE_LIT("*"))) {
        o->wild = true;
        if (host_out->len > 1) {
            *host_out = wb_slice(host_out->ptr + 1, host_out->len - 1);
            if (host_out->ptr[0] != '.' || host_out->len == 1)
                return false;
        }
    }
    return o->count > 0;
}

int wb_dns_override_add(struct wb_dns_override **list, const char *text)
{
    struct wb_dns_override *o = wb_alloc_zero(1, sizeof *o);
    struct wb_slice host;

    if (!o)
        return WB_E_NOMEM;
    if (!read_override(wb_slice_str(text), o, &host)) {
        wb_free(o);
        return wb_fail(WB_E_INVALID, "'%s' is not HOST:PORT:ADDRESS[,ADDRESS...]", text);
    }
    o->host = wb_strndup(host.ptr, host.len);
    if (!o->host) {
        wb_free(o);
        return WB_E_NOMEM;
    }
    for (char *p = o->host; *p; p++)
        *p = wb_ascii_lower(*p);
    while (*list)
        list = &(*list)->next;
    *list = o;
    return 0;
}

static bool host_fits(const struct wb_dns_override *o, struct wb_slice host)
{
    struct wb_slice own = wb_slice_str(o->host);

    if (!o->wild)
        return wb_slice_equal_nocase(own, host);
    if (wb_slice_equal(own, WB_SLICE_LIT("*")))
        return true;
    return host.len > own.len && wb_slice_equal_nocase(own, wb_slice(host.ptr + host.len - own.len, own.len));
}

const struct wb_dns_override *wb_dns_override_find(const struct wb_dns_override *list, struct wb_slice host,
                                                   uint16_t port, bool literal)
{
    for (int wild = 0; wild <= !literal; wild++)
        for (const struct wb_dns_override *o = list; o; o = o->next)
            if (o->wild == wild && (o->any_port || o->port == port) && host_fits(o, host))
                return o;
    return NULL;
}

void wb_dns_override_free(struct wb_dns_override *list)
{
    while (list) {
        struct wb_dns_override *next = list->next;
        wb_free(list->host);
        wb_free(list);
        list = next;
    }
}
