/*
 * cmd_why.c - webbase why: shows what decides whether a page or a site is fetched.
 *
 *   http://example.org/private
 *   blocked: robots.txt, line 2: Disallow: /private
 */
#include "base/date.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "crawl/crawl.h"

/* By enum wb_why_verdict. */
static const char *const verdicts[] = {"unknown", "fetched", "waiting", "blocked"};

static int write_json(const struct wb_why *why)
{
    struct wb_json j;

    wb_output_object_begin(&j, NULL);
    wb_json_field_slice(&j, "url", wb_buf_slice(&why->subject));
    if (why->is_site)
        wb_json_field_slice(&j, "site", wb_buf_slice(&why->subject));
    wb_json_field_str(&j, "verdict", verdicts[why->verdict]);
    wb_json_field_slice(&j, "reason", wb_buf_slice(&why->reason));
    wb_json_field_text(&j, "robots_line", wb_buf_slice(&why->robots_rule));
    wb_json_field_u64(&j, "robots_line_number", why->robots_line);
    wb_json_field_time(&j, "next_time", why->next_ms);
    wb_json_field_time(&j, "time", why->fetched_ms);
    wb_json_field_u64(&j, "status", why->status);
    wb_json_field_u64(&j, "versions", why->versions);
    wb_json_field_u64(&j, "captures", why->captures);
    wb_json_field_time(&j, "latest_since", why->since_ms);
    wb_json_field_time(&j, "gone_since", why->gone_ms);
    return wb_output_object_end(&j);
}

static int write_words(const struct wb_why *why)
{
    char text[WB_DATE_TEXT_MAX];

    int err = wb_output_text(wb_buf_slice(&why->subject));
    if (err == 0)
        err = wb_output_printf("\n%s: ", verdicts[why->verdict]);
    if (err == 0)
        err = wb_output_text(wb_buf_slice(&why->reason));
    if (err == 0)
        err = wb_output_printf("\n");
    if (err == 0 && why->next_ms) {
        wb_date_format(why->next_ms, text);
        err = wb_output_printf("not before %s\n", text);
    }
    if (err == 0 && why->versions > 1 && !why->gone_ms)
        err = wb_output_printf("%zu versions\n", why->versions);
    if (err == 0 && why->gone_ms) {
        wb_date_format(why->gone_ms, text);
        err = wb_output_printf("gone since %s; %zu version%s kept\n", text, why->versions,
                               why->versions == 1 ? " is" : "s are");
    }
    return err;
}

int wb_cmd_why(const struct wb_options *options)
{
    struct wb_why why;
    int err = wb_why(options->dir, wb_options_text(options, "dispenser"), wb_options_text(options, "user-agent"),
                     options->args[0], &why);

    if (err == 0)
        err = options->json ? write_json(&why) : write_words(&why);
    wb_why_release(&why);
    return err;
}
