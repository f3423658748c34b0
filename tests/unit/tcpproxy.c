/* tcpproxy.c - see tcpproxy.h. */
#include "tcpproxy.h"
#include "must.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { PAIRS = 64, CHUNK = 65536, TURN_MS = 5 };

struct pair {
    int client, server; /* -1: not in use */
    bool losing;        /* the next answer is thrown away... */
    bool swallowing;    /* ...and the connection stays, but no more answers come */
};

struct tcp_proxy {
    pthread_t thread;
    pthread_mutex_t lock;
    int listener, port;
    struct sockaddr_un target;
    bool stop, refuse, silent, deaf, swallow;
    unsigned delay_ms, nth, lost;
    char text[64];
    struct pair pairs[PAIRS];
};

static void end_pair(struct pair *pair)
{
    if (pair->client >= 0)
        close(pair->client);
    if (pair->server >= 0)
        close(pair->server);
    *pair = (struct pair){.client = -1, .server = -1};
}

static void take_connection(struct tcp_proxy *proxy)
{
    int client = accept(proxy->listener, NULL, NULL);
    struct pair *pair = NULL;

    for (int i = 0; i < PAIRS && !pair; i++)
        pair = proxy->pairs[i].client < 0 ? &proxy->pairs[i] : NULL;
    if (client < 0 || proxy->refuse || !pair) {
        if (client >= 0)
            close(client);
        return;
    }
    *pair = (struct pair){.client = client, .server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (pair->server < 0 || connect(pair->server, (struct sockaddr *)&proxy->target, sizeof proxy->target) != 0)
        end_pair(pair);
}

/* Returns how many bytes were passed on; 0 if a side has ended, -1 if there was nothing after all. */
static ssize_t pass(int from, int to, char bytes[CHUNK])
{
    ssize_t len = recv(from, bytes, CHUNK, MSG_DONTWAIT);

    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return -1;

    for (ssize_t done = 0; len > 0 && done < len;) {
        ssize_t n = send(to, bytes + done, (size_t)(len - done), MSG_NOSIGNAL);
        if (n <= 0)
            return 0;
        done += n;
    }
    return len > 0 ? len : 0;
}

static void pass_question(struct tcp_proxy *proxy, struct pair *pair, char bytes[CHUNK])
{
    ssize_t len = pass(pair->client, pair->server, bytes);

    if (len == 0) {
        end_pair(pair);
    } else if (len > 0 && proxy->nth && memmem(bytes, (size_t)len, proxy->text, strlen(proxy->text)) &&
               --proxy->nth == 0) {
        pair->losing = true;
    }
}

static void pass_answer(struct tcp_proxy *proxy, struct pair *pair, char bytes[CHUNK])
{
    if (pair->losing || pair->swallowing) {
        ssize_t len = recv(pair->server, bytes, CHUNK, MSG_DONTWAIT);
        if (len < 0 && errno == EAGAIN)
            return;
        proxy->lost += pair->losing;
        pair->losing = false;
        pair->swallowing = proxy->swallow;
        if (len <= 0 || !proxy->swallow)
            end_pair(pair);
        return;
    }
    if (proxy->delay_ms)
        nanosleep(&(struct timespec){proxy->delay_ms / 1000, proxy->delay_ms % 1000 * 1000000L}, NULL);
    if (pass(pair->server, pair->client, bytes) == 0)
        end_pair(pair);
}

static void take_turn(struct tcp_proxy *proxy, char bytes[CHUNK])
{
    struct pollfd fds[1 + 2 * PAIRS];

    fds[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    for (int i = 0; i < PAIRS; i++) {
        const struct pair *pair = &proxy->pairs[i];
        fds[1 + 2 * i] = (struct pollfd){.fd = proxy->deaf ? -1 : pair->client, .events = POLLIN};
        fds[2 + 2 * i] = (struct pollfd){.fd = proxy->deaf || proxy->silent ? -1 : pair->server, .events = POLLIN};
    }
    pthread_mutex_unlock(&proxy->lock);
    int ready = poll(fds, 1 + 2 * PAIRS, TURN_MS);
    pthread_mutex_lock(&proxy->lock);
    if (ready <= 0)
        return;
    if (fds[0].revents)
        take_connection(proxy);
    for (int i = 0; i < PAIRS; i++) {
        struct pair *pair = &proxy->pairs[i];
        /* It may have been cut, and its numbers used again, while nobody held the lock. */
        if (fds[1 + 2 * i].revents && fds[1 + 2 * i].fd == pair->client)
            pass_question(proxy, pair, bytes);
        if (fds[2 + 2 * i].revents && fds[2 + 2 * i].fd == pair->server && pair->server >= 0)
            pass_answer(proxy, pair, bytes);
    }
}

static void *run_proxy(void *context)
{
    struct tcp_proxy *proxy = context;
    char *bytes = malloc(CHUNK);

    pthread_mutex_lock(&proxy->lock);
    while (bytes && !proxy->stop)
        take_turn(proxy, bytes);
    for (int i = 0; i < PAIRS; i++)
        end_pair(&proxy->pairs[i]);
    pthread_mutex_unlock(&proxy->lock);
    free(bytes);
    return NULL;
}

struct tcp_proxy *proxy_start(const char *unix_socket)
{
    struct tcp_proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;

    must(proxy);
    for (int i = 0; i < PAIRS; i++)
        proxy->pairs[i] = (struct pair){.client = -1, .server = -1};
    proxy->target.sun_family = AF_UNIX;
    must(strlen(unix_socket) < sizeof proxy->target.sun_path);
    snprintf(proxy->target.sun_path, sizeof proxy->target.sun_path, "%s", unix_socket);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(proxy->listener >= 0 && bind(proxy->listener, (struct sockaddr *)&here, sizeof here) == 0 &&
         listen(proxy->listener, PAIRS) == 0 && getsockname(proxy->listener, (struct sockaddr *)&here, &len) == 0);
    proxy->port = ntohs(here.sin_port);
    pthread_mutex_init(&proxy->lock, NULL);
    must(pthread_create(&proxy->thread, NULL, run_proxy, proxy) == 0);
    return proxy;
}

void proxy_stop(struct tcp_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->stop = true;
    pthread_mutex_unlock(&proxy->lock);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

int proxy_port(const struct tcp_proxy *proxy)
{
    return proxy->port;
}

void proxy_cut(struct tcp_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    for (int i = 0; i < PAIRS; i++)
        end_pair(&proxy->pairs[i]);
    pthread_mutex_unlock(&proxy->lock);
}

#define SETTER(name, type, field)                                                                                      \
    void proxy_##name(struct tcp_proxy *proxy, type value)                                                             \
    {                                                                                                                  \
        pthread_mutex_lock(&proxy->lock);                                                                              \
        proxy->field = value;                                                                                          \
        pthread_mutex_unlock(&proxy->lock);                                                                            \
    }

SETTER(refuse, bool, refuse)
SETTER(silent, bool, silent)
SETTER(deaf, bool, deaf)
SETTER(delay, unsigned, delay_ms)

void proxy_lose(struct tcp_proxy *proxy, const char *text, unsigned nth, bool swallow)
{
    pthread_mutex_lock(&proxy->lock);
    snprintf(proxy->text, sizeof proxy->text, "%s", text ? text : "");
    proxy->nth = text ? nth : 0;
    proxy->swallow = swallow;
    pthread_mutex_unlock(&proxy->lock);
}

unsigned proxy_lost(struct tcp_proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    unsigned lost = proxy->lost;
    pthread_mutex_unlock(&proxy->lock);
    return lost;
}
