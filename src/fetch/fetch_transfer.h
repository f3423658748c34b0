/*
 * fetch_transfer.h - private to fetch: one request and its answer.
 *
 * Life: new -> prepared (a new easy handle: options, URL, address, validators) -> bytes arrive ->
 * ended (result made, callback) -> cleared (the handle is freed) -> prepared again for another request, or freed.
 *
 * An easy handle makes one request and no more: libcurl 7.88 uses freed memory when a handle is used again
 * and the first header line of the second response begins with a blank (docs/design/0015-libcurl.md).
 */
#ifndef WB_FETCH_FETCH_TRANSFER_H
#define WB_FETCH_FETCH_TRANSFER_H

#include "fetch/fetch.h"
#include "fetch/fetch_head.h"
#include "fetch/fetch_loop.h"

#include <curl/curl.h>

/* What libcurl takes for an address lies in this network, which leads nowhere (RFC 6666); see fetch_request.c. */
#define WB_FETCH_PIN_PREFIX "100::"

struct wb_fetch_transfer {
    CURL *easy;                             /* NULL: not prepared */
    struct wb_fetcher *owner;
    struct wb_fetch_transfer *prev, *next;  /* in the owner's list */
    wb_fetch_done done;
    void *context;

    struct wb_buf url;                      /* NUL-terminated, as libcurl gets it */
    struct wb_fetch_route route;            /* the address, whatever host the URL names */
    char pin_text[WB_ADDRESS_TEXT_MAX];
    struct curl_slist pin;                  /* what libcurl takes for the address: set_address() */
    struct wb_buf etag, modified;           /* header lines, NUL-terminated */
    struct curl_slist lines[2];

    struct wb_fetch_head head;
    struct wb_buf body;                     /* content coding not undone */
    size_t body_max;
    size_t charged;                         /* bytes of the owner's budget that it holds */

    /* What was decided here; libcurl then only says that it was stopped. */
    enum wb_fetch_error error;
    char message[CURL_ERROR_SIZE];
    bool truncated;
    bool unanswered;                        /* libcurl wanted to send the request once more */
    bool doomed;                            /* to be ended by its owner as soon as libcurl is left */

    int64_t sent_ms, begun_ns;
    char words[CURL_ERROR_SIZE];
};

/* The handle that those of all requests are copied from: the options that never change. options: defaults filled in. */
int wb_fetch_transfer_model(const struct wb_fetch_options *options, CURL **model_out);

int wb_fetch_transfer_new(struct wb_fetcher *owner, struct wb_fetch_transfer **transfer_out);
void wb_fetch_transfer_free(struct wb_fetch_transfer *transfer);

/* Gives the transfer an easy handle of its own. */
int wb_fetch_transfer_equip(struct wb_fetch_transfer *transfer, CURL *model, struct wb_fetch_loop *loop);

/* After it was equipped. WB_E_INVALID names the URL. In fetch_request.c. */
int wb_fetch_transfer_prepare(struct wb_fetch_transfer *transfer, const struct wb_fetch_request *request,
                              const struct wb_fetch_options *options);

/* Decides the outcome, unless it was decided before. */
void wb_fetch_transfer_decide(struct wb_fetch_transfer *transfer, enum wb_fetch_error error, const char *message);

/* We end it before the response does: its connection is closed with it, also where HTTP/2 could go on with other streams. */
void wb_fetch_transfer_abandon(struct wb_fetch_transfer *transfer);

/* The answer as it stands; result_out->body is moved out of transfer, the rest is borrowed from it. In fetch_answer.c. */
void wb_fetch_transfer_result(struct wb_fetch_transfer *transfer, CURLcode code, unsigned ratio_max, struct wb_fetch_result *result_out);

/* Nothing of the answer is kept, nor the handle. */
void wb_fetch_transfer_clear(struct wb_fetch_transfer *transfer);

/* Counts transfer's body anew. False: the budget is used up, and it is transfer that must be cut. In fetch.c. */
bool wb_fetcher_charge(struct wb_fetcher *owner, struct wb_fetch_transfer *transfer);

#endif
