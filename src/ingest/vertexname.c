/* vertexname.c - names of vertices, from SURTs and to URLs. Common Crawl reverses the labels of host names. */
#include "ingest/vertexname.h"
#include "base/error.h"

/* "example:80" -> "example"; the colons of an IPv6 address in brackets are not in the way. */
static struct wb_slice without_port(struct wb_slice host)
{
    const char *end = host.len && host.ptr[0] == '[' ? memchr(host.ptr, ']', host.len) : NULL;
    const char *colon = memchr(end ? end : host.ptr, ':', host.len - (size_t)(end ? end - host.ptr : 0));

    return colon ? wb_slice(host.ptr, (size_t)(colon - host.ptr)) : host;
}

int wb_graph_host(struct wb_slice surt, struct wb_buf *name_out)
{
    const char *end = memchr(surt.ptr, ')', surt.len);
    struct wb_slice host = without_port(wb_slice(surt.ptr, end ? (size_t)(end - surt.ptr) : surt.len));
    size_t at = name_out->len;
    int err = wb_buf_append_slice(name_out, host);

    for (; err == 0 && at < name_out->len; at++)
        if (name_out->ptr[at] == ',')
            name_out->ptr[at] = '.';
    return err;
}

/* IP addresses are not reversed. */
static bool is_address(struct wb_slice name)
{
    if (name.len && name.ptr[0] == '[')
        return true;
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] != '.' && (name.ptr[i] < '0' || name.ptr[i] > '9'))
            return false;
    return true;
}

/* Whether there is nothing in the name that would end the host in a URL. */
static bool is_host(struct wb_slice name)
{
    bool address = name.len && name.ptr[0] == '[';

    for (size_t i = 0; i < name.len; i++)
        if (strchr("/\\?#@", name.ptr[i]) || (name.ptr[i] == ':' && !address))
            return false;
    return name.len > 0;
}

/* "com.example.www" -> "www.example.com" */
static int append_reversed(struct wb_slice name, struct wb_buf *out)
{
    const char *end = name.ptr + name.len;
    int err = 0;

    for (const char *p = end; err == 0; p--) {
        if (p > name.ptr && p[-1] != '.')
            continue;
        err = wb_buf_append(out, p, (size_t)(end - p));
        if (p == name.ptr)
            break;
        if (err == 0)
            err = wb_buf_append_char(out, '.');
        end = p - 1;
    }
    return err;
}

static bool has_scheme(struct wb_slice name)
{
    const char *colon = memchr(name.ptr, ':', name.len);

    return colon && wb_slice_starts(wb_slice(colon, name.len - (size_t)(colon - name.ptr)), WB_SLICE_LIT("://"));
}

int wb_graph_url(struct wb_slice name, struct wb_buf *url_out)
{
    if (has_scheme(name))
        return wb_buf_append_slice(url_out, name);
    if (!is_host(name))
        return wb_fail(WB_E_PROTO, "neither a URL nor a host name: %.*s", WB_SLICE_ARG(name));
    int err = wb_buf_append_str(url_out, "http://");
    if (err == 0)
        err = is_address(name) ? wb_buf_append_slice(url_out, name) : append_reversed(name, url_out);
    return err < 0 ? err : wb_buf_append_char(url_out, '/');
}
