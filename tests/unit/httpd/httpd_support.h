/*
 * httpd_support.h - a server in a thread, with an app for tests, and a client that speaks bytes.
 *
 *   /hello            "hello\n"
 *   /echo             method, target, body; up to 100,000 bytes
 *   /fields           the request's parameters and the field X-Test
 *   /hold             answers when release_held() is called
 *   /big?bytes=N      N bytes 'x'
 *   /none             204
 *   /broken           an error with status 500
 *   /pieces?count=N&bytes=M      a source: N pieces of M bytes, piece i of the letter 'a' + i % 26
 *   /fail?count=N                a source that fails after N pieces
 *   /later                       a source that has nothing until feed_later() is called
 *   /forbidden        not admitted: 403
 *   ?slow             such a request counts as one that may be slow
 *   ?delay=MS         its answer leaves that much later
 */
#ifndef WB_TESTS_HTTPD_SUPPORT_H
#define WB_TESTS_HTTPD_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "httpd/httpd.h"

#include <pthread.h>
#include <stdatomic.h>

#define BODY_MAX 100000u

struct site {
    struct wb_httpd *httpd;
    pthread_t thread;
    int result;
    unsigned short port;
    struct wb_httpd_options options;
    atomic_uint handled, workers_asked, workers_open, sources_made, sources_closed, sources_open, pieces, served, fed,
        running;
    atomic_uint last_status, certified;
    atomic_int certified_err;
    _Atomic uint64_t last_bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned held, released;
    bool worker_fails;
};

/* Starts a server. Set options first: the limits that a test is about; everything else has a value. */
void site_start(struct site *site);
void site_stop(struct site *site);

/* Asks for a stop and returns what wb_httpd_run() returned. */
int site_end(struct site *site);

/* Waits until so many requests are held; lets so many go. */
void await_held(struct site *site, unsigned count);
void release_held(struct site *site, unsigned count);

/* Lets each source at /later make a piece more. */
void feed_later(struct site *site);

/* Waits until a counter has a value; fails the test after a long time. */
#define await_count(counter, value) await_count_at(&(counter), (value), #counter, __FILE__, __LINE__)
void await_count_at(const atomic_uint *counter, unsigned value, const char *what, const char *file, int line);
void await_connections(struct site *site, uint64_t count);

/* ---- a client ------------------------------------------------------------------------------------ */

int dial(struct site *site);

/* Sends everything; errors are ignored, because a server may close before it has read all. */
void say(int fd, const char *text);
void say_bytes(int fd, const char *bytes, size_t len, size_t step);

/* Reads until the server closes. True if it did so without a reset. Bytes that arrive are appended to out. */
bool hear_all(int fd, struct wb_buf *out);

/* Reads until so many bytes have arrived, or the server closes. */
void hear(int fd, size_t len, struct wb_buf *out);

/* Reads until text appears in what has arrived since. False if the server closed before. */
bool hear_text(int fd, const char *text, struct wb_buf *out);

/* Sends a request on a new connection, hears everything, and returns the statuses in it, such as "200 400". */
const char *statuses_of(struct site *site, const char *bytes, size_t len, size_t step, bool half_close);

/* Whether the text contains it. */
bool has(const struct wb_buf *text, const char *part);

/* Undoes chunks; false if the body is not complete. */
bool unchunk(struct wb_slice reply, struct wb_buf *body_out);

#endif
