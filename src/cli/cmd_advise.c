/*
 * cmd_advise.c - webbase advise: which storage design suits a load. It only calculates and never opens a repository.
 *
 *   {"design":"Incr[hash,log]","score":3.1,"add":15800,"get":7800,"stream":161000,"reason":"..."}
 */
#include "advice/advice.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"

#include <math.h>
#include <stdlib.h>

#define RATIO 0.25 /* the paper's */
#define LONGEST 50 /* letters of Batch[U(uniform,hashed-log),R(uniform,hashed-log)] */

static int read_ratio(const struct wb_options *options, double *ratio_out)
{
    const char *text = wb_options_text(options, "update-ratio");
    char *end = NULL;

    *ratio_out = RATIO;
    if (!text)
        return 0;
    *ratio_out = strtod(text, &end);
    if (end == text || *end || !isfinite(*ratio_out) || *ratio_out < 0 || *ratio_out > 1)
        return wb_options_usage("advise: --update-ratio takes a number from 0 to 1, not '%s'", text);
    return 0;
}

static int read_load(const struct wb_options *options, struct wb_advice_load *load_out)
{
    uint64_t nodes = wb_options_number(options, "nodes", 1);

    *load_out = (struct wb_advice_load){.add = wb_options_rate(options, "add", 0),
                                        .get = wb_options_rate(options, "get", 0),
                                        .stream = wb_options_rate(options, "stream", 0)};
    if (nodes > WB_DESIGN_NODES_MAX)
        return wb_options_usage("advise: --nodes takes a number of at most %d, not %llu", WB_DESIGN_NODES_MAX,
                                (unsigned long long)nodes);
    load_out->nodes = (unsigned)nodes;
    int err = read_ratio(options, &load_out->update_ratio);
    if (err == 0 && load_out->add + load_out->get + load_out->stream <= 0)
        err = wb_options_usage("advise: at least one of --add, --get and --stream must be more than 0");
    return err;
}

static int print_object(const struct wb_advice *advice, const char *name)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_json_field_str(&j, "design", name);
    wb_json_field_double(&j, "score", advice->score);
    wb_json_field_double(&j, "add", advice->add);
    wb_json_field_double(&j, "get", advice->get);
    wb_json_field_double(&j, "stream", advice->stream);
    wb_json_field_str(&j, "reason", advice->reason);
    return wb_output_object_queue(&j);
}

static int print_row(const struct wb_advice *advice, const char *name)
{
    char score[WB_ADVICE_SCORE_TEXT_MAX];

    return wb_output_printf("%-*s %10s %10.0f %10.0f %10.0f\n", LONGEST, name,
                            wb_advice_score_text(advice->score, score), advice->add, advice->get, advice->stream);
}

int wb_cmd_advise(const struct wb_options *options)
{
    struct wb_advice advice[WB_ADVICE_DESIGNS];
    char name[WB_DESIGN_TEXT_MAX];
    struct wb_advice_load load;
    int err = read_load(options, &load);

    if (err < 0)
        return err;
    wb_advice_for(&wb_advice_measured, &load, advice);
    if (!options->json)
        err = wb_output_printf("%-*s %10s %10s %10s %10s\n", LONGEST, "design", "score", "add/s", "get/s", "stream/s");
    for (size_t i = 0; err == 0 && i < WB_ADVICE_DESIGNS; i++) {
        wb_design_format(&advice[i].design, name);
        err = options->json ? print_object(&advice[i], name) : print_row(&advice[i], name);
    }
    if (err < 0 || options->json)
        return err;
    wb_design_format(&advice[0].design, name);
    return wb_output_printf("\n%s: %s.\nMeasured: %s.\n", name, advice[0].reason, wb_advice_measured_where());
}
