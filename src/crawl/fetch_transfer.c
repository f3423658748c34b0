/*
 * fetch_transfer.c - one request and its answer, on one of libcurl's easy handles.
 *
 * The handle's options are set once; a request changes its URL, its address and its validators. It
 * never follows a redirect, never keeps a cookie, never resolves a name, and reads
 * nothing from the environment. Codings but chunked are undone here and not by libcurl, at the end
 * and at once: that is faster, and the limits on size and ratio are exact.
 */
#include "crawl/fetch_transfer.h"

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "crawl/fetch_curl.h"
#include "crawl/fetch_error.h"
#include "os/clock.h"
#include "page/page.h"

#include <stdio.h>
#include <unistd.h>

#define VALIDATOR_BYTES_MAX 1024
#define RECEIVE_BYTES (64L << 10)
/* A promised length reserves no more than this: promises are free. */
#define RESERVE_BYTES_MAX ((size_t)256 << 10)
#define RATIO_FROM_BYTES ((size_t)1 << 20)
/* A peer that sends less than this for so long is as good as silent. */
#define SPEED_BYTES_MIN 16L
#define SPEED_SECONDS 20L
/* Most servers close an idle connection by then; over TLS each takes 35 to 95 KB. */
#define IDLE_SECONDS 60L

void wb_fetch_transfer_decide(struct wb_fetch_transfer *transfer, enum wb_fetch_error error, const char *message)
{
    if (transfer->error != WB_FETCH_OK || transfer->truncated)
        return;
    transfer->error = error;
    transfer->message = message;
}

/* ---- what libcurl calls ---------------------------------------------------------------------------- */

/* The connection stands and the request goes out now. */
static int on_send(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct wb_fetch_transfer *transfer = context;

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    transfer->sent_ms = wb_clock_wall_ms();
    return CURL_PREREQFUNC_OK;
}

static size_t on_head(char *bytes, size_t size, size_t count, void *context)
{
    struct wb_fetch_transfer *transfer = context;
    int err = wb_fetch_head_line(&transfer->head, wb_slice(bytes, size * count));

    if (err == 0)
        return size * count;
    if (err == WB_E_LIMIT)
        wb_fetch_transfer_decide(transfer, WB_FETCH_HEADERS, "the headers are larger than the limit");
    else if (err == WB_E_PROTO)
        wb_fetch_transfer_decide(transfer, WB_FETCH_PROTOCOL, "a header line is none");
    else
        wb_fetch_transfer_decide(transfer, WB_FETCH_MEMORY, "out of memory");
    return 0;
}

static void reserve_body(struct wb_fetch_transfer *transfer)
{
    curl_off_t length = -1;

    curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length > 0 && (uint64_t)length <= RESERVE_BYTES_MAX)
        (void)wb_buf_reserve(&transfer->body, (size_t)length); /* where it fails, appending will say so */
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct wb_fetch_transfer *transfer = context;
    size_t len = size * count, room = transfer->body_max - transfer->body.len;

    if (transfer->error != WB_FETCH_OK || transfer->truncated)
        return 0;
    if (!transfer->body.ptr)
        reserve_body(transfer);
    if (wb_buf_append(&transfer->body, bytes, len < room ? len : room) < 0) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_MEMORY, "out of memory");
        return 0;
    }
    if (len > room || !wb_fetcher_charge(transfer->owner, transfer)) {
        transfer->truncated = true;
        return 0;
    }
    return len;
}

/* ---- options ----------------------------------------------------------------------------------------------- */

static long speed_seconds(const struct wb_fetch_options *options)
{
    return options->timeout_ms > SPEED_SECONDS * 1000 ? SPEED_SECONDS : 0;
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
 * A file of them, where there is one, and not a folder: libcurl reads a file once for all connections, but
 * with a folder given too it reads everything for each, which takes 20 ms.
 */
static bool set_authorities(CURL *easy, const struct wb_fetch_options *options)
{
    const curl_version_info_data *about = curl_version_info(CURLVERSION_NOW);
    const char *file = options->ca_file ? options->ca_file : about->cainfo;

    if (!file || (!options->ca_file && access(file, R_OK) != 0))
        return true;
    return curl_easy_setopt(easy, CURLOPT_CAINFO, file) == CURLE_OK && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
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
        {CURLOPT_BUFFERSIZE, RECEIVE_BYTES},
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

int wb_fetch_transfer_new(struct wb_fetcher *owner, const struct wb_fetch_options *options, struct wb_fetch_transfer **transfer_out)
{
    struct wb_fetch_transfer *transfer = wb_alloc_zero(1, sizeof(*transfer));

    *transfer_out = NULL;
    if (!transfer)
        return WB_E_NOMEM;
    transfer->owner = owner;
    transfer->easy = curl_easy_init();
    if (!transfer->easy || !set_callbacks(transfer) || !set_options(transfer->easy, options)) {
        wb_fetch_transfer_free(transfer);
        return wb_fail_nomem();
    }
    transfer->pin.data = transfer->pin_text;
    *transfer_out = transfer;
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

/* ---- a request --------------------------------------------------------------------------------------------------- */

static bool is_plain(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= 0x20 || text.ptr[i] == 0x7f)
            return false;
    return true;
}

/* Without user info, which nobody gave us to use, and without the fragment. host_out: with its port. */
static int set_url(struct wb_fetch_transfer *transfer, struct wb_slice url, struct wb_slice *host_out)
{
    bool https = wb_slice_starts(url, WB_SLICE_LIT("https://"));

    if ((!https && !wb_slice_starts(url, WB_SLICE_LIT("http://"))) || !is_plain(url))
        return wb_fail(WB_E_INVALID, "%.*s: not a URL that can be fetched", WB_SLICE_ARG(url));
    size_t host = https ? 8 : 7, end = host;
    while (end < url.len && !strchr("/?#", url.ptr[end])) {
        if (url.ptr[end++] == '@')
            host = end;
    }
    *host_out = wb_slice(url.ptr + host, end - host);
    const char *fragment = memchr(url.ptr, '#', url.len);
    size_t len = fragment ? (size_t)(fragment - url.ptr) : url.len;
    wb_buf_clear(&transfer->url);
    int err = wb_buf_append_str(&transfer->url, https ? "https://" : "http://");
    if (err == 0)
        err = wb_buf_append(&transfer->url, url.ptr + host, len - host);
    if (err == 0)
        err = wb_buf_terminate(&transfer->url);
    if (err == 0 && curl_easy_setopt(transfer->easy, CURLOPT_URL, transfer->url.ptr) != CURLE_OK)
        err = wb_fail_nomem();
    return err;
}

/*
 * libcurl is told to connect to a number, so that it never resolves a name, and not to the address itself but to a hash
 * of host and address: it looks for a connection to use again among all that go to the same number, and at the address of a large
 * hosting company there may be hundreds. The number lies in 100::/64, which leads nowhere (RFC 6666); open_socket() in
 * fetch_loop.c knows the way. "::[NUMBER]:" is any host and any port, at that number and the URL's port.
 */
static int set_address(struct wb_fetch_transfer *transfer, const struct wb_address *address, struct wb_slice host)
{
    size_t len = address->family == 6 ? 16 : 4;
    uint64_t key[2] = {wb_hash64(host.ptr, host.len), wb_hash64(address->bytes, len) + len};
    uint64_t pin = wb_hash64(key, sizeof key);

    if (address->family != 4 && address->family != 6)
        return wb_fail(WB_E_INVALID, "%.*s: no address", WB_SLICE_ARG(host));
    transfer->route.address = *address;
    snprintf(transfer->pin_text, sizeof transfer->pin_text, "::[100::%x:%x:%x:%x]:", (unsigned)(pin >> 48),
             (unsigned)(pin >> 32 & 0xffff), (unsigned)(pin >> 16 & 0xffff), (unsigned)(pin & 0xffff));
    if (curl_easy_setopt(transfer->easy, CURLOPT_CONNECT_TO, &transfer->pin) != CURLE_OK)
        return wb_fail_nomem();
    return 0;
}

/* A header line; none where the value could be more than one line, or is long for what it is. */
static int write_validator(struct wb_buf *line, const char *name, struct wb_slice value)
{
    wb_buf_clear(line);
    if (value.len == 0 || value.len > VALIDATOR_BYTES_MAX)
        return 0;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
            return 0;
    int err = wb_buf_printf(line, "%s: %.*s", name, WB_SLICE_ARG(value));
    return err < 0 ? err : wb_buf_terminate(line);
}

static int set_validators(struct wb_fetch_transfer *transfer, const struct wb_fetch_request *request)
{
    struct curl_slist *first = NULL;
    int err = write_validator(&transfer->etag, "If-None-Match", request->etag);

    if (err == 0)
        err = write_validator(&transfer->modified, "If-Modified-Since", request->modified);
    if (err < 0)
        return err;
    if (transfer->modified.len) {
        transfer->lines[1] = (struct curl_slist){transfer->modified.ptr, NULL};
        first = &transfer->lines[1];
    }
    if (transfer->etag.len) {
        transfer->lines[0] = (struct curl_slist){transfer->etag.ptr, first};
        first = &transfer->lines[0];
    }
    if (!first && !transfer->conditional)
        return 0;
    if (curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, first) != CURLE_OK)
        return wb_fail_nomem();
    transfer->conditional = first != NULL;
    return 0;
}

int wb_fetch_transfer_prepare(struct wb_fetch_transfer *transfer, const struct wb_fetch_request *request,
                              const struct wb_fetch_options *options)
{
    struct wb_slice host = WB_SLICE_EMPTY;
    int err = set_url(transfer, request->url, &host);

    /* A proxy resolves names itself, and most refuse to be given addresses. */
    if (err == 0 && !options->proxy)
        err = set_address(transfer, &request->address, host);
    if (err == 0)
        err = set_validators(transfer, request);
    if (err < 0)
        return err;
    wb_fetch_head_begin(&transfer->head, options->head_max);
    transfer->body_max = request->body_max ? request->body_max : options->body_max;
    transfer->error = WB_FETCH_OK;
    transfer->message = "";
    transfer->truncated = transfer->doomed = false;
    transfer->words[0] = '\0';
    transfer->begun_ns = wb_clock_mono_ns();
    transfer->sent_ms = wb_clock_wall_ms();
    return 0;
}

/* ---- an answer ----------------------------------------------------------------------------------------------------- */

/* Whether the limit was filled by less than its share of coded bytes. */
static bool is_bomb(struct wb_slice head, struct wb_slice coded, size_t limit, unsigned ratio_max, struct wb_buf *scratch)
{
    struct wb_decoded decoded;

    if (limit < RATIO_FROM_BYTES)
        return false;
    if (coded.len > limit / ratio_max)
        coded.len = limit / ratio_max;
    return wb_payload_decode(head, coded, limit, scratch, &decoded) == 0 && decoded.cut;
}

static void decode_body(struct wb_fetch_transfer *transfer, unsigned ratio_max)
{
    struct wb_buf lines = WB_BUF_INIT, plain = WB_BUF_INIT, scratch = WB_BUF_INIT;
    struct wb_slice coded = wb_buf_slice(&transfer->body);
    struct wb_decoded decoded = {.changed = false};
    bool any = false, cut = transfer->truncated;
    int err = coded.len ? wb_fetch_head_codings(&transfer->head, &lines, &any) : 0;

    if (err == 0 && !any)
        goto done;
    if (err == 0)
        err = wb_payload_decode(wb_buf_slice(&lines), coded, transfer->body_max, &plain, &decoded);
    transfer->truncated = false; /* so that the decisions below count */
    if (err == WB_E_PROTO)
        wb_fetch_transfer_decide(transfer, WB_FETCH_CODING, "a transfer coding is unknown or out of order");
    else if (err < 0)
        wb_fetch_transfer_decide(transfer, WB_FETCH_MEMORY, "out of memory");
    else if (!decoded.changed)
        wb_fetch_transfer_decide(transfer, WB_FETCH_CODING, "the body is not in the coding that its header names");
    else if (decoded.cut ? is_bomb(wb_buf_slice(&lines), coded, transfer->body_max, ratio_max, &scratch)
                         : plain.len >= RATIO_FROM_BYTES && plain.len / ratio_max > coded.len)
        wb_fetch_transfer_decide(transfer, WB_FETCH_BOMB, "the body unpacks to too many times its size");
    else if (decoded.damaged && !cut && !decoded.cut)
        wb_fetch_transfer_decide(transfer, WB_FETCH_CODING, "the body's coding is damaged");
    else
        transfer->truncated = cut || decoded.cut;
    wb_buf_release(&transfer->body);
    transfer->body = wb_buf_take(&plain);
done:
    wb_buf_release(&scratch);
    wb_buf_release(&plain);
    wb_buf_release(&lines);
}

/* libcurl's words, but not those of a failed connection: they name the number of set_address(). */
static const char *explain(struct wb_fetch_transfer *transfer, CURLcode code)
{
    long number = 0;

    if (code != CURLE_COULDNT_CONNECT)
        return transfer->words[0] ? transfer->words : curl_easy_strerror(code);
    curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
    const char *words = number ? strerrordesc_np((int)number) : NULL;
    return words ? words : curl_easy_strerror(code);
}

/* Where libcurl stopped by itself. */
static void judge(struct wb_fetch_transfer *transfer, CURLcode code)
{
    bool starved = wb_fetch_curl_starved();

    if (transfer->error != WB_FETCH_OK || transfer->truncated)
        return;
    if (code == CURLE_OUT_OF_MEMORY && !starved && !transfer->head.ended) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_HEADERS, "a header line is larger than the limit");
        return;
    }
    enum wb_fetch_error error = wb_fetch_error_of_curl(code, transfer->head.status != 0, transfer->words);
    if (starved && error != WB_FETCH_OK)
        error = WB_FETCH_MEMORY;
    if (error == WB_FETCH_OK && !transfer->head.ended)
        error = WB_FETCH_PARTIAL;
    if (error != WB_FETCH_OK)
        wb_fetch_transfer_decide(transfer, error, explain(transfer, code));
}

void wb_fetch_transfer_result(struct wb_fetch_transfer *transfer, CURLcode code, unsigned ratio_max, struct wb_fetch_result *result_out)
{
    curl_off_t wire = 0;

    judge(transfer, code);
    if (transfer->error == WB_FETCH_OK)
        decode_body(transfer, ratio_max);
    curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_DOWNLOAD_T, &wire);
    int64_t took_ns = wb_clock_mono_ns() - transfer->begun_ns;
    *result_out = (struct wb_fetch_result){
        .error = transfer->error,
        .message = transfer->message,
        .status = transfer->head.status,
        .head = wb_buf_slice(&transfer->head.text),
        .body = transfer->error == WB_FETCH_OK ? wb_buf_take(&transfer->body) : WB_BUF_INIT,
        .truncated = transfer->truncated,
        .wire_bytes = wire > 0 ? (uint64_t)wire : 0,
        .sent_ms = transfer->sent_ms,
        .took_ms = (uint32_t)(took_ns / 1000000),
    };
}

void wb_fetch_transfer_clear(struct wb_fetch_transfer *transfer)
{
    WB_CHECK(transfer->charged == 0);
    wb_buf_release(&transfer->body);
    wb_buf_release(&transfer->head.text);
    wb_buf_clear(&transfer->url);
}
