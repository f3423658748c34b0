/*
 * fetch_loop.c - connects libcurl's sockets and its timer to a libevent loop.
 *
 * It only tells libcurl that time has passed or that a socket is ready. What came of it is examined by the owner, in
 * `after`. A connection that is kept alive stays watched for reading while no transfer uses it, because telling the
 * kernel twice for every request costs more than a rare event on an idle connection. For this, sockets are opened and
 * closed here, so that no watch outlives its socket.
 */
#include "fetch/fetch_loop.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/curlstart.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct wb_fetch_watch {
    struct event event;
    struct wb_fetch_loop *loop;
    short added;   /* the events that libevent watches for */
    bool wanted;   /* libcurl waits for them, too */
    bool ours;     /* opened here, and closed here */
};

static void act(struct wb_fetch_loop *loop, curl_socket_t fd, int mask)
{
    int running;

    /* If libcurl runs out of memory here, it forgets sockets and fails over them later. */
    if (curl_multi_socket_action(loop->multi, fd, mask, &running) != CURLM_OK)
        loop->broken = true;
    loop->after(loop->context);
}

static void on_ready(evutil_socket_t fd, short events, void *context)
{
    struct wb_fetch_watch *watch = context;

    if (!watch->wanted) {
        /*
         * The peer closed an idle connection, or sends something unasked: libcurl notices when it uses the
         * connection.
         */
        event_del(&watch->event);
        watch->added = 0;
        return;
    }
    act(watch->loop, fd, (events & EV_READ ? CURL_CSELECT_IN : 0) | (events & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_time(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_change(CURLM *multi, long timeout_ms, void *context)
{
    struct wb_fetch_loop *loop = context;

    (void)multi;
    if (timeout_ms < 0) {
        evtimer_del(&loop->timer);
        return 0;
    }
    struct timeval in = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    return evtimer_add(&loop->timer, &in);
}

static struct wb_fetch_watch *find_watch(const struct wb_fetch_loop *loop, curl_socket_t fd)
{
    return fd >= 0 && (size_t)fd < loop->watches_cap ? loop->watches[fd] : NULL;
}

static struct wb_fetch_watch *add_watch(struct wb_fetch_loop *loop, curl_socket_t fd)
{
    size_t at = (size_t)fd, before = loop->watches_cap;

    if (wb_grow(&loop->watches, &loop->watches_cap, at + 1) < 0)
        return NULL;
    memset(loop->watches + before, 0, (loop->watches_cap - before) * sizeof *loop->watches);
    WB_CHECK(!loop->watches[at]);
    loop->watches[at] = wb_alloc_zero(1, sizeof(*loop->watches[at]));
    if (loop->watches[at])
        loop->watches[at]->loop = loop;
    return loop->watches[at];
}

static void drop_watch(struct wb_fetch_loop *loop, curl_socket_t fd)
{
    struct wb_fetch_watch *watch = find_watch(loop, fd);

    if (!watch)
        return;
    if (watch->added)
        event_del(&watch->event);
    wb_free(watch);
    loop->watches[fd] = NULL;
}

static bool set_watch(struct wb_fetch_watch *watch, curl_socket_t fd, short events)
{
    if (watch->added == events)
        return true;
    if (watch->added)
        event_del(&watch->event);
    watch->added = 0;
    event_assign(&watch->event, watch->loop->base, fd, (short)(events | EV_PERSIST), on_ready, watch);
    if (event_add(&watch->event, NULL) < 0)
        return false;
    watch->added = events;
    return true;
}

static int on_socket_change(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct wb_fetch_loop *loop = context;
    struct wb_fetch_watch *watch = find_watch(loop, fd);

    (void)socket_context;
    if (what == CURL_POLL_REMOVE) {
        if (watch && watch->ours)
            watch->wanted = false;
        else
            drop_watch(loop, fd);
        return 0;
    }
    if (!watch)
        watch = add_watch(loop, fd);
    short events = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
    if (!watch || !set_watch(watch, fd, events)) {
        /* Returning an error would end every transfer, but only this one is affected. */
        loop->starved(loop->context, easy);
        return 0;
    }
    watch->wanted = true;
    return 0;
}

static void direct(struct curl_sockaddr *to, const struct wb_address *address)
{
    struct sockaddr_in6 *to6 = (struct sockaddr_in6 *)(void *)&to->addr;
    struct sockaddr_in *to4 = (struct sockaddr_in *)(void *)&to->addr;
    in_port_t port = to->family == AF_INET6 ? to6->sin6_port : to4->sin_port;

    if (address->family == 6) {
        *to6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
        memcpy(&to6->sin6_addr, address->bytes, sizeof to6->sin6_addr);
    } else {
        *to4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
        memcpy(&to4->sin_addr, address->bytes, sizeof to4->sin_addr);
    }
    to->family = address->family == 6 ? AF_INET6 : AF_INET;
    to->addrlen = address->family == 6 ? sizeof *to6 : sizeof *to4;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct wb_fetch_route *route = context;

    (void)purpose;
    if (route->sent)
        return CURL_SOCKET_BAD; /* libcurl wants to repeat a request that got no response: see on_send() */
    if (route->address.family)
        direct(address, &route->address);
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
    if (fd < 0) {
        route->no_files = errno == EMFILE || errno == ENFILE;
        return CURL_SOCKET_BAD;
    }
    drop_watch(route->loop, fd); /* when out of memory, libcurl closes unused sockets without telling us */
    struct wb_fetch_watch *watch = add_watch(route->loop, fd);
    if (!watch) {
        wb_curl_starve();
        close(fd);
        return CURL_SOCKET_BAD;
    }
    watch->ours = true;
    return fd;
}

static int close_socket(void *context, curl_socket_t fd)
{
    drop_watch(context, fd);
    return close(fd);
}

bool wb_fetch_loop_adopt(struct wb_fetch_loop *loop, CURL *easy, struct wb_fetch_route *route)
{
    route->loop = loop;
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, route) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop) == CURLE_OK;
}

int wb_fetch_loop_renew(struct wb_fetch_loop *loop)
{
    CURLM *multi;

    curl_multi_cleanup(loop->multi);
    evtimer_del(&loop->timer);
    loop->broken = false;
    loop->multi = multi = curl_multi_init();
    if (multi && curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket_change) == CURLM_OK &&
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, loop) == CURLM_OK &&
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer_change) == CURLM_OK &&
        curl_multi_setopt(multi, CURLMOPT_TIMERDATA, loop) == CURLM_OK &&
        /* One stream at a time on an HTTP/2 connection, so that every frame is for the transfer that reads. */
        curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK &&
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)loop->connections_max) == CURLM_OK &&
        curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)loop->connections_max) == CURLM_OK)
        return 0;
    curl_multi_cleanup(multi);
    loop->multi = NULL;
    return wb_fail_nomem();
}

int wb_fetch_loop_init(struct wb_fetch_loop *loop, struct event_base *base)
{
    loop->base = base;
    if (evtimer_assign(&loop->timer, base, on_time, loop) < 0)
        return wb_fail_nomem();
    return wb_fetch_loop_renew(loop);
}

void wb_fetch_loop_release(struct wb_fetch_loop *loop)
{
    curl_multi_cleanup(loop->multi);
    if (loop->base)
        evtimer_del(&loop->timer);
    for (size_t fd = 0; fd < loop->watches_cap; fd++)
        drop_watch(loop, (curl_socket_t)fd);
    wb_free(loop->watches);
    loop->watches = NULL;
    loop->watches_cap = 0;
}
