/*
 * s3_endpoint.c - the server, from the environment.
 *
 *   AWS_ENDPOINT_URL=http://127.0.0.1:9000/base    ->  origin http://127.0.0.1:9000, path /base/BUCKET
 *   without it                                     ->  origin https://BUCKET.s3.REGION.amazonaws.com, no path
 *
 * A bucket whose name cannot be one label of a host name is named in the path of Amazon's server too.
 */
#include "object/s3_endpoint.h"
#include "base/buf.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>

#define REGION_DEFAULT "us-east-1"
#define ENDPOINT_MAX 1024
enum { LABEL_MAX = 63 };

static int refuse(const char *text, const char *why)
{
    return wb_fail(WB_E_INVALID, "AWS_ENDPOINT_URL=%.200s: %s; it must be like http://127.0.0.1:9000 or https://HOST",
                   text, why);
}

/* Whether all characters are letters, digits or others of a set; there must be one. */
static bool consists_of(struct wb_slice text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!wb_ascii_is_letter(text.ptr[i]) && !wb_ascii_is_digit(text.ptr[i]) &&
            !(text.ptr[i] && strchr(others, text.ptr[i])))
            return false;
    return text.len > 0;
}

/* Whether the characters may be those of an IPv6 address. */
static bool is_ipv6(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (wb_hex_digit(text.ptr[i]) < 0 && text.ptr[i] != ':' && text.ptr[i] != '.')
            return false;
    return text.len > 0;
}

/* Splits "host:port" and "[::1]:port"; the port is empty if there is none. */
static bool split_authority(struct wb_slice authority, struct wb_slice *host_out, struct wb_slice *port_out)
{
    const char *end = authority.ptr + authority.len;
    const char *bracket = authority.len && *authority.ptr == '[' ? memchr(authority.ptr, ']', authority.len) : NULL;
    const char *colon =
        memchr(bracket ? bracket : authority.ptr, ':', (size_t)(end - (bracket ? bracket : authority.ptr)));

    *host_out = wb_slice(authority.ptr, (size_t)((colon ? colon : end) - authority.ptr));
    *port_out = colon ? wb_slice(colon + 1, (size_t)(end - colon) - 1) : WB_SLICE_EMPTY;
    if (bracket && host_out->ptr + host_out->len != bracket + 1)
        return false;
    return bracket ? is_ipv6(wb_slice(host_out->ptr + 1, host_out->len - 2)) : consists_of(*host_out, "-._");
}

static bool is_loopback(struct wb_slice host)
{
    return wb_slice_equal_nocase(host, WB_SLICE_LIT("localhost")) || wb_slice_starts(host, WB_SLICE_LIT("127.")) ||
           wb_slice_equal(host, WB_SLICE_LIT("[::1]"));
}

/* The path of an endpoint goes into signatures as it is, so it must be encoded as S3 does. */
static bool is_encoded(struct wb_slice path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] != '%')
            continue;
        if (i + 2 >= path.len || wb_hex_digit(path.ptr[i + 1]) < 0 || wb_hex_digit(path.ptr[i + 2]) < 0)
            return false;
    }
    return path.len == 0 || consists_of(path, "-_.~/%");
}

/* Keeps the parts; the host in lower case, as it is signed. */
static int keep(struct wb_s3_endpoint *e, const char *scheme, struct wb_slice authority, struct wb_slice path,
                const char *bucket)
{
    struct wb_buf text = WB_BUF_INIT;
    int err;

    e->host = wb_strndup(authority.ptr, authority.len);
    for (char *p = e->host; p && *p; p++)
        *p = wb_ascii_lower(*p);
    err = e->host ? wb_buf_printf(&text, "%s%s", scheme, e->host) : WB_E_NOMEM;
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        e->origin = wb_buf_take(&text).ptr;
    if (err == 0)
        err = wb_buf_printf(&text, "%.*s%s%s", WB_SLICE_ARG(path), *bucket ? "/" : "", bucket);
    if (err == 0)
        err = wb_buf_terminate(&text);
    if (err == 0)
        e->path = wb_buf_take(&text).ptr;
    wb_buf_release(&text);
    return err;
}

static int parse_endpoint(const char *text, const char *bucket, struct wb_s3_endpoint *e)
{
    struct wb_slice rest = wb_slice_str(text), http = WB_SLICE_LIT("http://"), https = WB_SLICE_LIT("https://"), host,
                    port;
    bool tls = wb_slice_starts_nocase(rest, https);
    uint64_t number = 1;

    if (rest.len > ENDPOINT_MAX)
        return refuse(text, "it is too long");
    if (!tls && !wb_slice_starts_nocase(rest, http))
        return refuse(text, "it does not begin with http:// or https://");
    rest = wb_slice(rest.ptr + (tls ? https.len : http.len), rest.len - (tls ? https.len : http.len));
    const char *slash = memchr(rest.ptr, '/', rest.len);
    struct wb_slice authority = wb_slice(rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
    struct wb_slice path = slash ? wb_slice(slash, rest.len - authority.len) : WB_SLICE_EMPTY;
    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    if (!split_authority(authority, &host, &port))
        return refuse(text, "it names no host");
    if (host.len < authority.len && (!wb_slice_to_u64(port, &number) || number == 0 || number > 65535))
        return refuse(text, "this is not a port");
    if (!is_encoded(path))
        return refuse(text, "its path has characters that must be percent-encoded, or a query");
    if (host.len < authority.len && number == (tls ? 443 : 80))
        authority = host;
    e->loopback = is_loopback(host);
    return keep(e, tls ? "https://" : "http://", authority, path, bucket);
}

/* Whether a bucket can be one label of a host name, for which there is a certificate. */
static bool is_label(const char *bucket)
{
    for (const char *p = bucket; *p; p++)
        if (!wb_ascii_is_digit(*p) && !(*p >= 'a' && *p <= 'z') && *p != '-')
            return false;
    return strlen(bucket) <= LABEL_MAX;
}

/* Amazon's own server. China has another domain. */
static int set_amazon(const char *bucket, struct wb_s3_endpoint *e)
{
    const char *china = strncmp(e->region, "cn-", 3) == 0 ? ".cn" : "";
    struct wb_buf host = WB_BUF_INIT;
    bool label = is_label(bucket);
    int err =
        wb_buf_printf(&host, "%s%ss3.%s.amazonaws.com%s", label ? bucket : "", label ? "." : "", e->region, china);

    if (err == 0)
        err = keep(e, "https://", wb_buf_slice(&host), WB_SLICE_EMPTY, label ? "" : bucket);
    wb_buf_release(&host);
    return err;
}

int wb_s3_endpoint_parse(const char *endpoint, const char *region, const char *bucket,
                         struct wb_s3_endpoint *endpoint_out)
{
    struct wb_slice name = wb_slice_str(*region ? region : REGION_DEFAULT);
    int err;

    *endpoint_out = (struct wb_s3_endpoint){0};
    /* It becomes a part of a host name, and of a field of each request. */
    if (!consists_of(name, *endpoint ? "-_." : "-") || name.len >= WB_S3_REGION_MAX)
        return wb_fail(WB_E_INVALID, "AWS_REGION=%.100s is not the name of a region", region);
    memcpy(endpoint_out->region, name.ptr, name.len);
    err = *endpoint ? parse_endpoint(endpoint, bucket, endpoint_out) : set_amazon(bucket, endpoint_out);
    if (err < 0)
        wb_s3_endpoint_release(endpoint_out);
    return err;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

int wb_s3_endpoint_find(const struct wb_object_url *url, struct wb_s3_endpoint *endpoint_out)
{
    const char *region = variable("AWS_REGION");

    return wb_s3_endpoint_parse(variable("AWS_ENDPOINT_URL"), *region ? region : variable("AWS_DEFAULT_REGION"),
                                url->bucket, endpoint_out);
}

void wb_s3_endpoint_release(struct wb_s3_endpoint *endpoint)
{
    wb_free(endpoint->origin);
    wb_free(endpoint->host);
    wb_free(endpoint->path);
    *endpoint = (struct wb_s3_endpoint){0};
}
