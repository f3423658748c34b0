/*
 * fetch_transfer.c - one request and its response, on one of libcurl's easy handles.
 *
 * The options of a handle are copied from a model; fetch_request.c sets what differs. A transfer never follows a
 * redirect, never stores a cookie, never resolves a name, and reads nothing from the environment. What arrives is
 * kept within limits and not interpreted: that is for fetch_answer.c.
 */
#include "fetch/fetch_transfer.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"

#include <stdio.h>
#include <unistd.h>

#define RECEIVE_BYTES (64L << 10)
#define RECEIVE_BYTES_MIN 1024L /* the least that libcurl takes */
/* The most memory that a stated Content-Length reserves in advance: anybody can state anything. */
#define RESERVE_BYTES_MAX ((size_t)256 << 10)
/* A peer that sends less than this for that long counts as silent. */
#define SPEED_BYTES_MIN 16L
#define SPEED_SECONDS 20L
/* Most servers close an idle connection by then. Over TLS each takes 35 to 95 KB of our memory. */
#define IDLE_SECONDS 60L

void wb_fetch_transfer_decide(struct wb_fetch_transfer *transfer, enum wb_fetch_error error, const char *message)
{
    if (transfer->error != WB_FETCH_OK || transfer->truncated)
        return;
    transfer->error = error;
    snprintf(transfer->message, sizeof transfer->message, "%s", message);
}

void wb_fetch_transfer_abandon(struct wb_fetch_transfer *transfer)
{
    /* Cannot fail: it sets a flag. */
    (void)curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 1L);
}

/* ---- what libcurl calls ---------------------------------------------------------------------------- */

/*
 * The connection is ready and the request is about to be sent. libcurl calls this a second time if the connection
 * ended without a response and it wants to repeat the request at once: on another connection, or because an HTTP/2
 * server refused the stream. But no request may be sent before the site's clock allows it. So the transfer ends here,
 * and the caller decides when to ask again.
 */
static int on_send(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct wb_fetch_transfer *transfer = context;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (transfer->route.sent) {
        transfer->unanswered = true;
        return CURL_PREREQFUNC_ABORT;
    }
    transfer->route.sent = true;
    transfer->sent_ms = wb_clock_now_ms();
    return CURL_PREREQFUNC_OK;
}

static size_t on_head(char *bytes, size_t size, size_t count, void *context)
{
    struct wb_fetch_transfer *transfer = context;

    if (!transfer->heard_ms)
        transfer->heard_ms = wb_clock_now_ms();
    wb_fetcher_received(transfer->owner, size * count);
    int err = wb_fetch_head_line(&transfer->head, wb_slice(bytes, size * count));

    if (err == 0)
        return size * count;
    enum wb_fetch_error error = err == WB_E_LIMIT   ? WB_FETCH_HEADERS
                                : err == WB_E_PROTO ? WB_FETCH_PROTOCOL
                                                    : WB_FETCH_MEMORY;
    wb_fetch_transfer_decide(transfer, error, wb_error_message());
    wb_fetch_transfer_abandon(transfer);
    return 0;
}

static void reserve_body(struct wb_fetch_transfer *transfer)
{
    curl_off_t length = -1;

    curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length > 0 && (uint64_t)length <= RESERVE_BYTES_MAX)
        (void)wb_buf_reserve(&transfer->body, (size_t)length); /* if it fails, appending will fail, too */
}

/* Appends bytes to the body. False: stop the transfer. */
static bool take_body(struct wb_fetch_transfer *transfer, const char *bytes, size_t len)
{
    size_t room = transfer->body_max - transfer->body.len;

    if (transfer->error != WB_FETCH_OK || transfer->truncated)
        return false;
    if (!transfer->body.ptr)
        reserve_body(transfer);
    if (wb_buf_append(&transfer->body, bytes, len < room ? len : room) < 0) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_MEMORY, wb_error_message());
        return false;
    }
    transfer->truncated = len > room || !wb_fetcher_charge(transfer->owner, transfer);
    return !transfer->truncated;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct wb_fetch_transfer *transfer = context;

    if (wb_fetcher_hold(transfer->owner, transfer))
        return CURL_WRITEFUNC_PAUSE; /* libcurl keeps these bytes and passes them again later */
    wb_fetcher_received(transfer->owner, size * count);
    if (take_body(context, bytes, size * count))
        return size * count;
    wb_fetch_transfer_abandon(context);
    return 0;
}

/* ---- options ----------------------------------------------------------------------------------------------- */

static long speed_seconds(const struct wb_fetch_options *options)
{
    return options->timeout_ms > SPEED_SECONDS * 1000 ? SPEED_SECONDS : 0;
}

/* How much is read at a time: little if the pace is slow, so that it is even. */
static long receive_bytes(const struct wb_fetch_options *options)
{
    uint64_t part = options->pace && options->pace->rate ? options->pace->rate / 16 : (uint64_t)RECEIVE_BYTES;

    return part < (uint64_t)RECEIVE_BYTES_MIN ? RECEIVE_BYTES_MIN
           : part < (uint64_t)RECEIVE_BYTES   ? (long)part
                                              : RECEIVE_BYTES;
}

static bool set_callbacks(struct wb_fetch_transfer *transfer)
{
    CURL *easy = transfer->easy;

    return curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->words) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_send) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer) == CURLE_OK;
}

/*
 * Uses a file of certificate authorities if there is one, and no directory: libcurl reads a file once for all
 * connections, but if it is given a directory too, it reads everything for each connection, which takes 20 ms.
 */
static bool set_authorities(CURL *easy, const struct wb_fetch_options *options)
{
    const curl_version_info_data *about = curl_version_info(CURLVERSION_NOW);
    const char *file = options->ca_file ? options->ca_file : about->cainfo;

    if (!file || (!options->ca_file && access(file, R_OK) != 0))
        return true;
    return curl_easy_setopt(easy, CURLOPT_CAINFO, file) == CURLE_OK && curl_easy_setopt(easy, CURLOPT_CAPATH,
                                                                                        NULL) == CURLE_OK;
}

static bool set_options(CURL *easy, const struct wb_fetch_options *options)
{
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},
        {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS},
        {CURLOPT_HTTP09_ALLOWED, 0},
        {CURLOPT_PATH_AS_IS, 1},
        {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
        {CURLOPT_HTTP_CONTENT_DECODING, 0},
        {CURLOPT_DNS_CACHE_TIMEOUT, 0},
        {CURLOPT_TIMEOUT_MS, (long)options->timeout_ms},
        {CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_ms},
        {CURLOPT_LOW_SPEED_LIMIT, SPEED_BYTES_MIN},
        {CURLOPT_LOW_SPEED_TIME, speed_seconds(options)},
        {CURLOPT_BUFFERSIZE, receive_bytes(options)},
        {CURLOPT_MAXAGE_CONN, IDLE_SECONDS},
    };
    const struct {
        CURLoption option;
        const char *value;
    } texts[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_USERAGENT, options->user_agent},
        {CURLOPT_PROXY, options->proxy ? options->proxy : ""},
        {CURLOPT_NOPROXY, ""},
        {CURLOPT_ACCEPT_ENCODING, "gzip, deflate, br, zstd"},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (curl_easy_setopt(easy, numbers[i].option, numbers[i].value) != CURLE_OK)
            return false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (curl_easy_setopt(easy, texts[i].option, texts[i].value) != CURLE_OK)
            return false;
    return set_authorities(easy, options);
}

int wb_fetch_transfer_model(const struct wb_fetch_options *options, CURL **model_out)
{
    CURL *model = curl_easy_init();

    *model_out = NULL;
    if (!model || !set_options(model, options)) {
        curl_easy_cleanup(model);
        return wb_fail_nomem();
    }
    *model_out = model;
    return 0;
}

int wb_fetch_transfer_new(struct wb_fetcher *owner, struct wb_fetch_transfer **transfer_out)
{
    struct wb_fetch_transfer *transfer = wb_alloc_zero(1, sizeof(*transfer));

    *transfer_out = NULL;
    if (!transfer)
        return WB_E_NOMEM;
    transfer->owner = owner;
    transfer->pin.data = transfer->pin_text;
    *transfer_out = transfer;
    return 0;
}

int wb_fetch_transfer_equip(struct wb_fetch_transfer *transfer, CURL *model, struct wb_fetch_loop *loop)
{
    WB_CHECK(!transfer->easy);
    transfer->route = (struct wb_fetch_route){.loop = loop};
    transfer->easy = curl_easy_duphandle(model);
    if (!transfer->easy || !set_callbacks(transfer) || !wb_fetch_loop_adopt(loop, transfer->easy, &transfer->route))
        return wb_fail_nomem();
    return 0;
}

void wb_fetch_transfer_free(struct wb_fetch_transfer *transfer)
{
    if (!transfer)
        return;
    curl_easy_cleanup(transfer->easy);
    wb_buf_release(&transfer->url);
    wb_buf_release(&transfer->etag);
    wb_buf_release(&transfer->modified);
    wb_buf_release(&transfer->head.text);
    wb_buf_release(&transfer->body);
    wb_free(transfer);
}

void wb_fetch_transfer_clear(struct wb_fetch_transfer *transfer)
{
    WB_CHECK(transfer->charged == 0);
    curl_easy_cleanup(transfer->easy);
    transfer->easy = NULL;
    wb_buf_release(&transfer->body);
    wb_buf_release(&transfer->head.text);
    wb_buf_clear(&transfer->url);
}
