/*
 * bench_httpd.c - a server with one small reply, ours or libevent's evhttp, for wrk to measure.
 *
 *   bench_httpd ours|evhttp COMMAND...        runs COMMAND with the server's URL as its last argument, and prints a
 *                                             JSON line: processor seconds and peak memory of the server
 *
 * Paths: /hello is a small reply; /stream is an endless source of 64 KiB pieces (ours only).
 */
#include "base/error.h"
#include "httpd/httpd.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPLY "{\"total\":1,\"results\":[{\"url\":\"http://example.org/\",\"title\":\"An example\"}]}\n"
#define PIECE_BYTES 65536

/* ---- ours ----------------------------------------------------------------------------------------- */

static int admit(void *context, const struct wb_http_request *head, uint64_t *body_max_out, struct wb_http_reply *reply)
{
    (void)context;
    (void)head;
    (void)reply;
    *body_max_out = 0;
    return 0;
}

static int next_piece(void *source, void *worker, struct wb_buf *out, unsigned *wait_ms_out)
{
    (void)source;
    (void)worker;
    (void)wait_ms_out;
    if (wb_buf_reserve(out, PIECE_BYTES) < 0)
        return WB_E_NOMEM;
    memset(out->ptr + out->len, 'x', PIECE_BYTES);
    out->len += PIECE_BYTES;
    return WB_HTTP_MORE;
}

static void close_source(void *source)
{
    (void)source;
}

static void handle(void *context, void *worker, const struct wb_http_request *request, struct wb_http_reply *reply)
{
    static const struct wb_http_source stream = {next_piece, close_source};

    (void)context;
    (void)worker;
    wb_http_reply_field(reply, "Content-Type", WB_SLICE_LIT("application/json"));
    if (wb_slice_equal(request->path, WB_SLICE_LIT("/stream")))
        reply->source = &stream;
    else
        wb_buf_append_str(&reply->body, REPLY);
}

static void *run_ours(void *context)
{
    if (wb_httpd_run(context) < 0)
        fprintf(stderr, "bench_httpd: %s\n", wb_error_message());
    return NULL;
}

/* Starts the server in a thread and writes its address. */
static int start_ours(char address_out[64], pthread_t *thread_out)
{
    struct wb_httpd_options options = {.listen = WB_SLICE_LIT("127.0.0.1:0"),
                                       .app = {.admit = admit, .handle = handle}};
    struct wb_httpd *httpd;

    options.limits.connections_per_peer = 10000;
    if (wb_httpd_new(&options, &httpd) < 0)
        return -1;
    snprintf(address_out, 64, "%s", wb_httpd_address(httpd));
    return pthread_create(thread_out, NULL, run_ours, httpd) == 0 ? 0 : -1;
}

/* ---- evhttp ---------------------------------------------------------------------------------------- */

static void answer(struct evhttp_request *request, void *context)
{
    struct evbuffer *body = evbuffer_new();

    (void)context;
    evbuffer_add(body, REPLY, sizeof REPLY - 1);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "application/json");
    evhttp_send_reply(request, 200, "OK", body);
    evbuffer_free(body);
}

static void *run_evhttp(void *context)
{
    event_base_dispatch(context);
    return NULL;
}

static int start_evhttp(char address_out[64], pthread_t *thread_out)
{
    struct event_base *base = event_base_new();
    struct evhttp *http = evhttp_new(base);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
    struct sockaddr_in address;
    socklen_t len = sizeof address;

    if (!bound || getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len) < 0)
        return -1;
    evhttp_set_gencb(http, answer, NULL);
    snprintf(address_out, 64, "127.0.0.1:%u", ntohs(address.sin_port));
    return pthread_create(thread_out, NULL, run_evhttp, base) == 0 ? 0 : -1;
}

/* ---- measuring ---------------------------------------------------------------------------------------- */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Runs the command with the address behind it. */
static int run_command(char **command, int count, const char *address)
{
    char **args = calloc((size_t)count + 2, sizeof *args), url[128];
    int status = -1;
    pid_t child = args ? fork() : -1;

    if (child == 0) {
        snprintf(url, sizeof url, "http://%s/hello", address);
        for (int i = 0; i < count; i++)
            args[i] = command[i];
        args[count] = url;
        execvp(args[0], args);
        _exit(127);
    }
    if (child > 0)
        waitpid(child, &status, 0);
    free(args);
    return status;
}

int main(int argc, char **argv)
{
    bool ours = argc > 2 && strcmp(argv[1], "ours") == 0;
    struct rusage before, after;
    char address[64];
    pthread_t thread;

    if (argc < 3 || (!ours && strcmp(argv[1], "evhttp") != 0)) {
        fprintf(stderr, "usage: bench_httpd ours|evhttp COMMAND [ARGUMENT]...\n");
        return 2;
    }
    if ((ours ? start_ours : start_evhttp)(address, &thread) < 0) {
        fprintf(stderr, "bench_httpd: cannot start a server: %s\n", wb_error_message());
        return 1;
    }
    getrusage(RUSAGE_SELF, &before);
    int status = run_command(argv + 2, argc - 2, address);
    getrusage(RUSAGE_SELF, &after);
    printf("{\"server\":\"%s\",\"user_seconds\":%.3f,\"system_seconds\":%.3f,\"switches\":%ld,\"peak_kb\":%ld}\n",
           argv[1], seconds(after.ru_utime) - seconds(before.ru_utime),
           seconds(after.ru_stime) - seconds(before.ru_stime), after.ru_nvcsw - before.ru_nvcsw, after.ru_maxrss);
    return status == 0 ? 0 : 1;
}
