/*
 * dns_ares.c - c-ares inside a libevent loop: one question, one answer. It never blocks, caches nothing and does not
 * pace questions: that is for dns.c.
 *
 *   wb_dns_ares_ask()
 *     -> /etc/hosts, unless name servers were given
 *     -> two queries over UDP, for IPv4 and IPv6 addresses -> done()
 *          if one is truncated and has no address: the same query over TCP, in a channel of its own
 *
 * The loop watches the sockets of c-ares, and a timer of the loop is set to its next timeout. If one of the two
 * responses is missing or bad, an empty response to the other does not mean that the name has no address. Once one
 * response has addresses, we wait at most GRACE_MS for the other, because some servers never answer what they do not
 * understand.
 *
 * When a TCP connection to a name server fails, c-ares 1.18 gives up every query that it has sent to that server, even
 * those over UDP. So the channel for UDP never opens a TCP connection (ARES_FLAG_IGNTC), and every query over TCP has a
 * channel that it shares with no other. docs/design/0018-names.md says more about c-ares.
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
    TCP_MAX = 16,        /* queries over TCP at once; further ones fail for now */
    HOSTS_TTL = 60,      /* seconds for which a line of /etc/hosts is cached */
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

/* A channel of c-ares, watched by the loop. */
struct dns_channel {
    struct dns_channel *next;       /* in the list of those over TCP */
    struct wb_dns_ares *ares;
    ares_channel channel;
    struct event *timer;
    struct wait_socket *sockets;
    bool over;               /* it has its response: close it as soon as c-ares has returned */
};

struct wb_dns_ares {
    struct event_base *base;
    struct wb_dns_options options;
    char *servers;
    struct dns_channel udp;
    struct dns_channel *tcp;        /* those over TCP, each with one query */
    unsigned tcp_count;
    wb_dns_ares_done done;
    void *context;
    bool closing;
};

/* One of the two queries of a question. */
struct dns_leg {
    struct dns_question *question;
    struct dns_channel *tcp;        /* the channel in which it is asked; NULL: the one for UDP */
    int type;
};

struct dns_question {
    struct wb_dns_ares *ares;
    void *question;
    struct dns_leg legs[2];
    unsigned missing;            /* responses that have not come yet */
    unsigned absent;             /* responses that said that there is no such name */
    struct event *grace;         /* runs while one response has addresses and the other is missing */
    bool told;                   /* done() was called: `question` is no longer ours */
    struct wb_dns_answer answer; /* made from the responses so far */
    char name[];
};

/* ---- the loop ------------------------------------------------------------------------------------------ */

static void release_channel(struct dns_channel *p);

/* Call this after every call of c-ares: sets the timer to its next timeout, or closes a channel that is over. */
static void update_channel(struct dns_channel *p)
{
    struct timeval tv, *next;

    if (p->over && !p->ares->closing) {
        struct dns_channel **at = &p->ares->tcp;
        while (*at != p)
            at = &(*at)->next;
        *at = p->next;
        p->ares->tcp_count--;
        release_channel(p);
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
    struct dns_channel *p = arg;

    (void)fd, (void)what;
    ares_process_fd(p->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    update_channel(p);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    struct dns_channel *p = arg;

    ares_process_fd(p->channel, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
    update_channel(p);
}

static void forget_socket(struct dns_channel *p, ares_socket_t fd)
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

/* c-ares opened or closed a socket, or waits for something else on it. If we cannot watch it, its query times out. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct dns_channel *p = arg;

    forget_socket(p, fd);
    if (!readable && !writable)
        return;
    struct wait_socket *s = wb_alloc(sizeof *s);
    if (!s)
        return;
    s->fd = fd;
    s->event = event_new(p->ares->base, fd, (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST),
                         on_socket, p);
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

static int configure_channel(struct dns_channel *p, int flags, int tries)
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

static int init_channel(struct wb_dns_ares *r, struct dns_channel *p, int flags, int tries)
{
    p->ares = r;
    p->timer = evtimer_new(r->base, on_timer, p);
    return p->timer ? configure_channel(p, flags, tries) : wb_fail_nomem();
}

static void release_channel(struct dns_channel *p)
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

/* Inserts an address: IPv4 before IPv6, otherwise at the end. */
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

/* An answer lives as long as the shortest-lived of its records. */
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

/* Takes the addresses from a message. Returns how many, or WB_E_PROTO if it cannot be read. */
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

static void tell(struct dns_question *q)
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
 * Combines two answers: one with addresses wins, then a bad one, then an empty one. A name counts as nonexistent only
 * if both answers say so, because some servers say it of the kind of address that a name does not have.
 */
static void merge_answer(struct dns_question *q, int status, const char *trouble)
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

static void end_leg(struct dns_question *q)
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

static bool ask_again_over_tcp(struct dns_leg *leg);

/* Returns what is wrong with a response; NULL: nothing, although it may have no addresses. */
static const char *read_answer(struct dns_leg *leg, int status, const unsigned char *message, int len)
{
    struct dns_question *q = leg->question;
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
    struct dns_leg *leg = arg;
    struct dns_question *q = leg->question;
    bool truncated = !leg->tcp && message && len >= HEAD_BYTES && (message[2] & FLAG_TRUNCATED);
    const char *trouble;

    (void)timeouts;
    trouble = read_answer(leg, status, message, len);
    if (leg->tcp)
        leg->tcp->over = true;
    /* A truncated response with some of the addresses is good enough. */
    if (truncated && q->answer.count == 0 && !q->ares->closing) {
        if (ask_again_over_tcp(leg))
            return;
        trouble = "the answer is too long for UDP";
    }
    merge_answer(q, truncated ? ARES_ENODATA : status, trouble);
    end_leg(q);
}

/* ---- asking ------------------------------------------------------------------------------------------------ */

/* Uses a new channel, so that no other query suffers if the connection fails. */
static bool ask_again_over_tcp(struct dns_leg *leg)
{
    struct wb_dns_ares *r = leg->question->ares;
    struct dns_channel *p = r->tcp_count < TCP_MAX ? wb_alloc_zero(1, sizeof *p) : NULL;

    if (!p)
        return false;
    if (init_channel(r, p, ARES_FLAG_USEVC, 1) < 0) {
        release_channel(p);
        wb_free(p);
        return false;
    }
    p->next = r->tcp;
    r->tcp = p;
    r->tcp_count++;
    leg->tcp = p;
    ares_query(p->channel, leg->question->name, CLASS_IN, leg->type, on_answer, leg);
    update_channel(p);
    return true;
}

/* /etc/hosts is part of how the system resolves names. */
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
    struct dns_question *q;

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
    *q = (struct dns_question){.ares = r, .question = question, .missing = 2,
                               .answer = {.status = WB_DNS_FAILED, .expires_ms = -1}};
    q->legs[0] = (struct dns_leg){.question = q, .type = TYPE_A};
    q->legs[1] = (struct dns_leg){.question = q, .type = TYPE_AAAA};
    memcpy(q->name, name, len);
    ares_query(r->udp.channel, q->name, CLASS_IN, TYPE_A, on_answer, &q->legs[0]);
    /* The first query may be over already, but the question lives until both are. */
    ares_query(r->udp.channel, q->name, CLASS_IN, TYPE_AAAA, on_answer, &q->legs[1]);
    update_channel(&r->udp);
}

/* ---- opening and closing ------------------------------------------------------------------------------------- */

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
    err = options->servers && !r->servers ? WB_E_NOMEM : init_channel(r, &r->udp, ARES_FLAG_IGNTC, (int)options->tries);
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
    release_channel(&r->udp);
    while (r->tcp) {
        struct dns_channel *p = r->tcp;
        r->tcp = p->next;
        release_channel(p);
        wb_free(p);
    }
    ares_library_cleanup();
    wb_free(r->servers);
    wb_free(r);
}
