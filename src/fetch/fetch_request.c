/*
 * fetch_request.c - sets what differs from one request to the next: URL, address, validators.
 *
 * All of it came from the web at some time. So nothing here can become more than one line of a request,
 * and nothing makes libcurl resolve a name.
 */
#include "fetch/fetch_transfer.h"

#include "base/error.h"
#include "base/hash.h"
#include "os/clock.h"

#include <stdio.h>

#define VALIDATOR_BYTES_MAX 1024

static bool is_plain(struct wb_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= 0x20 || text.ptr[i] == 0x7f)
            return false;
    return true;
}

/* Leaves out the fragment, and user info, which nobody meant for us. *host_out includes the port. */
static int set_url(struct wb_fetch_transfer *transfer, struct wb_slice url, struct wb_slice *host_out)
{
    bool https = wb_slice_starts(url, WB_SLICE_LIT("https://"));

    if ((!https && !wb_slice_starts(url, WB_SLICE_LIT("http://"))) || !is_plain(url))
        return wb_fail(WB_E_INVALID, "%.*s: this is not a URL that can be fetched", WB_SLICE_ARG(url));
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
 * Tells libcurl to connect to a numeric address, so that it never resolves a name. But not to the address itself:
 * libcurl looks for an idle connection among all that go to the same address, and at the address of a large hosting
 * company there may be hundreds. So it gets a hash of host and address, written as an address in 100::/64, which
 * leads nowhere (RFC 6666). open_socket() in fetch_loop.c connects to the real one. "::[NUMBER]:" means: any host and
 * any port, at that address and the port of the URL.
 */
static int set_address(struct wb_fetch_transfer *transfer, const struct wb_address *address, struct wb_slice host)
{
    size_t len = address->family == 6 ? 16 : 4;
    uint64_t key[2] = {wb_hash64(host.ptr, host.len), wb_hash64(address->bytes, len) + len};
    uint64_t pin = wb_hash64(key, sizeof key);

    if (address->family != 4 && address->family != 6)
        return wb_fail(WB_E_INVALID, "%.*s: no address", WB_SLICE_ARG(host));
    transfer->route.address = *address;
    snprintf(transfer->pin_text, sizeof transfer->pin_text, "::[" WB_FETCH_PIN_PREFIX "%x:%x:%x:%x]:",
             (unsigned)(pin >> 48), (unsigned)(pin >> 32 & 0xffff), (unsigned)(pin >> 16 & 0xffff),
             (unsigned)(pin & 0xffff));
    if (curl_easy_setopt(transfer->easy, CURLOPT_CONNECT_TO, &transfer->pin) != CURLE_OK)
        return wb_fail_nomem();
    return 0;
}

/* Makes a header line; leaves it empty if the value could become more than one line, or is absurdly long. */
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
    if (first && curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, first) != CURLE_OK)
        return wb_fail_nomem();
    return 0;
}

/*
 * The last request was cut off on a connection that had served others. A new connection shows whether the server
 * means it. Without HTTP/2, because a server may have refused the stream in order to get HTTP/1.1.
 */
static int set_fresh(struct wb_fetch_transfer *transfer)
{
    if (curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
        curl_easy_setopt(transfer->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK)
        return 0;
    return wb_fail_nomem();
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
    if (err == 0 && request->fresh)
        err = set_fresh(transfer);
    if (err < 0)
        return err;
    wb_fetch_head_begin(&transfer->head, options->head_max);
    transfer->body_max = request->body_max ? request->body_max : options->body_max;
    transfer->error = WB_FETCH_OK;
    transfer->message[0] = '\0';
    transfer->truncated = transfer->doomed = transfer->unanswered = false;
    transfer->words[0] = '\0';
    transfer->begun_ns = wb_clock_mono_ns();
    transfer->held_since_ns = transfer->held_ns = 0;
    transfer->sent_ms = wb_clock_now_ms();
    transfer->heard_ms = 0;
    return 0;
}
