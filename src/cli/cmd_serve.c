/*
 * cmd_serve.c - webbase serve: the server. Prints one line when it is ready:
 *
 *   listening on http://127.0.0.1:8080/
 */
#include "base/error.h"
#include "base/mem.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/stop.h"
#include "serve/serve.h"

#include <string.h>

static void on_ready(void *context, const char *url)
{
    (void)context;
    if (wb_output_printf("listening on %s\n", url) == 0)
        (void)wb_output_flush();
}

/* TOKEN=HOST, as often as there are providers. */
static int read_providers(const struct wb_options *options, struct wb_serve_options *serve,
                          struct wb_serve_provider **providers_out)
{
    size_t count;
    const char *const *list = wb_options_list(options, "push-token", &count);

    *providers_out = wb_alloc_zero(count + 1, sizeof **providers_out);
    if (!*providers_out)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const char *mark = strrchr(list[i], '=');
        if (!mark || mark == list[i] || !mark[1])
            return wb_options_usage("--push-token %s: write TOKEN=HOST", list[i]);
        (*providers_out)[i] = (struct wb_serve_provider){wb_slice(list[i], (size_t)(mark - list[i])),
                                                         wb_slice_str(mark + 1)};
    }
    serve->providers = *providers_out;
    serve->provider_count = count;
    return 0;
}

int wb_cmd_serve(const struct wb_options *options)
{
    const char *listen = wb_options_text(options, "listen"), *token = wb_options_text(options, "token");
    struct wb_serve_provider *providers = NULL;
    struct wb_serve_options serve = {
        .dir = options->dir,
        .listen = wb_slice_str(listen ? listen : "127.0.0.1:8080"),
        .certificate = wb_options_text(options, "certificate"),
        .key = wb_options_text(options, "key"),
        .token = wb_slice_str(token ? token : ""),
        .open = wb_options_flag(options, "public"),
        .replay_scripts = wb_options_flag(options, "replay-scripts"),
        .query_ms = (unsigned)wb_options_duration(options, "query-time", 0),
        .ready = on_ready,
    };

    if (serve.key && !serve.certificate)
        return wb_options_usage("serve: --key needs --certificate");
    int err = read_providers(options, &serve, &providers);
    if (err == 0) {
        wb_stop_on_signals();
        err = wb_serve(&serve);
    }
    wb_free(providers);
    return err;
}
