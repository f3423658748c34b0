/*
 * dns_support.h - a name server that answers, lies, fails and is silent, and a resolver that asks it. Header only;
 * one test program is one file.
 *
 * The server is a thread on a UDP port of 127.0.0.1. It holds the same TCP port, without listening there, so that a
 * connection is refused and no other program can have the port. What it does depends on the first label of the name:
 *   aN  N addresses of IPv4        both   one of each kind        six  one of IPv6 only    ttl1  one, for a second
 *   alias  a CNAME of TTL 1        nx     NXDOMAIN                empty  no addresses      servfail  SERVFAIL
 *   silent  nothing                garbage  half of an answer     wrongid  an answer to something else
 *   half  one of IPv4, and nothing when asked for IPv6            nohalf  NXDOMAIN for IPv4, no addresses for IPv6
 *   long, tcp  come again over TCP (where nobody is, except in one test)   part  the same, with one address of IPv4
 *   held  nothing, until release is asked for                     none  a datagram without a byte, then one address
 */
#ifndef WB_TESTS_DNS_SUPPORT_H
#define WB_TESTS_DNS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "fetch/fetch_probe.h"
#include "os/clock.h"
#include "os/fault.h"

/* ---- the name server -------------------------------------------------------------------------------- */

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28, STAMPS = 4096, HELD = 200 };

static struct server {
    int fd;
    int tcp; /* listens in one test only */
    pthread_t thread;
    char address[32];
    atomic_uint questions; /* of type A */
    int64_t stamps[STAMPS]; /* when each came */
    struct held {
        uint8_t packet[512];
        size_t len;
        struct sockaddr_in peer;
    } held[HELD];
    unsigned held_count;
} server;

static void put16(uint8_t **p, unsigned v)
{
    *(*p)++ = (uint8_t)(v >> 8);
    *(*p)++ = (uint8_t)v;
}

/* Writes a record for the name that was asked for; its data follows. */
static void put_record(uint8_t **p, unsigned type, unsigned ttl, unsigned len)
{
    put16(p, 0xc00c);
    put16(p, type);
    put16(p, 1);
    put16(p, 0);
    put16(p, ttl);
    put16(p, len);
}

static unsigned put_answers(uint8_t **p, const char *label, unsigned type)
{
    unsigned count = 0, ttl = strcmp(label, "ttl1") == 0 ? 1 : 3600;
    bool four = label[0] == 'a' || strcmp(label, "both") == 0 || strcmp(label, "ttl1") == 0 ||
                strcmp(label, "half") == 0 || strcmp(label, "part") == 0 || strcmp(label, "tcp over") == 0;
    bool six = strcmp(label, "both") == 0 || strcmp(label, "six") == 0;

    if (strcmp(label, "alias") == 0 && type == TYPE_A) {
        put_record(p, TYPE_CNAME, 1, 4);
        memcpy(*p, "\x01y\xc0\x0c", 4);
        *p += 4;
        put16(p, 0xc000 | (unsigned)(12 + strlen(label) + 1 + 6 + 4 + 12)); /* y.<name>, where the CNAME says it */
        put16(p, TYPE_A);
        put16(p, 1);
        put16(p, 0);
        put16(p, 3600);
        put16(p, 4);
        memcpy(*p, (uint8_t[]){203, 0, 113, 77}, 4);
        *p += 4;
        return 2;
    }
    if (type == TYPE_A && four) {
        unsigned wanted = label[0] == 'a' && label[1] >= '1' && label[1] <= '9' ? (unsigned)atoi(label + 1) : 1;
        for (; count < wanted; count++) {
            put_record(p, TYPE_A, ttl, 4);
            memcpy(*p, (uint8_t[]){203, 0, 113, (uint8_t)(count + 1)}, 4);
            *p += 4;
        }
    }
    if (type == TYPE_AAAA && six) {
        put_record(p, TYPE_AAAA, ttl, 16);
        memcpy(*p, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [15] = 1}, 16);
        *p += 16;
        count++;
    }
    return count;
}

/* The first label, and where the question ends; 0: there is none. */
static size_t read_question(const uint8_t *packet, size_t len, char label_out[64], unsigned *type_out)
{
    size_t at = 12;

    label_out[0] = '\0';
    while (at < len && packet[at] && packet[at] < 64) {
        if (at == 12)
            snprintf(label_out, 64, "%.*s", packet[at], (const char *)packet + at + 1);
        at += packet[at] + 1u;
    }
    at += 5;
    if (at > len)
        return 0;
    *type_out = (unsigned)packet[at - 4] << 8 | packet[at - 3];
    return at;
}

static void hold_question(const uint8_t *packet, size_t len, const struct sockaddr_in *peer)
{
    struct held *held = &server.held[server.held_count];

    if (server.held_count == HELD || len > sizeof held->packet)
        return;
    memcpy(held->packet, packet, len);
    held->len = len;
    held->peer = *peer;
    server.held_count++;
}

static void answer_question(uint8_t *packet, size_t len, const struct sockaddr_in *peer, bool late)
{
    char label[64];
    unsigned type = 0;
    size_t at = read_question(packet, len, label, &type);

    if (!at)
        return;
    if (type == TYPE_A && !late) {
        unsigned n = atomic_load(&server.questions);
        server.stamps[n % STAMPS] = wb_clock_mono_ns();
        atomic_store(&server.questions, n + 1);
    }
    if (strcmp(label, "held") == 0 && !late) {
        hold_question(packet, len, peer);
        return;
    }
    if (strcmp(label, "release") == 0) {
        for (unsigned i = 0; i < server.held_count; i++) {
            uint8_t room[4096];
            memcpy(room, server.held[i].packet, server.held[i].len);
            answer_question(room, server.held[i].len, &server.held[i].peer, true);
        }
        server.held_count = 0;
    }
    if (strcmp(label, "none") == 0)
        (void)!sendto(server.fd, "", 0, 0, (const struct sockaddr *)peer, sizeof *peer);
    if (strncmp(label, "silent", 6) == 0 || (strcmp(label, "half") == 0 && type == TYPE_AAAA))
        return;
    uint8_t *p = packet + at;
    memcpy(packet + 2, (uint8_t[]){0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, 10);
    if (strcmp(label, "nx") == 0 || (strcmp(label, "nohalf") == 0 && type == TYPE_A))
        packet[3] |= 3;
    else if (strncmp(label, "servfail", 8) == 0)
        packet[3] |= 2;
    else packet[7] = (uint8_t)put_answers(&p, strcmp(label, "garbage") == 0 || strcmp(label, "wrongid") == 0 || late ||
                                          strcmp(label, "release") == 0 || strcmp(label,
                                                                                  "none") == 0 ? "a1" : label, type);
    if (strcmp(label, "wrongid") == 0)
        packet[0] ^= 0x55;
    if (strcmp(label, "long") == 0 || strcmp(label, "tcp") == 0 || strcmp(label, "part") == 0)
        packet[2] |= 2;
    size_t size = (size_t)(p - packet);
    if (strcmp(label, "garbage") == 0)
        size = at + 7;
    (void)!sendto(server.fd, packet, size, 0, (const struct sockaddr *)peer, sizeof *peer);
}

static void *serve(void *arg)
{
    (void)arg;
    for (;;) {
        uint8_t packet[4096];
        struct sockaddr_in peer;
        socklen_t peer_len = sizeof peer;
        ssize_t n = recvfrom(server.fd, packet, 512, 0, (struct sockaddr *)&peer, &peer_len);
        if (n == 1)
            return NULL; /* from stop_server() */
        if (n > 12)
            answer_question(packet, (size_t)n, &peer, false);
    }
}

static struct sockaddr_in server_address(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    (void)getsockname(server.fd, (struct sockaddr *)&address, &len);
    return address;
}

/*
 * Takes a port that is free for both UDP and TCP. The sockets do not share it with anybody, and stay open: a port
 * found free and taken later may have become the end of a connection of another program in the meantime.
 */
static bool take_port(void)
{
    for (int i = 0; i < 100; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        server.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        server.tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (server.fd < 0 || server.tcp < 0 || bind(server.fd, (struct sockaddr *)&address, sizeof address) != 0)
            return false;
        address = server_address();
        if (bind(server.tcp, (struct sockaddr *)&address, sizeof address) == 0)
            return true;
        close(server.fd);
        close(server.tcp);
    }
    return false;
}

static int start_server(void **state)
{
    (void)state;
    if (!take_port())
        return -1;
    snprintf(server.address, sizeof server.address, "127.0.0.1:%u", ntohs(server_address().sin_port));
    return pthread_create(&server.thread, NULL, serve, NULL);
}

static int stop_server(void **state)
{
    struct sockaddr_in address = server_address();

    (void)state;
    if (sendto(server.fd, "x", 1, 0, (struct sockaddr *)&address, sizeof address) != 1)
        return -1;
    pthread_join(server.thread, NULL);
    close(server.tcp);
    return close(server.fd);
}

/* ---- asking ------------------------------------------------------------------------------------------- */

struct asked {
    struct wb_dns_answer answer;
    unsigned calls;
    struct event_base *stop; /* the loop to leave when all have called back */
    unsigned *left;
};

static void on_done(void *context, const struct wb_dns_answer *answer)
{
    struct asked *asked = context;

    asked->answer = *answer;
    asked->calls++;
    if (asked->left && --*asked->left == 0)
        event_base_loopbreak(asked->stop);
}

struct fixture {
    struct event_base *base;
    struct wb_dns *dns;
};

static void begin(struct fixture *f, struct wb_dns_options options)
{
    options.servers = server.address;
    if (!options.timeout_ms)
        options.timeout_ms = 20000;
    if (!options.tries)
        options.tries = 1;
    f->base = event_base_new();
    assert_non_null(f->base);
    assert_int_equal(wb_dns_new(f->base, &options, &f->dns), 0);
}

static void end(struct fixture *f)
{
    wb_dns_free(f->dns);
    event_base_free(f->base);
}

/* Resolves a name and waits until done was called, once. */
static struct wb_dns_answer ask(struct fixture *f, const char *host, uint16_t port)
{
    unsigned left = 1;
    struct asked asked = {.stop = f->base, .left = &left};

    assert_int_equal(wb_dns_resolve(f->dns, wb_slice_str(host), port, on_done, &asked), 0);
    while (left)
        event_base_loop(f->base, EVLOOP_ONCE);
    assert_int_equal(asked.calls, 1);
    return asked.answer;
}

static void assert_address(const struct wb_dns_answer *answer, unsigned i, const char *want)
{
    char text[WB_ADDRESS_TEXT_MAX];

    assert_true(i < answer->count);
    wb_address_format(&answer->addresses[i], text);
    assert_string_equal(text, want);
}

static void wait_ms(struct fixture *f, unsigned ms)
{
    struct timeval tv = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

    event_base_loopexit(f->base, &tv);
    event_base_loop(f->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

#endif
