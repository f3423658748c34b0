/*
 * cmd_serve.c - webbase serve: the server. Prints a line when it is ready, and another one with --replay-listen:
 *
 *   listening on http://127.0.0.1:8080/
 *   replaying at http://localhost:8081/
 */
#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "cli/run_args.h"
#include "os/hangup.h"
#include "os/stop.h"
#include "serve/serve.h"
#include "store/store.h"
#include "url/url.h"

#include <string.h>

enum { REPLAY_NAME_MAX = 64 };

static void on_ready(void *context, const char *url)
{
    (void)context;
    if (wb_output_printf("listening on %s\n", url) == 0)
        (void)wb_output_flush();
}

static void on_replay_ready(void *context, const char *url)
{
    (void)context;
    if (wb_output_printf("replaying at %s\n", url) == 0)
        (void)wb_output_flush();
}

static void on_message(void *context, const char *message)
{
    (void)context;
    wb_report("%s", message);
}

/* What lives as long as the server. */
struct serve_args {
    struct wb_serve_provider *providers;
    struct wb_slice *names;
    struct wb_arena hosts;
    struct wb_run_line run;
};

/* A host in normal form, as the sites of URLs are compared with it. */
static int read_host(struct serve_args *args, const char *option, const char *text, struct wb_slice *host_out)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;

    int err = wb_buf_printf(&key, "http://%s", text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&key), NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    bool plain = err == 0 && url.path_end - url.path_at == 1 && !url.has_query && !url.has_fragment &&
                 url.username_at == url.username_end;
    if (plain)
        err = wb_arena_copy(&args->hosts, wb_key_site(wb_buf_slice(&key)), host_out);
    else if (err != WB_E_NOMEM)
        err = wb_options_usage("--%s: %s is not a host", option, text);
    wb_buf_release(&key);
    wb_url_release(&url);
    return err;
}

/* TOKEN=HOST, as often as there are providers. */
static int read_providers(const struct wb_options *options, struct serve_args *args, struct wb_serve_options *serve)
{
    size_t count;
    const char *const *list = wb_options_list(options, "push-token", &count);
    int err = 0;

    args->providers = wb_alloc_zero(count + 1, sizeof *args->providers);
    if (!args->providers)
        return WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < count; i++) {
        const char *mark = strrchr(list[i], '=');
        if (!mark || mark == list[i] || !mark[1])
            return wb_options_usage("--push-token %s: write TOKEN=HOST", list[i]);
        args->providers[i].token = wb_slice(list[i], (size_t)(mark - list[i]));
        err = read_host(args, "push-token", mark + 1, &args->providers[i].host);
    }
    serve->providers = args->providers;
    serve->provider_count = count;
    return err;
}

/* NAME or NAME:PORT, as often as there are names. A port that is 80 is no different from none. */
static int read_names(const struct wb_options *options, struct serve_args *args, struct wb_serve_options *serve)
{
    size_t count;
    const char *const *list = wb_options_list(options, "allow-host", &count);
    int err = 0;

    args->names = wb_alloc_zero(count + 1, sizeof *args->names);
    if (!args->names)
        return WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < count; i++)
        err = read_host(args, "allow-host", list[i], &args->names[i]);
    serve->hosts = args->names;
    serve->host_count = count;
    return err;
}

/*
 * NAME[:PORT], or with https:// before it. The port is that which people use, and it matters: the addresses of pages
 * contain it.
 */
static int read_replay_host(const struct wb_options *options, struct serve_args *args, struct wb_serve_options *serve)
{
    const char *text = wb_options_text(options, "replay-host");

    if (!text)
        return 0;
    if (serve->replay_listen.len == 0)
        return wb_options_usage("serve: --replay-host needs --replay-listen");
    bool https = strncmp(text, "https://", 8) == 0, http = strncmp(text, "http://", 7) == 0;
    serve->replay_base.tls = https || (!http && serve->certificate);
    int err = read_host(args, "replay-host", text + (https ? 8 : http ? 7 : 0), &serve->replay_base.name);
    struct wb_slice name = serve->replay_base.name;
    if (err == 0 &&
        (name.len > REPLAY_NAME_MAX || memchr(name.ptr, '[', name.len) || !strpbrk(text, "abcdefghijklmnopqrstuvwxyz")))
        err = wb_options_usage("--replay-host: %s is not a name of at most %d characters", text, REPLAY_NAME_MAX);
    return err;
}

static void release_args(struct serve_args *args)
{
    wb_free(args->names);
    wb_free(args->providers);
    wb_arena_release(&args->hosts);
    wb_run_line_release(&args->run);
}

/* With --run: checks the options of run now, so that mistakes are seen at once, and makes the repository. */
static int prepare_run(const struct wb_options *options, struct serve_args *args, struct wb_serve_options *serve)
{
    struct wb_cycle_options cycle;
    const char *given = wb_run_args_given(options);

    if (!wb_options_flag(options, "run")) {
        if (given && !given[0])
            return wb_options_usage("serve: seeds such as '%s' need --run", options->args[0]);
        return given ? wb_options_usage("serve: --%s needs --run", given) : 0;
    }
    int err = wb_run_args_fill(options, &cycle);
    if (err == 0)
        err = wb_run_line_make(options, &args->run);
    if (err == 0 && !wb_store_exists(options->dir))
        err = wb_store_create(options->dir, NULL);
    serve->run = args->run.words.items;
    return err;
}

int wb_cmd_serve(const struct wb_options *options)
{
    const char *listen = wb_options_text(options, "listen"), *token = wb_options_text(options, "token");
    const char *replay = wb_options_text(options, "replay-listen");
    struct serve_args args = {.providers = NULL};
    struct wb_serve_options serve = {
        .dir = options->dir,
        .listen = wb_slice_str(listen ? listen : "127.0.0.1:8080"),
        .certificate = wb_options_text(options, "certificate"),
        .key = wb_options_text(options, "key"),
        .token = wb_slice_str(token ? token : ""),
        .open = wb_options_flag(options, "public"),
        .memory_bytes = wb_options_size(options, "memory", 0),
        .query_ms = (unsigned)wb_options_duration(options, "query-time", 0),
        .replay_listen = wb_slice_str(replay ? replay : ""),
        .ready = on_ready,
        .replay_ready = on_replay_ready,
        .say = on_message,
    };

    if (serve.key && !serve.certificate)
        return wb_options_usage("serve: --key needs --certificate");
    int err = read_providers(options, &args, &serve);
    if (err == 0)
        err = read_names(options, &args, &serve);
    if (err == 0)
        err = read_replay_host(options, &args, &serve);
    if (err == 0)
        err = prepare_run(options, &args, &serve);
    if (err == 0) {
        wb_stop_on_signals();
        if (serve.certificate)
            wb_hangup_count(); /* the certificate is read again */
        err = wb_serve(&serve);
    }
    release_args(&args);
    return err;
}
