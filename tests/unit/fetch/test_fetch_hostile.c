/*
 * test_fetch_hostile.c - servers that send too much, too little, too slowly or nonsense: the right error, within
 * bounds.
 */
#include "../testdata.h"
#include "coded_support.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/random.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- scripts ---------------------------------------------------------------------------------- */

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
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct client client;
    struct answer answer;

    (void)state;
    /* Holds a port without listening, so that nobody else listens there either. */
    int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(holder, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(holder, (struct sockaddr *)&address, &len), 0);
    client_open(&client, NULL);
    client_get(&client, ntohs(address.sin_port), "/", &answer);
    assert_error(&answer, WB_FETCH_CONNECT, "nobody listens");
    assert_string_equal(answer.message, "Connection refused");
    answer_release(&answer);
    client_close(&client);
    close(holder);
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
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_refused), cmocka_unit_test(test_raw_responses),
        cmocka_unit_test(test_odd_heads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
