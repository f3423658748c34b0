/*
 * test_fetch_tls.c - certificates and HTTP/2, against real servers: `openssl s_server` and nginx. `scripts/deps test`
 * installs both.
 */
#include "certificate.h"
#include "fetch_support.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* In steps of 20 ms. It only keeps a test from hanging for ever. */
enum { WAIT_STEPS = 6000 };

/*
 * The servers listen on an address of this process alone, and on ports from which the system chooses none by itself.
 * So no other program can take one in the moment before a server does.
 */
static unsigned short port = 4433;
static pid_t child;

static struct wb_address own_address(void)
{
    unsigned id = (unsigned)getpid();

    return (struct wb_address){.family = 4, .bytes = {127, 78, (uint8_t)(id >> 8), (uint8_t)id}};
}

static const char *own_address_text(void)
{
    static char text[WB_ADDRESS_TEXT_MAX];
    struct wb_address address = own_address();

    wb_address_format(&address, text);
    return text;
}

static struct sockaddr_in own_place(void)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct wb_address address = own_address();

    memcpy(&place.sin_addr, address.bytes, sizeof place.sin_addr);
    return place;
}

static void path_in(const char *name, char path_out[128])
{
    snprintf(path_out, 128, "%s/%s", test_root, name);
}

/* ---- servers ----------------------------------------------------------------------------------- */

static bool is_listening(void)
{
    struct sockaddr_in address = own_place();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool yes = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    return yes;
}

/* False if the command cannot be run or does not listen in time. */
static bool start(char *const *command)
{
    child = fork();
    if (child == 0) {
        char log[128];
        path_in("log", log);
        if (!freopen("/dev/null", "r", stdin) || !freopen(log, "a", stdout) || dup2(1, 2) < 0)
            _exit(126);
        execvp(command[0], command);
        _exit(127);
    }
    for (int i = 0; i < WAIT_STEPS; i++) {
        int status;
        if (waitpid(child, &status, WNOHANG) == child) {
            child = 0;
            return false;
        }
        if (is_listening())
            return true;
        usleep(20000);
    }
    return false;
}

static int stop(void **state)
{
    (void)state;
    if (child > 0) {
        kill(child, SIGTERM);
        waitpid(child, NULL, 0);
    }
    child = 0;
    port++; /* connections to the last port may linger */
    return 0;
}

static int make_dir(void **state)
{
    char search[4096];

    /* nginx is in a directory that only root's PATH contains. */
    snprintf(search, sizeof search, "%s:/usr/sbin", getenv("PATH"));
    return setenv("PATH", search, 1) == 0 ? make_root(state) : -1;
}

/* ---- requests -------------------------------------------------------------------------------------------- */

static void get_https(const char *host, const char *path, const char *ca_file, struct answer *answer)
{
    const struct wb_fetch_options options = {.ca_file = ca_file, .timeout_ms = 120000};
    struct client client;
    char url[128];

    client_open(&client, &options);
    snprintf(url, sizeof url, "https://%s:%d%s", host, port, path);
    struct wb_fetch_request request = {.url = wb_slice_str(url), .address = own_address()};
    client_begin(&client, &request, answer);
    client_wait(&client);
    client_close(&client);
}

static void test_certificate(void **state)
{
    char key[128], cert[128], accept[64];
    struct answer answer;

    (void)state;
    assert_true(make_certificate());
    path_in("key.pem", key);
    path_in("cert.pem", cert);
    snprintf(accept, sizeof accept, "%s:%d", own_address_text(), port);
    char *command[] = {"openssl", "s_server", "-quiet", "-www", "-accept", accept, "-key", key, "-cert", cert, NULL};
    assert_true(start(command));

    get_https("site.test", "/", NULL, &answer);
    assert_error(&answer, WB_FETCH_TLS, "a certificate that nobody signed");
    answer_release(&answer);
    get_https("site.test", "/", cert, &answer);
    assert_error(&answer, WB_FETCH_OK, "a certificate that we trust");
    assert_int_equal(answer.status, 200);
    answer_release(&answer);
    get_https("other.test", "/", cert, &answer);
    assert_error(&answer, WB_FETCH_TLS, "the certificate of another host");
    answer_release(&answer);
    get_https(own_address_text(), "/", cert, &answer);
    assert_error(&answer, WB_FETCH_TLS, "the certificate of a name for an address");
    answer_release(&answer);
}

/* The handshake never gets a valid response: the server sends plain text at once. */
static void test_no_tls(void **state)
{
    struct sockaddr_in address = own_place();
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct answer answer;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    child = fork();
    if (child == 0) {
        int fd = accept(listener, NULL, NULL);
        char hello[4096];
        if (read(fd, hello, sizeof hello) > 0 && write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28) == 28)
            pause();
        _exit(0);
    }
    close(listener);
    get_https("site.test", "/", NULL, &answer);
    assert_error(&answer, WB_FETCH_TLS, "a server that speaks no TLS");
    answer_release(&answer);
}

/* ---- HTTP/2 ------------------------------------------------------------------------------------------------ */

static const char nginx_config[] =
    "worker_processes 1; daemon off; master_process off; pid %1$s/pid; error_log %1$s/error.log;\n"
    "events { worker_connections 64; }\n"
    "http { access_log %1$s/access.log; client_body_temp_path %1$s/b; proxy_temp_path %1$s/p;\n"
    "fastcgi_temp_path %1$s/f;\n"
    "uwsgi_temp_path %1$s/u; scgi_temp_path %1$s/s; default_type text/html; gzip on;\n"
    "gzip_min_length 100; gzip_proxied any;\n"
    "server { listen %3$s:%2$d ssl http2; ssl_certificate %1$s/cert.pem; ssl_certificate_key %1$s/key.pem;\n"
    "root %1$s/www;\n"
    "location = /gone { return 410 'away'; } } }\n";

static bool start_nginx(void)
{
    char path[128], make_page[512];

    path_in("www", path);
    snprintf(make_page, sizeof make_page, "mkdir -p %s && seq 1 30000 > %s/page", path, path);
    if (system(make_page) != 0)
        return false;
    path_in("nginx.conf", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, nginx_config, test_root, port, own_address_text());
    fclose(file);
    char *command[] = {"nginx", "-p", test_root, "-c", path, NULL};
    return start(command);
}

static int count_http2(void)
{
    char path[128], line[512];
    int lines = 0;

    path_in("access.log", path);
    FILE *log = fopen(path, "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log)) {
        assert_non_null(strstr(line, " HTTP/2.0\""));
        lines++;
    }
    fclose(log);
    return lines;
}

static void test_http2(void **state)
{
    enum { MANY = 20 };
    char cert[128], url[128];
    struct answer answers[MANY];
    struct client client;

    (void)state;
    path_in("cert.pem", cert);
    assert_true(start_nginx());
    const struct wb_fetch_options options = {.ca_file = cert, .timeout_ms = 120000};
    client_open(&client, &options);
    for (int i = 0; i < MANY; i++) {
        snprintf(url, sizeof url, "https://site.test:%d/%s", port, i % 4 == 3 ? "gone" : "page");
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = own_address()};
        client_begin(&client, &request, &answers[i]);
        if (i < 2)
            client_wait(&client);
    }
    client_wait(&client);
    for (int i = 0; i < MANY; i++) {
        static const char first[] = "HTTP/1.1 200 \r\nserver: nginx", gone[] = "HTTP/1.1 410 \r\nserver: nginx";
        assert_error(&answers[i], WB_FETCH_OK, "over HTTP/2");
        assert_int_equal(answers[i].status, i % 4 == 3 ? 410 : 200);
        assert_int_equal(answers[i].body.len, i % 4 == 3 ? 4 : 168894);
        assert_true(answers[i].wire_bytes <= answers[i].body.len);
        assert_true(wb_slice_starts(wb_buf_slice(&answers[i].head), wb_slice_str(i % 4 == 3 ? gone : first)));
        answer_release(&answers[i]);
    }
    client_close(&client);
    /* nginx writes its log a moment after the response. */
    int lines = 0;
    for (int i = 0; i < WAIT_STEPS && lines < MANY; i++) {
        lines = count_http2();
        usleep(20000);
    }
    assert_int_equal(lines, MANY);
}

/* Streams that we end early leave nothing behind into which a later response could be written. */
static void test_http2_cut(void **state)
{
    enum { MANY = 40, CUT = 1000 };
    char cert[128], url[128];
    struct client client;

    (void)state;
    path_in("cert.pem", cert);
    if (access("/usr/sbin/nginx", X_OK) != 0 || access(cert, R_OK) != 0 || !start_nginx())
        skip();
    const struct wb_fetch_options options = {.ca_file = cert, .timeout_ms = 60000};
    client_open(&client, &options);
    snprintf(url, sizeof url, "https://site.test:%d/page", port);
    for (int i = 0; i < MANY; i++) {
        struct wb_fetch_request request = {.url = wb_slice_str(url), .address = own_address(),
                                           .body_max = i % 3 ? CUT : 0};
        struct answer answers[2];
        client_begin(&client, &request, &answers[0]);
        request.body_max = i % 2 ? CUT : 0;
        client_begin(&client, &request, &answers[1]);
        client_wait(&client);
        for (int k = 0; k < 2; k++) {
            bool cut = k ? i % 2 : i % 3;
            assert_error(&answers[k], WB_FETCH_OK, "over HTTP/2");
            assert_int_equal(answers[k].truncated, cut);
            assert_int_equal(answers[k].body.len, cut ? CUT : 168894);
            answer_release(&answers[k]);
        }
    }
    client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_certificate, stop),
        cmocka_unit_test_teardown(test_no_tls, stop),
        cmocka_unit_test_teardown(test_http2, stop),
        cmocka_unit_test_teardown(test_http2_cut, stop),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_root);
}
