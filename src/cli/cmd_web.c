/*
 * cmd_web.c - webbase web: serves a synthetic web until a signal ends it. It never opens a repository. Its only output
 * is the line "listening on http://127.0.0.1:40123/", for which scripts wait.
 */
#include "base/error.h"
#include "cli/options.h"
#include "cli/output.h"
#include "os/stop.h"
#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>

#define SITES 100
#define PAGES 2000
#define PAGE_BYTES 4096
#define PAGE_BYTES_MAX (16u << 20)
#define LATENCY_MS_MAX 3600000u

/* Reads a number with an upper bound, which the table of options cannot express. It may be 0. */
static int read_number(const struct wb_options *options, const char *name, uint64_t max, uint64_t fallback,
                       uint64_t *number_out)
{
    const char *text = wb_options_text(options, name);

    *number_out = fallback;
    if (text && (!wb_slice_to_u64(wb_slice_str(text), number_out) || *number_out > max))
        return wb_options_usage("web: --%s takes a number of at most %llu, not '%s'", name, (unsigned long long)max,
                                text);
    return 0;
}

static int read_speed(const struct wb_options *options, double *speed_out)
{
    const char *text = wb_options_text(options, "speed");
    char *end = NULL;

    *speed_out = 0;
    if (!text)
        return 0;
    *speed_out = strtod(text, &end);
    if (end == text || *end || !isfinite(*speed_out) || *speed_out < 0 || *speed_out > 1e9)
        return wb_options_usage("web: --speed takes the seconds that pass in a second, such as 3600 or 0, not '%s'",
                                text);
    return 0;
}

static int read_options(const struct wb_options *options, struct wb_sim_options *sim_out)
{
    uint64_t seed = 1, sites = SITES, pages = PAGES, bytes = PAGE_BYTES, latency = 0;
    int err = read_number(options, "seed", UINT64_MAX, 1, &seed);

    if (err == 0)
        err = read_number(options, "sites", WB_SIM_SITES_MAX, SITES, &sites);
    if (err == 0)
        err = read_number(options, "pages", WB_SIM_PAGES_MAX, PAGES, &pages);
    if (err == 0)
        err = read_number(options, "page-bytes", PAGE_BYTES_MAX, PAGE_BYTES, &bytes);
    if (err == 0)
        err = read_number(options, "latency", LATENCY_MS_MAX, 0, &latency);
    *sim_out = (struct wb_sim_options){.seed = seed, .sites = (unsigned)sites, .pages = (unsigned)pages,
                                       .page_bytes = (unsigned)bytes, .latency_ms = (unsigned)latency};
    return err < 0 ? err : read_speed(options, &sim_out->speed);
}

static void say_ready(void *context, const char *url)
{
    (void)context;
    wb_output_printf("listening on %s\n", url);
    wb_output_flush();
}

int wb_cmd_web(const struct wb_options *options)
{
    struct wb_sim_options sim;
    const char *listen = wb_options_text(options, "listen");
    int err = read_options(options, &sim);

    if (err < 0)
        return err;
    sim.listen = listen ? listen : "127.0.0.1:0";
    sim.hostile = wb_options_flag(options, "hostile");
    sim.raw = wb_options_text(options, "raw");
    wb_stop_on_signals();
    return wb_sim_serve(&sim, say_ready, NULL);
}
