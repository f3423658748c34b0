/* test_dns.c - names asked of a name server that answers, lies, fails and is silent (dns_support.h). */
#include "dns_support.h"

/* ---- tests ------------------------------------------------------------------------------------------------ */

static void test_answers(void **state)
{
    (void)state;
    struct fixture f;
    struct wb_dns_answer answer;

    begin(&f, (struct wb_dns_options){0});
    int64_t now = wb_clock_wall_ms();
    answer = ask(&f, "a1.test", 80);
    assert_int_equal(answer.status, WB_DNS_OK);
    assert_int_equal(answer.count, 1);
    assert_address(&answer, 0, "203.0.113.1");
    assert_null(answer.message);
    assert_in_range(answer.expires_ms, now + 3600000, wb_clock_wall_ms() + 3600000);

    answer = ask(&f, "both.test", 80);
    assert_int_equal(answer.count, 2);
    assert_address(&answer, 0, "203.0.113.1");
    assert_address(&answer, 1, "2001:db8::1");

    answer = ask(&f, "six.test", 80);
    assert_int_equal(answer.count, 1);
    assert_address(&answer, 0, "2001:db8::1");

    answer = ask(&f, "a12.test", 80);
    assert_int_equal(answer.count, WB_DNS_ADDRESSES_MAX);

    now = wb_clock_wall_ms();
    answer = ask(&f, "alias.test", 80);
    assert_int_equal(answer.status, WB_DNS_OK);
    assert_address(&answer, 0, "203.0.113.77");
    assert_in_range(answer.expires_ms, now + 1000, wb_clock_wall_ms() + 1000);
    end(&f);
}

static void test_bad_answers(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        enum wb_dns_status status;
        int64_t remembered_ms;
    } cases[] = {{"nx.test", WB_DNS_NONE, 300000},       {"empty.test", WB_DNS_FAILED, 4000},
                 {"servfail.test", WB_DNS_FAILED, 4000}, {"silent.test", WB_DNS_FAILED, 4000},
                 {"garbage.test", WB_DNS_FAILED, 4000},  {"wrongid.test", WB_DNS_FAILED, 4000},
                 {"long.test", WB_DNS_FAILED, 4000},     {"nohalf.test", WB_DNS_FAILED, 4000}};
    struct fixture f;

    begin(&f, (struct wb_dns_options){.timeout_ms = 2000});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t before = wb_clock_wall_ms();
        struct wb_dns_answer answer = ask(&f, cases[i].host, 80);
        if (answer.status != cases[i].status)
            fail_msg("%s is %d: %s", cases[i].host, answer.status, answer.message);
        assert_int_equal(answer.count, 0);
        assert_true(answer.message && *answer.message);
        assert_in_range(answer.expires_ms, before + cases[i].remembered_ms,
                        wb_clock_wall_ms() + cases[i].remembered_ms);
    }
    /* Negative answers are cached, too. */
    unsigned questions = atomic_load(&server.questions);
    assert_int_equal(ask(&f, "nx.test", 80).status, WB_DNS_NONE);
    assert_int_equal(atomic_load(&server.questions), questions);
    struct wb_dns_stat stat;
    wb_dns_stat(f.dns, &stat);
    assert_int_equal(stat.asked, 8);
    assert_int_equal(stat.answered, 1);
    assert_int_equal(stat.failed, 7);
    assert_int_equal(stat.cached, 1);
    assert_int_equal(stat.waiting, 0);
    end(&f);
}

/* If the name server cannot be reached, that says nothing about the name. */
static void test_nobody_there(void **state)
{
    (void)state;
    struct event_base *base = event_base_new();
    struct wb_dns_options options = {.servers = "127.0.0.1:1", .timeout_ms = 100, .tries = 2};
    struct fixture f = {.base = base};

    assert_int_equal(wb_dns_new(base, &options, &f.dns), 0);
    struct wb_dns_answer answer = ask(&f, "a1.test", 80);
    assert_int_equal(answer.status, WB_DNS_FAILED);
    assert_true(answer.message && *answer.message);
    end(&f);
}

/* ---- truncated answers ------------------------------------------------------------------------------------- */

static void *serve_tcp(void *arg)
{
    char label[64];
    unsigned type;

    (void)arg;
    for (;;) {
        uint8_t packet[4096];
        int fd = accept(server.tcp, NULL, NULL);
        if (fd < 0)
            return NULL;
        ssize_t n = recv(fd, packet, 512, 0);
        size_t at = n > 14 ? read_question(packet + 2, (size_t)n - 2, label, &type) : 0;
        if (at) {
            uint8_t *p = packet + 2 + at;
            memcpy(packet + 4, (uint8_t[]){0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, 10);
            packet[9] = (uint8_t)put_answers(&p, "tcp over", type);
            packet[0] = (uint8_t)((p - packet - 2) >> 8);
            packet[1] = (uint8_t)(p - packet - 2);
            (void)!send(fd, packet, (size_t)(p - packet), MSG_NOSIGNAL);
        }
        close(fd);
    }
}

static void test_truncated(void **state)
{
    (void)state;
    struct fixture f;
    pthread_t thread;

    begin(&f, (struct wb_dns_options){.timeout_ms = 5000});
    /* A truncated answer is enough if it has an address. */
    struct wb_dns_answer answer = ask(&f, "part.test", 80);
    assert_int_equal(answer.status, WB_DNS_OK);
    assert_address(&answer, 0, "203.0.113.1");
    answer = ask(&f, "tcp.first.test", 80);
    assert_int_equal(answer.status, WB_DNS_FAILED);
    assert_non_null(strstr(answer.message, "TCP"));

    assert_int_equal(listen(server.tcp, 16), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve_tcp, NULL), 0);
    answer = ask(&f, "tcp.second.test", 80);
    assert_int_equal(answer.status, WB_DNS_OK);
    assert_address(&answer, 0, "203.0.113.1");
    assert_int_equal(ask(&f, "a1.after.test", 80).status, WB_DNS_OK);
    end(&f);
    assert_int_equal(shutdown(server.tcp, SHUT_RDWR), 0); /* refuses connections again, and keeps the port */
    pthread_join(thread, NULL);
}

/* Other questions under way do not suffer if the name server refuses a TCP connection for one of them. */
static void test_others_in_flight(void **state)
{
    (void)state;
    enum { NAMES = 40 };
    static struct asked asked[NAMES];
    unsigned left = NAMES;
    struct fixture f;
    char host[64];

    begin(&f, (struct wb_dns_options){.rate = 1000, .timeout_ms = 20000});
    unsigned first = atomic_load(&server.questions);
    for (int i = 0; i < NAMES; i++) {
        asked[i] = (struct asked){.left = &left, .stop = f.base};
        snprintf(host, sizeof host, "held.%d.test", i);
        assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str(host), 80, on_done, &asked[i]), 0);
    }
    while (atomic_load(&server.questions) - first < NAMES) {
        event_base_loop(f.base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(host, sizeof host, "long.%d.test", i);
        assert_int_equal(ask(&f, host, 80).status, WB_DNS_FAILED);
    }
    assert_int_equal(left, NAMES);
    assert_int_equal(ask(&f, "release.test", 80).status, WB_DNS_OK);
    while (left)
        event_base_loop(f.base, EVLOOP_ONCE);
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(asked[i].answer.status, WB_DNS_OK);
    end(&f);
}

/* CVE-2023-32067: c-ares took a datagram of no bytes for the end of its socket, and gave up all queries. */
static void test_empty_datagram(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f, (struct wb_dns_options){.timeout_ms = 5000});
    assert_int_equal(ask(&f, "none.test", 80).status, WB_DNS_OK);
    end(&f);
}

static void test_cache(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f, (struct wb_dns_options){.cache_max = 2});
    unsigned questions = atomic_load(&server.questions);
    ask(&f, "a1.cache.test", 80);
    assert_int_equal(ask(&f, "A1.Cache.TEST.", 443).status, WB_DNS_OK); /* case, final dot and port do not matter */
    assert_int_equal(atomic_load(&server.questions), questions + 1);

    ask(&f, "a2.cache.test", 80);
    ask(&f, "a1.cache.test", 80);
    assert_int_equal(atomic_load(&server.questions), questions + 2);
    ask(&f, "a3.cache.test", 80); /* the oldest is forgotten */
    ask(&f, "a2.cache.test", 80);
    assert_int_equal(atomic_load(&server.questions), questions + 3);
    ask(&f, "a1.cache.test", 80);
    assert_int_equal(atomic_load(&server.questions), questions + 4);
    end(&f);
}

static void test_expiry(void **state)
{
    (void)state;
    struct fixture f;

    begin(&f, (struct wb_dns_options){0});
    unsigned questions = atomic_load(&server.questions);
    struct wb_dns_answer answer = ask(&f, "ttl1.test", 80);
    ask(&f, "ttl1.test", 80);
    bool in_time = wb_clock_wall_ms() < answer.expires_ms; /* on a busy machine it may have expired already */
    unsigned asked = atomic_load(&server.questions) - questions;
    assert_true(asked == 1 || !in_time);
    wait_ms(&f, 1100);
    assert_int_equal(ask(&f, "ttl1.test", 80).status, WB_DNS_OK);
    assert_int_equal(atomic_load(&server.questions) - questions, asked + 1);
    end(&f);
}

/* Many requests for the same name make one question. */
static void test_joined(void **state)
{
    (void)state;
    enum { MANY = 50 };
    struct fixture f;
    struct asked asked[MANY] = {0};
    unsigned left = MANY;

    begin(&f, (struct wb_dns_options){0});
    unsigned questions = atomic_load(&server.questions);
    for (int i = 0; i < MANY; i++) {
        asked[i] = (struct asked){.stop = f.base, .left = &left};
        assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str("both.joined.test"), 80, on_done, &asked[i]), 0);
    }
    struct wb_dns_stat stat;
    wb_dns_stat(f.dns, &stat);
    assert_int_equal(stat.waiting, 1);
    event_base_dispatch(f.base);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(asked[i].calls, 1);
        assert_int_equal(asked[i].answer.count, 2);
    }
    assert_int_equal(atomic_load(&server.questions), questions + 1);
    end(&f);
}

static unsigned ticks;

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    ticks++;
}

/* While a question hangs, the loop keeps running. */
static void test_no_blocking(void **state)
{
    (void)state;
    struct fixture f;
    struct timeval every = {0, 10000};

    begin(&f, (struct wb_dns_options){.timeout_ms = 300, .tries = 2});
    struct event *tick = event_new(f.base, -1, EV_PERSIST, on_tick, NULL);
    assert_non_null(tick);
    event_add(tick, &every);
    ticks = 0;
    int64_t start = wb_clock_mono_ns();
    struct asked asked = {0};
    assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str("silent.block.test"), 80, on_done, &asked), 0);
    while (!asked.calls)
        event_base_loop(f.base, EVLOOP_ONCE);
    int64_t took_ms = (wb_clock_mono_ns() - start) / 1000000;
    assert_int_equal(asked.answer.status, WB_DNS_FAILED);
    assert_true(took_ms >= 500);
    assert_true(ticks >= 3); /* normally sixty, fewer on a busy machine; none if the loop had blocked */
    event_free(tick);
    end(&f);
}

/* A server that does not answer for one kind of address does not hold up those of the other kind for long. */
static void test_half(void **state)
{
    (void)state;
    struct fixture f;

    /* The other query would time out only after an hour. */
    begin(&f, (struct wb_dns_options){.timeout_ms = 3600000, .tries = 1});
    int64_t start = wb_clock_mono_ns();
    struct wb_dns_answer answer = ask(&f, "half.test", 80);
    int64_t took_ms = (wb_clock_mono_ns() - start) / 1000000;
    assert_int_equal(answer.status, WB_DNS_OK);
    assert_int_equal(answer.count, 1);
    assert_true(took_ms >= 900);
    end(&f);

    begin(&f, (struct wb_dns_options){.timeout_ms = 1500, .tries = 2});
    assert_int_equal(ask(&f, "half.test", 80).count, 1);
    assert_int_equal(ask(&f, "half.test", 80).count, 1);
    wait_ms(&f, 1000); /* now the other query fails: nobody is called */
    end(&f);

    begin(&f, (struct wb_dns_options){.timeout_ms = 1500});
    struct asked asked = {0};
    assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str("half.test"), 80, on_done, &asked), 0);
    wait_ms(&f, 100);
    end(&f);
    assert_int_equal(asked.calls, 0);
}

static void test_rate(void **state)
{
    (void)state;
    enum { NAMES = 100, RATE = 100, BURST = 5 };
    struct fixture f;
    static struct asked asked[NAMES];
    unsigned left = NAMES;
    char host[64];

    begin(&f, (struct wb_dns_options){.rate = RATE, .timeout_ms = 60000});
    unsigned first = atomic_load(&server.questions);
    int64_t start = wb_clock_mono_ns();
    for (int i = 0; i < NAMES; i++) {
        asked[i] = (struct asked){.stop = f.base, .left = &left};
        snprintf(host, sizeof host, "a1.%d.rate.test", i);
        assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str(host), 80, on_done, &asked[i]), 0);
    }
    event_base_dispatch(f.base);
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(asked[i].answer.status, WB_DNS_OK);
    assert_int_equal(atomic_load(&server.questions) - first, NAMES);
    /*
     * No question comes sooner after the first call than the rate allows. The server may see it late, but never
     * early.
     */
    for (int i = 0; i < NAMES; i++) {
        int64_t after_ms = (server.stamps[(first + (unsigned)i) % STAMPS] - start) / 1000000;
        if ((i + 1 - BURST) * 1000 / RATE > after_ms + 1)
            fail_msg("%d questions in %d ms", i + 1, (int)after_ms);
    }
    end(&f);
}

static void test_no_question(void **state)
{
    (void)state;
    struct fixture f;
    struct wb_dns_answer answer;
    char longer[400];

    begin(&f, (struct wb_dns_options){0});
    unsigned questions = atomic_load(&server.questions);
    answer = ask(&f, "127.0.0.1", 80);
    assert_int_equal(answer.count, 1);
    assert_address(&answer, 0, "127.0.0.1");
    answer = ask(&f, "2001:db8::7", 80);
    assert_address(&answer, 0, "2001:db8::7");
    static const char *const local[] = {"localhost", "LocalHost.", "a.b.localhost"};
    for (size_t i = 0; i < 3; i++) {
        answer = ask(&f, local[i], 80);
        assert_int_equal(answer.count, 1);
        assert_address(&answer, 0, "127.0.0.1");
    }
    memset(longer, 'a', sizeof longer);
    longer[399] = '\0';
    assert_int_equal(ask(&f, longer, 80).status, WB_DNS_NONE);
    assert_int_equal(ask(&f, "", 80).status, WB_DNS_NONE);
    assert_int_equal(ask(&f, "no.such.Invalid", 80).status, WB_DNS_NONE);
    assert_int_equal(atomic_load(&server.questions), questions);
    end(&f);
}

static void test_overrides(void **state)
{
    (void)state;
    static const char *const good[] = {"One.test:80:192.0.2.1,[2001:db8::1]", "*.wild.test:*:192.0.2.2",
                                       "one.test:443:192.0.2.3",
                                       "192.0.2.9:80:192.0.2.4", "[2001:db8::9]:80:192.0.2.6", "*:8080:192.0.2.5"};
    static const char *const bad[] = {"", "a", "a:80", "a:80:", "a::192.0.2.1", "a:0:192.0.2.1", "a:65536:192.0.2.1",
                                      ":80:192.0.2.1",
                                      "a:80:192.0.2", "a:80:192.0.2.1,", "a:80:192.0.2.1,x", "*x:80:192.0.2.1",
                                      "[::1:80:192.0.2.1",
                                      "a:80:1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1,1.1.1.1"};
    static const struct {
        const char *host;
        uint16_t port;
        const char *want;
    } cases[] = {{"one.test", 80, "192.0.2.1"},    {"ONE.test", 443, "192.0.2.3"},  {"a.wild.test", 1, "192.0.2.2"},
                 {"x.y.WILD.test", 8080, "192.0.2.2"}, {"any.test", 8080, "192.0.2.5"}, {"localhost", 8080,
                                                                                         "192.0.2.5"},
                 {"192.0.2.9", 80, "192.0.2.4"},   {"192.0.2.9", 8080, "192.0.2.9"}, {"2001:db8::9", 80, "192.0.2.6"},
                 {"a1.test", 80, "203.0.113.1"},   {"localhost", 80, "127.0.0.1"}};
    struct fixture f;
    struct wb_dns_answer answer;

    begin(&f, (struct wb_dns_options){0});
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(wb_dns_override(f.dns, good[i]), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (wb_dns_override(f.dns, bad[i]) != WB_E_INVALID)
            fail_msg("'%s' is taken", bad[i]);
        assert_non_null(strstr(wb_error_message(), bad[i]));
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer = ask(&f, cases[i].host, cases[i].port);
        assert_address(&answer, 0, cases[i].want);
    }
    answer = ask(&f, "one.test", 80);
    assert_int_equal(answer.count, 2);
    assert_address(&answer, 1, "2001:db8::1");
    assert_int_equal(ask(&f, "nx.wild.test.nx", 80).status == WB_DNS_OK, false);
    end(&f);
}

static void on_done_free(void *context, const struct wb_dns_answer *answer)
{
    struct fixture *f = context;

    (void)answer;
    assert_non_null(f->dns); /* once */
    wb_dns_free(f->dns);
    f->dns = NULL;
    event_base_loopbreak(f->base);
}

/*
 * Freed with questions waiting, asked and being told, from outside and from inside a callback: nothing is called any
 * more.
 */
static void test_free_in_the_middle(void **state)
{
    (void)state;
    struct fixture f;
    struct asked asked = {0};
    char host[64];

    begin(&f, (struct wb_dns_options){.rate = 20});
    for (int i = 0; i < 30; i++) {
        snprintf(host, sizeof host, "%s%d.free.test", i % 2 ? "silent" : "a1", i);
        assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str(host), 80, on_done, &asked), 0);
    }
    event_base_loop(f.base, EVLOOP_ONCE);
    unsigned calls = asked.calls;
    wb_dns_free(f.dns);
    f.dns = NULL;
    event_base_loop(f.base, EVLOOP_NONBLOCK);
    assert_int_equal(asked.calls, calls);
    end(&f);

    begin(&f, (struct wb_dns_options){0});
    for (int i = 0; i < 10; i++)
        assert_int_equal(wb_dns_resolve(f.dns, wb_slice_str(i % 2 ? "a1.inside.test" : "a2.inside.test"), 80,
                                        on_done_free, &f), 0);
    event_base_dispatch(f.base);
    assert_null(f.dns);
    end(&f);
}

static void test_bad_servers(void **state)
{
    (void)state;
    struct event_base *base = event_base_new();
    struct wb_dns *dns;

    assert_int_equal(wb_dns_new(base, &(struct wb_dns_options){.servers = "not an address"}, &dns), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "not an address"));
    assert_null(dns);
    assert_int_equal(wb_dns_new(base, NULL, &dns), 0); /* the system's */
    wb_dns_free(dns);
    event_base_free(base);
}

/* Each of our allocations fails once: that gives an error or a failed answer, and loses nothing. */
static void test_out_of_memory(void **state)
{
    (void)state;
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        struct event_base *base = event_base_new();
        struct wb_dns_options options = {.servers = server.address, .timeout_ms = 100, .tries = 1};
        struct wb_dns *dns = NULL;
        unsigned left = 1;
        struct asked asked = {.stop = base, .left = &left};
        wb_fault_arm(WB_FAULT_ALLOC, nth, 12);
        int err = wb_dns_new(base, &options, &dns);
        if (err == 0)
            err = wb_dns_override(dns, "x.test:1:192.0.2.1");
        if (err == 0)
            err = wb_dns_resolve(dns, wb_slice_str("both.memory.test"), 80, on_done, &asked);
        if (err == 0)
            event_base_dispatch(base);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err, err ? WB_E_NOMEM : 0);
        assert_int_equal(asked.calls, err ? 0 : 1);
        if (!err && !struck)
            assert_int_equal(asked.answer.count, 2);
        wb_dns_free(dns);
        event_base_free(base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),     cmocka_unit_test(test_bad_answers),
        cmocka_unit_test(test_nobody_there),    cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_others_in_flight), cmocka_unit_test(test_empty_datagram), cmocka_unit_test(test_cache),
        cmocka_unit_test(test_expiry),      cmocka_unit_test(test_joined),      cmocka_unit_test(test_no_blocking),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_rate),        cmocka_unit_test(test_no_question), cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_free_in_the_middle), cmocka_unit_test(test_bad_servers),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
