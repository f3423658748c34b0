/*
 * dns_ares.c - c-ares inside a libevent loop: one question, one answer.
 *
 *   ask -> c-ares -> its sockets are watched by the loop, its next timeout is a timer of the loop -> done
 *
 * Never blocks: c-ares sends and reads datagrams without waiting. Addresses of both kinds are asked for at
 * once, each by itself: where one answer is missing or bad, that there are none of the other kind does
 * not mean that the name has none; where one has addresses, the other is waited for GRACE_MS at most
 * (some servers never answer what they do not understand). Remembering answers and pacing questions is dns.c's.
 */
#include "crawl/dns_ares.h"
#include "base/error.h"
#include "base/mem.h"

#include <ares.h>
#include <event2/event.h>

enum { GRACE_MS = 1000 };

struct wait_socket {
    struct wait_socket *next;
    ares_socket_t fd;
    struct event *event;
};

struct wb_dns_ares {
    struct event_base *base;
    ares_channel channel;
    struct event *timer;
    struct wait_socket *sockets;
    wb_dns_ares_done done;
    void *context;
    bool closing;
};

struct question {
    struct wb_dns_ares *ares;
    void *question;
    unsigned missing;            /* answers that have yet to come */
    struct event *grace;         /* runs while one answer has addresses and the other is missing */
    bool told;                   /* question is not ours any more */
    struct wb_dns_answer answer; /* of those that came */
};

/* ---- the loop ------------------------------------------------------------------------------------------ */

/* The timer stands at c-ares's next timeout. */
static void set_timer(struct wb_dns_ares *r)
{
    struct timeval tv, *next = ares_timeout(r->channel, NULL, &tv);

    if (next)
        evtimer_add(r->timer, next);
    else
        evtimer_del(r->timer);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct wb_dns_ares *r = arg;

    (void)fd, (void)what;
    ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(r);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    struct wb_dns_ares *r = arg;

    ares_process_fd(r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
    set_timer(r);
}

static void forget_socket(struct wb_dns_ares *r, ares_socket_t fd)
{
    for (struct wait_socket **at = &r->sockets; *at; at = &(*at)->next) {
        if ((*at)->fd == fd) {
            struct wait_socket *gone = *at;
            *at = gone->next;
            event_free(gone->event);
            wb_free(gone);
            return;
        }
    }
}

/* c-ares opened, closed or wants something else of a socket. One that cannot be watched ends in c-ares's timeout. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct wb_dns_ares *r = arg;

    forget_socket(r, fd);
    if (!readable && !writable)
        return;
    struct wait_socket *s = wb_alloc(sizeof *s);
    if (!s)
        return;
    s->fd = fd;
    s->event = event_new(r->base, fd, (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST), on_socket, r);
    if (!s->event || event_add(s->event, NULL) != 0) {
        if (s->event)
            event_free(s->event);
        wb_free(s);
        return;
    }
    s->next = r->sockets;
    r->sockets = s;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

static bool read_address(const struct sockaddr *from, struct wb_address *address_out)
{
    *address_out = (struct wb_address){0};
    if (from->sa_family == AF_INET) {
        address_out->family = 4;
        memcpy(address_out->bytes, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        address_out->family = 6;
        memcpy(address_out->bytes, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    }
    return address_out->family != 0;
}

/* Addresses of IPv4 go before those that are there already, unless they are too. */
static void add_address(struct wb_dns_answer *answer, const struct wb_address *address)
{
    unsigned at = 0;

    while (at < answer->count && answer->addresses[at].family <= address->family)
        at++;
    if (at == WB_DNS_ADDRESSES_MAX)
        return;
    if (answer->count < WB_DNS_ADDRESSES_MAX)
        answer->count++;
    memmove(&answer->addresses[at + 1], &answer->addresses[at], (answer->count - at - 1) * sizeof *address);
    answer->addresses[at] = *address;
}

/* The answer holds as long as the shortest of its records. */
static void take_addresses(const struct ares_addrinfo *info, struct wb_dns_answer *answer)
{
    int64_t ttl = INT32_MAX;
    struct wb_address address;

    for (const struct ares_addrinfo_node *node = info->nodes; node; node = node->ai_next) {
        if (read_address(node->ai_addr, &address))
            add_address(answer, &address);
        ttl = node->ai_ttl < ttl ? node->ai_ttl : ttl;
    }
    for (const struct ares_addrinfo_cname *cname = info->cnames; cname; cname = cname->next)
        ttl = cname->ttl < ttl ? cname->ttl : ttl;
    ttl = ttl < 0 ? 0 : ttl * 1000;
    if (answer->expires_ms < 0 || ttl < answer->expires_ms)
        answer->expires_ms = ttl;
}

/* Of two answers: addresses are better than none, and that one is bad matters more than that the other has none. */
static void merge_answer(int status, const struct ares_addrinfo *info, struct wb_dns_answer *answer)
{
    bool none = status == ARES_ENODATA || status == ARES_ENOTFOUND || status == ARES_EBADNAME || status == ARES_ENONAME;

    if (status == ARES_SUCCESS && info && info->nodes)
        take_addresses(info, answer);
    else if (status != ARES_SUCCESS && !none)
        answer->status = WB_DNS_FAILED;
    if (answer->count) {
        answer->status = WB_DNS_OK;
        answer->message = NULL;
    } else if (status != ARES_SUCCESS && !none) {
        answer->message = ares_strerror(status);
    } else if (answer->status == WB_DNS_NONE) {
        answer->message = status == ARES_SUCCESS || status == ARES_ENODATA ? "the name has no address" : "there is no such name";
    }
}

static void tell(struct question *q)
{
    if (!q->told && !q->ares->closing)
        q->ares->done(q->ares->context, q->question, &q->answer);
    q->told = true;
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    tell(arg);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    static const struct timeval grace = {GRACE_MS / 1000, GRACE_MS % 1000 * 1000};
    struct question *q = arg;

    (void)timeouts;
    merge_answer(status, info, &q->answer);
    if (info)
        ares_freeaddrinfo(info);
    if (--q->missing == 0) {
        tell(q);
        if (q->grace)
            event_free(q->grace);
        wb_free(q);
    } else if (q->answer.count && !q->ares->closing) {
        q->grace = evtimer_new(q->ares->base, on_grace, q);
        if (q->grace)
            evtimer_add(q->grace, &grace);
    }
}

void wb_dns_ares_ask(struct wb_dns_ares *r, const char *name, void *question)
{
    struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct question *q = wb_alloc(sizeof *q);

    if (!q) {
        struct wb_dns_answer answer = {.status = WB_DNS_FAILED, .expires_ms = -1, .message = wb_error_words(WB_E_NOMEM)};
        r->done(r->context, question, &answer);
        return;
    }
    *q = (struct question){.ares = r, .question = question, .missing = 2, .answer = {.status = WB_DNS_NONE, .expires_ms = -1}};
    ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, q);
    hints.ai_family = AF_INET6;
    ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, q);
    set_timer(r);
}

/* ---- beginning and end ------------------------------------------------------------------------------------- */

static int open_channel(struct wb_dns_ares *r, const struct wb_dns_options *o)
{
    char names_only[] = "b", hosts_first[] = "fb";
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_STAYOPEN,
        .timeout = (int)o->timeout_ms,
        .tries = (int)o->tries,
        .lookups = o->servers ? names_only : hosts_first, /* /etc/hosts belongs to the system's way of resolving */
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = r,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;

    int status = ares_init_options(&r->channel, &options, mask);
    if (status == ARES_SUCCESS && o->servers) {
        status = ares_set_servers_ports_csv(r->channel, o->servers);
        if (status != ARES_SUCCESS && status != ARES_ENOMEM)
            return wb_fail(WB_E_INVALID, "name servers '%s': %s", o->servers, ares_strerror(status));
    }
    if (status == ARES_ENOMEM)
        return wb_fail_nomem();
    return status == ARES_SUCCESS ? 0 : wb_fail(WB_E_IO, "cannot resolve names: %s", ares_strerror(status));
}

int wb_dns_ares_new(struct event_base *base, const struct wb_dns_options *options, wb_dns_ares_done done, void *context,
                    struct wb_dns_ares **ares_out)
{
    struct wb_dns_ares *r = NULL;
    int err;

    *ares_out = NULL;
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
        return wb_fail_nomem();
    r = wb_alloc_zero(1, sizeof *r);
    if (!r) {
        ares_library_cleanup();
        return WB_E_NOMEM;
    }
    r->base = base;
    r->done = done;
    r->context = context;
    r->timer = evtimer_new(base, on_timer, r);
    err = r->timer ? open_channel(r, options) : wb_fail_nomem();
    if (err < 0) {
        wb_dns_ares_free(r);
        return err;
    }
    *ares_out = r;
    return 0;
}

void wb_dns_ares_free(struct wb_dns_ares *r)
{
    if (!r)
        return;
    r->closing = true;
    if (r->channel)
        ares_destroy(r->channel);
    while (r->sockets)
        forget_socket(r, r->sockets->fd);
    if (r->timer)
        event_free(r->timer);
    ares_library_cleanup();
    wb_free(r);
}
