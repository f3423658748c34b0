/*
 * dns_ares.c - c-ares inside a libevent loop: one question, one answer.
 *
 *   ask -> /etc/hosts, unless servers were named
 *       -> two queries over UDP, for addresses of both kinds -> done
 *              truncated, without any address in what came -> the same over TCP, in a channel of its own
 *
 * Never blocks: c-ares sends and reads without waiting; its sockets are watched by the loop, its next timeout is a timer of the loop.
 * If one of the two answers is missing or bad, an empty answer to the other does not mean that the name has no address. Once one
 * answer has addresses, we wait for the other for GRACE_MS at most (some servers never answer what they do not understand).
 *
 * When a TCP connection to a name server fails, c-ares 1.18 gives up every query that it has with that server, those over UDP
 * too. So the channel for UDP never opens one (ARES_FLAG_IGNTC), and every query over TCP has a channel that it shares with nobody.
 * docs/design/0018-names.md has more on c-ares. Remembering answers and pacing questions is dns.c's.
 */
#include "fetch/dns_ares.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <ares.h>
#include <event2/event.h>
#include <netdb.h>

enum {
    GRACE_MS = 1000,
    TCP_MAX = 16,        /* queries over TCP at once; more are failures that pass */
    HOSTS_TTL = 60,      /* seconds that a line of /etc/hosts is believed */
    CLASS_IN = 1,
    TYPE_A = 1,
    TYPE_AAAA = 28,
    HEAD_BYTES = 12,     /* of a message */
    FLAG_TRUNCATED = 2,  /* in byte 2 of it */
};

struct wait_socket {
    struct wait_socket *next;
    ares_socket_t fd;
    struct event *event;
};

/* A channel of c-ares in the loop. */
struct pipe {
    struct pipe *next;       /* of those over TCP */
    struct wb_dns_ares *ares;
    ares_channel channel;
    struct event *timer;
    struct wait_socket *sockets;
    bool over;               /* it had its answer: to be closed as soon as c-ares has returned */
};

struct wb_dns_ares {
    struct event_base *base;
    struct wb_dns_options options;
    char *servers;
    struct pipe udp;
    struct pipe *tcp;        /* those under way, each with one query */
    unsigned tcp_count;
    wb_dns_ares_done done;
    void *context;
    bool closing;
};

/* One of the two queries of a question. */
struct leg {
    struct question *question;
    struct pipe *tcp;        /* the channel that it is asked in; NULL: the one for UDP */
    int type;
};

struct question {
    struct wb_dns_ares *ares;
    void *question;
    struct leg legs[2];
    unsigned missing;            /* answers that have yet to come */
    unsigned absent;             /* that said that there is no such name */
    struct event *grace;         /* runs while one answer has addresses and the other is missing */
    bool told;                   /* question is not ours any more */
    struct wb_dns_answer answer; /* of those that came */
    char name[];
};

/* ---- the loop ------------------------------------------------------------------------------------------ */

static void close_pipe(struct pipe *p);

/* After c-ares was called: the timer stands at its next timeout, or the channel is closed. */
static void settle_pipe(struct pipe *p)
{
    struct timeval tv, *next;

    if (p->over && !p->ares->closing) {
        struct pipe **at = &p->ares->tcp;
        while (*at != p)
            at = &(*at)->next;
        *at = p->next;
        p->ares->tcp_count--;
        close_pipe(p);
        wb_free(p);
        return;
    }
    next = ares_timeout(p->channel, NULL, &tv);
    if (next)
        evtimer_add(p->timer, next);
    else
        evtimer_del(p->timer);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct pipe *p = arg;

    (void)fd, (void)what;
    ares_process_fd(p->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    settle_pipe(p);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    struct pipe *p = arg;

    ares_process_fd(p->channel, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
    settle_pipe(p);
}

static void forget_socket(struct pipe *p, ares_socket_t fd)
{
    for (struct wait_socket **at = &p->sockets; *at; at = &(*at)->next) {
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
    struct pipe *p = arg;

    forget_socket(p, fd);
    if (!readable && !writable)
        return;
    struct wait_socket *s = wb_alloc(sizeof *s);
    if (!s)
        return;
    s->fd = fd;
    s->event = event_new(p->ares->base, fd, (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST), on_socket, p);
    if (!s->event || event_add(s->event, NULL) != 0) {
        if (s->event)
            event_free(s->event);
        wb_free(s);
        return;
    }
    s->next = p->sockets;
    p->sockets = s;
}

/* ---- channels ------------------------------------------------------------------------------------------- */

static int open_channel(struct pipe *p, int flags, int tries)
{
    const struct wb_dns_ares *r = p->ares;
    char names_only[] = "b";
    struct ares_options options = {
        .flags = ARES_FLAG_NOSEARCH | flags,
        .timeout = (int)r->options.timeout_ms,
        .tries = tries,
        .lookups = names_only,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = p,
    };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;

    int status = ares_init_options(&p->channel, &options, mask);
    if (status != ARES_SUCCESS)
        p->channel = NULL;
    if (status == ARES_SUCCESS && r->servers) {
        status = ares_set_servers_ports_csv(p->channel, r->servers);
        if (status != ARES_SUCCESS && status != ARES_ENOMEM)
            return wb_fail(WB_E_INVALID, "name servers '%s': %s", r->servers, ares_strerror(status));
    }
    if (status == ARES_ENOMEM)
        return wb_fail_nomem();
    return status == ARES_SUCCESS ? 0 : wb_fail(WB_E_IO, "cannot resolve names: %s", ares_strerror(status));
}

static int open_pipe(struct wb_dns_ares *r, struct pipe *p, int flags, int tries)
{
    p->ares = r;
    p->timer = evtimer_new(r->base, on_timer, p);
    return p->timer ? open_channel(p, flags, tries) : wb_fail_nomem();
}

static void close_pipe(struct pipe *p)
{
    if (p->channel)
        ares_destroy(p->channel);
    while (p->sockets)
        forget_socket(p, p->sockets->fd);
    if (p->timer)
        event_free(p->timer);
    p->channel = NULL;
    p->timer = NULL;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

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
static void note_ttl(struct wb_dns_answer *answer, int ttl)
{
    int64_t ms = ttl < 0 ? 0 : (int64_t)ttl * 1000;

    if (answer->expires_ms < 0 || ms < answer->expires_ms)
        answer->expires_ms = ms;
}

static void take_address(struct wb_dns_answer *answer, uint8_t family, const void *bytes, int ttl)
{
    struct wb_address address = {.family = family};

    memcpy(address.bytes, bytes, family == 4 ? 4 : 16);
    add_address(answer, &address);
    note_ttl(answer, ttl);
}

/* The addresses of a message; how many, or a negative code of ours where it cannot be read. */
static int take_message(int type, const unsigned char *message, int len, struct wb_dns_answer *answer)
{
    struct ares_addrttl four[WB_DNS_ADDRESSES_MAX];
    struct ares_addr6ttl six[WB_DNS_ADDRESSES_MAX];
    int count = WB_DNS_ADDRESSES_MAX, status;

    if (type == TYPE_A)
        status = ares_parse_a_reply(message, len, NULL, four, &count);
    else
        status = ares_parse_aaaa_reply(message, len, NULL, six, &count);
    if (status == ARES_ENODATA)
        return 0;
    if (status != ARES_SUCCESS || count < 0 || count > WB_DNS_ADDRESSES_MAX)
        return WB_E_PROTO;
    for (int i = 0; i < count; i++) {
        if (type == TYPE_A)
            take_address(answer, 4, &four[i].ipaddr, four[i].ttl);
        else
            take_address(answer, 6, &six[i].ip6addr, six[i].ttl);
    }
    return count;
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

/*
 * Combines two answers: one with addresses wins, then a bad one, then an empty one. A name counts as nonexistent only if both
 * answers say so, because some servers say it of the kind of address that a name does not have.
 */
static void merge_answer(struct question *q, int status, const char *trouble)
{
    struct wb_dns_answer *answer = &q->answer;

    q->absent += status == ARES_ENOTFOUND || status == ARES_EBADNAME;
    if (answer->count) {
        answer->status = WB_DNS_OK;
        answer->message = NULL;
    } else if (q->absent == 2) {
        answer->status = WB_DNS_NONE;
        answer->message = "there is no such name";
    } else {
        answer->status = WB_DNS_FAILED;
        if (trouble)
            answer->message = trouble;
        else if (!answer->message)
            answer->message = "the name has no address";
    }
}

static void end_leg(struct question *q)
{
    static const struct timeval grace = {GRACE_MS / 1000, GRACE_MS % 1000 * 1000};

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

static bool ask_again_over_tcp(struct leg *leg);

/* What is wrong with an answer; NULL: nothing, although it may have no addresses. */
static const char *read_answer(struct leg *leg, int status, const unsigned char *message, int len)
{
    struct question *q = leg->question;
    int got = status == ARES_SUCCESS ? take_message(leg->type, message, len, &q->answer) : 0;

    if (leg->tcp && status != ARES_SUCCESS && status != ARES_ENODATA && status != ARES_ENOTFOUND)
        return "the answer is too long for UDP, and the name server cannot be asked over TCP";
    if (got < 0)
        return "the answer of the name server cannot be read";
    if (status == ARES_SUCCESS || status == ARES_ENODATA || status == ARES_ENOTFOUND || status == ARES_EBADNAME)
        return NULL;
    return ares_strerror(status);
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *message, int len)
{
    struct leg *leg = arg;
    struct question *q = leg->question;
    bool truncated = !leg->tcp && message && len >= HEAD_BYTES && (message[2] & FLAG_TRUNCATED);
    const char *trouble;

    (void)timeouts;
    trouble = read_answer(leg, status, message, len);
    if (leg->tcp)
        leg->tcp->over = true;
    /* Some of a name's addresses are as good as all of them. */
    if (truncated && q->answer.count == 0 && !q->ares->closing) {
        if (ask_again_over_tcp(leg))
            return;
        trouble = "the answer is too long for UDP";
    }
    merge_answer(q, truncated ? ARES_ENODATA : status, trouble);
    end_leg(q);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

/* In a channel of its own: whatever becomes of the connection, nobody else's query is in it. */
static bool ask_again_over_tcp(struct leg *leg)
{
    struct wb_dns_ares *r = leg->question->ares;
    struct pipe *p = r->tcp_count < TCP_MAX ? wb_alloc_zero(1, sizeof *p) : NULL;

    if (!p)
        return false;
    if (open_pipe(r, p, ARES_FLAG_USEVC, 1) < 0) {
        close_pipe(p);
        wb_free(p);
        return false;
    }
    p->next = r->tcp;
    r->tcp = p;
    r->tcp_count++;
    leg->tcp = p;
    ares_query(p->channel, leg->question->name, CLASS_IN, leg->type, on_answer, leg);
    settle_pipe(p);
    return true;
}

/* /etc/hosts belongs to the system's way of resolving. */
static bool look_in_hosts(struct wb_dns_ares *r, const char *name, struct wb_dns_answer *answer)
{
    static const int families[] = {AF_INET, AF_INET6};

    for (size_t i = 0; i < 2; i++) {
        struct hostent *host = NULL;
        if (ares_gethostbyname_file(r->udp.channel, name, families[i], &host) != ARES_SUCCESS || !host)
            continue;
        for (char **at = host->h_addr_list; *at && host->h_addrtype == families[i]; at++)
            take_address(answer, families[i] == AF_INET ? 4 : 6, *at, HOSTS_TTL);
        ares_free_hostent(host);
    }
    answer->status = WB_DNS_OK;
    return answer->count > 0;
}

void wb_dns_ares_ask(struct wb_dns_ares *r, const char *name, void *question)
{
    struct wb_dns_answer answer = {.status = WB_DNS_FAILED, .expires_ms = -1, .message = wb_error_words(WB_E_NOMEM)};
    size_t len = strlen(name) + 1;
    struct question *q;

    if (!r->servers && look_in_hosts(r, name, &answer)) {
        answer.message = NULL;
        r->done(r->context, question, &answer);
        return;
    }
    q = wb_alloc_zero(1, sizeof *q + len);
    if (!q) {
        r->done(r->context, question, &answer);
        return;
    }
    *q = (struct question){.ares = r, .question = question, .missing = 2, .answer = {.status = WB_DNS_FAILED, .expires_ms = -1}};
    q->legs[0] = (struct leg){.question = q, .type = TYPE_A};
    q->legs[1] = (struct leg){.question = q, .type = TYPE_AAAA};
    memcpy(q->name, name, len);
    ares_query(r->udp.channel, q->name, CLASS_IN, TYPE_A, on_answer, &q->legs[0]);
    /* The question is gone only when both have been answered. */
    ares_query(r->udp.channel, q->name, CLASS_IN, TYPE_AAAA, on_answer, &q->legs[1]);
    settle_pipe(&r->udp);
}

/* ---- beginning and end ------------------------------------------------------------------------------------- */

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
    r->options = *options;
    r->servers = options->servers ? wb_strdup(options->servers) : NULL;
    err = options->servers && !r->servers ? WB_E_NOMEM : open_pipe(r, &r->udp, ARES_FLAG_IGNTC, (int)options->tries);
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
    close_pipe(&r->udp);
    while (r->tcp) {
        struct pipe *p = r->tcp;
        r->tcp = p->next;
        close_pipe(p);
        wb_free(p);
    }
    ares_library_cleanup();
    wb_free(r->servers);
    wb_free(r);
}
