/*
 * s3_http.h - one HTTP request and its answer, over connections that are used again.
 *
 * It knows nothing of S3: it sends what it is given, and bounds what comes back in size and time. A request that fails
 * is not repeated here, except on a fresh connection if one that was used again had been closed by the server
 * meanwhile.
 */
#ifndef WB_OBJECT_S3_HTTP_H
#define WB_OBJECT_S3_HTTP_H

#include "object/objectkind.h"

struct wb_s3_http;

struct wb_s3_exchange {
    const char *method, *url;
    const char *const *fields; /* "Name: value" */
    size_t field_count;
    struct wb_slice body; /* of PUT */
    size_t answer_max;    /* WB_E_LIMIT if a body that is no error is longer */

    /* The answer. */
    long status;
    struct wb_buf *answer; /* of a status from 200 to 299; cleared first */
    struct wb_buf refusal; /* the body of another status, or the beginning of it; released by the caller */
    int64_t length;        /* as the answer says, -1: it does not. For HEAD */
    int64_t date_ms;       /* the server's clock; 0: it did not say */
    int64_t range_start, range_end, range_total; /* the bytes that it says are in the answer, and of how many; or -1 */
    char region[64];                             /* in which the bucket is, if it says */
};

/* host: for messages. plain: to a host of this machine, without a proxy. */
int wb_s3_http_new(const char *host, bool plain, struct wb_s3_http **http_out);
void wb_s3_http_free(struct wb_s3_http *http); /* NULL is fine */

/*
 * Sends the request. 0: there is an answer, and all of it has come. WB_E_DOWN: there is none; try->silence_ms says how
 * long nothing had moved. WB_E_DENIED: the certificate of the host cannot be trusted.
 */
int wb_s3_http_send(struct wb_s3_http *http, struct wb_s3_exchange *exchange, struct wb_object_try *try);

#endif
