/* cmd_run.c - webbase run: goes around the cycle, for ever or as often as told. */
#include "base/date.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/crawl_args.h"
#include "cli/crawl_show.h"
#include "cli/cycle_show.h"
#include "cli/output.h"
#include "os/stop.h"

#include <inttypes.h>


struct run {
    bool json;
    uint64_t cycles;
    int err; /* of writing */
};

static int write_cycle(const struct wb_cycle_status *status)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "cycle");
    wb_cycle_status_fields(&j, status);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static void on_cycle(void *context, const struct wb_cycle_status *s)
{
    struct run *run = context;

    run->cycles++;
    if (run->err < 0)
        return;
    wb_progress_clear();
    if (run->json) {
        run->err = write_cycle(s);
        return;
    }
    run->err = wb_output_printf("cycle %" PRIu64 ": %" PRIu64 " listed, %" PRIu64 " asked for; %" PRIu64 " stored, %" PRIu64 " unchanged, %" PRIu64
                                " gone, %" PRIu64 " errors, %" PRIu64 " expunged\n",
                                s->cycle, s->listed, s->fetched, s->stored, s->unchanged, s->gone, s->errors, s->expunged);
    if (run->err == 0)
        run->err = wb_output_flush();
}

static int write_end(const struct run *run)
{
    struct wb_buf line = WB_BUF_INIT;
    struct wb_json j;

    if (!run->json)
        return 0;
    wb_json_init(&j, &line);
    wb_json_object(&j);
    wb_json_field_str(&j, "event", "done");
    wb_json_field_u64(&j, "cycles", run->cycles);
    int err = wb_output_object(&j);
    wb_buf_release(&line);
    return err;
}

static int fill_options(const struct wb_options *options, struct wb_cycle_options *o)
{
    bool bounded = wb_options_text(options, "cycles") || wb_options_text(options, "budget");

    *o = (struct wb_cycle_options){
        .cycles = wb_options_number(options, "cycles", 0),
        /* For ever, and everything each time: not more than once a day unless told. */
        .every_ms = wb_options_duration(options, "every", bounded ? 0 : WB_DAY_MS),
        .memory_bytes = wb_options_number(options, "memory", 0),
    };
    wb_crawl_args_fill(options, &o->crawl);
    int err = wb_crawl_args_check(&o->crawl);
    if (err == 0)
        err = wb_generate_args_fill(options, &o->generate);
    if (err == 0 && o->crawl.seeds_file && strcmp(o->crawl.seeds_file, "-") == 0)
        err = wb_usage("run: --seeds is read in every cycle, which standard input cannot be");
    return err;
}

int wb_cmd_run(const struct wb_options *options)
{
    struct wb_crawl_show crawl_show = {.log = WB_FILE_INIT};
    struct wb_cycle_show cycle_show;
    struct run run = {.json = options->json};
    struct wb_cycle_options o;

    int err = fill_options(options, &o);
    if (err == 0)
        err = wb_crawl_show_init(&crawl_show, options);
    if (err < 0)
        goto done;
    struct wb_crawl_sink crawl_sink = wb_crawl_show_sink(&crawl_show);
    struct wb_cycle_sink cycle_sink = wb_cycle_show_init(&cycle_show, "run");
    wb_stop_on_signals();
    err = wb_cycle_run(&o, &crawl_sink, &cycle_sink, on_cycle, &run);
    wb_cycle_show_end(&cycle_show);
    if (err == 0)
        err = run.err;
    if (err == 0)
        err = write_end(&run);
done:
    wb_crawl_show_release(&crawl_show);
    return err;
}
