/*
 * test_fetch_once.c - a request leaves once, whatever the server does with it: libcurl neither repeats it on another
 * connection nor after an HTTP/2 server refused the stream. And an easy handle serves one request only.
 */
#include "certificate.h"
#include "fetch_support.h"

#include <openssl/ssl.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- connections that end without a response ---------------------------------------------------- */

static bool play(struct peer *peer, void *context)
{
    (void)context;
    if (strcmp(peer->path, "/closed") == 0)
        return false;
    if (strcmp(peer->path, "/late") == 0) {
        peer_sleep(peer, 50);
        return false;
    }
    if (strcmp(peer->path, "/reset") == 0) {
        peer_reset(peer);
        return false;
    }
    if (strcmp(peer->path, "/fold") == 0)
        return peer_say(peer, "HTTP/1.1 200 OK\r\n Date: Tue, 09 Nov 2010 14:49:00 GMT\r\nContent-Length: 2\r\n\r\nhi");
    if (strcmp(peer->path, "/hang") == 0)
        return peer_sleep(peer, 600000);
    return peer_say(peer, "HTTP/1.1 200 OK\r\nX-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"
                          "Content-Length: 5\r\n\r\nhello");
}

static void get(struct client *client, unsigned short port, const char *path, bool fresh, struct answer *answer)
{
    char url[128];

    snprintf(url, sizeof url, "http://site.test:%d%s", port, path);
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback(), .fresh = fresh};
    client_begin(client, &request, answer);
    client_wait(client);
}

/* The second request of a connection gets no response: it is not sent again, and the caller learns why. */
static void test_closed(void **state)
{
    static const char *const paths[] = {"/closed", "/late", "/reset"};
    struct server *server = server_start(play, NULL);
    struct client client;
    struct answer answer;

    (void)state;
    client_open(&client, NULL);
    for (unsigned i = 0; i < COUNT(paths); i++) {
        get(&client, server_port(server), "/", false, &answer);
        assert_error(&answer, WB_FETCH_OK, "/");
        assert_false(answer.reused || answer.unanswered);
        answer_release(&answer);
        get(&client, server_port(server), paths[i], false, &answer);
        assert_error(&answer, WB_FETCH_EMPTY, paths[i]);
        assert_true(answer.unanswered && answer.reused);
        assert_int_equal(server_requests(server), 2 * i + 2);
        assert_int_equal(server_connections(server), i + 1);
        answer_release(&answer);
    }
    client_close(&client);
    server_stop(server);
}

/* On a new connection the same is an error: asking again would not help. */
static void test_fresh(void **state)
{
    struct server *server = server_start(play, NULL);
    struct client client;
    struct answer answer;

    (void)state;
    client_open(&client, NULL);
    get(&client, server_port(server), "/", false, &answer);
    answer_release(&answer);
    get(&client, server_port(server), "/", false, &answer);
    assert_true(answer.reused);
    answer_release(&answer);
    get(&client, server_port(server), "/closed", true, &answer);
    assert_error(&answer, WB_FETCH_EMPTY, "/closed");
    assert_false(answer.reused || answer.unanswered);
    answer_release(&answer);
    get(&client, server_port(server), "/", true, &answer);
    assert_error(&answer, WB_FETCH_OK, "/");
    assert_false(answer.reused);
    answer_release(&answer);
    assert_int_equal(server_requests(server), 4);
    assert_int_equal(server_connections(server), 3);
    client_close(&client);
    server_stop(server);
}

/* ---- handles that are used once ------------------------------------------------------------------- */

/* libcurl 7.88 frees memory twice if a handle that has had another response reads such a line first. */
static void test_fold(void **state)
{
    struct server *server = server_start(play, NULL);
    struct client client;
    struct answer answer;

    (void)state;
    client_open(&client, NULL);
    for (int i = 0; i < 60; i++) {
        const char *path = i % 3 == 1 ? "/fold" : "/";
        client_get(&client, server_port(server), path, &answer);
        assert_error(&answer, i % 3 == 1 ? WB_FETCH_PROTOCOL : WB_FETCH_OK, path);
        assert_int_equal(answer.status, 200);
        assert_body(&answer, i % 3 == 1 ? "" : "hello");
        answer_release(&answer);
    }
    assert_int_equal(server_requests(server), 60);
    client_close(&client);
    server_stop(server);
}

/* ---- requests that we end ----------------------------------------------------------------------------- */

static bool is_hanging(void *context)
{
    return context != NULL && !((struct answer *)context)->done;
}

static void note(void *context, struct wb_fetch_result *result)
{
    struct answer *answer = context;

    answer->done = true;
    answer->error = result->error;
    snprintf(answer->message, sizeof answer->message, "%s", result->message);
}

static void test_stop(void **state)
{
    struct server *server = server_start(play, NULL);
    struct client client;
    struct answer hanging = {.done = false}, answer;
    char url[128];

    (void)state;
    client_open(&client, NULL);
    snprintf(url, sizeof url, "http://site.test:%d/hang", server_port(server));
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
    assert_int_equal(wb_fetch_start(client.fetcher, &request, note, &hanging), 0);
    while (server_requests(server) == 0)
        event_base_loop(client.base, EVLOOP_ONCE);
    assert_false(hanging.done);
    wb_fetch_stop(client.fetcher, is_hanging, "made way for others");
    assert_true(hanging.done);
    assert_int_equal(hanging.error, WB_FETCH_STOPPED);
    assert_string_equal(hanging.message, "made way for others");
    assert_int_equal(wb_fetcher_busy(client.fetcher), 0);
    client_get(&client, server_port(server), "/", &answer);
    assert_error(&answer, WB_FETCH_OK, "/");
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
}

/* Without a file descriptor nothing is sent. The error is not that of a server that cannot be reached. */
static void test_no_files(void **state)
{
    struct server *server = server_start(play, NULL);
    struct client client;
    struct answer answer;
    struct rlimit before, none;

    (void)state;
    client_open(&client, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    get(&client, server_port(server), "/", false, &answer);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_error(&answer, WB_FETCH_FILES, "/");
    answer_release(&answer);
    get(&client, server_port(server), "/", false, &answer);
    assert_error(&answer, WB_FETCH_OK, "/");
    answer_release(&answer);
    client_close(&client);
    server_stop(server);
}

/* ---- an HTTP/2 server that refuses every stream --------------------------------------------------- */

enum { SETTINGS = 4, HEADERS = 1, RST_STREAM = 3, ACK = 1, REFUSED_STREAM = 7, HTTP_1_1_REQUIRED = 13 };

static struct refuser {
    SSL_CTX *ctx;
    int listener;
    unsigned char reason;
    atomic_uint requests, connections;
} refuser;

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *len, const unsigned char *in, unsigned in_len,
                     void *context)
{
    static const unsigned char h2[] = "\2h2";

    (void)ssl;
    (void)context;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, len, h2, 3, in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool read_all(SSL *ssl, unsigned char *bytes, int len)
{
    for (int got = 0, n; got < len; got += n)
        if ((n = SSL_read(ssl, bytes + got, len - got)) <= 0)
            return false;
    return true;
}

static void refuse_streams(SSL *ssl)
{
    static const unsigned char settings[9] = {0, 0, 0, SETTINGS, 0}, ack[9] = {0, 0, 0, SETTINGS, ACK};
    unsigned char head[9], body[16384];

    if (!read_all(ssl, body, 24) || SSL_write(ssl, settings, 9) != 9)
        return;
    while (read_all(ssl, head, 9)) {
        int len = head[0] << 16 | head[1] << 8 | head[2];
        if (len > (int)sizeof body || !read_all(ssl, body, len))
            return;
        if (head[3] == SETTINGS && !(head[4] & ACK) && SSL_write(ssl, ack, 9) != 9)
            return;
        if (head[3] != HEADERS)
            continue;
        refuser.requests++;
        unsigned char reset[13] = {0, 0, 4, RST_STREAM, 0, head[5], head[6], head[7], head[8], 0, 0, 0, refuser.reason};
        if (SSL_write(ssl, reset, 13) != 13)
            return;
    }
}

static void *serve(void *context)
{
    int fd;

    (void)context;
    while ((fd = accept(refuser.listener, NULL, NULL)) >= 0) {
        SSL *ssl = SSL_new(refuser.ctx);
        refuser.connections++;
        if (SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1)
            refuse_streams(ssl);
        SSL_free(ssl);
        close(fd);
    }
    return NULL;
}

static unsigned short open_refuser(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;

    assert_true(make_certificate());
    refuser.ctx = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(refuser.ctx, test_path("cert.pem")), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(refuser.ctx, test_path("key.pem"), SSL_FILETYPE_PEM), 1);
    SSL_CTX_set_alpn_select_cb(refuser.ctx, choose_h2, NULL);
    refuser.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(refuser.listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(refuser.listener, 16), 0);
    assert_int_equal(getsockname(refuser.listener, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

static void test_refused_stream(void **state)
{
    static const unsigned char reasons[] = {REFUSED_STREAM, HTTP_1_1_REQUIRED};
    char url[128];
    pthread_t thread;

    (void)state;
    unsigned short port = open_refuser();
    assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
    const struct wb_fetch_options options = {.ca_file = test_path("cert.pem")};
    snprintf(url, sizeof url, "https://site.test:%d/", port);
    for (unsigned i = 0; i < COUNT(reasons); i++) {
        struct client client;
        struct answer answer;
        refuser.reason = reasons[i];
        client_open(&client, &options);
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = loopback()};
        client_begin(&client, &request, &answer);
        client_wait(&client);
        assert_error(&answer, WB_FETCH_EMPTY, "a refused stream");
        assert_true(answer.unanswered);
        answer_release(&answer);
        client_close(&client);
        assert_int_equal(refuser.requests, i + 1);
        assert_int_equal(refuser.connections, i + 1);
    }
    shutdown(refuser.listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(refuser.listener);
    SSL_CTX_free(refuser.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed), cmocka_unit_test(test_fresh), cmocka_unit_test(test_fold),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test_setup_teardown(test_refused_stream, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
