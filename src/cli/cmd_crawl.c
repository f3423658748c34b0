/*
 * cmd_crawl.c - webbase crawl: reads the options (crawl_args.h), shows wb_crawl() at work (crawl_show.h) and its
 * result.
 *
 *   {"event":"fetch",...}                                              for each fetch, once it is durable
 *   {"event":"done","pages":812,"bytes":20412399,"errors":3,...}
 */
#include "base/error.h"
#include "base/json.h"
#include "cli/crawl_args.h"
#include "cli/crawl_show.h"
#include "cli/output.h"
#include "os/stop.h"

#include <inttypes.h>

static int show_end_json(const struct wb_crawl_stat *stat)
{
    struct wb_json j;

    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "pages", stat->pages);
    wb_json_field_u64(&j, "bytes", stat->bytes);
    wb_json_field_u64(&j, "errors", stat->errors);
    wb_json_field_str(&j, "error_kinds", stat->error_kinds);
    wb_json_field_u64(&j, "requests", stat->requests);
    wb_json_field_u64(&j, "unchanged", stat->unchanged);
    wb_json_field_u64(&j, "redirects", stat->redirects);
    wb_json_field_u64(&j, "duplicates", stat->duplicates);
    wb_json_field_u64(&j, "gone", stat->gone);
    wb_json_field_u64(&j, "robots", stat->robots);
    wb_json_field_u64(&j, "skipped", stat->skipped);
    wb_json_field_u64(&j, "known", stat->known);
    wb_json_field_u64(&j, "module_errors", stat->module_errors);
    wb_json_field_u64(&j, "sites_done", stat->sites_done);
    wb_json_field_u64(&j, "sites_left", stat->sites_left + stat->sites_open);
    wb_json_field_u64(&j, "wire_bytes", stat->wire_bytes);
    wb_json_field_u64(&j, "ms", (uint64_t)(stat->seconds * 1000));
    wb_json_field_u64(&j, "cpu_ms", stat->cpu_ms);
    return wb_output_object_end(&j);
}

static int show_end(bool json, const struct wb_crawl_stat *stat)
{
    wb_progress_clear();
    if (json)
        return show_end_json(stat);
    double pages_cpu_second = stat->cpu_ms ? (double)stat->pages * 1000 / (double)stat->cpu_ms : 0.0;
    int err = wb_output_printf("%" PRIu64 " page%s stored (%.1f MB) with %" PRIu64
                               " requests in %.1f s, %.0f a second of CPU time\n",
                               stat->pages, wb_output_plural(stat->pages), (double)stat->bytes / 1e6, stat->requests,
                               stat->seconds, pages_cpu_second);
    if (err == 0)
        err = wb_output_printf("%" PRIu64 " unchanged, %" PRIu64 " redirects, %" PRIu64 " gone, %" PRIu64
                               " copies, %" PRIu64 " kept out by robots.txt, %" PRIu64 " skipped\n",
                               stat->unchanged, stat->redirects, stat->gone, stat->duplicates, stat->robots,
                               stat->skipped);
    if (err == 0)
        err = wb_output_printf("%" PRIu64 " site%s done, %" PRIu64 " left for another run\n", stat->sites_done,
                               wb_output_plural(stat->sites_done), stat->sites_left + stat->sites_open);
    if (err == 0 && stat->errors)
        err = wb_output_printf("%" PRIu64 " error%s: %s\n", stat->errors, wb_output_plural(stat->errors),
                               stat->error_kinds);
    return err;
}

int wb_cmd_crawl(const struct wb_options *options)
{
    struct wb_crawl_show show = {.log = WB_FILE_INIT};
    struct wb_crawl_options o;
    struct wb_crawl_stat stat;

    int err = wb_crawl_args_fill(options, &o);
    if (err == 0)
        err = wb_crawl_args_check(&o);
    if (err == 0)
        err = wb_crawl_show_init(&show, options);
    if (err < 0)
        goto done;
    struct wb_crawl_sink sink = wb_crawl_show_sink(&show);
    wb_stop_on_signals();
    err = wb_crawl(&o, &sink, &stat);
    if (err == 0 || err == WB_E_STOPPED) {
        /* Lines that nobody has read yet are printed by the next crawl; a "done" before them would be wrong. */
        int shown = options->json && stat.lines_left ? 0 : show_end(options->json, &stat);
        err = err < 0 ? err : shown;
    }
done:
    wb_crawl_show_release(&show);
    return err;
}
