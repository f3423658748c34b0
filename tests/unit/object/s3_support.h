/*
 * s3_support.h - a small object store in the process of the test, that speaks S3 over HTTP, and misbehaves as it is
 * told.
 *
 * It checks that each request is signed for exactly what arrives. How signatures are made is compared with published
 * ones elsewhere (test_s3_sign.c). It allocates with malloc(), so that allocations of the client can be made to fail.
 */
#ifndef WB_TESTS_S3_SUPPORT_H
#define WB_TESTS_S3_SUPPORT_H

#include "object_support.h"

#include <pthread.h>
#include <stdio.h>

#define STAND_ACCESS "AKIDSTAND"
#define STAND_SECRET "stand/secret+KEY"

/* What happens to one request. */
enum act_kind {
    ACT_WELL,   /* it is answered */
    ACT_STATUS, /* it is refused with a status and a code */
    ACT_RESET,  /* the connection ends before anything is done */
    ACT_LOST,   /* it is done, but the connection ends without an answer */
    ACT_CUT,    /* half of the body of the answer comes */
    ACT_SILENT, /* nothing comes, and the clock is moved; the connection stays open */
    ACT_CANNED, /* this text is the answer, from its status line on */
};

struct act {
    enum act_kind kind;
    int status;
    const char *code;   /* of the error */
    const char *canned; /* the answer; of ACT_STATUS: more elements of the error */
};

struct stand_object {
    char *key, *bytes;
    size_t len;
};

struct stand {
    int listener;
    unsigned port;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct stand_object *objects; /* in order of keys */
    size_t object_count;
    struct act acts[64]; /* what happens to the next requests; afterwards `rest` */
    size_t act_count, acted;
    struct act rest;
    unsigned page_max;          /* of a listing */
    const char *access, *token; /* that are accepted; token NULL: none */
    int64_t date_shift_ms;      /* how far its clock is ahead */
    int64_t clock_shift_ms;     /* how far our clock moves while a request is silent */
    bool trusting;              /* it does not look at signatures */
    bool holding;               /* requests wait until this is false */
    char targets[64][512];      /* the first requests: "PUT /bucket/key?query" */
    unsigned requests, connections, running, running_most, bad;
    int sockets[64];
    unsigned open;
};

void stand_start(struct stand *stand);
void stand_stop(struct stand *stand);

/* What happens to the next requests. */
void stand_next(struct stand *stand, struct act act);
#define stand_refuse(stand, number, name)                                                                              \
    stand_next((stand), (struct act){.kind = ACT_STATUS, .status = (number), .code = (name)})

/* Sets AWS_ENDPOINT_URL and the keys, and no other variable of Amazon's. */
void stand_environment(const struct stand *stand);
void clear_environment(void);

struct wb_object_store *stand_open(const struct stand *stand, const char *url);

/* How many objects it has, and whether one of them is this. */
size_t stand_count(struct stand *stand);
bool stand_has(struct stand *stand, const char *key, const char *bytes);

unsigned stand_requests(struct stand *stand);

/* Waits until nothing is being answered: the texts of its answers may be freed then. */
void stand_quiet(struct stand *stand);

/* From now on, pauses between attempts move the clock and take no time. */
void pauses_skip(void);
void pauses_take_time(void);

#endif
