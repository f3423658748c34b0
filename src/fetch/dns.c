/*
 * dns.c - resolves names: what is known without asking, what is cached, and whose turn it is to be asked.
 *
 *   wb_dns_resolve()
 *     -> --resolve, an address, .localhost, or cached: calls back at once
 *     -> otherwise the name becomes a question, with these states:
 *
 *        WAITING for its turn -> ASKED (dns_ares.c) -> TOLD to all who wait -> KNOWN until it expires
 *
 * Several requests for the same name share one question. Answers are delivered from the event loop and never from
 * inside c-ares, so a callback may do anything, even call wb_dns_free(). KNOWN names are in a list in the order of
 * their answers; the oldest are forgotten when there are too many. All waits and expiries go by the clock that nobody
 * can set.
 */
#include "fetch/fetch.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "fetch/dns_ares.h"
#include "fetch/dns_override.h"
#include "fetch/fetch_probe.h"
#include "os/clock.h"
#include "os/random.h"

#include <event2/event.h>

#define MAGIC UINT32_C(0x736e6477)
#define MS_NS INT64_C(1000000)

enum {
    NAME_MAX_BYTES = 253,
    TTL_MS_MIN = 1000,
    TTL_MS_MAX = WB_DAY_MS,
    NONE_MS = 5 * 60 * 1000, /* how long the answer that there is no such name is cached */
    FAILED_MS = 4 * 1000,    /* the same for a failure; less than the first back-off of those who ask again */
};

enum dns_state { WAITING, ASKED, TOLD, KNOWN };

/* Somebody who waits for an answer. */
struct dns_waiter {
    struct wb_list_node node;
    wb_dns_done done;
    void *context;
};

struct dns_name {
    struct wb_list_node node;    /* in the list of its state; an ASKED name is in none */
    struct wb_list waiters;      /* of struct dns_waiter, in the order of their requests */
    struct wb_address *addresses;
    int64_t expires_ns;          /* by wb_clock_mono_ns() */
    const char *message;
    uint64_t hash;
    uint8_t state, status, count;
    char text[];
};

struct dns_name_entry {
    uint64_t hash;
    struct dns_name *name;
};

struct wb_dns {
    uint32_t magic;
    unsigned cache_max, rate;
    struct wb_dns_ares *ares;
    struct wb_dns_override *overrides;
    struct event *turn_timer, *tell_event;
    struct wb_list waiting, told, known;  /* of struct dns_name */
    size_t known_count;
    WB_MAP(struct dns_name_entry) names;  /* all of them; seeded, so that nobody can choose names that collide */
    double tokens, tokens_max;            /* questions that may be sent now */
    int64_t tokens_ns;                    /* when they were last counted */
    bool *freed;                          /* wb_dns_free() sets it for the function that is calling back */
    struct wb_dns_stat stat;
};

static struct dns_name *name_of(struct wb_list_node *node)
{
    return WB_CONTAINER_OF(node, struct dns_name, node);
}

/* ---- the table of names ------------------------------------------------------------------------------------ */

static uint64_t hash_name(const struct wb_dns *dns, const char *text)
{
    return wb_hash64_seeded(text, strlen(text), dns->names.map.seed);
}

static struct dns_name *find_name(const struct wb_dns *dns, const char *text, uint64_t hash)
{
    const struct dns_name_entry *entry = NULL;

    while ((entry = wb_map_next(&dns->names, hash, entry)))
        if (strcmp(entry->name->text, text) == 0)
            return entry->name;
    return NULL;
}

static struct dns_name *new_name(struct wb_dns *dns, const char *text, uint64_t hash)
{
    size_t len = strlen(text) + 1;
    struct dns_name *name = wb_alloc_zero(1, sizeof *name + len);
    struct dns_name_entry *entry = name ? wb_map_add(&dns->names, hash) : NULL;

    if (!entry) {
        wb_free(name);
        return NULL;
    }
    memcpy(name->text, text, len);
    name->hash = hash;
    entry->name = name;
    return name;
}

static void free_name(struct dns_name *name)
{
    struct wb_list_node *node;

    while ((node = wb_list_pop(&name->waiters)))
        wb_free(WB_CONTAINER_OF(node, struct dns_waiter, node));
    wb_free(name->addresses);
    wb_free(name);
}

static void forget_oldest(struct wb_dns *dns)
{
    struct dns_name *name = name_of(wb_list_pop(&dns->known));
    struct dns_name_entry *entry = NULL;

    WB_CHECK(name->state == KNOWN && !name->waiters.first);
    dns->known_count--;
    while ((entry = wb_map_next(&dns->names, name->hash, entry)) && entry->name != name)
        ;
    WB_CHECK(entry);
    wb_map_remove(&dns->names, entry);
    free_name(name);
}

/* ---- asking --------------------------------------------------------------------------------------------------- */

static void count_tokens(struct wb_dns *dns)
{
    int64_t now = wb_clock_mono_ns();

    dns->tokens += (double)(now - dns->tokens_ns) / 1e9 * dns->rate;
    if (dns->tokens > dns->tokens_max)
        dns->tokens = dns->tokens_max;
    dns->tokens_ns = now;
}

/* Sends the questions whose turn it is, and sets the timer to the next turn. */
static void ask_next(struct wb_dns *dns)
{
    count_tokens(dns);
    while (dns->waiting.first && dns->tokens >= 1) {
        struct dns_name *name = name_of(wb_list_pop(&dns->waiting));
        WB_CHECK(name->state == WAITING);
        name->state = ASKED;
        dns->tokens -= 1;
        dns->stat.asked++;
        wb_dns_ares_ask(dns->ares, name->text, name);
    }
    if (dns->waiting.first && !evtimer_pending(dns->turn_timer, NULL)) {
        double wait_s = (1 - dns->tokens) / dns->rate;
        struct timeval tv = {.tv_sec = (time_t)wait_s,
                             .tv_usec = (suseconds_t)((wait_s - (double)(time_t)wait_s) * 1e6) + 1};
        evtimer_add(dns->turn_timer, &tv);
    }
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ask_next(arg);
}

/* How long an answer is cached. From dns_ares.c, expires_ms of an answer is its TTL. */
static int64_t lifetime_ms(const struct wb_dns_answer *answer)
{
    if (answer->status == WB_DNS_NONE)
        return NONE_MS;
    if (answer->status == WB_DNS_FAILED)
        return FAILED_MS;
    int64_t ttl = answer->expires_ms;
    return ttl < TTL_MS_MIN ? TTL_MS_MIN : ttl > TTL_MS_MAX ? TTL_MS_MAX : ttl;
}

/* Called by c-ares, so it only records the answer; on_tell() calls back later. */
static void on_answer(void *context, void *question, const struct wb_dns_answer *answer)
{
    struct wb_dns *dns = context;
    struct dns_name *name = question;
    size_t bytes = answer->count * sizeof *answer->addresses;

    WB_CHECK(dns->magic == MAGIC && name->state == ASKED);
    wb_free(name->addresses);
    name->addresses = bytes ? wb_alloc(bytes) : NULL;
    if (name->addresses)
        memcpy(name->addresses, answer->addresses, bytes);
    name->count = (uint8_t)answer->count;
    name->status = (uint8_t)answer->status;
    name->message = answer->message;
    name->expires_ns = wb_clock_mono_ns() + lifetime_ms(answer) * MS_NS;
    if (bytes && !name->addresses) {
        name->count = 0;
        name->status = WB_DNS_FAILED;
        name->message = wb_error_words(WB_E_NOMEM);
        name->expires_ns = wb_clock_mono_ns() + FAILED_MS * MS_NS;
    }
    name->state = TOLD;
    wb_list_append(&dns->told, &name->node);
    dns->stat.answered += name->status != WB_DNS_FAILED;
    dns->stat.failed += name->status == WB_DNS_FAILED;
    dns->stat.waiting--;
    event_active(dns->tell_event, EV_TIMEOUT, 0);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/* Users get the time at which an answer expires by the time of day, because they store it. */
static void fill_answer(const struct dns_name *name, struct wb_dns_answer *answer_out)
{
    int64_t left_ms = (name->expires_ns - wb_clock_mono_ns() + MS_NS - 1) / MS_NS;

    *answer_out = (struct wb_dns_answer){
        .status = (enum wb_dns_status)name->status,
        .count = name->count,
        .expires_ms = wb_clock_wall_ms() + left_ms,
        .message = name->message,
    };
    if (name->count)
        memcpy(answer_out->addresses, name->addresses, name->count * sizeof *name->addresses);
}

/* Everybody has been told: the name is in the cache from now on. */
static void end_question(struct wb_dns *dns, struct dns_name *name)
{
    WB_CHECK(name->state == TOLD && !name->waiters.first);
    wb_list_remove(&dns->told, &name->node);
    name->state = KNOWN;
    wb_list_append(&dns->known, &name->node);
    if (++dns->known_count > dns->cache_max)
        forget_oldest(dns);
}

static void on_tell(evutil_socket_t fd, short what, void *arg)
{
    struct wb_dns *dns = arg;
    bool freed = false;

    (void)fd, (void)what;
    dns->freed = &freed;
    while (dns->told.first) {
        struct dns_name *name = name_of(dns->told.first);
        struct wb_list_node *node = wb_list_pop(&name->waiters);
        if (!node) {
            end_question(dns, name);
            continue;
        }
        struct dns_waiter *waiter = WB_CONTAINER_OF(node, struct dns_waiter, node), told = *waiter;
        struct wb_dns_answer answer;
        wb_free(waiter);
        fill_answer(name, &answer);
        told.done(told.context, &answer);
        if (freed)
            return;
    }
    dns->freed = NULL;
}

/* ---- what needs no question ------------------------------------------------------------------------------------ */

static bool ends_in(struct wb_slice host, struct wb_slice suffix)
{
    return host.len > suffix.len && wb_slice_equal_nocase(wb_slice(host.ptr + host.len - suffix.len, suffix.len),
                                                          suffix);
}

static bool is_localhost(struct wb_slice host)
{
    return wb_slice_equal_nocase(host, WB_SLICE_LIT("localhost")) || ends_in(host, WB_SLICE_LIT(".localhost"));
}

/* Answers what depends only on the options and on the name itself. False if it must be asked for. */
static bool answer_offhand(const struct wb_dns *dns, struct wb_slice host, uint16_t port,
                           struct wb_dns_answer *answer_out)
{
    struct wb_address literal;
    bool is_literal = wb_address_parse(host, &literal);
    const struct wb_dns_override *override = wb_dns_override_find(dns->overrides, host, port, is_literal);

    *answer_out = (struct wb_dns_answer){.status = WB_DNS_OK, .expires_ms = INT64_MAX};
    if (override) {
        answer_out->count = override->count;
        memcpy(answer_out->addresses, override->addresses, sizeof override->addresses);
        return true;
    }
    if (is_literal || is_localhost(host)) {
        if (!is_literal)
            literal = (struct wb_address){4, {127, 0, 0, 1}};
        answer_out->count = 1;
        answer_out->addresses[0] = literal;
        return true;
    }
    if (ends_in(host, WB_SLICE_LIT(".invalid"))) {
        answer_out->status = WB_DNS_NONE;
        answer_out->message = "there is no such name";
        return true;
    }
    if (host.len == 0 || host.len > NAME_MAX_BYTES || memchr(host.ptr, '\0', host.len)) {
        answer_out->status = WB_DNS_NONE;
        answer_out->message = "this is not a valid name";
        return true;
    }
    return false;
}

/* ---- the door -------------------------------------------------------------------------------------------------- */

int wb_dns_override(struct wb_dns *dns, const char *text)
{
    return wb_dns_override_add(&dns->overrides, text);
}

static int add_waiter(struct dns_name *name, wb_dns_done done, void *context)
{
    struct dns_waiter *waiter = wb_alloc_zero(1, sizeof *waiter);

    if (!waiter)
        return WB_E_NOMEM;
    waiter->done = done;
    waiter->context = context;
    wb_list_append(&name->waiters, &waiter->node);
    return 0;
}

/* Makes a name that is in no list a question that waits for its turn. */
static void enqueue(struct wb_dns *dns, struct dns_name *name)
{
    name->state = WAITING;
    wb_list_append(&dns->waiting, &name->node);
    dns->stat.waiting++;
}

int wb_dns_resolve(struct wb_dns *dns, struct wb_slice host, uint16_t port, wb_dns_done done, void *context)
{
    struct wb_dns_answer answer;
    char text[NAME_MAX_BYTES + 1];

    WB_CHECK(dns->magic == MAGIC);
    if (host.len && host.ptr[host.len - 1] == '.')
        host.len--;
    if (answer_offhand(dns, host, port, &answer)) {
        done(context, &answer);
        return 0;
    }
    for (size_t i = 0; i < host.len; i++)
        text[i] = wb_ascii_lower(host.ptr[i]);
    text[host.len] = '\0';
    uint64_t hash = hash_name(dns, text);
    struct dns_name *name = find_name(dns, text, hash);
    if (name && name->state == KNOWN && name->expires_ns > wb_clock_mono_ns()) {
        dns->stat.cached++;
        fill_answer(name, &answer);
        done(context, &answer);
        return 0;
    }
    bool fresh = !name || name->state == KNOWN;
    if (!name && !(name = new_name(dns, text, hash)))
        return WB_E_NOMEM;
    int err = add_waiter(name, done, context);
    if (fresh && name->state == KNOWN) {
        wb_list_remove(&dns->known, &name->node);
        dns->known_count--;
    }
    /* Ask even if there was no memory for the waiter: the next one who comes gets the answer. */
    if (fresh) {
        enqueue(dns, name);
        ask_next(dns);
    }
    return err;
}

void wb_dns_stat(const struct wb_dns *dns, struct wb_dns_stat *stat_out)
{
    *stat_out = dns->stat;
}

int wb_dns_new(struct event_base *base, const struct wb_dns_options *options, struct wb_dns **dns_out)
{
    struct wb_dns_options o = options ? *options : (struct wb_dns_options){0};
    struct wb_dns *dns = NULL;
    int err = 0;

    *dns_out = NULL;
    o.rate = o.rate ? o.rate : 100;
    o.timeout_ms = o.timeout_ms ? o.timeout_ms : 3000;
    o.tries = o.tries ? o.tries : 3;
    o.cache_max = o.cache_max ? o.cache_max : 100000;
    dns = wb_alloc_zero(1, sizeof *dns);
    if (!dns)
        return WB_E_NOMEM;
    dns->magic = MAGIC;
    dns->cache_max = o.cache_max;
    dns->rate = o.rate;
    /* Timers are not exact: allow what a twentieth of a second may hold at once. */
    dns->tokens_max = o.rate < 20 ? 1 : o.rate / 20.0;
    dns->tokens = dns->tokens_max;
    dns->tokens_ns = wb_clock_mono_ns();
    wb_random_bytes(&dns->names.map.seed, sizeof dns->names.map.seed);
    dns->turn_timer = evtimer_new(base, on_turn, dns);
    dns->tell_event = event_new(base, -1, 0, on_tell, dns);
    err = dns->turn_timer && dns->tell_event ? 0 : wb_fail_nomem();
    if (err == 0)
        err = wb_dns_ares_new(base, &o, on_answer, dns, &dns->ares);
    if (err < 0) {
        wb_dns_free(dns);
        return err;
    }
    *dns_out = dns;
    return 0;
}

void wb_dns_free(struct wb_dns *dns)
{
    if (!dns)
        return;
    WB_CHECK(dns->magic == MAGIC);
    if (dns->freed)
        *dns->freed = true;
    wb_dns_ares_free(dns->ares);
    if (dns->turn_timer)
        event_free(dns->turn_timer);
    if (dns->tell_event)
        event_free(dns->tell_event);
    for (struct dns_name_entry *entry = NULL; (entry = wb_map_each(&dns->names, entry));)
        free_name(entry->name);
    wb_map_release(&dns->names);
    wb_dns_override_free(dns->overrides);
    dns->magic = 0;
    wb_free(dns);
}
