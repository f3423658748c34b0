/*
 * dns.c - names to addresses: what is known without asking, what is remembered, whose turn it is to be asked.
 *
 *   resolve -> --resolve, an address, .localhost, remembered: called back at once
 *           -> else a question: WAITING for its turn -> ASKED (dns_ares.c) -> TOLD to all who wait -> KNOWN until it expires
 *
 * Questions for the same name are one question. Answers are handed out from the loop and never from inside
 * c-ares, so that a callback may do anything, wb_dns_free() included. Names that are KNOWN stand in a list in the
 * order of their answers; the oldest go when there are too many.
 */
#include "fetch/fetch.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "fetch/dns_ares.h"
#include "fetch/dns_override.h"
#include "os/clock.h"
#include "os/random.h"

#include <event2/event.h>

#define MAGIC UINT32_C(0x736e6477)

enum {
    NAME_MAX_BYTES = 253,
    TTL_MS_MIN = 1000,
    TTL_MS_MAX = WB_DAY_MS,
    NONE_MS = 5 * 60 * 1000,
    FAILED_MS = 4 * 1000, /* less than the first back-off of those who ask again */
    BUCKETS_FIRST = 256,
};

enum state { WAITING, ASKED, TOLD, KNOWN };

struct waiter {
    struct waiter *next;
    wb_dns_done done;
    void *context;
};

struct name {
    struct name *chain;        /* of the same bucket */
    struct name *prev, *next;  /* of the list of its state; ASKED is in none */
    struct waiter *waiters, **waiters_end;
    struct wb_address *addresses;
    int64_t expires_ms;
    const char *message;
    uint64_t hash;
    uint8_t state, status, count;
    char text[];
};

/* First in, first out; anyone can leave. */
struct list {
    struct name *first, *last;
};

struct wb_dns {
    uint32_t magic;
    unsigned cache_max, rate;
    struct wb_dns_ares *ares;
    struct wb_dns_override *overrides;
    struct event *turn_timer, *tell_event;
    struct list waiting, told, known;
    struct name **buckets;
    size_t bucket_count, name_count, known_count;
    uint64_t salt;             /* so that nobody can choose names of one bucket */
    double tokens, tokens_max;
    int64_t tokens_ns;         /* when they were counted last */
    bool *freed;               /* set by wb_dns_free() for the one who is calling back */
    struct wb_dns_stat stat;
};

/* ---- lists and buckets ---------------------------------------------------------------------------------- */

static void list_append(struct list *list, struct name *name)
{
    name->prev = list->last;
    name->next = NULL;
    *(list->last ? &list->last->next : &list->first) = name;
    list->last = name;
}

static void list_remove(struct list *list, struct name *name)
{
    *(name->prev ? &name->prev->next : &list->first) = name->next;
    *(name->next ? &name->next->prev : &list->last) = name->prev;
}

static uint64_t hash_name(const struct wb_dns *dns, const char *text)
{
    char salted[sizeof dns->salt + NAME_MAX_BYTES];
    size_t len = strlen(text);

    WB_CHECK(len <= NAME_MAX_BYTES);
    memcpy(salted, &dns->salt, sizeof dns->salt);
    memcpy(salted + sizeof dns->salt, text, len);
    return wb_hash64(salted, sizeof dns->salt + len);
}

static struct name **bucket_of(const struct wb_dns *dns, uint64_t hash)
{
    return &dns->buckets[hash & (dns->bucket_count - 1)];
}

/* Twice as many, once there are more names than buckets. Where memory is short the chains grow instead. */
static void grow_buckets(struct wb_dns *dns)
{
    size_t old_count = dns->bucket_count;
    struct name **old = dns->buckets, **grown = wb_alloc_zero(2 * old_count, sizeof *grown);

    if (!grown)
        return;
    dns->buckets = grown;
    dns->bucket_count = 2 * old_count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct name *name = old[i], *chain; name; name = chain) {
            struct name **bucket = bucket_of(dns, name->hash);
            chain = name->chain;
            name->chain = *bucket;
            *bucket = name;
        }
    }
    wb_free(old);
}

static struct name *find_name(const struct wb_dns *dns, const char *text, uint64_t hash)
{
    struct name *name = *bucket_of(dns, hash);

    while (name && (name->hash != hash || strcmp(name->text, text) != 0))
        name = name->chain;
    return name;
}

static struct name *new_name(struct wb_dns *dns, const char *text, uint64_t hash)
{
    size_t len = strlen(text) + 1;
    struct name *name = wb_alloc_zero(1, sizeof *name + len);

    if (!name)
        return NULL;
    if (dns->name_count >= dns->bucket_count)
        grow_buckets(dns);
    memcpy(name->text, text, len);
    name->hash = hash;
    name->waiters_end = &name->waiters;
    struct name **bucket = bucket_of(dns, hash);
    name->chain = *bucket;
    *bucket = name;
    dns->name_count++;
    return name;
}

static void free_name(struct name *name)
{
    for (struct waiter *w = name->waiters, *next; w; w = next) {
        next = w->next;
        wb_free(w);
    }
    wb_free(name->addresses);
    wb_free(name);
}

static void forget_oldest(struct wb_dns *dns)
{
    struct name *name = dns->known.first, **at = bucket_of(dns, name->hash);

    list_remove(&dns->known, name);
    dns->known_count--;
    while (*at != name)
        at = &(*at)->chain;
    *at = name->chain;
    dns->name_count--;
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

/* Asks those whose turn it is; the timer stands at the next turn. */
static void ask_next(struct wb_dns *dns)
{
    count_tokens(dns);
    while (dns->waiting.first && dns->tokens >= 1) {
        struct name *name = dns->waiting.first;
        list_remove(&dns->waiting, name);
        name->state = ASKED;
        dns->tokens -= 1;
        dns->stat.asked++;
        wb_dns_ares_ask(dns->ares, name->text, name);
    }
    if (dns->waiting.first && !evtimer_pending(dns->turn_timer, NULL)) {
        double wait_s = (1 - dns->tokens) / dns->rate;
        struct timeval tv = {.tv_sec = (time_t)wait_s, .tv_usec = (suseconds_t)((wait_s - (double)(time_t)wait_s) * 1e6) + 1};
        evtimer_add(dns->turn_timer, &tv);
    }
}

static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ask_next(arg);
}

static int64_t lifetime_ms(const struct wb_dns_answer *answer)
{
    if (answer->status == WB_DNS_NONE)
        return NONE_MS;
    if (answer->status == WB_DNS_FAILED)
        return FAILED_MS;
    int64_t ttl = answer->expires_ms;
    return ttl < TTL_MS_MIN ? TTL_MS_MIN : ttl > TTL_MS_MAX ? TTL_MS_MAX : ttl;
}

/* From c-ares; callbacks come later. */
static void on_answer(void *context, void *question, const struct wb_dns_answer *answer)
{
    struct wb_dns *dns = context;
    struct name *name = question;
    size_t bytes = answer->count * sizeof *answer->addresses;

    WB_CHECK(dns->magic == MAGIC && name->state == ASKED);
    wb_free(name->addresses);
    name->addresses = bytes ? wb_alloc(bytes) : NULL;
    if (name->addresses)
        memcpy(name->addresses, answer->addresses, bytes);
    name->count = (uint8_t)answer->count;
    name->status = (uint8_t)answer->status;
    name->message = answer->message;
    name->expires_ms = wb_clock_wall_ms() + lifetime_ms(answer);
    if (bytes && !name->addresses) {
        name->count = 0;
        name->status = WB_DNS_FAILED;
        name->message = wb_error_words(WB_E_NOMEM);
        name->expires_ms = wb_clock_wall_ms() + FAILED_MS;
    }
    name->state = TOLD;
    list_append(&dns->told, name);
    dns->stat.answered += name->status != WB_DNS_FAILED;
    dns->stat.failed += name->status == WB_DNS_FAILED;
    dns->stat.waiting--;
    event_active(dns->tell_event, EV_TIMEOUT, 0);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static void fill_answer(const struct name *name, struct wb_dns_answer *answer_out)
{
    *answer_out = (struct wb_dns_answer){.status = (enum wb_dns_status)name->status, .count = name->count,
                                         .expires_ms = name->expires_ms, .message = name->message};
    if (name->count)
        memcpy(answer_out->addresses, name->addresses, name->count * sizeof *name->addresses);
}

static void on_tell(evutil_socket_t fd, short what, void *arg)
{
    struct wb_dns *dns = arg;
    bool freed = false;

    (void)fd, (void)what;
    dns->freed = &freed;
    while (dns->told.first) {
        struct name *name = dns->told.first;
        struct waiter *waiter = name->waiters;
        if (!waiter) {
            list_remove(&dns->told, name);
            name->state = KNOWN;
            list_append(&dns->known, name);
            if (++dns->known_count > dns->cache_max)
                forget_oldest(dns);
            continue;
        }
        struct wb_dns_answer answer;
        struct waiter told = *waiter;
        name->waiters = waiter->next;
        if (!name->waiters)
            name->waiters_end = &name->waiters;
        wb_free(waiter);
        fill_answer(name, &answer);
        told.done(told.context, &answer);
        if (freed)
            return;
    }
    dns->freed = NULL;
}

/* ---- what needs no question --------------------------------------------------------------------------------------- */

static bool ends_in(struct wb_slice host, struct wb_slice suffix)
{
    return host.len > suffix.len && wb_slice_equal_nocase(wb_slice(host.ptr + host.len - suffix.len, suffix.len), suffix);
}

static bool is_localhost(struct wb_slice host)
{
    return wb_slice_equal_nocase(host, WB_SLICE_LIT("localhost")) || ends_in(host, WB_SLICE_LIT(".localhost"));
}

/* True with an answer that depends on nothing but the options and the text of the name. */
static bool answer_offhand(const struct wb_dns *dns, struct wb_slice host, uint16_t port, struct wb_dns_answer *answer_out)
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
        *answer_out = (struct wb_dns_answer){.status = WB_DNS_NONE, .expires_ms = INT64_MAX, .message = "there is no such name"};
        return true;
    }
    if (host.len == 0 || host.len > NAME_MAX_BYTES || memchr(host.ptr, '\0', host.len)) {
        *answer_out = (struct wb_dns_answer){.status = WB_DNS_NONE, .expires_ms = INT64_MAX, .message = "this is no name"};
        return true;
    }
    return false;
}

/* ---- the door -------------------------------------------------------------------------------------------------------- */

int wb_dns_override(struct wb_dns *dns, const char *text)
{
    return wb_dns_override_add(&dns->overrides, text);
}

static int add_waiter(struct name *name, wb_dns_done done, void *context)
{
    struct waiter *waiter = wb_alloc(sizeof *waiter);

    if (!waiter)
        return WB_E_NOMEM;
    *waiter = (struct waiter){NULL, done, context};
    *name->waiters_end = waiter;
    name->waiters_end = &waiter->next;
    return 0;
}

/* Puts a name, which is in no list, at the end of those that wait for their turn. */
static void enqueue(struct wb_dns *dns, struct name *name)
{
    name->state = WAITING;
    list_append(&dns->waiting, name);
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
    struct name *name = find_name(dns, text, hash);
    if (name && name->state == KNOWN && name->expires_ms > wb_clock_wall_ms()) {
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
        list_remove(&dns->known, name);
        dns->known_count--;
    }
    /* Without memory for the waiter it is asked nevertheless, for the next one who comes. */
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
    /* What a twentieth of a second may hold: timers are not exact. */
    dns->tokens_max = o.rate < 20 ? 1 : o.rate / 20.0;
    dns->tokens = dns->tokens_max;
    dns->tokens_ns = wb_clock_mono_ns();
    wb_random_bytes(&dns->salt, sizeof dns->salt);
    dns->bucket_count = BUCKETS_FIRST;
    dns->buckets = wb_alloc_zero(dns->bucket_count, sizeof *dns->buckets);
    dns->turn_timer = evtimer_new(base, on_turn, dns);
    dns->tell_event = event_new(base, -1, 0, on_tell, dns);
    err = dns->buckets && dns->turn_timer && dns->tell_event ? 0 : wb_fail_nomem();
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
    for (size_t i = 0; dns->buckets && i < dns->bucket_count; i++) {
        for (struct name *name = dns->buckets[i], *chain; name; name = chain) {
            chain = name->chain;
            free_name(name);
        }
    }
    wb_free(dns->buckets);
    wb_dns_override_free(dns->overrides);
    dns->magic = 0;
    wb_free(dns);
}
