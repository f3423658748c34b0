/*
 * cmd_run.c - webbase run: repeats the cycle, forever or --cycles times. The work is in src/cycle.
 *
 *   cycle 1: 40 listed, 40 asked for; 12 stored, 26 unchanged, 2 gone, 0 errors, 1 expunged
 *   {"event":"fetch",...}                                              for each fetch, as in crawl
 *   {"event":"evict","url":"http://example.org/b","value":1.58}        for each page that --capacity cost
 *   {"event":"cycle","cycle":1,...}                                    for each cycle
 *   {"event":"done","cycles":1}
 */
#include "answer/answer.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/crawl_show.h"
#include "cli/cycle_show.h"
#include "cli/output.h"
#include "cli/run_args.h"
#include "os/stop.h"

#include <inttypes.h>

struct run_show {
    bool json;
    uint64_t cycles; /* that have ended */
    int err;         /* of writing to standard output */
};

static int write_cycle(const struct wb_cycle_status *status)
{
    struct wb_json j;

    wb_output_object_begin(&j, "cycle");
    wb_answer_cycle(&j, status);
    return wb_output_object_end(&j);
}

static void on_cycle(void *context, const struct wb_cycle_status *s)
{
    struct run_show *show = context;

    show->cycles++;
    if (show->err < 0)
        return;
    wb_progress_clear();
    if (show->json) {
        show->err = write_cycle(s);
        return;
    }
    show->err = wb_output_printf("cycle %" PRIu64 ": %" PRIu64 " listed, %" PRIu64 " asked for; %" PRIu64
                                 " stored, %" PRIu64 " unchanged, %" PRIu64 " gone, %" PRIu64 " errors, %" PRIu64
                                 " expunged\n",
                                 s->cycle, s->listed, s->fetched, s->stored, s->unchanged, s->gone, s->errors,
                                 s->expunged);
    if (show->err == 0)
        show->err = wb_output_flush();
}

static void on_evicted(void *context, struct wb_slice url, double value)
{
    struct run_show *show = context;
    struct wb_json j;

    if (!show->json || show->err < 0)
        return;
    wb_output_object_begin(&j, "evict");
    wb_json_field_slice(&j, "url", url);
    wb_json_field_double(&j, "value", value);
    show->err = wb_output_object_queue(&j);
}

static int write_end(const struct run_show *show)
{
    struct wb_json j;

    if (!show->json)
        return 0;
    wb_output_object_begin(&j, "done");
    wb_json_field_u64(&j, "cycles", show->cycles);
    return wb_output_object_end(&j);
}

int wb_cmd_run(const struct wb_options *options)
{
    struct wb_crawl_show crawl_show = {.log = WB_FILE_INIT};
    struct wb_cycle_show cycle_show;
    struct run_show shown = {.json = options->json};
    struct wb_cycle_options o;

    int err = wb_run_args_fill(options, &o);
    if (err == 0)
        err = wb_crawl_show_init(&crawl_show, options);
    if (err < 0)
        goto done;
    o.evicted = on_evicted;
    o.evicted_context = &shown;
    struct wb_crawl_sink crawl_sink = wb_crawl_show_sink(&crawl_show);
    struct wb_cycle_sink cycle_sink = wb_cycle_show_init(&cycle_show, "run");
    wb_stop_on_signals();
    err = wb_cycle_run(&o, &crawl_sink, &cycle_sink, on_cycle, &shown);
    wb_cycle_show_end(&cycle_show);
    if (err == 0)
        err = shown.err;
    if (err == 0)
        err = write_end(&shown);
done:
    wb_crawl_show_release(&crawl_show);
    return err;
}
