/*
 * fetch_transfer.h - one request and its response. Used inside this room only.
 *
 * Phases: new -> equipped (with a new easy handle) -> prepared (URL, address, validators) -> bytes arrive -> ended
 * (result made, callback) -> cleared (the handle is freed) -> equipped again for another request, or freed.
 *
 * An easy handle makes one request and no more: libcurl 7.88 uses freed memory if a handle is used again
 * and the first header line of the second response starts with a blank (docs/design/0015-libcurl.md).
 */
#ifndef WB_FETCH_FETCH_TRANSFER_H
#define WB_FETCH_FETCH_TRANSFER_H

#include "base/list.h"
#include "fetch/fetch.h"
#include "fetch/fetch_head.h"
#include "fetch/fetch_loop.h"

#include <curl/curl.h>

/* The addresses that libcurl gets from us are in this network, which leads nowhere (RFC 6666); see fetch_request.c. */
#define WB_FETCH_PIN_PREFIX "100::"

struct wb_fetch_transfer {
    CURL *easy;                             /* NULL: not equipped */
    struct wb_fetcher *owner;
    struct wb_list_node node;               /* in the owner's list of those under way, or of those that are idle */
    wb_fetch_done done;
    void *context;

    struct wb_buf url;                      /* as libcurl gets it, with a NUL */
    struct wb_fetch_route route;            /* leads to the address, whatever host the URL names */
    char pin_text[WB_ADDRESS_TEXT_MAX];
    struct curl_slist pin;                  /* what libcurl gets as the address: set_address() */
    struct wb_buf etag, modified;           /* header lines, each with a NUL */
    struct curl_slist lines[2];

    struct wb_fetch_head head;
    struct wb_buf body;                     /* its content coding is not undone yet */
    size_t body_max;
    size_t charged;                         /* bytes of the owner's memory budget that it holds */

    /* What we decided ourselves; libcurl then only reports that it was stopped. */
    enum wb_fetch_error error;
    char message[CURL_ERROR_SIZE];
    bool truncated;
    bool unanswered;                        /* libcurl wanted to send the request once more */
    bool doomed;                            /* its owner ends it as soon as libcurl has returned */

    int64_t sent_ms, begun_ns;
    int64_t heard_ms;                       /* when the first line of an answer came; 0: not yet */
    int64_t held_since_ns, held_ns;         /* by the pace: since when (0: it is not), and for how long before that */
    char words[CURL_ERROR_SIZE];
};

/* Makes the handle from which those of all requests are copied. options has its defaults filled in. */
int wb_fetch_transfer_model(const struct wb_fetch_options *options, CURL **model_out);

int wb_fetch_transfer_new(struct wb_fetcher *owner, struct wb_fetch_transfer **transfer_out);
void wb_fetch_transfer_free(struct wb_fetch_transfer *transfer);

/* Gives the transfer a new easy handle. */
int wb_fetch_transfer_equip(struct wb_fetch_transfer *transfer, CURL *model, struct wb_fetch_loop *loop);

/* Sets up an equipped transfer for a request. WB_E_INVALID with a message that names the URL. In fetch_request.c. */
int wb_fetch_transfer_prepare(struct wb_fetch_transfer *transfer, const struct wb_fetch_request *request,
                              const struct wb_fetch_options *options);

/* Decides that the transfer failed, unless its outcome was decided before. */
void wb_fetch_transfer_decide(struct wb_fetch_transfer *transfer, enum wb_fetch_error error, const char *message);

/* We end it before the response is complete: its connection must be closed, even if HTTP/2 could use it further. */
void wb_fetch_transfer_abandon(struct wb_fetch_transfer *transfer);

/* Makes the result. result_out->body is moved out of transfer; everything else borrows from it. In fetch_answer.c. */
void wb_fetch_transfer_result(struct wb_fetch_transfer *transfer, CURLcode code, unsigned ratio_max,
                              struct wb_fetch_result *result_out);

/* Drops the response and the handle. */
void wb_fetch_transfer_clear(struct wb_fetch_transfer *transfer);

/*
 * Counts the present size of transfer's body. False: the memory budget is used up, and transfer must be cut. In
 * fetch.c.
 */
bool wb_fetcher_charge(struct wb_fetcher *owner, struct wb_fetch_transfer *transfer);

/* Whether nothing more of the response may be read now, because of the pace. The fetcher continues it. In fetch.c. */
bool wb_fetcher_hold(struct wb_fetcher *owner, struct wb_fetch_transfer *transfer);

/* Counts bytes that were received towards the pace. In fetch.c. */
void wb_fetcher_received(struct wb_fetcher *owner, size_t bytes);

#endif
