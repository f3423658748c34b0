/*
 * s3_http.c - sends requests with libcurl's easy interface.
 *
 *   idle: [handle][handle][handle]     each keeps the connection that it used last; the one that was used last comes
 * first
 *
 * A request takes a handle from the pile and puts it back, so there are at most as many as requests at once, and the
 * connections stay open. libcurl calls move() at least once a second; that is where a request ends in which nothing
 * moves, or too little.
 */
#include "object/s3_http.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/curlstart.h"
#include "os/stop.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONNECT_MS = 10000,
    STOPPING_MS = 3000, /* how long a request may be silent after the process was asked to stop */
    BYTES_MIN = 4096,   /* that must move in twice the time in which something must */
    REFUSAL_MAX = 64 << 10,
    HEAD_MAX = 128 << 10,
    BUFFER_BYTES = 256 << 10,
};

struct wb_s3_http {
    char *host;
    bool plain;
    char *issuers; /* a file with certificates, instead of those of the system; or NULL */
    pthread_mutex_t mutex;
    WB_VEC(CURL *) idle;
};

/* A request that is under way. */
struct transfer {
    CURL *handle;
    struct wb_s3_http *http;
    struct wb_s3_exchange *exchange;
    struct wb_object_try *try;
    int64_t moved_ms;  /* when something has moved last */
    curl_off_t moved;  /* so much has, in both directions */
    int64_t window_ms; /* since when, and from which number on, we look whether enough moves */
    curl_off_t window_at;
    size_t head_bytes;
    int err; /* why we have ended it: WB_E_LIMIT, WB_E_NOMEM, WB_E_DOWN */
};

static int64_t now_ms(void)
{
    return wb_clock_mono_ns() / 1000000;
}

/* ---- handles ----------------------------------------------------------------------------------------------- */

int wb_s3_http_new(const char *host, bool plain, struct wb_s3_http **http_out)
{
    struct wb_s3_http *http;
    const char *issuers = getenv("AWS_CA_BUNDLE");
    int err = wb_curl_start();

    *http_out = NULL;
    if (err < 0)
        return err;
    http = wb_alloc_zero(1, sizeof *http);
    if (!http)
        return WB_E_NOMEM;
    pthread_mutex_init(&http->mutex, NULL);
    http->plain = plain;
    http->host = wb_strdup(host);
    http->issuers = issuers && *issuers ? wb_strdup(issuers) : NULL;
    if (!http->host || (issuers && *issuers && !http->issuers)) {
        wb_s3_http_free(http);
        return WB_E_NOMEM;
    }
    *http_out = http;
    return 0;
}

void wb_s3_http_free(struct wb_s3_http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < http->idle.count; i++)
        curl_easy_cleanup(http->idle.items[i]);
    wb_vec_release(&http->idle);
    pthread_mutex_destroy(&http->mutex);
    wb_free(http->host);
    wb_free(http->issuers);
    wb_free(http);
}

static CURL *take_handle(struct wb_s3_http *http)
{
    CURL *handle = NULL;

    pthread_mutex_lock(&http->mutex);
    if (http->idle.count)
        handle = wb_vec_pop(&http->idle);
    pthread_mutex_unlock(&http->mutex);
    return handle ? handle : curl_easy_init();
}

static void give_handle(struct wb_s3_http *http, CURL *handle)
{
    curl_easy_reset(handle); /* keeps its connection */
    pthread_mutex_lock(&http->mutex);
    if (wb_vec_push(&http->idle, handle) == 0)
        handle = NULL;
    pthread_mutex_unlock(&http->mutex);
    if (handle)
        curl_easy_cleanup(handle);
}

/* ---- what libcurl calls ------------------------------------------------------------------------------------ */

static void note_movement(struct transfer *t)
{
    t->moved_ms = now_ms();
}

/* "bytes 0-9/200"; a total that is not known is '*'. */
static void read_range(struct wb_slice value, struct wb_s3_exchange *x)
{
    char text[80];
    long long start, end, total = -1;

    snprintf(text, sizeof text, "%.*s", value.len < 70 ? (int)value.len : 70, value.ptr);
    if (sscanf(text, "bytes %18lld-%18lld/%18lld", &start, &end, &total) < 2 || start < 0 || end < start)
        return;
    x->range_start = start;
    x->range_end = end;
    x->range_total = total;
}

static void read_field(struct wb_slice line, struct wb_s3_exchange *x)
{
    const char *colon = memchr(line.ptr, ':', line.len);

    if (!colon)
        return;
    struct wb_slice name = wb_slice(line.ptr, (size_t)(colon - line.ptr));
    struct wb_slice value = wb_slice_trim(wb_slice(colon + 1, line.len - name.len - 1));
    if (wb_slice_equal_nocase(name, WB_SLICE_LIT("date"))) {
        if (!wb_date_parse_http(value, &x->date_ms))
            x->date_ms = 0;
    } else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("content-range"))) {
        read_range(value, x);
    } else if (wb_slice_equal_nocase(name, WB_SLICE_LIT("x-amz-bucket-region"))) {
        size_t len = 0;
        for (; len < value.len && len < sizeof x->region - 1; len++)
            x->region[len] = value.ptr[len] > ' ' && value.ptr[len] <= '~' ? value.ptr[len] : '?';
        x->region[len] = '\0';
    }
}

/* Called with each line of the head. */
static size_t hear_line(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    size_t len = size * count;

    note_movement(t);
    t->head_bytes += len;
    if (t->head_bytes > HEAD_MAX) {
        t->err = wb_fail(WB_E_PROTO, "%s sends a head of more than %d bytes", t->http->host, (int)HEAD_MAX);
        return 0;
    }
    read_field(wb_slice(bytes, len), t->exchange);
    return len;
}

/* Called with each part of the body. */
static size_t hear_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    struct wb_s3_exchange *x = t->exchange;
    size_t len = size * count, most = x->answer_max;
    struct wb_buf *to = x->answer;

    note_movement(t);
    curl_easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &x->status);
    if (x->status < 200 || x->status > 299) {
        /* The beginning says what is wrong. */
        to = &x->refusal;
        most = REFUSAL_MAX;
        len = len < most - to->len ? len : most - to->len;
    } else if (!to || len > most - to->len) {
        t->err = wb_fail(WB_E_LIMIT, "%s sends more than %zu bytes", t->http->host, to ? most : 0);
        return 0;
    }
    if (wb_buf_append(to, bytes, len) < 0) {
        t->err = WB_E_NOMEM;
        return 0;
    }
    return size * count;
}

/* Called at least once a second. Another value than 0 ends the request. */
static int move(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    struct transfer *t = context;
    int64_t now = now_ms(), most = t->try->stall_ms;
    curl_off_t moved = down + up;

    (void)down_all, (void)up_all;
    if (t->moved != moved) {
        t->moved = moved;
        note_movement(t);
    }
    if (t->try->stoppable && wb_stop_requested() && most > STOPPING_MS)
        most = STOPPING_MS;
    if (now - t->moved_ms >= most) {
        t->err =
            wb_fail(WB_E_DOWN, "%s has been silent for %lld s", t->http->host, (long long)(now - t->moved_ms) / 1000);
        return 1;
    }
    if (now - t->window_ms < 2 * t->try->stall_ms)
        return 0;
    if (moved - t->window_at < BYTES_MIN) {
        t->err = wb_fail(WB_E_DOWN, "%s is too slow: %lld bytes in %lld s", t->http->host,
                         (long long)(moved - t->window_at), (long long)(now - t->window_ms) / 1000);
        return 1;
    }
    t->window_ms = now;
    t->window_at = moved;
    return 0;
}

/* ---- one request ------------------------------------------------------------------------------------------- */

static void set_body(CURL *handle, const struct wb_s3_exchange *x)
{
    if (strcmp(x->method, "HEAD") == 0) {
        curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    } else if (strcmp(x->method, "PUT") == 0) {
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body.len);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, x->body.len ? x->body.ptr : "");
        curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, "PUT");
    } else {
        curl_easy_setopt(handle, CURLOPT_HTTPGET, 1L);
        if (strcmp(x->method, "GET") != 0)
            curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, x->method);
    }
}

static void set_options(struct transfer *t, struct curl_slist *fields, char error[CURL_ERROR_SIZE])
{
    CURL *handle = t->handle;

    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(handle, CURLOPT_URL, t->exchange->url);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L); /* "/../" in a prefix is meant */
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(handle, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, hear_line);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, hear_body);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, move);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    if (t->http->plain)
        curl_easy_setopt(handle, CURLOPT_PROXY, "");
    if (t->http->issuers)
        curl_easy_setopt(handle, CURLOPT_CAINFO, t->http->issuers);
    set_body(handle, t->exchange);
}

/* What the end of the request means. */
static int judge(struct transfer *t, CURLcode code, const char *error)
{
    const char *why = *error ? error : curl_easy_strerror(code), *host = t->http->host;
    bool starved = wb_curl_starved();

    if (t->err < 0)
        return t->err == WB_E_NOMEM ? wb_fail_nomem() : t->err;
    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_OUT_OF_MEMORY:
        return starved ? wb_fail_nomem() : wb_fail(WB_E_DOWN, "%s: %s", host, why);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return wb_fail(
            WB_E_DENIED,
            "the certificate of %s cannot be trusted (%.200s); if that is expected, AWS_CA_BUNDLE must name a "
            "file with the certificate of its issuer",
            host, why);
    default:
        return wb_fail(WB_E_DOWN, "%s: %.300s", host, why);
    }
}

static void clear_answer(struct wb_s3_exchange *x)
{
    if (x->answer)
        wb_buf_clear(x->answer);
    x->refusal = WB_BUF_INIT;
    x->status = 0;
    x->length = x->range_start = x->range_end = x->range_total = -1;
    x->date_ms = 0;
    *x->region = '\0';
}

/* Appends a field to a list, which is freed if that fails. */
static struct curl_slist *append_field(struct curl_slist *list, const char *field)
{
    struct curl_slist *longer = curl_slist_append(list, field);

    if (!longer)
        curl_slist_free_all(list);
    return longer;
}

static struct curl_slist *make_fields(const struct wb_s3_exchange *x)
{
    /* What libcurl would add of its own. */
    struct curl_slist *list = append_field(NULL, "Expect:");

    if (list)
        list = append_field(list, "Accept:");
    if (list)
        list = append_field(list, x->body.len ? "Content-Type: application/octet-stream" : "Content-Type:");
    for (size_t i = 0; list && i < x->field_count; i++)
        list = append_field(list, x->fields[i]);
    return list;
}

int wb_s3_http_send(struct wb_s3_http *http, struct wb_s3_exchange *x, struct wb_object_try *try)
{
    struct transfer t = {.http = http, .exchange = x, .try = try};
    struct curl_slist *fields = make_fields(x);
    char error[CURL_ERROR_SIZE] = "";
    curl_off_t length = -1;
    int err;

    clear_answer(x);
    t.handle = fields ? take_handle(http) : NULL;
    t.moved_ms = t.window_ms = now_ms();
    if (!t.handle) {
        curl_slist_free_all(fields);
        return wb_fail_nomem();
    }
    set_options(&t, fields, error);
    (void)wb_curl_starved();
    CURLcode code = curl_easy_perform(t.handle);
    err = judge(&t, code, error);
    try->silence_ms = now_ms() - t.moved_ms;
    curl_easy_getinfo(t.handle, CURLINFO_RESPONSE_CODE, &x->status);
    if (curl_easy_getinfo(t.handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK)
        x->length = length;
    give_handle(http, t.handle);
    curl_slist_free_all(fields);
    return err;
}
