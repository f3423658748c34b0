/*
 * s3_store.c - objects in a store that speaks S3.
 *
 *   s3://BUCKET/PREFIX, name NAME:
 *     with AWS_ENDPOINT_URL      ENDPOINT/BUCKET/PREFIX/NAME                             "path style"
 *     without                    https://BUCKET.s3.REGION.amazonaws.com/PREFIX/NAME      "virtual-host style"
 *
 * Each function here is one request, or two where the answer to the first does not say what is wrong: the answer to
 * HEAD has no body, so a GET is asked for the reason. Requests that are refused because of their keys are sent again if
 * there are other keys by then.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "object/s3_answer.h"
#include "object/s3_endpoint.h"
#include "object/s3_http.h"
#include "object/s3_keys.h"
#include "object/s3_refusal.h"
#include "object/s3_sign.h"
#include "os/clock.h"

#include <stdio.h>

enum {
    RENEWALS_MAX = 2,
    LISTING_MAX = 16 << 20, /* 1,000 keys of at most 1,024 bytes, encoded, with what else there is */
    FIELDS_MAX = 6,
};

struct s3 {
    const struct wb_object_url *url;
    struct wb_s3_endpoint endpoint;
    struct wb_s3_http *http;
    struct wb_s3_keyring *ring;
};

/* One request. */
struct ask {
    struct s3 *s3;
    const char *method;
    const char *name;  /* of an object; NULL: the bucket itself */
    const char *query; /* encoded; empty: none */
    const char *range; /* the field, or NULL */
    struct wb_slice body;
    char payload[WB_S3_SHA256_HEX];
    struct wb_s3_exchange exchange;
    struct wb_s3_refusal refusal;
};

/* ---- opening ----------------------------------------------------------------------------------------------- */

static void s3_close(void *place)
{
    struct s3 *s3 = place;

    if (!s3)
        return;
    wb_s3_http_free(s3->http);
    wb_s3_keyring_close(s3->ring);
    wb_s3_endpoint_release(&s3->endpoint);
    wb_free(s3);
}

static int s3_open(const struct wb_object_url *url, void **place_out)
{
    struct s3 *s3 = wb_alloc_zero(1, sizeof *s3);
    int err;

    *place_out = NULL;
    if (!s3)
        return WB_E_NOMEM;
    s3->url = url;
    err = wb_s3_endpoint_find(url, &s3->endpoint);
    if (err == 0)
        err = wb_s3_keyring_open(url->text, &s3->ring);
    if (err == 0)
        err = wb_s3_http_new(s3->endpoint.host, s3->endpoint.loopback, &s3->http);
    if (err < 0)
        s3_close(s3);
    else
        *place_out = s3;
    return err;
}

/* ---- one request ------------------------------------------------------------------------------------------- */

/* Appends the path of an object or the bucket, encoded, to what precedes it. */
static int append_path(const struct ask *ask, struct wb_buf *out)
{
    const struct s3 *s3 = ask->s3;
    int err = wb_buf_append_str(out, s3->endpoint.path);

    if (!ask->name)
        return err == 0 && !*s3->endpoint.path ? wb_buf_append_char(out, '/') : err;
    for (int i = 0; err == 0 && i < 2; i++) {
        const char *part = i == 0 ? s3->url->prefix : ask->name;
        if (i == 0 && !*part)
            continue;
        err = wb_buf_append_char(out, '/');
        if (err == 0)
            err = wb_s3_encode(wb_slice_str(part), true, out);
    }
    return err;
}

/* Signs the request and puts its fields into `lines`, one after the other, each with NUL. */
static int make_fields(const struct ask *ask, const struct wb_s3_keys *keys, const char *path, struct wb_buf *lines)
{
    char date[WB_S3_DATE_MAX];
    struct wb_s3_field fields[FIELDS_MAX];
    size_t count = 0;
    struct wb_buf authorization = WB_BUF_INIT;
    int err;

    wb_s3_date_format(wb_clock_wall_ms(), date);
    fields[count++] = (struct wb_s3_field){"host", ask->s3->endpoint.host};
    if (ask->range)
        fields[count++] = (struct wb_s3_field){"range", ask->range};
    fields[count++] = (struct wb_s3_field){"x-amz-content-sha256", ask->payload};
    fields[count++] = (struct wb_s3_field){"x-amz-date", date};
    if (keys->token)
        fields[count++] = (struct wb_s3_field){"x-amz-security-token", keys->token};
    struct wb_s3_signing signing = {
        .access = keys->access,
        .secret = keys->secret,
        .region = ask->s3->endpoint.region,
        .date = date,
        .method = ask->method,
        .path = path,
        .query = ask->query,
        .fields = fields,
        .field_count = count,
        .payload = ask->payload,
    };
    err = wb_s3_sign(&signing, &authorization);
    if (err == 0)
        err = wb_buf_terminate(&authorization);
    if (err == 0)
        fields[count++] = (struct wb_s3_field){"authorization", authorization.ptr};
    WB_CHECK(count <= FIELDS_MAX);
    for (size_t i = 0; err == 0 && i < count; i++) {
        err = wb_buf_printf(lines, "%s: %s", fields[i].name, fields[i].value);
        if (err == 0)
            err = wb_buf_append_char(lines, '\0');
    }
    wb_buf_release(&authorization);
    return err;
}

static int send_signed(struct ask *ask, const struct wb_s3_keys *keys, struct wb_object_try *try)
{
    struct wb_buf url = WB_BUF_INIT, lines = WB_BUF_INIT;
    const char *fields[FIELDS_MAX];
    size_t origin_len = strlen(ask->s3->endpoint.origin), count = 0;
    int err = wb_buf_append_str(&url, ask->s3->endpoint.origin);

    if (err == 0)
        err = append_path(ask, &url);
    if (err == 0)
        err = wb_buf_terminate(&url);
    if (err == 0)
        err = make_fields(ask, keys, url.ptr + origin_len, &lines);
    if (err == 0 && *ask->query)
        err = wb_buf_printf(&url, "?%s", ask->query);
    if (err == 0)
        err = wb_buf_terminate(&url);
    for (size_t at = 0; err == 0 && at < lines.len; at += strlen(lines.ptr + at) + 1)
        fields[count++] = lines.ptr + at;
    if (err == 0) {
        ask->exchange.method = ask->method;
        ask->exchange.url = url.ptr;
        ask->exchange.fields = fields;
        ask->exchange.field_count = count;
        ask->exchange.body = ask->body;
        err = wb_s3_http_send(ask->s3->http, &ask->exchange, try);
        ask->exchange.url = NULL;
        ask->exchange.fields = NULL;
    }
    wb_buf_release(&url);
    wb_buf_release(&lines);
    return err;
}

/* Reads what is wrong out of an answer that is an error, and finds the words for it. */
static int refuse(struct ask *ask, const struct wb_s3_keys *keys)
{
    ask->refusal = (struct wb_s3_refusal){
        .url = ask->s3->url,
        .host = ask->s3->endpoint.host,
        .region = ask->s3->endpoint.region,
        .name = ask->name,
        .access = keys->access,
        .ring = ask->s3->ring,
        .exchange = &ask->exchange,
    };
    wb_s3_error_read(wb_buf_slice(&ask->exchange.refusal), &ask->refusal.error);
    return wb_s3_refuse(&ask->refusal);
}

/*
 * Sends a request. Returns 0 if the status is a good one, or one that the caller expects (416); otherwise the error,
 * with its message. The body of a good answer is in exchange.answer.
 */
static int send(struct ask *ask, long expected, struct wb_object_try *try)
{
    int err = wb_s3_sha256(ask->body, ask->payload);

    for (int renewals = 0; err == 0; renewals++) {
        const struct wb_s3_keys *keys = wb_s3_keyring_hold(ask->s3->ring);
        bool again = false;
        err = send_signed(ask, keys, try);
        long status = ask->exchange.status;
        if (err == 0 && status != expected && (status < 200 || status > 299)) {
            err = refuse(ask, keys);
            again = renewals < RENEWALS_MAX && wb_s3_refusal_of_keys(&ask->refusal) &&
                    wb_s3_keyring_renew(ask->s3->ring, keys);
        }
        wb_s3_keyring_drop(ask->s3->ring, keys);
        wb_buf_release(&ask->exchange.refusal);
        if (!again)
            break;
        err = 0;
    }
    return err;
}

/* ---- the five requests ------------------------------------------------------------------------------------- */

static int s3_put(void *place, const char *name, struct wb_slice bytes, struct wb_object_try *try)
{
    struct ask ask = {.s3 = place, .method = "PUT", .name = name, .query = "", .body = bytes};
    struct wb_buf ignored = WB_BUF_INIT;

    ask.exchange.answer = &ignored;
    ask.exchange.answer_max = LISTING_MAX;
    int err = send(&ask, 0, try);
    wb_buf_release(&ignored);
    return err;
}

/* An answer that does not fit the request, though it says that all is well. */
static int strange(const struct ask *ask, const char *problem)
{
    return wb_fail(WB_E_PROTO, "%s answers %ld to %s %s of %s, %s", ask->s3->endpoint.host, ask->exchange.status,
                   ask->method, ask->name ? ask->name : "a listing", ask->s3->url->text, problem);
}

/* Whether the answer to a range has what was asked for. A part that ends early is asked for again. */
static int check_range(const struct ask *ask, const struct wb_object_span *span, struct wb_buf *bytes)
{
    const struct wb_s3_exchange *x = &ask->exchange;

    if (x->status == 200) {
        /* Ranges are not understood: this is all of it. */
        size_t skip = span->offset < bytes->len ? (size_t)span->offset : bytes->len;
        if (skip)
            memmove(bytes->ptr, bytes->ptr + skip, bytes->len - skip);
        bytes->len = bytes->len - skip < span->len ? bytes->len - skip : span->len;
        return 0;
    }
    if (x->status != 206 || x->range_start != (int64_t)span->offset)
        return strange(ask, "but not with the part that was asked for");
    if (bytes->len > span->len || bytes->len != (size_t)(x->range_end - x->range_start + 1))
        return strange(ask, "but with another number of bytes than it says");
    if (bytes->len < span->len && x->range_total >= 0 && x->range_end + 1 != x->range_total)
        return wb_fail(WB_E_DOWN, "%s sends only a part of what was asked for", ask->s3->endpoint.host);
    return 0;
}

static int s3_get(void *place, const char *name, const struct wb_object_span *span, struct wb_buf *bytes_out,
                  struct wb_object_try *try)
{
    struct ask ask = {.s3 = place, .method = "GET", .name = name, .query = ""};
    char range[64];

    ask.exchange.answer = bytes_out;
    ask.exchange.answer_max = span->whole ? span->len : WB_OBJECT_MAX;
    if (!span->whole) {
        snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)span->offset,
                 (unsigned long long)(span->offset + span->len - 1));
        ask.range = range;
    }
    int err = send(&ask, span->whole ? 0 : 416, try);
    if (err == WB_E_LIMIT)
        return wb_fail(WB_E_LIMIT, "the object %s of %s has more than %zu bytes", name, ask.s3->url->text,
                       ask.exchange.answer_max);
    if (err == 0 && ask.exchange.status == 416)
        wb_buf_clear(bytes_out); /* nothing is there */
    else if (err == 0 && !span->whole)
        err = check_range(&ask, span, bytes_out);
    else if (err == 0 && ask.exchange.status != 200)
        err = strange(&ask, "though all of it was asked for");
    return err;
}

/* The size, from the answer to a request for the first byte. It also says why HEAD was refused. */
static int size_by_get(struct s3 *s3, const char *name, uint64_t *size_out, struct wb_object_try *try)
{
    struct ask ask = {.s3 = s3, .method = "GET", .name = name, .query = "", .range = "bytes=0-0"};
    struct wb_buf bytes = WB_BUF_INIT;

    ask.exchange.answer = &bytes;
    ask.exchange.answer_max = WB_OBJECT_MAX;
    int err = send(&ask, 416, try);
    if (err == 0 && ask.exchange.status == 416)
        *size_out = 0;
    else if (err == 0 && ask.exchange.status == 206 && ask.exchange.range_total >= 0)
        *size_out = (uint64_t)ask.exchange.range_total;
    else if (err == 0 && ask.exchange.status == 200)
        *size_out = bytes.len;
    else if (err == 0)
        err = strange(&ask, "but does not say how long the object is");
    wb_buf_release(&bytes);
    return err;
}

static int s3_size(void *place, const char *name, uint64_t *size_out, struct wb_object_try *try)
{
    struct ask ask = {.s3 = place, .method = "HEAD", .name = name, .query = ""};
    int err = send(&ask, 0, try);

    if (err == 0 && ask.exchange.length >= 0)
        *size_out = (uint64_t)ask.exchange.length;
    else if (err != WB_E_DOWN && err != WB_E_NOMEM)
        err = size_by_get(place, name, size_out, try);
    return err;
}

static int s3_remove(void *place, const char *name, struct wb_object_try *try)
{
    struct ask ask = {.s3 = place, .method = "DELETE", .name = name, .query = ""};
    struct wb_buf ignored = WB_BUF_INIT;

    ask.exchange.answer = &ignored;
    ask.exchange.answer_max = LISTING_MAX;
    int err = send(&ask, 0, try);
    wb_buf_release(&ignored);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* The query of a listing, in order of names, as it must be signed. */
static int append_list_query(const struct wb_object_page *page, const char *before, struct wb_buf *out)
{
    int err = 0;

    if (page->token.len) {
        err = wb_buf_append_str(out, "continuation-token=");
        if (err == 0)
            err = wb_s3_encode(wb_buf_slice(&page->token), false, out);
        if (err == 0)
            err = wb_buf_append_char(out, '&');
    }
    if (err == 0)
        err = wb_buf_append_str(out, "encoding-type=url&list-type=2&prefix=");
    if (err == 0)
        err = wb_s3_encode(wb_slice_str(before), false, out);
    return err == 0 ? wb_buf_terminate(out) : err;
}

static int s3_list(void *place, const char *prefix, struct wb_object_page *page, struct wb_object_try *try)
{
    struct ask ask = {.s3 = place, .method = "GET"};
    struct wb_buf query = WB_BUF_INIT, key = WB_BUF_INIT, xml = WB_BUF_INIT;
    const char *own = ask.s3->url->prefix;
    size_t own_len = strlen(own) + (*own ? 1 : 0);
    int err = wb_buf_printf(&key, "%s%s%s", own, *own ? "/" : "", prefix);

    if (err == 0)
        err = wb_buf_terminate(&key);
    if (err == 0)
        err = append_list_query(page, key.ptr, &query);
    if (err == 0) {
        ask.query = query.ptr;
        ask.exchange.answer = &xml;
        ask.exchange.answer_max = LISTING_MAX;
        err = send(&ask, 0, try);
    }
    if (err == 0) {
        key.ptr[own_len] = '\0'; /* what precedes the names of our objects */
        err = wb_s3_listing_read(wb_buf_slice(&xml), key.ptr, page);
        if (err == WB_E_PROTO) {
            struct wb_error_copy why;
            wb_error_save(err, &why);
            err = wb_fail(WB_E_PROTO, "%s: %.300s", ask.s3->url->text, why.message);
        }
    }
    wb_buf_release(&query);
    wb_buf_release(&key);
    wb_buf_release(&xml);
    return err;
}

const struct wb_object_kind wb_object_s3 = {s3_open, s3_close, s3_put, s3_get, s3_size, s3_remove, s3_list};
