/* fetch_support.c - a scripted server on loopback and a client for it. */
#include "fetch_support.h"

#include "base/mem.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
    int listener;
    unsigned short port;
    pthread_t thread;
    server_script script;
    void *context;
    atomic_bool stopping;
    atomic_uint connections, requests;
    pthread_mutex_t lock;
    pthread_cond_t quiet;
    unsigned active;
};

/* ---- a connection --------------------------------------------------------------------------- */

/* Waits in short steps, so that a server that is stopped ends soon. */
static bool await(struct peer *peer, short events)
{
    while (!peer->server->stopping) {
        struct pollfd poll_fd = {.fd = peer->fd, .events = events};
        int n = poll(&poll_fd, 1, 20);
        if (n > 0)
            return true;
    }
    return false;
}

bool peer_send(struct peer *peer, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        if (!await(peer, POLLOUT))
            return false;
        ssize_t n = send(peer->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool peer_say(struct peer *peer, const char *text)
{
    return peer_send(peer, text, strlen(text));
}

bool peer_sleep(struct peer *peer, unsigned ms)
{
    int64_t until = wb_clock_mono_ns() + (int64_t)ms * 1000000;

    while (!peer->server->stopping && wb_clock_mono_ns() < until) {
        struct pollfd poll_fd = {.fd = peer->fd, .events = POLLRDHUP};
        if (poll(&poll_fd, 1, ms < 10 ? (int)ms : 10) > 0 && poll_fd.revents & (POLLHUP | POLLERR | POLLRDHUP))
            return false;
    }
    return !peer->server->stopping;
}

void peer_reset(struct peer *peer)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

static bool read_request(struct peer *peer)
{
    size_t len = 0;

    while (len < sizeof peer->request - 1 && await(peer, POLLIN)) {
        ssize_t n = recv(peer->fd, peer->request + len, sizeof peer->request - 1 - len, 0);
        if (n <= 0)
            return false;
        len += (size_t)n;
        peer->request[len] = '\0';
        if (strstr(peer->request, "\r\n\r\n"))
            return sscanf(peer->request, "GET %255s", peer->path) == 1;
    }
    return false;
}

static void *serve(void *argument)
{
    struct peer *peer = argument;
    struct server *server = peer->server;

    while (read_request(peer)) {
        server->requests++;
        if (!server->script(peer, server->context))
            break;
    }
    close(peer->fd);
    free(peer);
    pthread_mutex_lock(&server->lock);
    server->active--;
    pthread_cond_signal(&server->quiet);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* ---- the server ------------------------------------------------------------------------------------- */

static void *accept_all(void *argument)
{
    struct server *server = argument;
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    while (!server->stopping) {
        struct pollfd poll_fd = {.fd = server->listener, .events = POLLIN};
        if (poll(&poll_fd, 1, 20) <= 0)
            continue;
        int fd = accept(server->listener, NULL, NULL);
        if (fd < 0)
            continue;
        struct peer *peer = calloc(1, sizeof(*peer));
        pthread_t thread;
        *peer = (struct peer){.server = server, .fd = fd, .connection = ++server->connections};
        pthread_mutex_lock(&server->lock);
        server->active++;
        pthread_mutex_unlock(&server->lock);
        if (pthread_create(&thread, &attributes, serve, peer) != 0)
            abort();
    }
    pthread_attr_destroy(&attributes);
    return NULL;
}

static struct server *start_at(struct sockaddr *address, socklen_t len, server_script script, void *context)
{
    int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || bind(listener, address, len) < 0) {
        close(listener);
        return NULL;
    }
    assert_int_equal(listen(listener, 1024), 0);
    assert_int_equal(getsockname(listener, address, &len), 0);
    struct server *server = calloc(1, sizeof(*server));
    server->listener = listener;
    server->script = script;
    server->context = context;
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->quiet, NULL);
    assert_int_equal(pthread_create(&server->thread, NULL, accept_all, server), 0);
    return server;
}

struct server *server_start(server_script script, void *context)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct server *server = start_at((struct sockaddr *)&address, sizeof address, script, context);

    assert_non_null(server);
    server->port = ntohs(address.sin_port);
    return server;
}

struct server *server_start6(server_script script, void *context)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct server *server = start_at((struct sockaddr *)&address, sizeof address, script, context);

    if (server)
        server->port = ntohs(address.sin6_port);
    return server;
}

void server_await_closed(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    while (server->active > 0)
        pthread_cond_wait(&server->quiet, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

void server_stop(struct server *server)
{
    server->stopping = true;
    pthread_join(server->thread, NULL);
    server_await_closed(server);
    close(server->listener);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->quiet);
    free(server);
}

unsigned short server_port(const struct server *server)
{
    return server->port;
}

unsigned server_connections(struct server *server)
{
    return server->connections;
}

unsigned server_requests(struct server *server)
{
    return server->requests;
}

/* ---- the client ---------------------------------------------------------------------------------------- */

struct wb_address loopback(void)
{
    return (struct wb_address){.family = 4, .bytes = {127, 0, 0, 1}};
}

void client_open(struct client *client, const struct wb_fetch_options *options)
{
    static const struct wb_fetch_options plain = {.user_agent = "TestBot/1.0"};

    *client = (struct client){.base = event_base_new()};
    assert_non_null(client->base);
    assert_int_equal(wb_fetcher_new(client->base, options ? options : &plain, &client->fetcher), 0);
}

void client_close(struct client *client)
{
    wb_fetcher_free(client->fetcher);
    event_base_free(client->base);
}

struct waiter {
    struct client *client;
    struct answer *answer;
};

static void on_done(void *context, struct wb_fetch_result *result)
{
    struct waiter *waiter = context;
    struct answer *answer = waiter->answer;

    assert_false(answer->done);
    answer->done = true;
    answer->error = result->error;
    snprintf(answer->message, sizeof answer->message, "%s", result->message);
    answer->status = result->status;
    answer->truncated = result->truncated;
    answer->wire_bytes = result->wire_bytes;
    answer->sent_ms = result->sent_ms;
    answer->took_ms = result->took_ms;
    answer->reused = result->reused;
    answer->unanswered = result->unanswered;
    answer->body = wb_buf_take(&result->body);
    assert_int_equal(wb_buf_append_slice(&answer->head, result->head), 0);
    waiter->client->waiting--;
    free(waiter);
}

void client_begin(struct client *client, const struct wb_fetch_request *request, struct answer *answer)
{
    struct waiter *waiter = malloc(sizeof(*waiter));

    *answer = (struct answer){.done = false};
    *waiter = (struct waiter){client, answer};
    assert_int_equal(wb_fetch_start(client->fetcher, request, on_done, waiter), 0);
    assert_false(answer->done);
    client->waiting++;
}

void client_wait(struct client *client)
{
    while (client->waiting > 0)
        event_base_loop(client->base, EVLOOP_ONCE);
    assert_int_equal(wb_fetcher_busy(client->fetcher), 0);
}

void client_get(struct client *client, unsigned short port, const char *path, struct answer *answer)
{
    char url[512];

    snprintf(url, sizeof url, "http://site.test:%d%s", port, path);
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
    client_begin(client, &request, answer);
    client_wait(client);
}

void answer_release(struct answer *answer)
{
    wb_buf_release(&answer->head);
    wb_buf_release(&answer->body);
}

void assert_error(const struct answer *answer, enum wb_fetch_error want, const char *what)
{
    if (!answer->done)
        fail_msg("%s: no answer", what);
    if (answer->error != want)
        fail_msg("%s: '%s' (%s), not '%s'", what, wb_fetch_error_word(answer->error), answer->message,
                 wb_fetch_error_word(want));
    if (want != WB_FETCH_OK && !answer->message[0])
        fail_msg("%s: no words for '%s'", what, wb_fetch_error_word(want));
    if (want != WB_FETCH_OK && answer->body.len)
        fail_msg("%s: a body with an error", what);
}

void assert_body(const struct answer *answer, const char *text)
{
    if (!wb_slice_equal(wb_buf_slice(&answer->body), wb_slice_str(text)))
        fail_msg("body '%.*s' is not '%s'", WB_SLICE_ARG(wb_buf_slice(&answer->body)), text);
}
