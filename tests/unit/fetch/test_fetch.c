/* test_fetch.c - requests as a server sees them, results as the caller sees them, connections, memory, cancelling. */
#include "fetch_support.h"

#include "os/clock.h"
#include "os/fault.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

/* ---- an obliging server ----------------------------------------------------------------------- */

static bool answer_text(struct peer *peer, const char *head, const char *body)
{
    char text[1024];

    snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
    return peer_say(peer, text);
}

/* Responds with the request that it received. */
static bool echo(struct peer *peer, void *context)
{
    char text[sizeof peer->request + 128];

    (void)context;
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(peer->request),
             peer->request);
    return peer_say(peer, text);
}

static bool play(struct peer *peer, void *context)
{
    (void)context;
    if (strcmp(peer->path, "/redirect") == 0)
        return answer_text(peer, "302 Found\r\nLocation: /other\r\nSet-Cookie: a=b", "moved");
    if (strcmp(peer->path, "/304") == 0)
        return peer_say(peer, "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 500\r\n\r\n");
    if (strcmp(peer->path, "/204") == 0)
        return peer_say(peer, "HTTP/1.1 204 No Content\r\n\r\n");
    if (strcmp(peer->path, "/404") == 0)
        return answer_text(peer, "404 Not Found", "nothing here");
    if (strcmp(peer->path, "/interim") == 0)
        return peer_say(peer, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
                              "HTTP/1.1 200 Fine\r\nA: 1\r\n folded\r\nB:2\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n");
    if (strcmp(peer->path, "/close") == 0) {
        answer_text(peer, "200 OK", "and closed without a word");
        return false;
    }
    if (strcmp(peer->path, "/until-close") == 0) {
        peer_say(peer, "HTTP/1.1 200 OK\r\n\r\nall until the end");
        return false;
    }
    if (strcmp(peer->path, "/late") == 0 && !peer_sleep(peer, 150))
        return false;
    return answer_text(peer, "200 OK", "hello");
}

/* A server that plays the script above, and a client, for tests that need nothing special from either. */
struct session {
    struct server *server;
    struct client client;
};

static int start_session(void **state)
{
    static struct session session;

    session.server = server_start(play, NULL);
    client_open(&session.client, NULL);
    *state = &session;
    return 0;
}

static int end_session(void **state)
{
    struct session *s = *state;

    client_close(&s->client);
    server_stop(s->server);
    return 0;
}

#define SESSION(test) cmocka_unit_test_setup_teardown(test, start_session, end_session)

/* ---- requests -------------------------------------------------------------------------------------- */

static void ask(struct client *client, const char *url, const char *etag, const char *modified, struct answer *answer)
{
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback(),
                                       .etag = wb_slice_str(etag), .modified = wb_slice_str(modified)};

    client_begin(client, &request, answer);
    client_wait(client);
    assert_error(answer, WB_FETCH_OK, url);
    assert_int_equal(wb_buf_terminate(&answer->body), 0);
}

static void test_request(void **state)
{
    struct server *server = server_start(echo, NULL);
    struct client client;
    struct answer answer;
    char url[256], want[512];

    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1/", 1);
    setenv("all_proxy", "http://127.0.0.1:1/", 1);
    client_open(&client, NULL);
    snprintf(url, sizeof url, "http://user:secret@name.site.test:%d/a/b/../%%2e/'|?q=1&r=%%20#part",
             server_port(server));
    ask(&client, url, "", "", &answer);
    snprintf(want, sizeof want,
             "GET /a/b/../%%2e/'|?q=1&r=%%20 HTTP/1.1\r\nHost: name.site.test:%d\r\nUser-Agent: TestBot/1.0\r\n"
             "Accept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n", server_port(server));
    assert_string_equal(answer.body.ptr, want);
    assert_int_equal(answer.wire_bytes, answer.body.len);
    answer_release(&answer);
    client_close(&client);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    server_stop(server);
}

static void test_validators(void **state)
{
    static const char *const bad[] = {"x\r\nEvil: 1", "x\nEvil: 1", "x\rEvil: 1", "\x7f"};
    struct server *server = server_start(echo, NULL);
    struct client client;
    struct answer answer;
    char url[256], *longest = malloc(5001);

    (void)state;
    client_open(&client, NULL);
    snprintf(url, sizeof url, "http://site.test:%d/", server_port(server));
    ask(&client, url, "W/\"a b\xe9\"", "Sun, 06 Nov 1994 08:49:37 GMT", &answer);
    assert_non_null(strstr(answer.body.ptr, "\r\nIf-None-Match: W/\"a b\xe9\"\r\n"
                                            "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
    answer_release(&answer);
    ask(&client, url, "", "yesterday", &answer);
    assert_null(strstr(answer.body.ptr, "If-None-Match"));
    assert_non_null(strstr(answer.body.ptr, "\r\nIf-Modified-Since: yesterday\r\n"));
    answer_release(&answer);
    ask(&client, url, "", "", &answer);
    assert_null(strstr(answer.body.ptr, "\r\nIf-"));
    answer_release(&answer);
    for (size_t i = 0; i < COUNT(bad); i++) {
        ask(&client, url, bad[i], bad[i], &answer);
        assert_null(strstr(answer.body.ptr, "Evil"));
        assert_null(strstr(answer.body.ptr, "\r\nIf-"));
        answer_release(&answer);
    }
    memset(longest, 'x', 5000);
    longest[5000] = '\0';
    ask(&client, url, longest, "", &answer);
    assert_null(strstr(answer.body.ptr, "\r\nIf-"));
    answer_release(&answer);
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback(), .etag = wb_slice("a\0b", 3)};
    client_begin(&client, &request, &answer);
    client_wait(&client);
    assert_int_equal(wb_buf_terminate(&answer.body), 0);
    assert_null(strstr(answer.body.ptr, "\r\nIf-"));
    answer_release(&answer);
    free(longest);
    client_close(&client);
    server_stop(server);
}

static void never(void *context, struct wb_fetch_result *result)
{
    (void)context;
    (void)result;
    fail_msg("a request that was never started has ended");
}

static void test_bad_urls(void **state)
{
    static const char *const bad[] = {"", "http", "ftp://site.test/", "file:///etc/passwd", "http://site.test/a b",
                                      "http://site.test/\r\nEvil: 1", "http://site.test/\x7f", "//site.test/"};
    struct client client;

    (void)state;
    client_open(&client, NULL);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct wb_fetch_request request = {.url = wb_slice_str(bad[i]), .address = loopback()};
        assert_int_equal(wb_fetch_start(client.fetcher, &request, never, NULL), WB_E_INVALID);
    }
    assert_int_equal(wb_fetcher_busy(client.fetcher), 0);
    event_base_loop(client.base, EVLOOP_NONBLOCK);
    client_close(&client);
}

/* ---- answers --------------------------------------------------------------------------------------------- */

static void test_answers(void **state)
{
    static const struct {
        const char *path;
        unsigned status;
        const char *head, *body;
    } cases[] = {
        {"/", 200, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "hello"},
        {"/redirect", 302, "HTTP/1.1 302 Found\r\nLocation: /other\r\nSet-Cookie: a=b\r\nContent-Length: 5\r\n",
         "moved"},
        {"/304", 304, "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 500\r\n", ""},
        {"/204", 204, "HTTP/1.1 204 No Content\r\n", ""},
        {"/404", 404, "HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n", "nothing here"},
        {"/interim", 200, "HTTP/1.1 200 Fine\r\nA: 1\r\n folded\r\nB:2\r\nTransfer-Encoding: chunked\r\n", "abcdefg"},
        {"/close", 200, "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n", "and closed without a word"},
        {"/until-close", 200, "HTTP/1.1 200 OK\r\n", "all until the end"},
    };
    struct session *s = *state;
    struct answer answer;

    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(cases); i++) {
            client_get(&s->client, server_port(s->server), cases[i].path, &answer);
            assert_error(&answer, WB_FETCH_OK, cases[i].path);
            assert_int_equal(answer.status, cases[i].status);
            assert_false(answer.truncated);
            assert_body(&answer, cases[i].body);
            if (!wb_slice_equal(wb_buf_slice(&answer.head), wb_slice_str(cases[i].head)))
                fail_msg("%s: head is\n%.*s", cases[i].path, WB_SLICE_ARG(wb_buf_slice(&answer.head)));
            answer_release(&answer);
            /* Otherwise the next request may leave on a connection that is just being closed, and get no answer. */
            if (strstr(cases[i].path, "close"))
                server_await_closed(s->server);
        }
    }
    assert_int_equal(server_requests(s->server), 2 * COUNT(cases));
}

static void test_times(void **state)
{
    struct session *s = *state;
    struct answer answer;
    char url[128];

    snprintf(url, sizeof url, "http://site.test:%d/late", server_port(s->server));
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
    client_begin(&s->client, &request, &answer);
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL); /* as long as the loop does not run, nothing is sent */
    assert_int_equal(server_requests(s->server), 0);
    int64_t before = wb_clock_now_ms();
    client_wait(&s->client);
    int64_t after = wb_clock_now_ms();
    assert_error(&answer, WB_FETCH_OK, url);
    assert_in_range(answer.sent_ms, before, after - 149);
    assert_true(answer.took_ms >= 200);
    answer_release(&answer);
}

/* ---- connections -------------------------------------------------------------------------------------------- */

static void test_keep_alive(void **state)
{
    struct session *s = *state;
    struct answer answer;
    char url[128];

    for (int i = 0; i < 10; i++) {
        client_get(&s->client, server_port(s->server), "/", &answer);
        assert_error(&answer, WB_FETCH_OK, "/");
        answer_release(&answer);
    }
    assert_int_equal(server_connections(s->server), 1);
    assert_int_equal(server_requests(s->server), 10);

    /* Another host at the same address gets its own connection. */
    snprintf(url, sizeof url, "http://other.test:%d/", server_port(s->server));
    ask(&s->client, url, "", "", &answer);
    answer_release(&answer);
    assert_int_equal(server_connections(s->server), 2);

    /* The same host at another address does not use the existing connection. */
    snprintf(url, sizeof url, "http://site.test:%d/", server_port(s->server));
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = {.family = 4, .bytes = {127, 0, 0, 2}}};
    client_begin(&s->client, &request, &answer);
    client_wait(&s->client);
    assert_error(&answer, WB_FETCH_CONNECT, "another address");
    assert_int_equal(answer.status, 0);
    answer_release(&answer);

    client_get(&s->client, server_port(s->server), "/", &answer);
    assert_error(&answer, WB_FETCH_OK, "the first connection again");
    assert_int_equal(server_connections(s->server), 2);
    answer_release(&answer);
}

static void count_turn(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    *(bool *)context = true;
}

/* A connection that the peer closes while it is idle neither keeps the loop busy nor fails the next request. */
static void test_idle_close(void **state)
{
    struct session *s = *state;
    struct answer answer;
    bool over = false;
    unsigned turns = 0;

    for (int i = 0; i < 3; i++) {
        client_get(&s->client, server_port(s->server), "/close", &answer);
        assert_error(&answer, WB_FETCH_OK, "/close");
        answer_release(&answer);
        server_await_closed(s->server);
        struct event *timer = evtimer_new(s->client.base, count_turn, &over);
        evtimer_add(timer, &(struct timeval){.tv_usec = 50000});
        over = false;
        while (!over) {
            event_base_loop(s->client.base, EVLOOP_ONCE);
            turns++;
        }
        event_free(timer);
    }
    assert_in_range(turns, 3, 12);
    assert_int_equal(server_connections(s->server), 3);
}

/* A proxy is given names, not addresses, and nothing here resolves them. */
static void test_proxy(void **state)
{
    struct server *server = server_start(echo, NULL);
    struct client client;
    struct answer answer;
    char proxy[64];

    (void)state;
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", server_port(server));
    const struct wb_fetch_options options = {.proxy = proxy};
    client_open(&client, &options);
    ask(&client, "http://nowhere.invalid/page", "", "", &answer);
    assert_non_null(strstr(answer.body.ptr, "GET http://nowhere.invalid/page HTTP/1.1\r\nHost: nowhere.invalid\r\n"));
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
}

static void test_ipv6(void **state)
{
    struct server *server = server_start6(echo, NULL);
    struct client client;
    struct answer answer;
    char url[128], host[128];

    (void)state;
    client_open(&client, NULL);
    snprintf(url, sizeof url, "http://site.test:%d/", server ? server_port(server) : 9);
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = {.family = 6, .bytes = {[15] = 1}}};
    client_begin(&client, &request, &answer);
    client_wait(&client);
    if (!server) { /* a machine without IPv6: like any address that cannot be reached */
        assert_error(&answer, WB_FETCH_CONNECT, url);
        answer_release(&answer);
        client_close(&client);
        return;
    }
    assert_error(&answer, WB_FETCH_OK, url);
    answer_release(&answer);
    snprintf(url, sizeof url, "http://[::1]:%d/", server_port(server));
    snprintf(host, sizeof host, "\r\nHost: [::1]:%d\r\n", server_port(server));
    request.url = wb_slice_str(url);
    client_begin(&client, &request, &answer);
    client_wait(&client);
    assert_error(&answer, WB_FETCH_OK, url);
    assert_int_equal(wb_buf_terminate(&answer.body), 0);
    assert_non_null(strstr(answer.body.ptr, host));
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
}

static void test_many(void **state)
{
    enum { MANY = 500 };
    struct session *s = *state;
    struct answer *answers = calloc(MANY, sizeof(*answers));
    char url[128];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(url, sizeof url, "http://site%d.test:%d/late?%d", i, server_port(s->server), i);
            struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
            client_begin(&s->client, &request, &answers[i]);
        }
        assert_int_equal(wb_fetcher_busy(s->client.fetcher), MANY);
        client_wait(&s->client);
        for (int i = 0; i < MANY; i++) {
            assert_error(&answers[i], WB_FETCH_OK, "one of many");
            assert_body(&answers[i], "hello");
            answer_release(&answers[i]);
        }
    }
    assert_int_equal(server_requests(s->server), 2 * MANY);
    assert_int_equal(server_connections(s->server), MANY);
    free(answers);
}

struct chain {
    struct client *client;
    unsigned short port;
    unsigned left;
};

static void next_of_chain(void *context, struct wb_fetch_result *result)
{
    struct chain *chain = context;
    char url[128];

    assert_int_equal(result->error, WB_FETCH_OK);
    if (chain->left-- == 0) {
        chain->client->waiting--;
        return;
    }
    snprintf(url, sizeof url, "http://site.test:%d/%u", chain->port, chain->left);
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
    assert_int_equal(wb_fetch_start(chain->client->fetcher, &request, next_of_chain, chain), 0);
}

static void test_start_in_callback(void **state)
{
    struct session *s = *state;
    struct chain chain = {.client = &s->client, .port = server_port(s->server), .left = 50};
    struct wb_fetch_result none = {.error = WB_FETCH_OK};

    s->client.waiting = 1;
    next_of_chain(&chain, &none);
    client_wait(&s->client);
    assert_int_equal(server_requests(s->server), 50);
    assert_int_equal(server_connections(s->server), 1);
}

/* ---- ends before the end ---------------------------------------------------------------------------------------- */

static bool half(struct peer *peer, void *context)
{
    (void)context;
    return peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") && peer_sleep(peer, 60000);
}

static void test_cancel(void **state)
{
    struct server *server = server_start(half, NULL);
    struct client client;
    char url[128];

    (void)state;
    client_open(&client, NULL);
    snprintf(url, sizeof url, "http://site.test:%d/", server_port(server));
    for (int i = 0; i < 20; i++) {
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
        assert_int_equal(wb_fetch_start(client.fetcher, &request, never, NULL), 0);
        if (i == 9)
            while (server_requests(server) < 10)
                event_base_loop(client.base, EVLOOP_ONCE);
    }
    assert_int_equal(wb_fetcher_busy(client.fetcher), 20);
    client_close(&client);
    server_stop(server);
}

struct outcome {
    bool done;
    enum wb_fetch_error error;
};

static void note_outcome(void *context, struct wb_fetch_result *result)
{
    struct outcome *outcome = context;

    assert_false(outcome->done);
    outcome->done = true;
    outcome->error = result->error;
    assert_true(result->error != WB_FETCH_OK || wb_slice_equal(wb_buf_slice(&result->body), WB_SLICE_LIT("hello")));
}

/* Every allocation fails once, those of libcurl too: done is called once, and the fetcher still works afterwards. */
static void test_no_memory(void **state)
{
    struct server *server = server_start(play, NULL);
    struct event_base *base = event_base_new();
    char url[128];
    unsigned refused = 0, failed = 0;
    bool struck = true;

    (void)state;
    snprintf(url, sizeof url, "http://site.test:%d/", server_port(server));
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback(),
                                       .etag = WB_SLICE_LIT("\"a\""), .modified = WB_SLICE_LIT("b")};
    for (uint64_t nth = 1; struck; nth++) {
        struct wb_fetch_options options = {.timeout_ms = 120000};
        struct wb_fetcher *fetcher;
        struct outcome outcome = {.done = false}, again = {.done = false};
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = wb_fetcher_new(base, &options, &fetcher);
        if (err == 0)
            err = wb_fetch_start(fetcher, &request, note_outcome, &outcome);
        while (err == 0 && !outcome.done)
            event_base_loop(base, EVLOOP_ONCE);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(err == 0 || err == WB_E_NOMEM);
        if (outcome.error != WB_FETCH_OK && outcome.error != WB_FETCH_MEMORY)
            fail_msg("without allocation %u: '%s'", (unsigned)nth, wb_fetch_error_word(outcome.error));
        assert_true(struck || outcome.error == WB_FETCH_OK);
        refused += err < 0;
        failed += outcome.error != WB_FETCH_OK;
        if (fetcher) {
            assert_int_equal(wb_fetch_start(fetcher, &request, note_outcome, &again), 0);
            while (!again.done)
                event_base_loop(base, EVLOOP_ONCE);
            assert_int_equal(again.error, WB_FETCH_OK);
        }
        wb_fetcher_free(fetcher);
    }
    assert_true(refused > 5 && failed > 5);
    event_base_free(base);
    server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_validators),
        cmocka_unit_test(test_bad_urls),
        SESSION(test_answers),
        SESSION(test_times),
        SESSION(test_keep_alive),
        SESSION(test_idle_close),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_ipv6),
        SESSION(test_many),
        SESSION(test_start_in_callback),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
