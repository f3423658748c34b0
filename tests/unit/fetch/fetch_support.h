/*
 * fetch_support.h - what the tests of fetching share: a server that plays a script on loopback, byte for
 * byte, and a client that runs the loop until its answer is there.
 */
#ifndef WB_TESTS_FETCH_SUPPORT_H
#define WB_TESTS_FETCH_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "fetch/fetch_probe.h"

#include <event2/event.h>
#include <stdatomic.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- the server: a thread a connection ---------------------------------------------------- */

struct server;

struct peer {
    struct server *server;
    int fd;
    unsigned connection;   /* from 1, in the order of arrival */
    char request[8192];    /* the head of the request, NUL-terminated */
    char path[256];
};

/* Answers one request; false closes the connection. Runs in the connection's thread. */
typedef bool (*server_script)(struct peer *peer, void *context);

struct server *server_start(server_script script, void *context);
struct server *server_start6(server_script script, void *context); /* on ::1; NULL if there is no IPv6 */
void server_stop(struct server *server); /* cuts connections, waits for all threads */
void server_await_closed(struct server *server); /* until the scripts have closed every connection */
unsigned short server_port(const struct server *server);
unsigned server_connections(struct server *server);
unsigned server_requests(struct server *server);

/* False if the client has gone or the server is being stopped: then the script must end. */
bool peer_send(struct peer *peer, const void *bytes, size_t len);
bool peer_say(struct peer *peer, const char *text);
bool peer_sleep(struct peer *peer, unsigned ms);
void peer_reset(struct peer *peer); /* the connection ends with RST */

/* ---- the client ---------------------------------------------------------------------------------- */

struct answer {
    bool done;
    enum wb_fetch_error error;
    char message[256];
    unsigned status;
    bool truncated;
    struct wb_buf head, body;
    uint64_t wire_bytes;
    int64_t sent_ms;
    uint32_t took_ms;
    bool reused, unanswered;
};

struct client {
    struct event_base *base;
    struct wb_fetcher *fetcher;
    unsigned waiting;
};

void client_open(struct client *client, const struct wb_fetch_options *options);
void client_close(struct client *client);

struct wb_address loopback(void);

/* Starts a request; answer is filled when it ends, and released by the caller. */
void client_begin(struct client *client, const struct wb_fetch_request *request, struct answer *answer);
void client_wait(struct client *client); /* until nothing is under way */

/* A whole request to http://site.test:PORT/path. */
void client_get(struct client *client, unsigned short port, const char *path, struct answer *answer);
void answer_release(struct answer *answer);

void assert_error(const struct answer *answer, enum wb_fetch_error want, const char *what);
void assert_body(const struct answer *answer, const char *text);

#endif
