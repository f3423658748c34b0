/*
 * cmd_generate.c - webbase generate: lets wb_generate() list the pages to fetch next, and shows how many there are.
 *
 *   2 URLs of 1 site listed: 0 announced, 0 about to expire, 0 never fetched, 2 to be visited again
 *   {"event":"done","run":1,"urls":2,"sites":1,...}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/crawl_args.h"
#include "cli/cycle_show.h"
#include "cli/output.h"
#include "os/stop.h"

#include <inttypes.h>
#include <stdio.h>

static int write_json(const struct wb_generate *g)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_i64(&j, "run", g->run);
    wb_json_field_u64(&j, "urls", g->urls);
    wb_json_field_u64(&j, "sites", g->sites);
    wb_json_field_u64(&j, "known", g->known);
    wb_json_field_u64(&j, "pushed", g->pushed);
    wb_json_field_u64(&j, "expiring", g->expiring);
    wb_json_field_u64(&j, "fresh", g->fresh);
    wb_json_field_u64(&j, "due", g->due);
    wb_json_field_u64(&j, "blocked", g->blocked);
    wb_json_field_u64(&j, "barred", g->barred);
    wb_json_field_u64(&j, "trapped", g->trapped);
    wb_json_field_u64(&j, "outside", g->outside);
    wb_json_field_u64(&j, "early", g->early);
    wb_json_field_double(&j, "theta", g->theta);
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_generate *g)
{
    int err = wb_output_printf("%" PRIu64 " URL%s of %" PRIu64 " site%s listed: %" PRIu64 " announced, %" PRIu64
                               " about to expire, %" PRIu64 " never fetched, %" PRIu64 " to be visited again\n",
                               g->urls, wb_output_plural(g->urls), g->sites, wb_output_plural(g->sites), g->pushed,
                               g->expiring, g->fresh, g->due);

    if (err == 0)
        err = wb_output_printf("of %" PRIu64 " known: %" PRIu64 " out of scope, %" PRIu64
                               " kept out by robots.txt, %" PRIu64 " by guards against traps, %" PRIu64
                               " taken down, %" PRIu64 " too early\n",
                               g->known, g->outside, g->blocked, g->trapped, g->barred, g->early);
    return err;
}

/* generate does not see what was announced or crawled since the last update. Say so, before the user wonders. */
static void warn_of_unmerged(const struct wb_cycle_sink *sink, const char *dir)
{
    char text[160];
    uint64_t bytes = 0;

    if (wb_webdb_unmerged(dir, &bytes) < 0 || bytes == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " bytes of the journal are not in webdb yet; 'webbase update' merges them",
             bytes);
    sink->warn(sink->context, text);
}

int wb_cmd_generate(const struct wb_options *options)
{
    struct wb_generate_options o;
    struct wb_generate generate;
    struct wb_cycle_show show;

    int err = wb_crawl_args_fill_generate(options, &o);
    if (err < 0)
        return err;
    struct wb_cycle_sink sink = wb_cycle_show_init(&show, "generate");
    wb_stop_on_signals();
    warn_of_unmerged(&sink, o.dir);
    err = wb_generate(&o, &sink, &generate);
    wb_cycle_show_end(&show);
    if (err == 0)
        err = options->json ? write_json(&generate) : write_words(&generate);
    return err;
}
