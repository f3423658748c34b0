/*
 * fetch_answer.c - turns what arrived into a result: the kind of error, or the page.
 *
 * All codings but chunked are undone here and not by libcurl, at the end and at once: that is faster, and
 * the limits on size and ratio are exact. Nothing here reads from the network.
 */
#include "fetch/fetch_transfer.h"

#include "base/error.h"
#include "fetch/fetch_error.h"
#include "os/clock.h"
#include "os/curlstart.h"
#include "page/page.h"

/* A smaller body is harmless, however well it was compressed. */
#define RATIO_FROM_BYTES ((size_t)1 << 20)

/* True if less than the allowed share of coded bytes already unpacks to more than the limit. */
static bool is_bomb(struct wb_slice head, struct wb_slice coded, size_t limit, unsigned ratio_max,
                    struct wb_buf *scratch)
{
    struct wb_payload_result decoded;

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
    struct wb_payload_result decoded = {.changed = false};
    bool any = false, cut = transfer->truncated;
    int err = coded.len ? wb_fetch_head_codings(&transfer->head, &lines, &any) : 0;

    if (err == 0 && !any)
        goto done;
    if (err == 0)
        err = wb_payload_decode(wb_buf_slice(&lines), coded, transfer->body_max, &plain, &decoded);
    if (err == 0 && !decoded.coded && !decoded.changed)
        goto done; /* "Content-Encoding: utf-8" and the like is not a coding: the body is as it was sent */
    transfer->truncated = false; /* so that the decisions below take effect */
    if (err < 0)
        wb_fetch_transfer_decide(transfer, err == WB_E_PROTO ? WB_FETCH_CODING : WB_FETCH_MEMORY, wb_error_message());
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

/* libcurl's message, unless it contains the number that we gave libcurl as an address (fetch_request.c). */
static const char *explain(struct wb_fetch_transfer *transfer, CURLcode code)
{
    long number = 0;

    if (transfer->words[0] && !strstr(transfer->words, WB_FETCH_PIN_PREFIX))
        return transfer->words;
    curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
    const char *words = number ? strerrordesc_np((int)number) : NULL;
    return words ? words : curl_easy_strerror(code);
}

/* Decides the error if libcurl stopped by itself. */
static void judge(struct wb_fetch_transfer *transfer, CURLcode code)
{
    bool starved = wb_curl_starved();

    if (transfer->error != WB_FETCH_OK || transfer->truncated)
        return;
    if (code == CURLE_OUT_OF_MEMORY && !starved && !transfer->head.ended) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_HEADERS, "a header line is larger than the limit");
        return;
    }
    /* libcurl's code for a header line that continues no other: the first one, or the first one of a trailer. */
    if (code == CURLE_BAD_FUNCTION_ARGUMENT && transfer->head.status) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_PROTOCOL, "the first header line starts with a blank");
        return;
    }
    if (transfer->unanswered || (transfer->route.sent && code == CURLE_COULDNT_CONNECT)) {
        /* The request was sent, and libcurl wanted to repeat it: on_send() or open_socket() stopped that. */
        transfer->unanswered = true;
        wb_fetch_transfer_decide(transfer, WB_FETCH_EMPTY, "the connection ended without a response");
        return;
    }
    if (transfer->route.no_files && code == CURLE_COULDNT_CONNECT) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_FILES, "no file descriptor is left for a connection");
        return;
    }
    if (wb_fetch_head_contradicts(&transfer->head)) {
        wb_fetch_transfer_decide(transfer, WB_FETCH_PROTOCOL, "the headers state two different lengths of the body");
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

void wb_fetch_transfer_result(struct wb_fetch_transfer *transfer, CURLcode code, unsigned ratio_max,
                              struct wb_fetch_result *result_out)
{
    curl_off_t wire = 0;
    long connects = 0;

    judge(transfer, code);
    if (transfer->error == WB_FETCH_OK)
        decode_body(transfer, ratio_max);
    curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_DOWNLOAD_T, &wire);
    curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects);
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
        .heard_ms = transfer->heard_ms,
        .took_ms = (uint32_t)(took_ns / 1000000),
        .reused = transfer->route.sent && connects == 0,
        .unanswered = transfer->unanswered,
    };
}
