/*
 * replay_origin.c - hosts of replay origins (replay_origin.h). A text is valid if and only if writing what was read
 * from it gives the same text again; so reading may be simple.
 */
#include "replay/replay_origin.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/error.h"

#include <openssl/evp.h>

enum { TIME_DIGITS = 14, LABEL_MAX = 63, DIGEST_BYTES = 16 };

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Whether a host can stand in front of other labels. */
static bool has_plain_labels(struct wb_slice host)
{
    size_t len = 0;

    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        if (c == '.' ? len == 0 : !(wb_ascii_is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_'))
            return false;
        len = c == '.' ? 0 : len + 1;
        if (len > LABEL_MAX)
            return false;
    }
    return len > 0;
}

/* Whether a host with plain labels is clear in one label: no label begins or ends with '-'. */
static bool is_clear(struct wb_slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        bool first = i == 0 || host.ptr[i - 1] == '.', last = i + 1 == host.len || host.ptr[i + 1] == '.';
        if (host.ptr[i] == '-' && (first || last))
            return false;
    }
    return true;
}

static int put_host(struct wb_slice host, struct wb_buf *out)
{
    int err = wb_buf_append_char(out, '-');

    for (size_t i = 0; err == 0 && i < host.len; i++)
        err = host.ptr[i] == '.'   ? wb_buf_append_char(out, '-')
              : host.ptr[i] == '-' ? wb_buf_append_str(out, "--")
                                   : wb_buf_append_char(out, host.ptr[i]);
    return err;
}

static int put_digest(struct wb_slice host, struct wb_buf *out)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char text[2 * DIGEST_BYTES + 1];

    if (EVP_Digest(host.ptr, host.len, digest, NULL, EVP_sha256(), NULL) != 1)
        return wb_fail_nomem();
    wb_hex_encode(digest, DIGEST_BYTES, text);
    return wb_buf_printf(out, "--%s", text);
}

int wb_replay_origin_labels(struct wb_slice time, const struct wb_url *url, struct wb_buf *out)
{
    struct wb_slice host = wb_url_host(url), scheme = wb_url_scheme(url), port = wb_url_port(url);
    size_t before = out->len;

    WB_CHECK(time.len == TIME_DIGITS);
    if (!wb_url_is_http(url) || !has_plain_labels(host))
        return wb_fail(WB_E_PROTO, "'%.*s' has no origin for replay", WB_SLICE_ARG(wb_url_href(url)));
    bool one = is_clear(host);
    for (int tries = 0; tries < 2; tries++, one = false) {
        out->len = before;
        int err = one ? 0 : wb_buf_printf(out, "%.*s.", WB_SLICE_ARG(host));
        size_t label_at = out->len;
        if (err == 0)
            err = wb_buf_printf(out, "%.*s-%.*s%.*s", WB_SLICE_ARG(time), WB_SLICE_ARG(scheme), WB_SLICE_ARG(port));
        if (err == 0)
            err = one ? put_host(host, out) : put_digest(host, out);
        if (err < 0 || (out->len - label_at <= LABEL_MAX && out->len - before <= WB_REPLAY_LABELS_MAX))
            return err;
    }
    out->len = before;
    return wb_fail(WB_E_PROTO, "the host of '%.*s' is too long for replay", WB_SLICE_ARG(wb_url_href(url)));
}

/* "http://LABELS.NAME" */
static int put_origin(const struct wb_replay_base *base, struct wb_slice time, const struct wb_url *url,
                      struct wb_buf *out)
{
    size_t before = out->len;
    int err = wb_buf_append_str(out, base->tls ? "https://" : "http://");

    if (err == 0)
        err = wb_replay_origin_labels(time, url, out);
    if (err == 0)
        err = wb_buf_printf(out, ".%.*s", WB_SLICE_ARG(base->name));
    if (err < 0)
        out->len = before;
    return err;
}

int wb_replay_origin_address(const struct wb_replay_base *base, struct wb_slice time, const struct wb_url *url,
                             struct wb_buf *out)
{
    struct wb_slice href = wb_url_href(url);
    int err = put_origin(base, time, url, out);

    return err < 0 ? err : wb_buf_append(out, href.ptr + url->path_at, href.len - url->path_at);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Appends the host that an encoded one stands for. Runs of '-' mean '.' if they are single, and otherwise are doubled.
 */
static int get_host(struct wb_slice coded, struct wb_buf *out)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < coded.len; i++) {
        bool twice = coded.ptr[i] == '-' && i + 1 < coded.len && coded.ptr[i + 1] == '-';
        err = wb_buf_append_char(out, coded.ptr[i] == '-' && !twice ? '.' : coded.ptr[i]);
        i += twice;
    }
    return err;
}

/* Appends the live origin of "https8443-www-example-org", or of that with a digest; front: the host before it, if any.
 */
static int get_origin(struct wb_slice site, struct wb_slice front, struct wb_buf *out)
{
    const char *dash = site.len ? memchr(site.ptr, '-', site.len) : NULL;
    size_t len = dash ? (size_t)(dash - site.ptr) : 0, letters = 0;

    while (letters < len && !wb_ascii_is_digit(site.ptr[letters]))
        letters++;
    if (letters == 0)
        return WB_E_PROTO;
    int err = wb_buf_printf(out, "%.*s://", (int)letters, site.ptr);
    if (err == 0)
        err = front.len ? wb_buf_append_slice(out, front) : get_host(wb_slice(dash + 1, site.len - len - 1), out);
    if (err == 0 && letters < len)
        err = wb_buf_printf(out, ":%.*s", (int)(len - letters), site.ptr + letters);
    return err;
}

static int read_labels(struct wb_slice labels, struct wb_slice *time_out, struct wb_buf *origin_out)
{
    const char *dot = labels.len ? memrchr(labels.ptr, '.', labels.len) : NULL;
    struct wb_slice front = dot ? wb_slice(labels.ptr, (size_t)(dot - labels.ptr)) : WB_SLICE_EMPTY;
    struct wb_slice label = dot ? wb_slice(dot + 1, labels.len - front.len - 1) : labels;
    int64_t time_ms;

    if (labels.len > WB_REPLAY_LABELS_MAX || label.len <= TIME_DIGITS || label.ptr[TIME_DIGITS] != '-')
        return WB_E_PROTO;
    *time_out = wb_slice(label.ptr, TIME_DIGITS);
    if (!wb_date_parse_digits_end(*time_out, &time_ms))
        return WB_E_PROTO;
    return get_origin(wb_slice(label.ptr + TIME_DIGITS + 1, label.len - TIME_DIGITS - 1), front, origin_out);
}

int wb_replay_origin_parse(struct wb_slice labels, struct wb_slice *time_out, struct wb_buf *origin_out)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf again = WB_BUF_INIT;
    size_t before = origin_out->len;

    *time_out = WB_SLICE_EMPTY;
    int err = read_labels(labels, time_out, origin_out);
    if (err == 0)
        err = wb_url_parse(wb_slice(origin_out->ptr + before, origin_out->len - before), NULL, &url);
    if (err == 0)
        err = wb_replay_origin_labels(*time_out, &url, &again);
    if (err == 0 && !wb_slice_equal(wb_buf_slice(&again), labels))
        err = WB_E_PROTO;
    if (err < 0 && err != WB_E_NOMEM)
        err = wb_fail(WB_E_PROTO, "'%.*s' is not a site at a time", (int)(labels.len < 300 ? labels.len : 300),
                      labels.ptr);
    if (err < 0)
        origin_out->len = before;
    wb_url_release(&url);
    wb_buf_release(&again);
    return err;
}

bool wb_replay_base_labels(const struct wb_replay_base *base, struct wb_slice host, struct wb_slice *labels_out)
{
    size_t name = base->name.len;

    *labels_out = WB_SLICE_EMPTY;
    if (host.len < name + 2 || host.ptr[host.len - name - 1] != '.' ||
        !wb_slice_equal_nocase(wb_slice(host.ptr + host.len - name, name), base->name))
        return false;
    *labels_out = wb_slice(host.ptr, host.len - name - 1);
    return true;
}
