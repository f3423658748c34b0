/*
 * webanswer.h - makes well-formed HTTP answers: head, validators, compression.
 *
 * Answers that are malformed on purpose are made in behave.c.
 */
#ifndef WB_SIM_ANSWER_H
#define WB_SIM_ANSWER_H

#include "sim/asked.h"
#include "sim/pen.h"
#include "sim/reply.h"

struct libdeflate_compressor;

/* The tools that answers are made with; one per server. */
struct wb_answerer {
    struct libdeflate_compressor *compressor;
    struct wb_buf packed;
    int64_t date_s;       /* the second for which `date` is the text */
    char date[32];
};

int wb_answerer_init(struct wb_answerer *answerer);
void wb_answerer_release(struct wb_answerer *answerer);

struct wb_answer {
    int status;
    const char *type;       /* Content-Type, or NULL */
    struct wb_slice body;
    const char *location;   /* Location, or NULL */
    unsigned retry_after_s; /* Retry-After in seconds, or 0 */
    bool etag;              /* send an ETag, which is a hash of the body */
    int64_t modified_ms;    /* Last-Modified, or 0 */
    bool gzip;              /* compress the body if the client accepts that */
    const char *extra;      /* more header lines, each with its line end, or NULL */
};

/*
 * Makes the reply: 304 if the client has this body already, and only the head for HEAD.
 * Replaces bytes, end and status of the reply.
 */
int wb_answer(struct wb_answerer *answerer, const struct wb_asked *asked, const struct wb_answer *answer,
              struct wb_reply *reply);

/* Compresses bytes with gzip; the result is valid until the next call. */
int wb_answer_gzip(struct wb_answerer *answerer, struct wb_slice bytes, struct wb_slice *packed_out);

const char *wb_answer_reason(int status);

#endif
