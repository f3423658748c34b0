/*
 * fetch_loop.h - private to fetch: libcurl's sockets and its timer in a libevent loop.
 *
 *   socket is opened -> watched while libcurl asks for it -> kept watched, idle -> closed, watch dropped
 */
#ifndef WB_FETCH_FETCH_LOOP_H
#define WB_FETCH_FETCH_LOOP_H

#include "fetch/fetch.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>

struct wb_fetch_watch;

struct wb_fetch_loop {
    struct event_base *base;
    CURLM *multi;                     /* NULL: there was no memory for it */
    struct event timer;
    struct wb_fetch_watch **watches;  /* by file descriptor */
    size_t watches_cap;
    void (*after)(void *context);     /* libcurl did something: look for what ended */
    void (*starved)(void *context, CURL *easy);  /* no memory to go on with this transfer */
    void *context;
    unsigned connections_max;
    bool broken;                      /* libcurl ran out of memory: multi is of no more use */
};

/* The fields from after to connections_max are set before, all others zero. */
int wb_fetch_loop_init(struct wb_fetch_loop *loop, struct event_base *base);

/* When no transfer is in it any more. */
void wb_fetch_loop_release(struct wb_fetch_loop *loop);

/* Another multi handle for a broken one, which no transfer may be in; also where that failed before. */
int wb_fetch_loop_renew(struct wb_fetch_loop *loop);

/* Where the connections of an easy handle go, whatever address libcurl believes to connect to. */
struct wb_fetch_route {
    struct wb_fetch_loop *loop;
    struct wb_address address;  /* family 0: as libcurl says */
    bool sent;                  /* the request has left: it must not be repeated, so no further connection is opened */
    bool no_files;              /* a connection failed because no file descriptor was left */
};

/* Connections that this handle opens are watched cheaply. route, which the caller keeps, outlives easy. */
bool wb_fetch_loop_adopt(struct wb_fetch_loop *loop, CURL *easy, struct wb_fetch_route *route);

#endif
