/*
 * fetch_loop.h - connects libcurl's sockets and its timer to a libevent loop. Used inside this room only.
 *
 *   a socket is opened -> watched while libcurl waits for it -> idle, and still watched -> closed, its watch dropped
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
    CURLM *multi;                     /* NULL: there was no memory for one */
    struct event timer;
    struct wb_fetch_watch **watches;  /* by file descriptor */
    size_t watches_cap;
    void (*after)(void *context);     /* libcurl did something: look for transfers that ended */
    void (*starved)(void *context, CURL *easy);  /* there is no memory to continue this transfer */
    void *context;
    unsigned connections_max;
    bool broken;                      /* libcurl ran out of memory: multi cannot be used any more */
};

/* Before the call, set the members from after to connections_max, and all others to zero. */
int wb_fetch_loop_init(struct wb_fetch_loop *loop, struct event_base *base);

/* No transfer may be in it any more. */
void wb_fetch_loop_release(struct wb_fetch_loop *loop);

/* Makes a new multi handle. No transfer may be in the old one. If this fails, it can be called again. */
int wb_fetch_loop_renew(struct wb_fetch_loop *loop);

/* Where the connections of an easy handle really go, whatever address libcurl believes to connect to. */
struct wb_fetch_route {
    struct wb_fetch_loop *loop;
    struct wb_address address;  /* family 0: where libcurl says */
    bool sent;                  /* the request was sent. It must not be repeated, so no other connection is opened */
    bool no_files;              /* a connection failed because no file descriptor was left */
};

/* Makes the connections of an easy handle go along a route. The route belongs to the caller and must outlive easy. */
bool wb_fetch_loop_adopt(struct wb_fetch_loop *loop, CURL *easy, struct wb_fetch_route *route);

#endif
