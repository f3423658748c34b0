/*
 * cmd_advise.c - webbase advise: which storage design suits a load, which is only calculated; or, with --currency, how
 * many fetches a repository needs.
 *
 *   {"alpha":0.95,"beta_days":7,"pages":120,"fetches_per_day":4.2,"reason":"..."}
 *
 *   {"design":"Incr[hash,log]","score":3.1,"add":15800,"get":7800,"stream":161000,"reason":"..."}
 */
#include "advice/advice.h"
#include "base/date.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cycle/cycle.h"
#include "store/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* "0.95,7d" */
static int read_currency(const char *text, double *alpha_out, double *beta_days_out)
{
    const char *comma = strchr(text, ',');
    int64_t beta_ms = 0;
    char *end = NULL;

    *alpha_out = comma && text[strspn(text, "0123456789.")] == ',' ? strtod(text, &end) : 0;
    bool good = comma && end == comma && *alpha_out > 0 && *alpha_out < 1 &&
                wb_options_parse_duration(comma + 1, &beta_ms);
    *beta_days_out = (double)beta_ms / WB_DAY_MS;
    return good ? 0
                : wb_options_usage("advise: --currency takes a share between 0 and 1 and a time, such as 0.95,7d, not "
                                   "'%s'",
                                   text);
}

static int advise_currency(const struct wb_options *options, const char *text)
{
    const char *word = wb_options_text(options, "policy");
    enum wb_refresh_policy policy = WB_REFRESH_OPTIMAL;
    struct wb_currency_advice advice;
    double alpha, beta_days;
    char reason[300];
    struct wb_json j;

    int err = read_currency(text, &alpha, &beta_days);
    if (err == 0 && word && !wb_refresh_policy_parse(wb_slice_str(word), &policy))
        err = wb_options_usage("advise: --policy: '%s' is unknown", word);
    if (err == 0)
        err = wb_store_require(options->dir);
    if (err == 0)
        err = wb_currency_advise(options->dir, alpha, beta_days, policy, &advice);
    if (err < 0)
        return err;
    double each = advice.fetches_per_day > 0 ? (double)advice.pages / advice.fetches_per_day : INFINITY;
    snprintf(reason, sizeof reason,
             "with the policy %s a page is fetched every %.3g days on average, by the pages' own rates of change; "
             "%.3g%% of the pages change too often to be worth a fetch",
             wb_refresh_policy_word(policy), each, 100 * advice.share_given_up);
    if (!options->json)
        return wb_output_printf("%.6g fetches per day keep %g of %" PRIu64 " pages current within %g days: %s\n",
                                advice.fetches_per_day, alpha, advice.pages, beta_days, reason);
    wb_output_object_begin(&j, NULL);
    wb_json_field_double(&j, "alpha", alpha);
    wb_json_field_double(&j, "beta_days", beta_days);
    wb_json_field_u64(&j, "pages", advice.pages);
    wb_json_field_double(&j, "fetches_per_day", advice.fetches_per_day);
    wb_json_field_str(&j, "reason", reason);
    return wb_output_object_end(&j);
}

int wb_cmd_advise(const struct wb_options *options)
{
    const char *currency = wb_options_text(options, "currency");

    if (currency)
        return advise_currency(options, currency);
    if (wb_options_text(options, "policy"))
        return wb_options_usage("advise: --policy goes with --currency");
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
