/* test_fetch_limits.c - the limits on head, body, ratio and memory, and the codings that are undone within them. */
#include "coded_support.h"
#include "os/clock.h"

/* ---- limits ----------------------------------------------------------------------------------------------- */

/*
 * "/N": a body of N bytes with its length, "/cN" chunked, "/wN" in two halves with a wait, "/zN" zeros gzipped, "/hN"
 * N bytes of headers.
 */
static bool sized(struct peer *peer, void *context)
{
    bool digits = peer->path[1] >= '0' && peer->path[1] <= '9';
    size_t n = strtoul(peer->path + (digits ? 1 : 2), NULL, 10);
    char head[256];

    (void)context;
    switch (peer->path[1]) {
    case 'c':
        snprintf(head, sizeof head, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", n);
        return peer_say(peer, head) && send_repeated(peer, "b", n) && peer_say(peer, "\r\n0\r\n\r\n");
    case 'w':
        return peer_say(peer, OK_HEAD "Connection: close\r\n\r\n") && send_repeated(peer, "b", n / 2) &&
                peer_sleep(peer, 300) &&
               send_repeated(peer, "b", n - n / 2) && false;
    case 'z':
        return send_bomb(peer, n, "gzip", 1);
    case 'h':
        return peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ") && send_repeated(peer, "h", n - 43) &&
               peer_say(peer, "\r\n\r\n");
    default:
        snprintf(head, sizeof head, OK_HEAD "Content-Length: %zu\r\n\r\n", n);
        return peer_say(peer, head) && send_repeated(peer, "b", n);
    }
}

/* The same limits hold if a pace holds responses up again and again. */
static void check_limits(struct wb_fetch_pace *pace)
{
    static const struct {
        const char *path;
        size_t body_max, want;
        enum wb_fetch_error error;
        bool truncated;
    } cases[] = {
        {"/100000", 0, 100000, WB_FETCH_OK, false},       {"/100001", 0, 100000, WB_FETCH_OK, true},
        {"/c100000", 0, 100000, WB_FETCH_OK, false},      {"/c100001", 0, 100000, WB_FETCH_OK, true},
        {"/3000000", 0, 100000, WB_FETCH_OK, true},       {"/c3000000", 0, 100000, WB_FETCH_OK, true},
        {"/3000000", 5000000, 3000000, WB_FETCH_OK, false}, {"/100", 10, 10, WB_FETCH_OK, true},
        {"/z100000", 0, 100000, WB_FETCH_OK, false},      {"/z100001", 0, 100000, WB_FETCH_OK, true},
        {"/z1000000", 5000000, 1000000, WB_FETCH_OK, false}, {"/z2000000", 5000000, 0, WB_FETCH_BOMB, false},
        {"/0", 0, 0, WB_FETCH_OK, false},                 {"/c0", 0, 0, WB_FETCH_OK, false},
        {"/h4000", 0, 0, WB_FETCH_OK, false},             {"/h4001", 0, 0, WB_FETCH_HEADERS, false},
    };
    const struct wb_fetch_options options = {.body_max = 100000, .head_max = 4000, .pace = pace};
    struct server *server = server_start(sized, NULL);
    struct client client;
    struct answer answer;
    char url[128];

    client_open(&client, &options);
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(url, sizeof url, "http://site.test:%d%s", server_port(server), cases[i].path);
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback(),
                                           .body_max = cases[i].body_max};
        client_begin(&client, &request, &answer);
        client_wait(&client);
        assert_error(&answer, cases[i].error, cases[i].path);
        if (answer.body.len != cases[i].want || answer.truncated != cases[i].truncated)
            fail_msg("%s: %zu bytes, %struncated", cases[i].path, answer.body.len, answer.truncated ? "" : "not ");
        answer_release(&answer);
    }
    client_close(&client);
    server_stop(server);
}

static void test_limits(void **state)
{
    struct wb_fetch_pace none = {0}, slow = {.rate = 20000000};

    (void)state;
    check_limits(NULL);
    check_limits(&none);
    check_limits(&slow);
}

/* A body takes at least as long as the pace says, however fast it is sent, and that time is not the server's fault. */
static void test_pace(void **state)
{
    struct wb_fetch_pace pace = {.rate = 1000000};
    const struct wb_fetch_options options = {.body_max = 5000000, .timeout_ms = 500, .pace = &pace};
    struct server *server = server_start(sized, NULL);
    struct client client;
    struct answer answer;

    (void)state;
    assert_int_equal(wb_fetch_pace_wait_ns(&pace), 0);
    client_open(&client, &options);
    int64_t began_ns = wb_clock_mono_ns();
    client_get(&client, server_port(server), "/1500000", &answer);
    assert_error(&answer, WB_FETCH_OK, "held up for longer than the timeout");
    assert_int_equal(answer.body.len, 1500000);
    /* What is saved up at the start, and the last piece, need not be waited for. */
    assert_true(wb_clock_mono_ns() - began_ns >= 1200000000);
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
    wb_fetch_pace_charge(&pace, 3000000);
    assert_true(wb_fetch_pace_wait_ns(&pace) > 2000000000);
}

static void test_ratio_option(void **state)
{
    const struct wb_fetch_options options = {.ratio_max = 2000};
    struct server *server = server_start(sized, NULL);
    struct client client;
    struct answer answer;

    (void)state;
    client_open(&client, &options);
    client_get(&client, server_port(server), "/z3000000", &answer);
    assert_error(&answer, WB_FETCH_OK, "a thousand to one, which is allowed");
    assert_int_equal(answer.body.len, 3000000);
    assert_in_range(answer.wire_bytes, 1500, 30000);
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
}

/*
 * Bodies that together exceed the budget: some are cut, the small one is not, and nothing else happens to any of them.
 */
static void test_memory_max(void **state)
{
    enum { LARGE = 8 };
    const struct wb_fetch_options options = {.memory_max = 3 << 20};
    struct server *server = server_start(sized, NULL);
    struct answer answers[LARGE + 1];
    struct client client;
    char url[128];
    unsigned cut = 0;

    (void)state;
    client_open(&client, &options);
    for (unsigned i = 0; i <= LARGE; i++) {
        snprintf(url, sizeof url, "http://site%u.test:%d/%s", i, server_port(server), i == LARGE ? "1000" : "w2000000");
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
        client_begin(&client, &request, &answers[i]);
    }
    client_wait(&client);
    for (unsigned i = 0; i <= LARGE; i++) {
        assert_error(&answers[i], WB_FETCH_OK, "one of those that share the budget");
        assert_int_equal(answers[i].status, 200);
        assert_true(answers[i].truncated == (answers[i].body.len < (i == LARGE ? 1000u : 2000000u)));
        cut += answers[i].truncated;
    }
    assert_false(answers[LARGE].truncated);
    assert_in_range(cut, 1, LARGE);
    for (unsigned i = 0; i <= LARGE; i++)
        answer_release(&answers[i]);
    /* The whole budget is available again. */
    client_get(&client, server_port(server), "/2000000", &answers[0]);
    assert_error(&answers[0], WB_FETCH_OK, "afterwards");
    assert_false(answers[0].truncated);
    answer_release(&answers[0]);
    client_close(&client);
    server_stop(server);
}

static bool send_codings(struct peer *peer, void *context)
{
    struct wb_buf coded = WB_BUF_INIT, again = WB_BUF_INIT;
    char head[256];
    bool going;

    (void)context;
    if (strcmp(peer->path, "/zlib") == 0) {
        deflate_bytes("first second", 12, 15, &coded);
        going = send_coded(peer, "deflate", &coded);
    } else if (strcmp(peer->path, "/transfer") == 0) {
        deflate_bytes("first second", 12, 15, &coded);
        deflate_bytes(coded.ptr, coded.len, 31, &again);
        snprintf(head, sizeof head,
                 OK_HEAD "Transfer-Encoding: gzip, chunked\r\nContent-Encoding: deflate\r\n\r\n%zx\r\n", again.len);
        going = peer_say(peer, head) && peer_send(peer, again.ptr, again.len) && peer_say(peer, "\r\n0\r\n\r\n");
    } else if (strcmp(peer->path, "/unknown") == 0) {
        going = peer_say(peer, OK_HEAD "Content-Encoding: utf-8\r\nContent-Length: 12\r\n\r\nfirst second");
    } else if (strcmp(peer->path, "/unknown_too") == 0) {
        deflate_bytes("first second", 12, 31, &coded);
        going = send_coded(peer, "gzip, none", &coded);
    } else {
        deflate_bytes("first ", 6, 31, &coded);
        deflate_bytes("second", 6, 31, &coded);
        going = send_coded(peer, "GZIP", &coded);
    }
    wb_buf_release(&coded);
    wb_buf_release(&again);
    return going;
}

static bool send_chunk_like(struct peer *peer, void *context)
{
    (void)context;
    return peer_say(peer, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n11\r\n5\r\nhello\r\n0\r\n\r\nab\r\n0\r\n\r\n");
}

static void test_codings(void **state)
{
    static const char *const paths[] = {"/members", "/zlib", "/transfer", "/unknown_too", "/unknown"};
    struct server *server = server_start(send_codings, NULL), *chunky = server_start(send_chunk_like, NULL);
    struct client client;
    struct answer answer;

    (void)state;
    client_open(&client, NULL);
    for (size_t i = 0; i < COUNT(paths); i++) {
        client_get(&client, server_port(server), paths[i], &answer);
        assert_error(&answer, WB_FETCH_OK, paths[i]);
        assert_body(&answer, "first second");
        assert_true(answer.wire_bytes > 0 && (answer.wire_bytes == answer.body.len) == (strcmp(paths[i],
                                                                                               "/unknown") == 0));
        answer_release(&answer);
    }
    /* Chunks inside chunks belong to the page. */
    client_get(&client, server_port(chunky), "/", &answer);
    assert_error(&answer, WB_FETCH_OK, "chunks");
    assert_body(&answer, "5\r\nhello\r\n0\r\n\r\nab");
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
    server_stop(chunky);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits), cmocka_unit_test(test_pace),
        cmocka_unit_test(test_ratio_option),
        cmocka_unit_test(test_memory_max),
        cmocka_unit_test(test_codings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
