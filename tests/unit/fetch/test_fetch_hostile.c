/*
 * test_fetch_hostile.c - servers that send too much, too little, too slowly or nonsense: the right error, within
 * bounds.
 */
#include "../testdata.h"
#include "fetch_support.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"

#include <jansson.h>
#include <sys/socket.h>
#include <zlib.h>

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

/* ---- scripts ---------------------------------------------------------------------------------- */

static bool send_repeated(struct peer *peer, const char *unit, size_t times)
{
    struct wb_buf many = WB_BUF_INIT;
    bool sent = true;

    for (size_t i = 0; i < times; i++)
        wb_buf_append_str(&many, unit);
    sent = peer_send(peer, many.ptr, many.len);
    wb_buf_release(&many);
    return sent;
}

static bool endless_body(struct peer *peer)
{
    bool going = peer_say(peer, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n");

    while (going)
        going = send_repeated(peer, "a\r\n<p>endless\r\n", 4000);
    return false;
}

static bool endless_headers(struct peer *peer)
{
    bool going = peer_say(peer, OK_HEAD);

    while (going)
        going = send_repeated(peer, "X-Flood: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", 100);
    return false;
}

static bool endless_trailers(struct peer *peer)
{
    bool going = peer_say(peer, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n");

    while (going)
        going = send_repeated(peer, "X-Flood: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", 100);
    return false;
}

static bool endless_interim(struct peer *peer)
{
    bool going = true;

    while (going)
        going = send_repeated(peer, "HTTP/1.1 100 Continue\r\n\r\n", 100);
    return false;
}

/* These are few bytes, but libcurl allocates memory for each line. */
static bool many_headers(struct peer *peer)
{
    return peer_say(peer, OK_HEAD) && send_repeated(peer, "a:b\r\n", 5000) && peer_say(peer,
                                                                                       "Content-Length: 0\r\n\r\n");
}

static bool one_long_header(struct peer *peer)
{
    bool going = peer_say(peer, OK_HEAD "X-Long: ");

    while (going)
        going = send_repeated(peer, "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", 2000);
    return false;
}

static bool reset_in_body(struct peer *peer)
{
    if (peer_say(peer, OK_HEAD "Content-Length: 50000\r\n\r\n") && send_repeated(peer, "x", 20000))
        peer_sleep(peer, 100);
    peer_reset(peer);
    return false;
}

static bool reset_at_once(struct peer *peer)
{
    peer_reset(peer);
    return false;
}

static bool length_too_long(struct peer *peer)
{
    peer_say(peer, OK_HEAD "Content-Length: 5000\r\n\r\nshort");
    return false;
}

static bool bad_chunk(struct peer *peer)
{
    peer_say(peer, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nworld\r\n0\r\n\r\n");
    return false;
}

static bool chunks_cut(struct peer *peer)
{
    peer_say(peer, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n500\r\nworld");
    return false;
}

static bool garbage(struct peer *peer)
{
    unsigned char bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    for (int i = 0; i < 20; i++)
        peer_send(peer, bytes, sizeof bytes);
    return false;
}

static bool nothing(struct peer *peer)
{
    (void)peer;
    return false;
}

static bool no_colon(struct peer *peer)
{
    peer_say(peer, OK_HEAD "no colon here\r\nContent-Length: 1\r\n\r\nx");
    return false;
}

static bool no_end_of_head(struct peer *peer)
{
    peer_say(peer, OK_HEAD "Content-Length: 1\r\n");
    return false;
}

static bool slow_body(struct peer *peer)
{
    bool going = peer_say(peer, OK_HEAD "Content-Length: 100000\r\n\r\n");

    while (going)
        going = peer_say(peer, ".") && peer_sleep(peer, 50);
    return false;
}

static bool slow_headers(struct peer *peer)
{
    bool going = peer_say(peer, OK_HEAD "X-Slow: ");

    while (going)
        going = peer_say(peer, ".") && peer_sleep(peer, 50);
    return false;
}

static bool silent(struct peer *peer)
{
    peer_sleep(peer, 60000);
    return false;
}

/* ---- codings -------------------------------------------------------------------------------------- */

/* wbits 31: gzip, 15: zlib. */
static void deflate_bytes(const void *bytes, size_t len, int wbits, struct wb_buf *out)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (unsigned)len};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, wbits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t most = deflateBound(&z, len);
    assert_int_equal(wb_buf_reserve(out, most), 0);
    z.next_out = (unsigned char *)out->ptr + out->len;
    z.avail_out = (unsigned)most;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len += most - z.avail_out;
    deflateEnd(&z);
}

static bool send_coded(struct peer *peer, const char *codings, const struct wb_buf *bytes)
{
    char head[256];

    snprintf(head, sizeof head, OK_HEAD "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", codings, bytes->len);
    return peer_say(peer, head) && peer_send(peer, bytes->ptr, bytes->len);
}

static void make_zeros(size_t len, struct wb_buf *out)
{
    assert_int_equal(wb_buf_reserve(out, len), 0);
    memset(out->ptr, 0, len);
    out->len = len;
}

/* So many zeros, compressed with gzip `layers` times. */
static bool send_bomb(struct peer *peer, size_t bytes, const char *codings, int layers)
{
    struct wb_buf now = WB_BUF_INIT;

    make_zeros(bytes, &now);
    for (int i = 0; i < layers; i++) {
        struct wb_buf next = WB_BUF_INIT;
        deflate_bytes(now.ptr, now.len, 31, &next);
        wb_buf_release(&now);
        now = next;
    }
    bool going = send_coded(peer, codings, &now);
    wb_buf_release(&now);
    return going;
}

static bool bomb(struct peer *peer)
{
    return send_bomb(peer, (size_t)12 << 20, "gzip", 1);
}

static bool small_bomb(struct peer *peer)
{
    return send_bomb(peer, (size_t)2 << 20, "gzip", 1);
}

static bool nested_bomb(struct peer *peer)
{
    return send_bomb(peer, (size_t)12 << 20, "gzip, gzip", 2);
}

static bool broken_gzip(struct peer *peer)
{
    struct wb_buf coded = WB_BUF_INIT;
    char bytes[3000];

    wb_random_bytes(bytes, sizeof bytes);
    deflate_bytes(bytes, sizeof bytes, 31, &coded);
    memset(coded.ptr + 1500, 0, 100);
    bool going = send_coded(peer, "gzip", &coded);
    wb_buf_release(&coded);
    return going;
}

static bool cut_gzip(struct peer *peer)
{
    struct wb_buf coded = WB_BUF_INIT;
    char bytes[3000];

    wb_random_bytes(bytes, sizeof bytes);
    deflate_bytes(bytes, sizeof bytes, 31, &coded);
    coded.len = 1500;
    bool going = send_coded(peer, "gzip", &coded);
    wb_buf_release(&coded);
    return going;
}

static bool not_gzip(struct peer *peer)
{
    return peer_say(peer, OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain");
}

static bool coding_chain(struct peer *peer)
{
    return peer_say(peer, OK_HEAD "Content-Encoding: gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip\r\n"
                                  "Content-Length: 5\r\n\r\nplain");
}

/* ---- each of them --------------------------------------------------------------------------------------- */

static const struct hostile {
    const char *path;
    bool (*script)(struct peer *peer);
    enum wb_fetch_error error;
    bool truncated;
    unsigned status;
} hostiles[] = {
    {"/endless_body", endless_body, WB_FETCH_OK, true, 200},
    {"/endless_headers", endless_headers, WB_FETCH_HEADERS, false, 200},
    {"/endless_trailers", endless_trailers, WB_FETCH_HEADERS, false, 200},
    {"/endless_interim", endless_interim, WB_FETCH_HEADERS, false, 0},
    {"/many_headers", many_headers, WB_FETCH_HEADERS, false, 200},
    {"/one_long_header", one_long_header, WB_FETCH_HEADERS, false, 200},
    {"/reset_in_body", reset_in_body, WB_FETCH_RESET, false, 200},
    {"/reset_at_once", reset_at_once, WB_FETCH_CONNECT, false, 0},
    {"/length_too_long", length_too_long, WB_FETCH_PARTIAL, false, 200},
    {"/bad_chunk", bad_chunk, WB_FETCH_PROTOCOL, false, 200},
    {"/chunks_cut", chunks_cut, WB_FETCH_PARTIAL, false, 200},
    {"/garbage", garbage, WB_FETCH_PROTOCOL, false, 0},
    {"/nothing", nothing, WB_FETCH_EMPTY, false, 0},
    {"/no_colon", no_colon, WB_FETCH_PROTOCOL, false, 200},
    {"/no_end_of_head", no_end_of_head, WB_FETCH_PARTIAL, false, 200},
    {"/slow_body", slow_body, WB_FETCH_TIMEOUT, false, 200},
    {"/slow_headers", slow_headers, WB_FETCH_TIMEOUT, false, 200},
    {"/silent", silent, WB_FETCH_TIMEOUT, false, 0},
    {"/bomb", bomb, WB_FETCH_BOMB, false, 200},
    {"/small_bomb", small_bomb, WB_FETCH_BOMB, false, 200},
    {"/nested_bomb", nested_bomb, WB_FETCH_BOMB, false, 200},
    {"/broken_gzip", broken_gzip, WB_FETCH_CODING, false, 200},
    {"/cut_gzip", cut_gzip, WB_FETCH_CODING, false, 200},
    {"/not_gzip", not_gzip, WB_FETCH_CODING, false, 200},
    {"/coding_chain", coding_chain, WB_FETCH_CODING, false, 200},
};

static bool play_hostile(struct peer *peer, void *context)
{
    (void)context;
    for (size_t i = 0; i < COUNT(hostiles); i++)
        if (strcmp(peer->path, hostiles[i].path) == 0)
            return hostiles[i].script(peer);
    return peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
}

static void check_hostile(const struct hostile *hostile, const struct answer *answer, size_t body_max)
{
    assert_error(answer, hostile->error, hostile->path);
    if (answer->truncated != hostile->truncated || answer->status != hostile->status)
        fail_msg("%s: status %u, %struncated", hostile->path, answer->status, answer->truncated ? "" : "not ");
    assert_true(answer->body.len == (hostile->truncated ? body_max : 0));
    assert_true(answer->head.len <= 64 << 10);
}

/* All at once. Only those that are slow on purpose get a short timeout. */
static void play_all(struct server *server, bool slow)
{
    const struct wb_fetch_options options = {.timeout_ms = slow ? 700 : 600000, .body_max = 4 << 20};
    struct answer answers[COUNT(hostiles)], good;
    struct client client;
    char url[128];

    client_open(&client, &options);
    int64_t begun = wb_clock_mono_ns();
    for (size_t i = 0; i < COUNT(hostiles); i++) {
        if (slow != (hostiles[i].error == WB_FETCH_TIMEOUT))
            continue;
        snprintf(url, sizeof url, "http://site.test:%d%s", server_port(server), hostiles[i].path);
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
        client_begin(&client, &request, &answers[i]);
    }
    client_wait(&client);
    int64_t took_ms = (wb_clock_mono_ns() - begun) / 1000000;
    assert_true(!slow || took_ms >= 690);
    for (size_t i = 0; i < COUNT(hostiles); i++) {
        if (slow != (hostiles[i].error == WB_FETCH_TIMEOUT))
            continue;
        check_hostile(&hostiles[i], &answers[i], options.body_max);
        answer_release(&answers[i]);
    }
    if (!slow) {
        client_get(&client, server_port(server), "/good", &good);
        assert_error(&good, WB_FETCH_OK, "a good page of the same site");
        assert_body(&good, "good");
        answer_release(&good);
    }
    client_close(&client);
}

static void test_hostile(void **state)
{
    struct server *server = server_start(play_hostile, NULL);

    (void)state;
    play_all(server, false);
    play_all(server, true);
    server_stop(server);
}

static void test_refused(void **state)
{
    struct server *server = server_start(play_hostile, NULL);
    unsigned short port = server_port(server);
    struct client client;
    struct answer answer;

    (void)state;
    server_stop(server);
    client_open(&client, NULL);
    client_get(&client, port, "/", &answer);
    assert_error(&answer, WB_FETCH_CONNECT, "nobody listens");
    assert_string_equal(answer.message, "Connection refused");
    answer_release(&answer);
    client_close(&client);
}

/* ---- heads that are odd ------------------------------------------------------------------------------------ */

#define BODY "Content-Length: 2\r\n\r\nok"

static const struct odd {
    const char *text;
    size_t len;
    enum wb_fetch_error error;
    unsigned status;
} odds[] = {
#define ODD(text, error, status) {text, sizeof(text) - 1, error, status}
    ODD("HTTP/1.1 200 OK\r\n" BODY, WB_FETCH_OK, 200),
    ODD("HTTP/1.1 200\r\n" BODY, WB_FETCH_OK, 200),
    ODD("HTTP/1.0 200 OK\n\nok", WB_FETCH_OK, 200),
    ODD("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nok", WB_FETCH_OK, 200),
    ODD("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", WB_FETCH_PROTOCOL, 200),
    ODD("HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", WB_FETCH_PROTOCOL, 200),
    ODD("HTTP/1.1 200 OK\r\nA: \0\r\n" BODY, WB_FETCH_PROTOCOL, 200),
    ODD("HTTP/1.1 200 OK\r\n" "0123456789\r\n" BODY, WB_FETCH_PROTOCOL, 200),
    ODD("HTTP/1.1 099 Low\r\n" BODY, WB_FETCH_PROTOCOL, 0),
    ODD("HTTP/1.1 999 High\r\n" BODY, WB_FETCH_OK, 999),
    ODD("HTTP/1.1 2000 Long\r\n" BODY, WB_FETCH_PROTOCOL, 0),
    ODD("HTTP/1.1 OK\r\n" BODY, WB_FETCH_PROTOCOL, 0),
    ODD("HTTP/7.5 200 OK\r\n" BODY, WB_FETCH_PROTOCOL, 0),
    ODD("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nnot HTTP any more", WB_FETCH_PROTOCOL, 101),
    ODD("HTTP/1.1 100 Continue\r\n\r\n", WB_FETCH_EMPTY, 0),
    ODD("HTTP/1.1 200 OK\r\n\r\n", WB_FETCH_OK, 200),
    ODD("ICY 200 OK\r\n" BODY, WB_FETCH_PROTOCOL, 0),
    ODD("<html>no head at all</html>", WB_FETCH_PROTOCOL, 0),
    ODD("SSH-2.0-OpenSSH_9.2\r\n", WB_FETCH_PROTOCOL, 0),
    ODD("\r\n\r\n", WB_FETCH_PROTOCOL, 0),
#undef ODD
};

static bool play_odd(struct peer *peer, void *context)
{
    size_t i = strtoul(peer->path + 1, NULL, 10);

    (void)context;
    peer_send(peer, odds[i].text, odds[i].len);
    return false;
}

static void test_odd_heads(void **state)
{
    struct server *server = server_start(play_odd, NULL);
    struct client client;
    struct answer answer;
    char path[16];

    (void)state;
    for (size_t i = 0; i < COUNT(odds); i++) {
        snprintf(path, sizeof path, "/%zu", i);
        /* The server may be about to close the connection of the case before, so each case gets its own. */
        client_open(&client, NULL);
        client_get(&client, server_port(server), path, &answer);
        client_close(&client);
        assert_error(&answer, odds[i].error, odds[i].text);
        if (answer.status != odds[i].status)
            fail_msg("'%s': status %u", odds[i].text, answer.status);
        answer_release(&answer);
    }
    server_stop(server);
}

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

static void test_limits(void **state)
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
    const struct wb_fetch_options options = {.body_max = 100000, .head_max = 4000};
    struct server *server = server_start(sized, NULL);
    struct client client;
    struct answer answer;
    char url[128];

    (void)state;
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

/* ---- answers captured by others ------------------------------------------------------------------------------ */

/* The outcome depends on an option of the client, or on what follows. */
static bool is_otherwise(const char *test)
{
    static const char *const tests[] = {"test66", "test319", "test269", "test2305", "test25"};

    for (size_t i = 0; i < COUNT(tests); i++)
        if (strcmp(test, tests[i]) == 0)
            return true;
    return false;
}

static void raw_path(const char *name, char path_out[1024])
{
    char below[256];

    snprintf(below, sizeof below, "http/raw-responses/%s", name);
    test_data_path(below, path_out);
}

static bool send_file(struct peer *peer, void *context)
{
    char path[1024], bytes[4096];
    size_t n;

    (void)context;
    raw_path(peer->path + 1, path);
    FILE *file = fopen(path, "rb");
    while (file && (n = fread(bytes, 1, sizeof bytes, file)) > 0)
        peer_send(peer, bytes, n);
    if (file)
        fclose(file);
    shutdown(peer->fd, SHUT_WR);
    peer_sleep(peer, 100);
    return false;
}

static void test_raw_responses(void **state)
{
    char path[1024], url[256];

    (void)state;
    raw_path("index.json", path);
    json_t *cases = json_load_file(path, 0, NULL);
    if (!cases)
        skip();
    const struct wb_fetch_options options = {.timeout_ms = 120000};
    struct server *server = server_start(send_file, NULL);
    struct answer *answers = calloc(json_array_size(cases), sizeof(*answers));
    struct client client;
    unsigned wrong = 0;
    client_open(&client, &options);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const char *file = json_string_value(json_object_get(json_array_get(cases, i), "file"));
        snprintf(url, sizeof url, "http://site%zu.test:%d/%s", i, server_port(server), file);
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
        client_begin(&client, &request, &answers[i]);
    }
    client_wait(&client);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *one = json_array_get(cases, i);
        const char *test = json_string_value(json_object_get(one, "test"));
        bool accept = strcmp(json_string_value(json_object_get(one, "expect")), "accept") == 0;
        bool refused = answers[i].error != WB_FETCH_OK || answers[i].truncated;
        if (!is_otherwise(test) && refused == accept) {
            print_error("%s (%s): status %u, '%s' %s\n", test, json_string_value(json_object_get(one, "name")),
                        answers[i].status, wb_fetch_error_word(answers[i].error), answers[i].message);
            wrong++;
        }
        answer_release(&answers[i]);
    }
    assert_int_equal(wrong, 0);
    free(answers);
    json_decref(cases);
    client_close(&client);
    server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_refused), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ratio_option), cmocka_unit_test(test_memory_max), cmocka_unit_test(test_codings),
        cmocka_unit_test(test_raw_responses), cmocka_unit_test(test_odd_heads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
