/*
 * fetch_loop.h - private to fetch: libcurl's sockets and its timer in a libevent loop.
 *
 *   socket is opened -> watched while libcurl asks for it -> kept watched, idle -> closed, watch dropped
 */
#ifndef WB_CRAWL_FETCH_LOOP_H
#define WB_CRAWL_FETCH_LOOP_H

#include "base/slice.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>

struct wb_fetch_watch;

struct wb_fetch_loop {
    struct event_base *base;
    CURLM *multi;
    struct event timer;
    struct wb_fetch_watch **watches;  /* by file descriptor */
    size_t watches_cap;
    void (*after)(void *context);     /* libcurl did something: look for what ended */
    void (*starved)(void *context, CURL *easy);  /* there is no memory to watch this transfer's socket */
    void *context;
};

/* Takes the callbacks of multi that concern sockets and time. Those of each easy handle are set by wb_fetch_loop_adopt(). */
int wb_fetch_loop_init(struct wb_fetch_loop *loop, struct event_base *base, CURLM *multi);

/* After the multi handle and all easy handles are gone. */
void wb_fetch_loop_release(struct wb_fetch_loop *loop);

/* Connections that this handle opens are watched cheaply. */
bool wb_fetch_loop_adopt(struct wb_fetch_loop *loop, CURL *easy);

#endif
