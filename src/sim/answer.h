/* answer.h - well-formed HTTP answers: head, validators, compression. What is sent wrongly on purpose is behave.c's. */
#ifndef WB_SIM_ANSWER_H
#define WB_SIM_ANSWER_H

#include "sim/asked.h"
#include "sim/pen.h"
#include "sim/reply.h"

struct libdeflate_compressor;

/* What answers are made with; one a server. */
struct wb_answerer {
    struct libdeflate_compressor *compressor;
    struct wb_buf packed;
    int64_t date_s;       /* the second that date is of */
    char date[32];
};

int wb_answerer_init(struct wb_answerer *answerer);
void wb_answerer_release(struct wb_answerer *answerer);

struct wb_answer {
    int status;
    const char *type;       /* Content-Type; NULL: none */
    struct wb_slice body;
    const char *location;   /* NULL: none */
    unsigned retry_after;   /* seconds; 0: none */
    bool etag;              /* send one, made of the body */
    int64_t modified_ms;    /* Last-Modified; 0: none */
    bool gzip;              /* compress where the client takes it */
    const char *extra;      /* further header lines with their ends, or NULL */
};

/* Makes the reply: 304 where the client has it already, the head alone for HEAD. Replaces bytes, end and status of reply. */
int wb_answer(struct wb_answerer *answerer, const struct wb_asked *asked, const struct wb_answer *answer, struct wb_reply *reply);

/* gzip'd bytes, valid until the next call. */
int wb_answer_gzip(struct wb_answerer *answerer, struct wb_slice bytes, struct wb_slice *packed_out);

/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void wb_answer_date(int64_t time_ms, char text_out[32]);

const char *wb_answer_reason(int status);

#endif
